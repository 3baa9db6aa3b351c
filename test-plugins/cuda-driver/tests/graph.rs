//! Captured work on the stand-in, and optimizer steps in one launch: the results of replays are bit-identical to those of
//! the same calls made eagerly.

mod support;

use keyway::nn::{Linear, Module};
use keyway::optim::{Adam, AdamOptions, AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
use keyway::rng::{self, Generator};
use keyway::{Device, Tensor, graph};
use keyway_dispatcher::device::{Stream, memory_stats, properties, set_memory_limit, synchronize};
use std::path::Path;
use support::{cuda, load, message, ramp, run, stand_in, start, texts};

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    match support::scenario().as_deref() {
        None => {}
        Some("training") => training(),
        Some("memory") => memory(),
        Some("many") => many(),
        Some("products") => products(),
        Some("refusals") => refusals(),
        Some("allocator") => allocator(),
        Some("garbage") => garbage(),
        Some("failures") => failures(),
        Some("launches") => launches(),
        Some(other) => panic!("there is no scenario {other}"),
    }
}

/// Optimisers by name.
const OPTIMIZERS: [&str; 4] = ["sgd", "nesterov", "adam", "adamw"];

fn optimizer(name: &str, parameters: Vec<Tensor>) -> Box<dyn Optimizer> {
    let sgd = SgdOptions { lr: 0.05, momentum: 0.9, weight_decay: 0.01, ..SgdOptions::default() };
    let adam = AdamWOptions { lr: 0.01, ..AdamWOptions::default() };
    match name {
        "sgd" => Box::new(Sgd::new(parameters, sgd).unwrap()),
        "nesterov" => Box::new(Sgd::new(parameters, SgdOptions { nesterov: true, ..sgd }).unwrap()),
        "adam" => Box::new(Adam::new(parameters, adam).unwrap().capturable().unwrap()),
        _ => Box::new(AdamW::new(parameters, adam).unwrap().capturable().unwrap()),
    }
}

/// A net of two layers, its inputs and its optimiser.
struct Training {
    layers: [Linear; 2],
    x: Tensor,
    y: Tensor,
    optimizer: Box<dyn Optimizer>,
}

impl Training {
    fn new(name: &str, device: Device) -> Training {
        let layer = |(from, to)| {
            let layer = Linear::new(from, to).unwrap();
            layer.to_device(device).unwrap();
            layer
        };
        let layers = rng::with_generator(&Generator::new(3), || [(6, 16), (16, 2)].map(layer));
        let parameters = layers.iter().flat_map(Module::parameters).collect();
        let (x, y) = (batch(0, 6).to_device(device).unwrap(), batch(7, 2).to_device(device).unwrap());
        Training { x, y, optimizer: optimizer(name, parameters), layers }
    }

    fn step(&mut self) -> keyway::Result<Tensor> {
        self.optimizer.zero_grad();
        let hidden = self.layers[0].forward(&self.x)?.tanh()?;
        let difference = self.layers[1].forward(&hidden)?.sub(&self.y)?;
        let loss = difference.mul(&difference)?.mean_all()?;
        loss.backward()?;
        self.optimizer.step()?;
        Ok(loss.detach())
    }

    /// Writes the next inputs into the memory of the present ones.
    fn feed(&self, step: usize) {
        let device = self.x.device();
        self.x.copy_(&batch(step, 6).to_device(device).unwrap()).unwrap();
        self.y.copy_(&batch(step + 7, 2).to_device(device).unwrap()).unwrap();
    }

    fn bits(&self) -> Vec<u32> {
        let all = self.layers.iter().flat_map(Module::parameters);
        all.flat_map(|p| p.detach().to_vec::<f32>().unwrap()).map(f32::to_bits).collect()
    }
}

