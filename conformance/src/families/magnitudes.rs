//! Values of every magnitude for unary element-wise ops: every value of f16 and bf16, and for the wider dtypes some of each
//! binary exponent. Among them are the arguments at which the results of an op overflow, become denormal or vanish. For ops
//! known to be accurate to a few ULP the results must be so here too, so that a result flushed to zero is not hidden by an
//! absolute tolerance.

use super::accuracy;
use super::{Context, Family, Scope, allowed, is_in, tensors};
use crate::array::{Array, Number, round_to};
use crate::case::Case;
use crate::compare;
use crate::extremes;
use crate::oracle::Value;
use crate::outcome::Steps;
use crate::target::Service;
use keyway::DType;
use keyway::ops::pointwise;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "magnitudes",
    about: "every number of f16 and bf16, numbers of every exponent of f32 and f64, and where results overflow, for ops of one tensor",
    cases,
    run,
};

/// Values of a wider dtype, spread evenly over its bit patterns: 128 of each binary exponent of f32, 16 of f64.
const SPREAD: u64 = 1 << 16;
/// An odd number below the difference of two values, so that their low bits differ.
const ODD: u64 = 12_345;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| is_in(op.def, &[pointwise::ALL])) {
        let Ok(entry) = op.def.entry() else { continue };
        let float = |d: &DType| d.is_float() && scope.target.service(entry, *d) != Service::Missing;
        for dtype in scope.dtypes(op.def).into_iter().filter(float) {
            let sets = extremes::sets(op.def).into_iter().enumerate();
            for (nth, _) in sets.filter(|(_, sample)| tensors(sample).count() == 1) {
                cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
                // For f16 and bf16 every value is tested already.
                if dtype.size() > 2 {
                    cases.push(Case::of(FAMILY.name, op.def, dtype, nth, EDGES));
                }
            }
        }
    }
}

/// The values, in the order of their bit patterns.
fn every(dtype: DType) -> Vec<Number> {
    let number = |nth: u64| match dtype {
        DType::F16 => half::f16::from_bits(nth as u16).to_f64(),
        DType::BF16 => half::bf16::from_bits(nth as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(((nth << 16) | (nth.wrapping_mul(ODD) & 0xffff)) as u32)),
        _ => f64::from_bits((nth << 48) | (nth.wrapping_mul(ODD) & 0xffff)),
    };
    // A signaling NaN is never a result, and C functions treat it differently.
    let quiet = |value: f64| if value.is_nan() { f64::NAN } else { value };
    (0..SPREAD).map(|nth| Number::Float(quiet(number(nth)))).collect()
}

/// The variant with the values around each boundary at which results begin to overflow, or to be 0.
const EDGES: &str = "edges";
/// The number of values between the two of [`every`] on either side of such a boundary, and the number tested on either
/// side of it.
const BETWEEN: u64 = 64;
const NEIGHBOURS: i64 = 4;

/// Whether a result is 0, finite, infinite or NaN, as an element of its dtype.
fn kind(result: Number, dtype: DType) -> u8 {
    match round_to(result.float(), dtype) {
        v if v.is_nan() => 3,
        v if v.is_infinite() => 2,
        v => u8::from(v != 0.0),
    }
}

/// The dtype's bit pattern of a value, as an integer in ascending order; and the inverse.
fn rank(value: f64, dtype: DType) -> i64 {
    let (bits, sign) = match dtype {
        DType::F16 => (i64::from(half::f16::from_f64(value).to_bits()), 15),
        DType::BF16 => (i64::from(half::bf16::from_f64(value).to_bits()), 15),
        DType::F32 => (i64::from((value as f32).to_bits()), 31),
        _ => (value.to_bits() as i64, 63),
    };
    let size = bits & !(1 << sign);
    if bits >> sign & 1 == 1 { -size } else { size }
}

fn at(rank: i64, dtype: DType) -> f64 {
    let size = rank.unsigned_abs();
    let value = match dtype {
        DType::F16 => half::f16::from_bits(size as u16).to_f64(),
        DType::BF16 => half::bf16::from_bits(size as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(size as u32)),
        _ => f64::from_bits(size),
    };
    if rank < 0 { -value } else { value }
}

