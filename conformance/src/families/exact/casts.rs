//! Casts between all dtypes: the limits of the integer dtypes, the first integers that f32 and f64 cannot represent, and values
//! half-way between two of a narrower dtype.

use super::super::{Context, Op};
use crate::array::{Array, Number};
use crate::compare;
use crate::oracle::{Inputs, Value};
use crate::outcome::{Steps, Stop};
use keyway::DType;

/// The prefix of the variant; the target dtype follows.
pub(super) const TO: &str = "to-";

const OP: &str = "to_dtype";

pub(super) fn cases(op: &Op, push: &mut impl FnMut(DType, usize, &str)) {
    if op.def.name() != OP {
        return;
    }
    // Casts are independent of each other: the quick cases include every dtype too.
    for dtype in DType::REAL.into_iter().filter(|&d| op.def.dtypes.has(d)) {
        let others = DType::REAL.into_iter().filter(|&to| to != dtype);
        others.for_each(|to| push(dtype, 0, &format!("{TO}{to}")));
    }
}

/// Integers of either sign at the limits of some dtype, or not representable in it.
fn whole() -> impl Iterator<Item = i128> {
    let powers = [7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64].map(|bits| 1_i128 << bits);
    let near = powers.into_iter().flat_map(|power| [-1, 0, 1, 3].map(|more| power + more));
    let all = near.chain([0, 1, 2, 100, 257, 12_345, 70_000, (1 << 40) + 5, (1 << 62) + (1 << 40)]);
    all.flat_map(|v| [v, -v])
}

fn values(dtype: DType) -> Vec<Number> {
    if dtype == DType::BOOL {
        return vec![Number::Bool(false), Number::Bool(true)];
    }
    if let Some((low, high)) = dtype.integer_range() {
        return whole().filter(|v| (low..=high).contains(v)).map(Number::Int).collect();
    }
    // Half-way between two values of f16, of bf16 and of f32, slightly off, and below their normal ranges.
    let ties = [10, 7, 23].into_iter().flat_map(|digits| {
        let unit = 2f64.powi(-digits);
        [1.0 + unit / 2.0, 1.0 + unit * 1.5, 1.0 + unit * 0.53, 1.0 + unit * 0.47]
    });
    let below =
        [2f64.powi(-24) * 1.5, 2f64.powi(-20) * 1.3, 2f64.powi(-133) * 3.0, 2f64.powi(-149) * 5.0, 1e-40];
    let rest = [0.5, 1.5, -0.0, 0.999, 65_519.0, 65_520.0, 1e39, f64::INFINITY, f64::NAN];
    let fractions = ties.chain(below).chain(rest).flat_map(|v| [v, -v]);
    fractions.chain(whole().map(|v| v as f64)).map(|v| Number::Float(v).cast(dtype)).collect()
}

pub(super) fn to(context: &Context<'_>) -> Steps {
    let name = context.case.variant.strip_prefix(TO).unwrap_or_default();
    let target = DType::REAL.into_iter().find(|d| d.name() == name);
    let target = target.ok_or_else(|| Stop::Skipped(format!("there is no dtype `{name}`")))?;
    let values = values(context.dtype());
    // More than the lanes of a vector, with a tail.
    let count = values.len() * 3 + 1;
    let array = Array::from_fn(context.dtype(), [count], |index| values[index[0] % values.len()]);
    let inputs = Inputs(vec![Value::Array(array), Value::DType(target)]);
    let expected = context.expected(&inputs)?;
    let got = context.call(&context.place_bare(&inputs)?)?;
    Ok(compare::outputs(&expected, &got, 0.0)?)
}