/// Pseudo-random values between -1 and 1, 10 rows.
fn batch(seed: usize, width: usize) -> Tensor {
    let value = |i: usize| (((i + 31 * seed) * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
    Tensor::from_vec((0..10 * width).map(value).collect(), [10, width]).unwrap()
}

fn training() {
    load();
    let d = cuda(0);
    for name in OPTIMIZERS {
        const STEPS: usize = 12;
        let mut eager = Training::new(name, d);
        let mut losses = Vec::new();
        for step in 0..STEPS {
            eager.feed(step);
            losses.push(eager.step().unwrap().item::<f32>().unwrap().to_bits());
        }
        let mut captured = Training::new(name, d);
        captured.feed(0);
        assert_eq!(captured.step().unwrap().item::<f32>().unwrap().to_bits(), losses[0]);
        let before = captured.bits();
        let (loss, graph) = graph::capture(d, || captured.step()).unwrap();
        synchronize(d).unwrap();
        assert_eq!(captured.bits(), before, "{name}: captured work was done");
        let other = Stream::new(d).unwrap();
        for (step, expected) in losses.iter().enumerate().skip(1) {
            // Other work between replays takes free memory, and writes to it.
            captured.feed(step);
            let noise = ramp(&[40, 40]).to_device(d).unwrap();
            drop(noise.mm(&noise).unwrap().exp().unwrap());
            if step % 3 == 0 {
                synchronize(d).unwrap();
                let entered = other.enter();
                graph.replay().unwrap();
                drop(entered);
                other.synchronize().unwrap();
            } else {
                graph.replay().unwrap();
            }
            assert_eq!(loss.item::<f32>().unwrap().to_bits(), *expected, "{name}, step {step}");
        }
        assert_eq!(captured.bits(), eager.bits(), "{name}");
        // The count of steps is the number of replays.
        let (state, of_eager) =
            (captured.optimizer.state_dict().unwrap(), eager.optimizer.state_dict().unwrap());
        for (key, value) in &of_eager {
            assert_eq!(state[key].to_vec_f64().unwrap(), value.to_vec_f64().unwrap(), "{name}: {key}");
        }
        // The optimizer continues without the graph, with its state.
        drop(graph);
        captured.optimizer.load_state_dict(&state).unwrap();
        for training in [&mut captured, &mut eager] {
            training.feed(STEPS);
            training.step().unwrap();
        }
        assert_eq!(captured.bits(), eager.bits(), "{name}: after the graph");
    }
    // Bias corrections computed on the device equal those computed on the host to the last digits.
    let mut by_host = Training::new("adamw", d);
    let options = AdamWOptions { lr: 0.01, ..AdamWOptions::default() };
    let parameters = by_host.layers.iter().flat_map(Module::parameters).collect();
    by_host.optimizer = Box::new(AdamW::new(parameters, options).unwrap());
    let mut by_device = Training::new("adamw", d);
    for step in 0..20 {
        for training in [&mut by_host, &mut by_device] {
            training.feed(step);
            training.step().unwrap();
        }
    }
    for (a, b) in
        by_host.bits().into_iter().zip(by_device.bits()).map(|(a, b)| (f32::from_bits(a), f32::from_bits(b)))
    {
        assert!((a - b).abs() <= 1e-6 * a.abs().max(0.1), "{a} {b}");
    }
}

/// Memory used by captured work is retained although all other owners release it, and is freed with the graph.
fn memory() {
    load();
    let d = cuda(0);
    let in_use = || {
        synchronize(d).unwrap();
        memory_stats(d).unwrap().unwrap().in_use
    };
    let before = in_use();
    for round in 0..20 {
        let input = ramp(&[50, 30]).to_device(d).unwrap();
        // Sums of several passes allocate workspace for a kernel.
        let work = || input.mul(2.0)?.t()?.softmax(0)?.sum(1);
        let expected = work().unwrap().to_vec::<f32>().unwrap();
        let (made, captured) = graph::capture(d, work).unwrap();
        drop(input);
        for _ in 0..4 {
            let other = ramp(&[50, 30]).to_device(d).unwrap();
            drop(other.mul(f64::from(round)).unwrap().sum_all().unwrap());
            keyway_dispatcher::device::empty_cache(d).unwrap();
            captured.replay().unwrap();
            assert_eq!(made.to_vec::<f32>().unwrap(), expected, "round {round}");
        }
        // The last replay is pending when the graph is dropped.
        made.zero_().unwrap();
        captured.replay().unwrap();
        drop(captured);
        assert_eq!(made.to_vec::<f32>().unwrap(), expected, "round {round}");
        drop(made);
        assert_eq!(in_use(), before);
    }
}

/// Graphs that are created and destroyed leak no memory.
fn many() {
    load();
    let d = cuda(0);
    let a = ramp(&[8, 8]).to_device(d).unwrap();
    let held = || memory_stats(d).unwrap().unwrap().held;
    let mut most = 0;
    for nth in 0..100 {
        let (made, graph) = graph::capture(d, || a.mul(2.0)?.softmax(1)).unwrap();
        graph.replay().unwrap();
        drop(made.to_vec::<f32>().unwrap());
        drop((made, graph));
        if nth == 4 {
            most = held();
        }
    }
    assert!(held() <= most && most <= 8 << 20, "{most} bytes, then {}", held());
}

/// Captured products by cuBLASLt: alone, with a bias, and after the graph.
fn products() {
    load();
    let d = cuda(0);
    let (a, bias) = (ramp(&[16, 16]).to_device(d).unwrap(), ramp(&[16]).to_device(d).unwrap());
    let work = || a.mm(&a)?.linear(&a, Some(&bias));
    let expected = work().unwrap().to_vec::<f32>().unwrap();
    for _ in 0..3 {
        let (made, graph) = graph::capture(d, work).unwrap();
        for _ in 0..3 {
            made.zero_().unwrap();
            graph.replay().unwrap();
            assert_eq!(made.to_vec::<f32>().unwrap(), expected);
        }
        drop(graph);
        assert_eq!(work().unwrap().to_vec::<f32>().unwrap(), expected);
    }
}

fn refusals() {
    load();
    let d = cuda(0);
    let a = ramp(&[4, 4]).to_device(d).unwrap();
    let works = |what: &str| {
        let (made, graph) = graph::capture(d, || a.mul(2.0)).unwrap();
        graph.replay().unwrap();
        assert_eq!(
            made.to_vec::<f32>().unwrap(),
            ramp(&[4, 4]).mul(2.0).unwrap().to_vec::<f32>().unwrap(),
            "{what}"
        );
    };
    let refused = |what: &str, part: &str, work: &dyn Fn() -> keyway::Result<()>| {
        let text = message(graph::capture(d, work));
        assert!(text.contains(part), "{what}: {text}");
        works(what);
    };
    let waits = "is being captured";
    refused("to_vec", waits, &|| a.mul(2.0)?.to_vec::<f32>().map(drop));
    refused("item", waits, &|| a.sum_all()?.item::<f32>().map(drop));
    refused("from the host", waits, &|| ramp(&[3]).to_device(d).map(drop));
    refused("synchronize", waits, &|| Ok(synchronize(d)?));
    refused("a stream", waits, &|| Ok(Stream::current(d)?.synchronize()?));
    let whole = Tensor::new([4i64, 2]).unwrap().to_device(d).unwrap();
    refused("integers that may be 0", waits, &|| whole.remainder(&whole).map(drop));
    refused("sizes that the device knows", waits, &|| whole.nonzero().map(drop));
    let elsewhere = "is on a device whose work is not being captured";
    let host = ramp(&[4, 4]);
    let other = ramp(&[4, 4]).to_device(cuda(1)).unwrap();
    refused("an op on the CPU", elsewhere, &|| host.mul(2.0).map(drop));
    refused("in place on the CPU", elsewhere, &|| host.add_(1.0).map(drop));
    refused("an op on another device", elsewhere, &|| other.mul(2.0).map(drop));
    for out in [&host, &other] {
        refused("an output elsewhere", elsewhere, &|| a.add_out(&a, &mut out.detach()).map(drop));
    }
    // A 0-d tensor of the host is captured as a number.
    let (made, graph) = graph::capture(d, || a.mul(&Tensor::new(2.0f32)?.mul(2.0)?)).unwrap();
    graph.replay().unwrap();
    assert_eq!(made.to_vec::<f32>().unwrap(), ramp(&[4, 4]).mul(4.0).unwrap().to_vec::<f32>().unwrap());
    refused("another capture", "being captured already", &|| graph::capture(d, || Ok(())).map(drop));
    refused("random numbers", "the same numbers", &|| Tensor::rand_with([3], d).map(drop));
    refused("dropout", "the same numbers", &|| a.dropout(0.5, true).map(drop));
    refused("an error of its own", "do not broadcast", &|| a.add(&Tensor::zeros_with([3], d)?).map(drop));
    // Optimizers whose steps depend on host state that a replay would not update.
    let w = ramp(&[3]).to_device(d).unwrap().requires_grad_(true).unwrap();
    let backward = || w.mul(&w)?.sum_all()?.backward();
    let mut by_host = Adam::new(vec![w.clone()], AdamOptions::default()).unwrap();
    backward().unwrap();
    by_host.step().unwrap();
    let text = message(graph::capture(d, || by_host.step()));
    assert!(text.contains("Adam cannot be captured") && text.contains("`capturable`"), "{text}");
    let mut fresh = Sgd::new(vec![w.clone()], SgdOptions { momentum: 0.5, ..SgdOptions::default() }).unwrap();
    let text = message(graph::capture(d, || fresh.step()));
    assert!(text.contains("one step before the capture"), "{text}");
    works("optimisers");
    let panicked =
        std::panic::catch_unwind(|| graph::capture(d, || -> keyway::Result<()> { panic!("inside") }));
    assert!(panicked.is_err());
    works("a panic");
    // Insufficient memory: cached memory cannot be released during a capture, which is a single error.
    set_memory_limit(d, 1 << 20).unwrap();
    refused("memory", "out of memory", &|| Tensor::zeros_with([1 << 20], d).map(drop));
    set_memory_limit(d, 0).unwrap();
    let more = properties(d).unwrap().total_memory as usize / 4 + 1;
    refused("memory of the machine", "out of memory", &|| Tensor::zeros_with([more], d).map(drop));
    // A device without graphs.
    let text = message(graph::capture(Device::CPU, || Ok(())));
    assert!(text.contains("a device that can capture work") && text.contains("cpu"), "{text}");
    let text = message(graph::capture(cuda(9), || Ok(())));
    assert!(text.contains("cuda:9"), "{text}");
}

fn garbage() {
    load();
    for _ in 0..2 {
        drop(ramp(&[3]).to_device(cuda(0)).unwrap());
    }
}

fn allocator() {
    load();
    let text = message(graph::capture(cuda(0), || Ok(())));
    assert!(text.contains("KEYWAY_CUDA_ALLOCATOR"), "{text}");
}

/// The whole life cycle of a graph, in which one call of the driver fails: an error, or correct results, and no hang.
fn failures() {
    load();
    let d = cuda(0);
    let life = || -> keyway::Result<()> {
        let a = ramp(&[8, 8]).to_device(d)?;
        let work = || a.mul(2.0)?.softmax(1)?.sum_all();
        let expected = work()?.item::<f32>()?;
        let (made, graph) = graph::capture(d, work)?;
        graph.replay()?;
        graph.replay()?;
        let got = made.item::<f32>()?;
        assert_eq!(got.to_bits(), expected.to_bits());
        drop(graph);
        assert_eq!(work()?.item::<f32>()?.to_bits(), expected.to_bits());
        Ok(())
    };
    // Exactly one call fails: in one life cycle or, if it is in the drop of a graph, in none.
    let failed: Vec<String> = (0..3).filter_map(|_| life().err()).map(|error| error.to_string()).collect();
    assert!(failed.len() <= 1, "{failed:?}");
    println!("ended");
}

/// A step of many tensors is few launches, and its results equal those of single steps.
fn launches() {
    load();
    for (name, device) in ["sgd", "adamw"].into_iter().flat_map(|name| [(name, cuda(0)), (name, Device::CPU)])
    {
        let leaf = |k: usize| {
            let sizes = [1 + k % 5, k % 7];
            ramp(&sizes).add(k as f64 / 8.0).unwrap().to_device(device).unwrap().requires_grad_(true).unwrap()
        };
        let (all, alone): (Vec<Tensor>, Vec<Tensor>) = (0..200).map(|k| (leaf(k), leaf(k))).unzip();
        let mut together = optimizer(name, all.clone());
        let mut single: Vec<_> = alone.iter().map(|p| optimizer(name, vec![p.clone()])).collect();
        for _ in 0..3 {
            for p in all.iter().chain(&alone) {
                p.zero_grad();
                p.mul(p).unwrap().mul(0.5).unwrap().sum_all().unwrap().backward().unwrap();
            }
            together.step().unwrap();
            single.iter_mut().for_each(|optimizer| optimizer.step().unwrap());
        }
        for (a, b) in all.iter().zip(&alone) {
            let bits = |t: &Tensor| -> Vec<u32> {
                t.detach().to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
            };
            assert_eq!(bits(a), bits(b), "{name} on {device}");
        }
    }
}

#[test]
fn replays_have_the_bits_of_single_steps() {
    let Some(driver) = stand_in() else { return };
    for seed in ["1", "2", "3"] {
        run("training", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
}

#[test]
fn recorded_work_keeps_its_memory() {
    let Some(driver) = stand_in() else { return };
    for seed in ["1", "2"] {
        run("memory", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
}

#[test]
fn graphs_that_come_and_go_hold_no_memory() {
    let Some(driver) = stand_in() else { return };
    run("many", &driver, &[]);
}

#[test]
fn products_of_the_library_are_recorded() {
    let Some(driver) = stand_in() else { return };
    let library = driver.with_file_name("libcublasLt.so.12");
    for seed in ["1", "2"] {
        run(
            "products",
            &driver,
            &[("KEYWAY_CUDA_BLAS", library.to_str().unwrap()), ("KEYWAY_STAND_IN_SEED", seed)],
        );
    }
}

#[test]
fn an_allocator_that_is_unknown_is_said_once() {
    let Some(driver) = stand_in() else { return };
    let said = texts(&start("garbage", &driver, &[("KEYWAY_CUDA_ALLOCATOR", "garbage")]));
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("KEYWAY_CUDA_ALLOCATOR")).collect();
    assert!(lines.len() == 1 && lines[0].contains("garbage") && lines[0].contains("`pool`"), "{said}");
}

#[test]
fn what_cannot_be_captured_is_an_error_and_leaves_all_as_it_was() {
    let Some(driver) = stand_in() else { return };
    run("refusals", &driver, &[]);
    run("allocator", &driver, &[("KEYWAY_CUDA_ALLOCATOR", "pool")]);
}

#[test]
fn a_step_of_many_tensors_is_that_of_each() {
    let Some(driver) = stand_in() else { return };
    run("launches", &driver, &[]);
}

/// The calls that capturing and replaying make, each of which fails once.
const CALLS: [(&str, u32); 10] = [
    ("cuStreamCreate", 1),
    ("cuStreamBeginCapture_v2", 1),
    ("cuStreamEndCapture", 1),
    ("cuGraphInstantiateWithFlags", 1),
    ("cuGraphDestroy", 1),
    ("cuGraphLaunch", 2),
    ("cuGraphExecDestroy", 1),
    ("cuEventCreate", 1),
    ("cuEventRecord", 2),
    ("cuEventSynchronize", 1),
];

#[test]
fn a_call_of_the_driver_that_fails_is_one_error() {
    let Some(driver) = stand_in() else { return };
    for (call, times) in CALLS {
        for nth in 1..=times {
            failing(&driver, &format!("{call}:{nth}"));
        }
    }
    // And calls of any kind, in the middle of it.
    for nth in (5..200).step_by(13) {
        failing(&driver, &format!("cuCtxSetCurrent:{nth}"));
        failing(&driver, &format!("cuLaunchKernel:{}", nth % 12 + 1));
    }
}

fn failing(driver: &Path, which: &str) {
    let output = start("failures", driver, &[("KEYWAY_STAND_IN_FAIL", which)]);
    let said = texts(&output);
    assert!(output.status.success() && said.contains("ended"), "{which}: {}\n{said}", output.status);
}
