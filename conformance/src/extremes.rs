//! Extreme values for element-wise ops: zeros of both signs, infinities, NaN, denormals, the ends of each dtype's range,
//! arguments at which an exponential overflows. All combinations for which the oracle has an expected value, up to a maximum
//! number.

use crate::array::{Array, Number};
use crate::inputs;
use crate::oracle::{Inputs, Oracle, Value};
use keyway::DType;
use keyway::ops::def::OpDef;
use keyway::ops::sample::{Sample, SampleArg};
use std::collections::HashSet;

/// The extreme values of a dtype.
pub fn values(dtype: DType) -> Vec<Number> {
    if dtype == DType::BOOL {
        return vec![Number::Bool(false), Number::Bool(true)];
    }
    if let Some((low, high)) = dtype.integer_range() {
        let mut all = vec![0, 1, -1, 2, 3, -7, 100, low, low + 1, high];
        let mut seen = HashSet::new();
        all.retain(|v| (low..=high).contains(v) && seen.insert(*v));
        return all.into_iter().map(Number::Int).collect();
    }
    // The largest finite, the smallest normal and the smallest denormal value.
    let (largest, normal, least) = match dtype {
        DType::F16 => (65504.0, 2f64.powi(-14), 2f64.powi(-24)),
        DType::BF16 => (255.0 * 2f64.powi(120), 2f64.powi(-126), 2f64.powi(-133)),
        DType::F32 => (f64::from(f32::MAX), 2f64.powi(-126), 2f64.powi(-149)),
        _ => (f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1)),
    };
    let ends = [f64::INFINITY, -f64::INFINITY, f64::NAN, largest, -largest, normal, -normal, least, -least];
    let rest = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 11.5, -20.5, 89.5, -200.0, 720.0];
    ends.into_iter().chain(rest).map(|v| Number::Float(v).cast(dtype)).collect()
}

/// Above this number of combinations only every 37th is used.
const MANY: usize = 1000;

/// The Cartesian product of the lists, as one list of values for each of them.
fn combinations(lists: &[Vec<Number>]) -> Vec<Vec<Number>> {
    let count: usize = lists.iter().map(Vec::len).product();
    let step = if count > MANY { 37 } else { 1 };
    (0..count)
        .step_by(step)
        .map(|mut position| {
            let choice = |list: &Vec<Number>| {
                let chosen = list[position % list.len()];
                position /= list.len();
                chosen
            };
            lists.iter().map(choice).collect()
        })
        .collect()
}

/// The op's samples with distinct non-tensor arguments: one for each set of them.
pub fn sets(def: &OpDef) -> Vec<Sample> {
    let mut seen = HashSet::new();
    let different = |sample: &Sample| {
        let others: Vec<_> = sample.args.iter().filter(|a| !matches!(a, SampleArg::Tensor(_))).collect();
        let tensors: Vec<_> = sample.args.iter().map(|a| matches!(a, SampleArg::Tensor(_))).collect();
        seen.insert(format!("{others:?} {tensors:?}"))
    };
    (def.samples)().into_iter().filter(different).collect()
}

/// The call of an element-wise op on extreme values with set `nth` of its other arguments and the tensors under test in
/// dtype `tested`. Combinations without an expected value are omitted; `None` if none has one.
pub fn of_set(def: &OpDef, oracle: Oracle, tested: DType, nth: usize) -> Option<Inputs> {
    let sample = sets(def).into_iter().nth(nth)?;
    let Inputs(args) = inputs::of_sample(&sample.args, tested, 0);
    let dtypes = args.iter().filter_map(|a| if let Value::Array(a) = a { Some(a.dtype) } else { None });
    let lists: Vec<_> = dtypes.map(values).collect();
    let call = |choices: &[Vec<Number>]| {
        let mut position = 0;
        let with = |arg: &Value| match arg {
            Value::Array(a) => {
                let column = choices.iter().map(|choice| choice[position]).collect();
                position += 1;
                Value::Array(Array::new(a.dtype, [choices.len()], column))
            }
            other => other.clone(),
        };
        Inputs(args.iter().map(with).collect())
    };
    let answered: Vec<_> = combinations(&lists)
        .into_iter()
        .filter(|choice| oracle(&call(std::slice::from_ref(choice))).is_ok())
        .collect();
    (!answered.is_empty()).then(|| call(&answered))
}

/// All calls of [`of_set`].
pub fn of_op(def: &OpDef, oracle: Oracle, tested: DType) -> Vec<Inputs> {
    (0..sets(def).len()).filter_map(|nth| of_set(def, oracle, tested, nth)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle;

    #[test]
    fn every_value_is_of_its_dtype() {
        for dtype in DType::REAL {
            let all = values(dtype);
            assert!(all.iter().all(|v| *v == v.cast(dtype) || v.float().is_nan()), "{dtype}");
            assert!(!all.contains(&Number::Any));
        }
        assert_eq!(values(DType::BF16)[3], Number::Float(half::bf16::MAX.to_f64()));
    }

    #[test]
    fn divisions_by_zero_are_left_out() {
        let def = keyway::ops::all().find(|def| def.name() == "floor_divide").expect("the op");
        let calls = of_op(def, oracle::find("floor_divide").expect("an oracle"), DType::I8);
        let divisors = calls[0].array(1).expect("divisors");
        assert!(divisors.numel() > 50 && divisors.ints().iter().all(|&v| v != 0));
        assert!(divisors.ints().contains(&-128));
    }
}
