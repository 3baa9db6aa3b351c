//! All ops, dtypes and memory layouts, at a small and a large size, to find slow kernels.
//!
//! `cargo xtask bench --sweep` prints one JSON line for each case of `cases.txt`; after these come the calls of ops that have a
//! derivative, recorded, and with the gradients of their tensors: once from gradients in memory, once from those of a sum.
//! `beside_pytorch.py` runs this program with `--serve` and PyTorch alternately: a line of input is the id of a case, the
//! answer its result line. `--formats [PART OF AN ID]` runs each call on images, and its gradients, in row-major order and in
//! channels_last alternately, and prints the ratio of the times. Criterion, which measures the cases of `benches/keyway`, takes
//! seconds for each; there are thousands here.

mod cases;

use cases::{Arrangement, Case, Spec, Start, Value};
use keyway::autograd::{self, BackwardOptions};
use keyway::ops::def::{Derivative, OpDef};
use keyway::{DType, MemoryFormat, Tensor};
use keyway_dispatcher::op::{Arg, Out};
use keyway_dispatcher::tensor::TensorRef;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

/// Number of timed runs, and the minimum time of a run.
const RUNS: usize = 5;
const RUN: Duration = Duration::from_millis(2);
/// Rounds in which both memory formats of a call are timed alternately.
const ROUNDS: usize = 9;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let options: Vec<String> = std::env::args().skip(1).filter(|option| option != "--bench").collect();
    let mut table = cases::table()?;
    complete(&table)?;
    let differentiable: Vec<Case> =
        table.cases.iter().filter(|case| is_differentiable(case)).cloned().collect();
    for start in [Start::Dense, Start::Expanded] {
        table.cases.extend(differentiable.iter().filter_map(|case| case.with_gradients(start)));
    }
    keyway_dispatcher::parallel::set_num_threads(keyway_benches::threads());
    keyway_dispatcher::parallel::adopt_current_thread();
    let mut out = std::io::stdout().lock();
    match options.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => {
            for case in &table.cases {
                writeln!(out, "{}", described(case))?;
            }
        }
        ["--serve"] => {
            let by_id: BTreeMap<&str, &Case> = table.cases.iter().map(|c| (c.id.as_str(), c)).collect();
            for id in std::io::stdin().lock().lines() {
                let id = id?;
                let case = by_id.get(id.as_str()).ok_or_else(|| format!("there is no case `{id}`"))?;
                writeln!(out, "{}", measured(case))?;
                out.flush()?;
            }
        }
        ["--formats"] | ["--formats", _] => {
            let wanted = options.get(1).map_or("", String::as_str);
            let pairs = table.cases.iter().filter_map(Case::in_both_formats);
            for pair in pairs.filter(|[case, _]| case.id.contains(wanted)) {
                writeln!(out, "{}", compared(&pair))?;
            }
        }
        [] | [_] => {
            let wanted = options.first().map_or("", String::as_str);
            for case in table.cases.iter().filter(|case| case.id.contains(wanted)) {
                writeln!(out, "{}", measured(case))?;
            }
        }
        _ => return Err("usage: sweep [--list | --serve | --formats [PART OF AN ID] | PART OF AN ID]".into()),
    }
    Ok(())
}

/// Rejects a table that leaves out an op without a reason, or names an unknown op.
fn complete(table: &cases::Table) -> Result<(), String> {
    let measured = |op: &str| table.cases.iter().any(|case| case.op == op);
    if let Some(op) =
        keyway::ops::all().find(|d| !measured(d.name()) && !table.left_out.contains_key(d.name()))
    {
        return Err(format!("cases.txt: no case for `{}`, and no reason why", op.name()));
    }
    let named = table.cases.iter().map(|case| &case.op).chain(table.left_out.keys());
    match named.into_iter().find(|op| !keyway::ops::all().any(|def| def.name() == op.as_str())) {
        Some(op) => Err(format!("cases.txt: there is no op `{op}`")),
        None => Ok(()),
    }
}

fn definition(op: &str) -> Result<&'static OpDef, Failure> {
    Ok(keyway::ops::all().find(|def| def.name() == op).ok_or_else(|| format!("there is no op `{op}`"))?)
}

fn is_differentiable(case: &Case) -> bool {
    definition(&case.op)
        .is_ok_and(|def| matches!(def.derivative, Derivative::Formula { .. } | Derivative::Composite))
}

