//! Arguments of calls of complex tensors.

use crate::array::{Array, Number};
use crate::families::{has_tested, tensors, with_sizes};
use crate::growth;
use crate::oracle::{Inputs, Value};
use keyway::DType;
use keyway::ops::def::{Dtypes, OpDef};
use keyway::ops::sample::{self, Sample, SampleArg};
use std::collections::BTreeSet;

/// The dtypes of the kernels of an op that are tested: the real ones of op `complex`.
pub fn dtypes(def: &OpDef) -> [DType; 2] {
    if def.name() == "complex" { [DType::F32, DType::F64] } else { DType::COMPLEX }
}

/// The dtype of the arguments of a kernel of `dtype`: a cast is called for its result's.
pub fn tested(def: &OpDef, dtype: DType) -> DType {
    match dtype {
        DType::C64 if def.name() == "to_dtype" => DType::C128,
        DType::C128 if def.name() == "to_dtype" => DType::C64,
        other => other,
    }
}

/// The samples of an op. Ops of complex tensors only have none in their definition.
pub fn samples(def: &OpDef, dtype: DType) -> Vec<Sample> {
    match def.name() {
        "complex" => sample::binary(),
        "to_dtype" => {
            let mut samples = (def.samples)();
            let args = samples.iter_mut().flat_map(|sample| &mut sample.args);
            let dtypes = args.filter(|arg| matches!(arg, SampleArg::DType(_)));
            dtypes.for_each(|arg| *arg = SampleArg::DType(dtype));
            samples
        }
        _ if def.dtypes == Dtypes::COMPLEX => sample::unary(-2.0, 2.0),
        _ => (def.samples)(),
    }
}

/// The first sample of an element-wise op that has one shape.
pub fn of_one_shape(def: &OpDef, samples: &[Sample]) -> Option<Sample> {
    let elementwise = matches!(def.rule, keyway::dispatcher::op::Rule::Elementwise(..));
    let fits = |sample: &&Sample| with_sizes(sample, &[2]).is_some() && has_tested(sample);
    samples.iter().filter(|_| elementwise).find(fits).cloned()
}

/// The first, middle and last sample with a size above 1 and no empty tensor.
pub fn three(samples: &[Sample]) -> BTreeSet<usize> {
    let fits = |&nth: &usize| {
        !growth::sizes(&samples[nth]).is_empty() && tensors(&samples[nth]).all(|t| !t.sizes.contains(&0))
    };
    let all: Vec<usize> = (0..samples.len()).filter(fits).collect();
    [all.first(), all.get(all.len() / 2), all.last()].into_iter().flatten().copied().collect()
}

/// Whether the op converts to its dtype, from another one.
pub fn is_cast(def: &'static OpDef) -> bool {
    matches!(def.name(), "to_dtype" | "copy")
}

/// Ops whose arguments are promoted.
const PROMOTED: [&str; 7] = ["add", "div", "eq", "mul", "pow", "sub", "where"];

/// Whether an op takes arguments of several dtypes.
pub fn mixes(def: &'static OpDef) -> bool {
    is_cast(def) || PROMOTED.contains(&def.name())
}

/// Elements of both signs, in every quadrant; more than the lanes of a vector, with a tail.
const COUNT: usize = 37;

fn elements(dtype: DType) -> Array {
    let part = |i: usize| (i as f64 - 15.25) * 0.37;
    Array::from_fn(dtype, [COUNT], |index| {
        let nth = index[0];
        match dtype.is_complex() {
            // A zero, and numbers that are imaginary.
            true if nth == 5 => Number::Complex(0.0, 0.0),
            true if nth % 9 == 4 => Number::Complex(0.0, part(nth)),
            true => Number::Complex(part(nth), part((11 * nth) % COUNT)),
            false => Number::Float(part(nth).abs()),
        }
        .cast(dtype)
    })
}

/// Calls with arguments of different dtypes, each with a description.
pub fn mixed(def: &OpDef, dtype: DType) -> Vec<(String, Inputs)> {
    let array = |dtype| Value::Array(elements(dtype));
    let all = DType::REAL.into_iter().chain(DType::COMPLEX);
    let mut calls = Vec::new();
    match def.name() {
        "to_dtype" => {
            calls.extend(all.map(|from| (format!("from {from}"), vec![array(from), Value::DType(dtype)])));
            // The reverse is refused, except into bool.
            let to = DType::REAL.into_iter();
            calls.extend(to.map(|to| (format!("to {to}"), vec![array(dtype), Value::DType(to)])));
        }
        "copy" => calls.extend(all.map(|from| (format!("from {from}"), vec![array(dtype), array(from)]))),
        name => {
            let rest = match name {
                "add" | "sub" => vec![Value::Float(0.5)],
                "div" => vec![Value::None],
                _ => Vec::new(),
            };
            let first = if name == "where" { vec![array(DType::BOOL)] } else { Vec::new() };
            let mut push = |what: String, a: Value, b: Value| {
                calls.push((what, first.iter().cloned().chain([a, b]).chain(rest.iter().cloned()).collect()));
            };
            let others = [DType::F32, DType::F16, DType::I64, DType::U8, DType::BOOL];
            let same = others.into_iter().chain((dtype == DType::C128).then_some(DType::F64));
            for other in same.chain((dtype == DType::C128).then_some(DType::C64)) {
                push(format!("with {other}"), array(dtype), array(other));
                push(format!("with {other} first"), array(other), array(dtype));
            }
            if dtype == DType::C128 {
                push("c64 with f64".to_string(), array(DType::C64), array(DType::F64));
            }
            push("with a number".to_string(), array(dtype), Value::Float(1.75));
            push("with an integer".to_string(), array(dtype), Value::Int(3));
        }
    }
    calls.into_iter().map(|(what, args)| (what, Inputs(args))).collect()
}
