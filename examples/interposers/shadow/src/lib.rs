//! An interposer that runs each op a second time and records the largest difference for each op.
//!
//! The reference run uses the device that `KEYWAY_SHADOW` in the environment names, such as `cpu` for a program that runs on
//! another device; without it, the same device in f64. It is off until a thread enables it:
//!
//! ```ignore
//! let on = keyway::interposer("shadow")?.enter();
//! // ... the program ...
//! drop(on);
//! // One line for each op goes to the log; `shadow_worst` gives one op's figure.
//! keyway::ops::by_name::call("shadow_report", &[(&like).into()])?;
//! ```
//!
//! A call counts as compared if the reference run is possible: not for random ops, nor for ops without a float argument, nor
//! where no candidate serves the second call.

use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{
    Arg, Argument, Call, Error, Interposed, Interposer, Level, Op, OwnedTensor, RuleCall, Tensor, call_op,
    log, op,
};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard};

/// The record of an op.
#[derive(Clone, Copy, Default)]
struct Found {
    calls: u64,
    judged: u64,
    /// The largest difference of an element, relative to the reference value if that is above 1.
    worst: f64,
}

static FOUND: Mutex<BTreeMap<String, Found>> = Mutex::new(BTreeMap::new());
static DEVICE: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("KEYWAY_SHADOW").ok());

fn found() -> MutexGuard<'static, BTreeMap<String, Found>> {
    FOUND.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

struct Shadow;

impl Interposer for Shadow {
    const NAME: &'static str = "shadow";
    const DEFAULT_ON: bool = false;

    fn run(call: &mut Interposed<'_>) -> Result<(), Error> {
        // Before the call: an in-place op overwrites its first argument.
        let second = second_opinion(call);
        call.run_next()?;
        let mut difference: Option<f64> = None;
        for (index, second) in second.iter().flatten().enumerate() {
            if let Some(here) = compare(&call.output(index)?, &second.tensor())? {
                difference = Some(difference.unwrap_or(0.0).max(here));
            }
        }
        let mut all = found();
        let entry = all.entry(call.op().to_string()).or_default();
        entry.calls += 1;
        if let Some(difference) = difference {
            entry.judged += 1;
            entry.worst = entry.worst.max(difference);
        }
        Ok(())
    }
}

fn is_float(code: u16) -> bool {
    matches!(code, dtype::F32 | dtype::F64 | dtype::F16 | dtype::BF16)
}