fn described(case: &Case) -> Json {
    let tensor = |spec: &Spec| {
        let arrangement = match spec.arrangement {
            Arrangement::Contiguous => "contiguous",
            Arrangement::Transposed => "transposed",
            Arrangement::Expanded => "expanded",
            Arrangement::ChannelsLast => "channels_last",
        };
        json!({ "dtype": spec.dtype.name(), "sizes": spec.sizes, "low": spec.range.0, "high": spec.range.1, "lie": arrangement })
    };
    let arg = |value: &Value| match value {
        Value::None => Json::Null,
        Value::Bool(v) => json!({ "bool": v }),
        Value::Int(v) => json!({ "int": v }),
        Value::Float(v) => json!({ "float": v }),
        Value::Str(v) => json!({ "str": v }),
        Value::DType(v) => json!({ "dtype": v.name() }),
        Value::Ints(v) => json!({ "ints": v }),
        Value::Floats(v) => json!({ "floats": v }),
        Value::Tensor(spec) => json!({ "tensor": tensor(spec) }),
        Value::Tensors(list) => json!({ "tensors": list.iter().map(tensor).collect::<Vec<_>>() }),
    };
    let args: Vec<Json> = case.args.iter().map(arg).collect();
    json!({
        "case": case.id, "op": case.op, "dtype": case.dtype.name(), "args": args, "gradients": case.gradients.map(|start| start.names().0),
    })
}

/// The result line of a case: its median and minimum time in nanoseconds, or its error.
fn measured(case: &Case) -> Json {
    match times(case) {
        Ok(mut times) => {
            times.sort_by(f64::total_cmp);
            json!({
                "peer": "keyway", "case": case.id, "threads": keyway_benches::threads(),
                "median_ns": times[times.len() / 2], "min_ns": times[0], "samples": times.len(),
            })
        }
        Err(error) => json!({ "peer": "keyway", "case": case.id, "error": error.to_string() }),
    }
}

/// The result line of a call in row-major order and in channels_last: the minimum times in nanoseconds, their ratio and the
/// median of the ratios of the rounds, above 1 where channels_last is faster.
fn compared(pair: &[Case; 2]) -> Json {
    let [case, _] = pair;
    match in_turn(pair) {
        Ok(rounds) => {
            let least = |k: usize| rounds.iter().map(|times| times[k]).fold(f64::INFINITY, f64::min);
            let mut ratios: Vec<f64> = rounds.iter().map(|[row_major, last]| row_major / last).collect();
            ratios.sort_by(f64::total_cmp);
            let (row_major, last) = (least(0), least(1));
            json!({
                "peer": "keyway", "case": case.id, "threads": keyway_benches::threads(), "row_major_ns": row_major,
                "channels_last_ns": last, "ratio": row_major / last, "median_ratio": ratios[ratios.len() / 2],
            })
        }
        Err(error) => json!({ "peer": "keyway", "case": case.id, "error": error.to_string() }),
    }
}

/// Nanoseconds of a call in each memory format, for each round.
fn in_turn(pair: &[Case; 2]) -> Result<Vec<[f64; 2]>, Failure> {
    with_call(&pair[0], |row_major| {
        with_call(&pair[1], |last| {
            let calls = (calls_of_a_run(row_major)?, calls_of_a_run(last)?);
            let round = |_| Ok([per_call(row_major, calls.0)?, per_call(last, calls.1)?]);
            (0..ROUNDS).map(round).collect()
        })
    })
}

/// Nanoseconds of one call, for each run.
fn times(case: &Case) -> Result<Vec<f64>, Failure> {
    with_call(case, |once| {
        let calls = calls_of_a_run(once)?;
        (0..RUNS).map(|_| per_call(once, calls)).collect()
    })
}

/// A call with its tensors.
type Once<'a> = &'a dyn Fn() -> Result<(), Failure>;

/// Nanoseconds of one of `n` calls.
fn per_call(once: Once<'_>, calls: u32) -> Result<f64, Failure> {
    let begin = Instant::now();
    for _ in 0..calls {
        once()?;
    }
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(calls))
}

/// Number of calls of a run, after some for warming up.
fn calls_of_a_run(once: Once<'_>) -> Result<u32, Failure> {
    per_call(once, 1)?;
    Ok((RUN.as_nanos() as f64 / per_call(once, 1)?.max(1.0)).clamp(1.0, 100_000.0) as u32)
}

