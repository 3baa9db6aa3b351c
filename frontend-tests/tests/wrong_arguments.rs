//! Each op's samples with one argument replaced by a wrong or unusual one: the outcome is a result, or an error that names
//! the op and is not a failure of a kernel; never a panic.

use keyway::DType;
use keyway::ops::build::build;
use keyway::ops::sample::{Role, SampleArg, TensorSample};
use std::panic::{AssertUnwindSafe, catch_unwind};

const SHAPES: [&[usize]; 7] = [&[], &[0], &[1], &[3], &[2, 0], &[1, 1, 1], &[2, 1, 2, 1, 2, 1]];
const INTS: [i64; 7] = [i64::MIN, -7, -1, 0, 1, 5, i64::MAX];

fn shaped(sample: &TensorSample) -> impl Iterator<Item = TensorSample> {
    SHAPES.iter().map(|sizes| TensorSample { sizes: sizes.to_vec(), ..sample.clone() })
}

/// The replacement of an argument.
fn instead(arg: &SampleArg) -> Vec<SampleArg> {
    let mut all = vec![SampleArg::None];
    match arg {
        SampleArg::Tensor(t) => {
            all.extend(shaped(t).map(SampleArg::Tensor));
            for dtype in [DType::BOOL, DType::I32, DType::F16] {
                all.push(SampleArg::Tensor(TensorSample { role: Role::Fixed(dtype), ..t.clone() }));
            }
        }
        SampleArg::Tensors(list) => {
            all.push(SampleArg::Tensors(Vec::new()));
            if let Some(first) = list.first() {
                all.extend(shaped(first).map(|t| SampleArg::Tensors(vec![t])));
                all.extend(shaped(first).map(|t| SampleArg::Tensors(vec![first.clone(), t])));
            }
        }
        SampleArg::Int(_) => all.extend(INTS.map(SampleArg::Int)),
        SampleArg::Float(_) => all.extend([-1.0, 0.0, f64::NAN, f64::INFINITY].map(SampleArg::Float)),
        SampleArg::Bool(v) => all.push(SampleArg::Bool(!v)),
        SampleArg::Ints(list) => {
            all.push(SampleArg::Ints(Vec::new()));
            all.extend(INTS.map(|v| SampleArg::Ints(vec![v])));
            all.extend(INTS.map(|v| SampleArg::Ints(vec![v; list.len() + 1])));
        }
        SampleArg::Str(_) => all.extend([SampleArg::Str(""), SampleArg::Str("?")]),
        SampleArg::Floats(_) | SampleArg::DType(_) | SampleArg::None => {}
    }
    all
}

/// An error names the op that was called and what the caller made wrong: it is no kernel's failure, nor one of an op that the
/// caller did not call. A device that nobody brings is no op's matter.
fn says_what_is_wrong(op: &str, error: &str) -> bool {
    let names = error.starts_with(&format!("{op}:")) || error.starts_with("no backend for device");
    names && !error.contains("panic") && !error.contains("` failed:")
}

#[test]
fn one_wrong_argument_is_an_error_of_the_op() {
    let only = std::env::var("KEYWAY_OPS").ok();
    let mut failures = Vec::new();
    let mut calls = 0;
    for def in keyway::ops::all() {
        if only.as_ref().is_some_and(|names| names.split(',').all(|name| name != def.name())) {
            continue;
        }
        for sample in (def.samples)() {
            for i in 0..sample.args.len() {
                for other in instead(&sample.args[i]) {
                    let mut args = sample.args.clone();
                    args[i] = other;
                    // Some of the wrong values build no tensor: their number is not that of the shape.
                    let Ok(built) = build(&args, DType::F32, 0) else { continue };
                    let run = || built.call(def, &built.tensors);
                    calls += 1;
                    match catch_unwind(AssertUnwindSafe(run)) {
                        Ok(Ok(_)) => {}
                        Ok(Err(error)) if says_what_is_wrong(def.name(), &error.to_string()) => {}
                        Ok(Err(error)) => failures.push(format!("{} {args:?}: {error}", def.name())),
                        Err(_) => failures.push(format!("{} {args:?}", def.name())),
                    }
                }
            }
        }
    }
    println!("{calls} calls");
    failures.dedup_by_key(|failure| failure.split(' ').next().map(str::to_string));
    assert!(failures.is_empty(), "{} ops:\n{}", failures.len(), failures.join("\n"));
}
