//! Calls on an asynchronous device: the speed of its kernels, and the host's cost of a launch.
//!
//! `device NAME [PART OF A CASE]` prints one JSON line for each case, `device NAME --list` the cases, and `device NAME --serve`
//! answers each line of its input, the name of a case, with its result line, for a program that measures another library
//! alternately (`beside_pytorch.py`). With `--small` all sizes are small, for a quick check. Cases whose names begin with
//! `launch` time the host alone, while the device has little to do; the others wait for the device after their last call.

mod gradients;
mod more;

use keyway::autograd::no_grad;
use keyway::nn::{Linear, Module, Relu, Sequential, functional::cross_entropy};
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::{DType, Device, MatmulPrecision, Tensor, graph, set_float32_matmul_precision};
use keyway_dispatcher::device::synchronize;
use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

/// Number of timed runs, and the minimum time of a run.
const RUNS: usize = 7;
const RUN: Duration = Duration::from_millis(20);

type Failure = Box<dyn std::error::Error>;
type Call = Box<dyn FnMut() -> keyway::Result<()>>;

/// A case: its name, the unit of work, the work of one call in this unit, and the function that creates the call.
struct Case {
    name: String,
    unit: &'static str,
    work: f64,
    make: Box<dyn Fn() -> keyway::Result<Call>>,
}

fn case(
    name: impl Into<String>,
    (unit, work): (&'static str, f64),
    make: impl Fn() -> keyway::Result<Call> + 'static,
) -> Case {
    Case { name: name.into(), unit, work, make: Box::new(make) }
}

/// A call whose result is dropped.
fn call<R>(f: impl Fn() -> keyway::Result<R> + 'static) -> keyway::Result<Call> {
    Ok(Box::new(move || f().map(drop)))
}

/// Sizes of the cases.
#[derive(Clone, Copy)]
struct Sizes {
    elements: usize,
    side: usize,
    product: usize,
    heads: usize,
    length: usize,
    images: usize,
    image: usize,
}

const LARGE: Sizes = Sizes {
    elements: 100_000_000,
    side: 8192,
    product: 4096,
    heads: 16,
    length: 2048,
    images: 32,
    image: 56,
};
const SMALL: Sizes =
    Sizes { elements: 10_000, side: 64, product: 64, heads: 2, length: 64, images: 2, image: 8 };

fn main() -> Result<(), Failure> {
    let options: Vec<String> = std::env::args().skip(1).filter(|option| option != "--bench").collect();
    let sizes = if options.iter().any(|option| option == "--small") { SMALL } else { LARGE };
    let words: Vec<&str> = options.iter().map(String::as_str).filter(|word| *word != "--small").collect();
    let (&name, rest) =
        words.split_first().ok_or("usage: device NAME [--list | --serve | PART OF A CASE] [--small]")?;
    let device: Device = name.parse()?;
    let cases = cases(device, sizes);
    let mut out = std::io::stdout().lock();
    match *rest {
        ["--list"] => cases.iter().try_for_each(|case| writeln!(out, "{}", case.name))?,
        ["--serve"] => {
            for name in std::io::stdin().lock().lines() {
                let name = name?;
                let case = cases.iter().find(|case| case.name == name);
                let case = case.ok_or_else(|| format!("there is no case `{name}`"))?;
                writeln!(out, "{}", measured(device, case))?;
                out.flush()?;
            }
        }
        [] | [_] => {
            let wanted = rest.first().copied().unwrap_or_default();
            for case in cases.iter().filter(|case| case.name.contains(wanted)) {
                writeln!(out, "{}", measured(device, case))?;
            }
        }
        _ => return Err("usage: device NAME [--list | --serve | PART OF A CASE] [--small]".into()),
    }
    Ok(())
}

/// The result line of a case: its median and minimum time in nanoseconds, or its error.
fn measured(device: Device, case: &Case) -> Json {
    let times = (case.make)().and_then(|mut call| times(device, case, &mut call));
    match times {
        Ok(mut times) => {
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            json!({
                "peer": "keyway", "case": case.name, "device": device.to_string(), "median_ns": median,
                "min_ns": times[0], "samples": times.len(), "unit": case.unit, "rate": case.work / median,
            })
        }
        Err(error) => json!({ "peer": "keyway", "case": case.name, "error": error.to_string() }),
    }
}

/// Nanoseconds of one call, for each run.
fn times(device: Device, case: &Case, call: &mut Call) -> keyway::Result<Vec<f64>> {
    let host_alone = case.name.starts_with("launch");
    let mut run = |calls: u32| -> keyway::Result<Duration> {
        synchronize(device)?;
        let begin = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        let given = begin.elapsed();
        synchronize(device)?;
        Ok(if host_alone { given } else { begin.elapsed() })
    };
    run(2)?;
    let once = run(1)?;
    // A full launch queue makes the host wait.
    let most = if host_alone { 500 } else { 10_000 };
    let calls = (RUN.as_nanos() / once.as_nanos().max(1)).clamp(1, most) as u32;
    (0..RUNS).map(|_| Ok(run(calls)?.as_nanos() as f64 / f64::from(calls))).collect()
}

fn cases(device: Device, sizes: Sizes) -> Vec<Case> {
    let mut all = launches(device);
    all.extend(by_bytes(device, sizes));
    all.extend(products(device, sizes));
    all.extend(more::cases(device, sizes));
    all.extend(gradients::cases(device, sizes));
    all
}

/// The host's cost of a call.
fn launches(device: Device) -> Vec<Case> {
    let one = move || Tensor::ones_with([1], device);
    vec![
        case("launch.add", ("op", 1.0), move || {
            let (a, b) = (one()?, one()?);
            call(move || a.add(&b))
        }),
        case("launch.add_out", ("op", 1.0), move || {
            let (a, b, mut out) = (one()?, one()?, one()?);
            Ok(Box::new(move || a.add_out(&b, &mut out).map(drop)))
        }),
        case("launch.mlp_step", ("step", 1.0), move || mlp_step(device)),
    ]
}

/// Memory-bound cases: each input is read once, each output written once.
fn by_bytes(device: Device, sizes: Sizes) -> Vec<Case> {
    let (n, side) = (sizes.elements, sizes.side);
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F16] {
        let bytes = |tensors: usize, count: usize| ("byte", (tensors * count * dtype.size()) as f64);
        let line = move || Tensor::rand_with([n], (dtype, device));
        let square = move || Tensor::rand_with([side, side], (dtype, device));
        let name = |what: &str| format!("{what}.{dtype}");
        all.push(case(name("copy"), bytes(2, n), move || {
            let a = line()?;
            call(move || a.copy())
        }));
        all.push(case(name("add"), bytes(3, n), move || {
            let (a, b) = (line()?, line()?);
            call(move || a.add(&b))
        }));
        all.push(case(name("exp"), bytes(2, n), move || {
            let a = line()?;
            call(move || a.exp())
        }));
        all.push(case(name("sum"), bytes(1, n), move || {
            let a = line()?;
            call(move || a.sum_all())
        }));
        all.push(case(name("transpose"), bytes(2, side * side), move || {
            let a = square()?.t()?;
            call(move || a.contiguous())
        }));
        all.push(case(name("sum_rows"), bytes(1, side * side), move || {
            let a = square()?;
            call(move || a.sum(1))
        }));
        all.push(case(name("sum_columns"), bytes(1, side * side), move || {
            let a = square()?;
            call(move || a.sum(0))
        }));
        all.push(case(name("softmax"), bytes(2, side * side), move || {
            let a = square()?;
            call(move || a.softmax(-1))
        }));
        all.push(case(name("layer_norm"), bytes(2, side * side), move || {
            let (a, weight) = (square()?, Tensor::ones_with([side], (dtype, device))?);
            let shape = [side as i64];
            call(move || a.layer_norm(shape, Some(&weight), Some(&weight)))
        }));
    }
    all
}