/// Creates the tensors of a case and passes its call to `measure`.
fn with_call<R>(case: &Case, measure: impl FnOnce(Once<'_>) -> Result<R, Failure>) -> Result<R, Failure> {
    let def = definition(&case.op)?;
    let tensors = case.args.iter().map(made).collect::<Result<Vec<_>, _>>()?;
    let wanted: Vec<Tensor> = if case.gradients.is_some() { tested(case, &tensors)? } else { Vec::new() };
    let lists: Vec<Vec<&TensorRef>> =
        tensors.iter().map(|list| list.iter().map(AsRef::as_ref).collect()).collect();
    let args: Vec<Arg<'_>> =
        case.args.iter().zip(&lists).map(|(value, list)| argument(value, list)).collect();
    let starts = match case.gradients {
        Some(start) => starts(&recorded(def, &args)?, start)?,
        None => Vec::new(),
    };
    if case.gradients.is_some() && starts.is_empty() {
        return Err("no result has a gradient".into());
    }
    measure(&|| {
        if case.gradients.is_none() {
            std::hint::black_box(def.call(&args, Out::New)?);
            return Ok(());
        }
        let options =
            BackwardOptions { gradients: Some(starts.clone()), allow_unused: true, ..Default::default() };
        std::hint::black_box(autograd::grad(&recorded(def, &args)?, &wanted, options)?);
        Ok(())
    })
}

/// The tensors of the tested dtype, which require grad from here on.
fn tested(case: &Case, tensors: &[Vec<Tensor>]) -> keyway::Result<Vec<Tensor>> {
    let mut wanted = Vec::new();
    for (value, list) in case.args.iter().zip(tensors) {
        let specs = match value {
            Value::Tensor(spec) => std::slice::from_ref(spec),
            Value::Tensors(specs) => specs,
            _ => &[],
        };
        for (_, tensor) in specs.iter().zip(list).filter(|(spec, _)| spec.tested) {
            wanted.push(tensor.clone().requires_grad_(true)?);
        }
    }
    Ok(wanted)
}

/// The results of a call that require grad.
fn recorded(def: &'static OpDef, args: &[Arg<'_>]) -> keyway::Result<Vec<Tensor>> {
    Ok(def.run_all(args)?.into_iter().filter(Tensor::requires_grad).collect())
}

/// The initial gradients of these results.
fn starts(results: &[Tensor], start: Start) -> keyway::Result<Vec<Tensor>> {
    let of = |result: &Tensor| match start {
        Start::Dense => result.detach().ones_like(),
        Start::Expanded => Tensor::ones_with((), result.dtype())?.expand(result.shape()),
    };
    results.iter().map(of).collect()
}

fn argument<'a>(value: &'a Value, tensors: &'a [&'a TensorRef]) -> Arg<'a> {
    match value {
        Value::None => Arg::None,
        Value::Bool(v) => Arg::Bool(*v),
        Value::Int(v) => Arg::Int(*v),
        Value::Float(v) => Arg::Float(*v),
        Value::Str(v) => Arg::Str(v),
        Value::DType(v) => Arg::DType(*v),
        Value::Ints(v) => Arg::Ints(v),
        Value::Floats(v) => Arg::Floats(v),
        Value::Tensor(_) => tensors.first().map_or(Arg::None, |t| Arg::Tensor(t)),
        Value::Tensors(_) => Arg::Tensors(tensors),
    }
}

/// The tensors of an argument.
fn made(value: &Value) -> keyway::Result<Vec<Tensor>> {
    match value {
        Value::Tensor(spec) => Ok(vec![tensor(spec)?]),
        Value::Tensors(list) => list.iter().map(tensor).collect(),
        _ => Ok(Vec::new()),
    }
}

fn tensor(spec: &Spec) -> keyway::Result<Tensor> {
    let mut sizes = spec.sizes.clone();
    let last = sizes.len();
    match spec.arrangement {
        Arrangement::Contiguous | Arrangement::ChannelsLast => {}
        Arrangement::Transposed => sizes.swap(last - 2, last - 1),
        Arrangement::Expanded => sizes[last - 2] = 1,
    }
    let (low, high) = spec.range;
    let values = Tensor::rand_with(&sizes, DType::F64)?.mul(high - low)?.add(low)?;
    let values = if spec.dtype == DType::BOOL { values.ge(1.0)? } else { values.to_dtype(spec.dtype)? };
    match spec.arrangement {
        Arrangement::Contiguous => Ok(values),
        Arrangement::Transposed => values.transpose(-2, -1),
        Arrangement::Expanded => values.expand(&spec.sizes),
        Arrangement::ChannelsLast => values.to(MemoryFormat::ChannelsLast),
    }
}