fn one(name: &str, args: &[Arg<'_>]) -> Result<OwnedTensor, Error> {
    let mut made = call_op(name, args)?;
    if made.is_empty() {
        return Err(Error::Failed { detail: format!("{name} gave nothing") });
    }
    Ok(made.remove(0))
}

/// A tensor for the reference run.
fn moved(tensor: &Tensor<'_>) -> Result<OwnedTensor, Error> {
    match &*DEVICE {
        Some(device) => one("to_device", &[Arg::Tensor(*tensor), Arg::Str(device)]),
        None if is_float(tensor.dtype()) => one("to_dtype", &[Arg::Tensor(*tensor), Arg::Dtype(dtype::F64)]),
        None => tensor.retain(),
    }
}

/// The outputs of the reference run, if it is possible.
fn second_opinion(call: &Interposed<'_>) -> Option<Vec<OwnedTensor>> {
    const RANDOM: [&str; 7] = ["rand", "normal", "uniform", "bernoulli", "dropout", "multinomial", "empty"];
    if RANDOM.iter().any(|name| call.op().starts_with(name)) {
        return None;
    }
    let arguments = (0..call.n_args()).map(|i| call.argument(i)).collect::<Result<Vec<_>, _>>().ok()?;
    let tensors: Vec<Vec<OwnedTensor>> = arguments
        .iter()
        .map(|argument| match argument {
            Argument::Tensor(t) => Ok(vec![moved(t)?]),
            Argument::Tensors(list) => list.iter().map(moved).collect(),
            _ => Ok(Vec::new()),
        })
        .collect::<Result<_, Error>>()
        .ok()?;
    if !tensors.iter().flatten().any(|t| is_float(t.tensor().dtype())) {
        return None;
    }
    let lists: Vec<Vec<Tensor<'_>>> =
        tensors.iter().map(|list| list.iter().map(OwnedTensor::tensor).collect()).collect();
    let args: Vec<Arg<'_>> = arguments
        .iter()
        .enumerate()
        .map(|(i, argument)| match argument {
            Argument::Tensor(_) => Arg::Owned(&tensors[i][0]),
            Argument::Tensors(_) => Arg::Tensors(&lists[i]),
            other => other.arg(),
        })
        .collect();
    call_op(call.op(), &args).ok()
}

/// The largest difference of two tensors, if they are floats of one shape.
fn compare(first: &Tensor<'_>, second: &Tensor<'_>) -> Result<Option<f64>, Error> {
    let comparable = |t: &Tensor<'_>| is_float(t.dtype()) && t.n_components() == 0;
    if !comparable(first) || !comparable(second) || first.sizes() != second.sizes() {
        return Ok(None);
    }
    let wide = |t: &Tensor<'_>| {
        let wide = one("to_dtype", &[Arg::Tensor(*t), Arg::Dtype(dtype::F64)])?;
        one("to_device", &[Arg::Owned(&wide), Arg::Str("cpu")])
    };
    let (first, second) = (wide(first)?, wide(second)?);
    let difference = |(a, b): (f64, f64)| match (a - b).abs() / b.abs().max(1.0) {
        // Two NaNs agree, as do two infinities of one sign; otherwise the difference is infinite.
        _ if a == b || (a.is_nan() && b.is_nan()) => 0.0,
        difference if difference.is_nan() => f64::INFINITY,
        difference => difference,
    };
    let pairs = first.view::<f64>()?.iter().zip(second.view::<f64>()?.iter());
    Ok(Some(pairs.map(difference).fold(0.0, f64::max)))
}

/// `shadow_worst(Tensor like, str op)`: the largest difference of an op so far, a 0-d f64 tensor; NaN if no call was compared.
struct Worst;

impl Op for Worst {
    const SCHEMA: &'static str = "shadow_worst(Tensor like, str op) -> Tensor";
    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        call.state(0, dtype::F64, &[])
    }
}

/// `shadow_report(Tensor like)`: logs a line for each op; returns the number of ops.
struct Report;

impl Op for Report {
    const SCHEMA: &'static str = "shadow_report(Tensor like) -> Tensor";
    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        call.state(0, dtype::F64, &[])
    }
}

static WORST: RawOp = op::<Worst>();
static REPORT: RawOp = op::<Report>();

fn worst(call: &Call<'_>) -> Result<(), Error> {
    let worst = found().get(call.str(1)?).filter(|f| f.judged > 0).map_or(f64::NAN, |f| f.worst);
    call.out::<f64>(0)?.set(&[], worst);
    Ok(())
}

fn report(call: &Call<'_>) -> Result<(), Error> {
    let all = found().clone();
    let judge = match &*DEVICE {
        Some(device) => format!("device {device}"),
        None => "f64 on the same device".to_string(),
    };
    for (op, Found { calls, judged, worst }) in &all {
        let line = match judged {
            0 => format!("shadow: {op}: {calls} calls, none judged"),
            _ => format!(
                "shadow: {op}: worst difference {worst:.1e} in {judged} of {calls} calls, judged by {judge}"
            ),
        };
        log(Level::Warn, &line);
    }
    call.out::<f64>(0)?.set(&[], all.len() as f64);
    Ok(())
}

keyway_sdk::register_kernel! {
    op: "shadow_worst", signature: "TS>T", device: "cpu", layout: "strided",
    f32 => worst,
    f64 => worst,
}
keyway_sdk::register_kernel! {
    op: "shadow_report", signature: "T>T", device: "cpu", layout: "strided",
    f32 => report,
    f64 => report,
}
keyway_sdk::register_interposer!(Shadow);

keyway_sdk::plugin! {
    name: "example.org/shadow",
    version: env!("CARGO_PKG_VERSION"),
    description: "Runs each op a second time and reports the worst difference",
    devices: ["cpu"],
    layouts: ["strided"],
    setup: |contents| {
        contents.op(&WORST).op(&REPORT);
        Ok(())
    },
}