/// Compute-bound cases.
fn products(device: Device, sizes: Sizes) -> Vec<Case> {
    let n = sizes.product;
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        all.push(case(format!("mm.{dtype}"), ("flop", 2.0 * (n as f64).powi(3)), move || {
            let make = || Tensor::rand_with([n, n], (dtype, device));
            let (a, b) = (make()?, make()?);
            call(move || a.mm(&b))
        }));
        let (heads, length) = (sizes.heads, sizes.length);
        let flops = 4.0 * (4 * heads * length * length * 64) as f64;
        all.push(case(format!("attention.{dtype}"), ("flop", flops), move || {
            let make = || Tensor::rand_with([4, heads, length, 64], (dtype, device));
            let (q, k, v) = (make()?, make()?, make()?);
            call(move || q.scaled_dot_product_attention(&k, &v))
        }));
    }
    all.push(case("mm.tf32", ("flop", 2.0 * (n as f64).powi(3)), move || {
        let make = || Tensor::rand_with([n, n], device);
        let (a, b) = (make()?, make()?);
        call(move || {
            set_float32_matmul_precision(MatmulPrecision::High);
            let product = a.mm(&b);
            set_float32_matmul_precision(MatmulPrecision::Highest);
            product
        })
    }));
    all.push(case("mlp_step", ("step", 1.0), move || mlp_step(device)));
    all.push(case("mlp_step_graph", ("step", 1.0), move || {
        let mut step = mlp_step(device)?;
        step()?;
        let ((), captured) = graph::capture(device, step)?;
        Ok(Box::new(move || captured.replay()))
    }));
    all
}

/// A step of the MLP that the host's benches train.
fn mlp_step(device: Device) -> keyway::Result<Call> {
    let linear = |i, o| Linear::new(i, o);
    let model = Sequential::new()
        .push(linear(784, 512)?)
        .push(Relu)
        .push(linear(512, 512)?)
        .push(Relu)
        .push(linear(512, 10)?);
    model.to_device(device)?;
    let x = Tensor::rand_with([128, 784], device)?;
    let y = {
        let _off = no_grad();
        Tensor::randint_with(0, 10, [128], (DType::I64, device))?
    };
    let mut sgd = Sgd::new(model.parameters(), SgdOptions { lr: 1e-3, ..SgdOptions::default() })?;
    Ok(Box::new(move || {
        sgd.zero_grad();
        cross_entropy(&model.forward(&x)?, &y)?.backward()?;
        sgd.step()
    }))
}
