//! Arithmetic with one rounding, to nearest even by IEEE 754: results half-way between two values, and denormal results,
//! which an absolute tolerance hides.

use super::super::{Context, Op, Scope};
use crate::array::{Array, Number};
use crate::compare::{self, Tolerance};
use crate::inputs;
use crate::oracle::Value;
use crate::outcome::{Steps, Stop};
use crate::target::Service;
use keyway::DType;
use keyway::ops::sample::Sample;

/// The variant.
pub(super) const ONCE: &str = "rounded";

/// The ops: binary ones on equal sizes, a matrix product with one addend each, and a sum of two elements.
const PAIRS: [&str; 4] = ["add", "sub", "mul", "div"];
const PRODUCT: &str = "mm";
const SUM: &str = "sum";

pub(super) fn cases(scope: &Scope<'_>, op: &Op, push: &mut impl FnMut(DType, usize, &str)) {
    let name = op.def.name();
    let Ok(entry) = op.def.entry() else { return };
    if !PAIRS.contains(&name) && ![PRODUCT, SUM].contains(&name) {
        return;
    }
    let Some(nth) = op.samples.iter().position(|s| suits(name, s)) else { return };
    let served = |d: &DType| d.is_float() && scope.target.service(entry, *d) != Service::Missing;
    // Each float dtype is rounded differently: the quick cases include every one too.
    let all = DType::REAL.into_iter().filter(|&d| op.def.dtypes.has(d));
    all.filter(served).for_each(|dtype| push(dtype, nth, ONCE));
}

/// Whether the sample has tensors of the shapes that the op's pairs need.
fn suits(name: &str, sample: &Sample) -> bool {
    let mut tensors = super::super::tensors(sample);
    let (first, second) = (tensors.next(), tensors.next());
    match (name, first, second) {
        (SUM, Some(one), None) => one.sizes.len() == 1,
        (SUM, ..) => false,
        (_, Some(one), Some(other)) => one.sizes == other.sizes || name == PRODUCT,
        _ => false,
    }
}

/// Values whose sums and products are half-way between two representable values, denormal, or slightly more than half a ULP
/// off: with an odd last digit, a half, a half and a ULP of 1, and near the smallest normal value.
fn values(dtype: DType) -> Vec<Number> {
    let (digits, normal) = match dtype {
        DType::F16 => (10, -14),
        DType::BF16 => (7, -126),
        DType::F32 => (23, -126),
        _ => (52, -1022),
    };
    let unit = 2f64.powi(-digits);
    let least = 2f64.powi(normal);
    let near_one = [1.0, 1.5, 1.0 + unit, 1.0 + 2.0 * unit, 1.0 + 3.0 * unit, 2.0 - unit, 1.25 + unit];
    let small = [unit / 2.0, unit * 0.75, unit * 1.5, unit / 4.0];
    let below = [least, least * 1.5, least * 1.25, least * unit, least * unit * 3.0, least * (1.0 - unit)];
    // Their products are denormal: about the square root of the smallest normal value.
    let half = 2f64.powi(normal / 2 - 2);
    let roots = [half, half * 1.5, half * (1.0 + unit), half * 0.03125, 0.5, 0.25];
    let all = near_one.into_iter().chain(small).chain(below).chain(roots);
    all.flat_map(|v| [v, -v]).map(|v| Number::Float(v).cast(dtype)).collect()
}

pub(super) fn once(context: &Context<'_>) -> Steps {
    let (def, dtype) = (context.def()?, context.dtype());
    let (values, sample) = (values(dtype), context.sample()?);
    let count = values.len();
    let array = |sizes: &[usize], element: &dyn Fn(usize) -> Number| {
        Value::Array(Array::new(dtype, sizes, (0..sizes.iter().product()).map(element).collect()))
    };
    let calls: Vec<Vec<Value>> = match def.name() {
        PRODUCT => vec![vec![array(&[count, 1], &|i| values[i]), array(&[1, count], &|i| values[i])]],
        SUM => {
            let pairs = (0..count * count).step_by(7);
            pairs
                .map(|k| vec![array(&[2], &|i| values[if i == 0 { k / count } else { k % count }])])
                .collect()
        }
        _ => {
            let all = [count * count];
            vec![vec![array(&all, &|i| values[i / count]), array(&all, &|i| values[i % count])]]
        }
    };
    for tensors in calls {
        let mut inputs = inputs::of_sample(&sample.args, dtype, context.sample_seed());
        let slots = inputs.0.iter_mut().filter(|value| matches!(value, Value::Array(_)));
        slots.zip(tensors).for_each(|(slot, tensor)| *slot = tensor);
        let expected = context.expected(&inputs)?;
        let got = context.call(&context.place_bare(&inputs)?)?;
        if !expected.iter().all(|e| e.dtype == dtype) {
            return Err(Stop::Skipped("the result has another dtype".to_string()));
        }
        compare::within(&expected, &got, |_| Tolerance { rtol: 0.0, atol: 0.0 })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_ties_and_results_below_the_normal_range() {
        for (dtype, digits, normal) in [(DType::F16, 10, -14), (DType::BF16, 7, -126), (DType::F32, 23, -126)]
        {
            let all: Vec<f64> = values(dtype).iter().map(|v| v.float()).collect();
            let results = |f: fn(f64, f64) -> f64| -> Vec<f64> {
                all.iter().flat_map(|&a| all.iter().map(move |&b| f(a, b))).collect()
            };
            for results in [results(|a, b| a + b), results(|a, b| a * b)] {
                let tie = |x: &&f64| {
                    let unit = 2f64.powf(x.abs().log2().floor() - f64::from(digits));
                    **x != 0.0 && (x.abs() / unit).fract() == 0.5
                };
                let below = |x: &&f64| **x != 0.0 && x.abs() < 2f64.powi(normal);
                assert!(results.iter().filter(tie).count() > 4, "{dtype}");
                assert!(results.iter().filter(below).count() > 4, "{dtype}");
            }
        }
    }
}