/// Boundaries at which neighbours of `values` have results of different kinds: values between them, and those next to the
/// boundary.
fn edges(values: &[Number], dtype: DType, kinds: impl Fn(&[Number]) -> Option<Vec<u8>>) -> Vec<Number> {
    let mut ranks: Vec<i64> =
        values.iter().map(|v| v.float()).filter(|v| v.is_finite()).map(|v| rank(v, dtype)).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let number = |rank: i64| Number::Float(at(rank, dtype));
    let of = |ranks: &[i64]| kinds(&ranks.iter().map(|&p| number(p)).collect::<Vec<_>>());
    let Some(all) = of(&ranks) else { return Vec::new() };
    let mut found = Vec::new();
    let changes = (1..ranks.len()).filter(|&nth| all[nth - 1] != all[nth] && all[nth - 1].max(all[nth]) < 3);
    for nth in changes.take(MANY) {
        let (mut low, mut high) = (ranks[nth - 1], ranks[nth]);
        let step = ((high - low) as u64 / BETWEEN).max(1) as usize;
        found.extend((low..=high).step_by(step));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let Some(kind) = of(&[middle]) else { break };
            if kind[0] == all[nth] { high = middle } else { low = middle }
        }
        found.extend(low - NEIGHBOURS + 1..high + NEIGHBOURS);
    }
    found.into_iter().map(number).filter(|v| v.float().is_finite()).collect()
}

/// Maximum number of boundaries: a function such as `lgamma` has one at each integer.
const MANY: usize = 40;

fn run(context: &Context<'_>) -> Steps {
    let (def, dtype) = (context.def()?, context.dtype());
    let Some(sample) = extremes::sets(def).into_iter().nth(context.case.sample) else { return Ok(()) };
    let mut inputs = crate::inputs::of_sample(&sample.args, dtype, 0);
    let mut values = every(dtype);
    if context.case.variant == EDGES {
        let oracle = context.oracle()?;
        let of = |values: &[Number]| {
            let mut inputs = inputs.clone();
            let slot = inputs.0.iter_mut().find(|value| matches!(value, Value::Array(_)))?;
            *slot = Value::Array(Array::new(dtype, [values.len()], values.to_vec()));
            let made = oracle(&inputs).ok()?.into_iter().next()?;
            Some(made.values.iter().map(|v| kind(*v, made.dtype)).collect())
        };
        values = edges(&values, dtype, of);
        if values.is_empty() {
            return Ok(());
        }
    }
    if let Some(slot) = inputs.0.iter_mut().find(|value| matches!(value, Value::Array(_))) {
        *slot = Value::Array(Array::new(dtype, [values.len()], values));
    }
    let expected = context.expected(&inputs)?;
    let got = context.call(&context.place(&inputs)?)?;
    if accuracy::holds_everywhere(def) {
        return Ok(compare::within(&expected, &got, accuracy::tolerance)?);
    }
    Ok(compare::outputs(&expected, &got, allowed(def))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn halves_are_there_whole_and_wider_ones_with_every_exponent() {
        // All except the NaNs, of which one remains.
        for (dtype, nans) in [(DType::F16, 2 * 1023), (DType::BF16, 2 * 127)] {
            let bits: HashSet<u64> = every(dtype).iter().map(|v| v.float().to_bits()).collect();
            assert_eq!(bits.len(), (1 << 16) - nans + 1, "{dtype}");
        }
        let exponents = |dtype, shift: fn(f64) -> u64| {
            every(dtype).iter().map(|v| shift(v.float())).collect::<HashSet<_>>().len()
        };
        assert_eq!(exponents(DType::F32, |v| u64::from((v as f32).to_bits() >> 23)), 511);
        assert_eq!(exponents(DType::F64, |v| v.to_bits() >> 52), 4095);
        // Denormal results of an exponential.
        let between = |v: &&Number| (-103.0..-88.0).contains(&v.float());
        assert!(every(DType::F32).iter().filter(between).count() > 20);
    }
}
