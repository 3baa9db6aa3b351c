//! Arithmetic on elements of one kind, and the iteration over dimensions that several families share.

use super::args::wrap;
use super::{Inputs, Unknown};
use crate::array::{Array, Number, Offsets, spread_strides};
use keyway::DType;
use std::cmp::Ordering;

/// The additive identity.
pub fn zero(dtype: DType) -> Number {
    Number::Int(0).cast(dtype)
}

/// The multiplicative identity.
pub fn one(dtype: DType) -> Number {
    Number::Int(1).cast(dtype)
}

/// `a + b`: integers modulo 2^128, and so modulo every dtype's 2^bits; of bool, or.
pub fn plus(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Any, _) | (_, Number::Any) => Number::Any,
        (Number::Float(a), b) => Number::Float(a + b.float()),
        (Number::Bool(a), Number::Bool(b)) => Number::Bool(a | b),
        (a, b) => Number::Int(a.int().wrapping_add(b.int())),
    }
}

/// `a * b`: integers modulo 2^128, and so modulo every dtype's 2^bits; of bool, and.
pub fn times(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Any, _) | (_, Number::Any) => Number::Any,
        (Number::Float(a), b) => Number::Float(a * b.float()),
        (Number::Bool(a), Number::Bool(b)) => Number::Bool(a & b),
        (a, b) => Number::Int(a.int().wrapping_mul(b.int())),
    }
}

/// The order of elements: NaN is the greatest and equals itself, and the zeros are equal.
pub fn order(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Number::Float(a), Number::Float(b)) => {
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
        (a, b) => a.int().cmp(&b.int()),
    }
}

/// Compensated summation (A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54, 1974).
/// Infinities and NaN propagate as in a plain sum.
pub fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0f64, 0.0f64);
    for value in values {
        let next = total + value;
        lost += if total.abs() >= value.abs() { (total - next) + value } else { (value - next) + total };
        total = next;
    }
    if total.is_finite() { total + lost } else { total }
}

/// Whether an intermediate value of a result of `dtype` is out of range of the backend's compute dtype: f64 for f64, f32
/// for every other float dtype.
pub fn overflows(value: f64, dtype: DType) -> bool {
    let most = if dtype == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
    value.abs() > most
}

/// Whether partial sums of finite addends may overflow in some order.
pub fn may_overflow(dtype: DType, terms: &[f64]) -> bool {
    terms.iter().all(|t| t.is_finite()) && overflows(sum(terms.iter().map(|t| t.abs())), dtype)
}

/// The sum of floats as an element of `dtype`; uncertain for addends of both signs whose partial sums may overflow, as the
/// backend determines the order.
pub fn float_total(dtype: DType, terms: &[f64]) -> Number {
    let (least, most) = terms.iter().fold((0.0f64, 0.0f64), |(least, most), &t| (least.min(t), most.max(t)));
    let large = overflows(terms.len() as f64 * most.max(-least), dtype);
    if large && least < 0.0 && most > 0.0 && may_overflow(dtype, terms) {
        return Number::Any;
    }
    Number::Float(sum(terms.iter().copied()))
}

/// The sum of elements of `dtype`.
pub fn total(dtype: DType, values: &[Number]) -> Number {
    if dtype.is_float() {
        float_total(dtype, &values.iter().map(|v| v.float()).collect::<Vec<_>>())
    } else {
        values.iter().copied().fold(zero(dtype), plus)
    }
}

/// The input elements of each element of a reduction.
pub struct Groups {
    /// The result's sizes.
    pub sizes: Vec<usize>,
    /// The input elements of each result element, both in row-major order.
    pub members: Vec<Vec<Number>>,
}

/// Groups the elements over the dimensions that `reduced` marks, which remain with size 1 if `keepdim`.
pub fn groups(a: &Array, reduced: &[bool], keepdim: bool) -> Groups {
    let kept: Vec<usize> = a.sizes.iter().zip(reduced).map(|(&n, &r)| if r { 1 } else { n }).collect();
    let count: usize = kept.iter().product();
    let each = a.numel() / count.max(1);
    let mut members: Vec<Vec<Number>> = (0..count).map(|_| Vec::with_capacity(each)).collect();
    let strides = spread_strides(&kept, kept.len());
    for (own, &value) in Offsets::new(&a.sizes, &strides, 0).zip(&a.values) {
        members[own].push(value);
    }
    let stays = kept.iter().zip(reduced).filter(|&(_, &r)| keepdim || !r);
    Groups { sizes: stays.map(|(&n, _)| n).collect(), members }
}

/// The dimensions in argument `i`, a list, as flags: all if it is missing or empty.
pub fn marked(inputs: &Inputs, i: usize, ndim: usize) -> Result<Vec<bool>, Unknown> {
    let dims = inputs.optional_ints(i)?.unwrap_or(&[]);
    let mut marks = vec![dims.is_empty(); ndim];
    for &dim in dims {
        let dim = wrap(dim, ndim).ok_or_else(|| Unknown(format!("dimension {dim} of {ndim}")))?;
        if let Some(mark) = marks.get_mut(dim) {
            *mark = true;
        }
    }
    Ok(marks)
}

/// Replaces each row along `dim` by one of `length` elements. A 0-d tensor is one row of one element, and remains 0-d.
pub fn along(
    a: &Array,
    dim: usize,
    dtype: DType,
    length: usize,
    mut line: impl FnMut(&[Number]) -> Vec<Number>,
) -> Array {
    let n = a.sizes.get(dim).copied().unwrap_or(1);
    let outer: usize = a.sizes.iter().take(dim).product();
    let inner: usize = a.sizes.iter().skip(dim + 1).product();
    let mut values = vec![Number::Any; outer * length * inner];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let given: Vec<Number> = (0..n).map(|k| a.values[(o * n + k) * inner + i]).collect();
        for (k, value) in line(&given).into_iter().enumerate() {
            values[(o * length + k) * inner + i] = value;
        }
    }
    let mut sizes = a.sizes.clone();
    if let Some(size) = sizes.get_mut(dim) {
        *size = length;
    }
    Array::new(dtype, sizes, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_keeps_what_rounding_loses() {
        assert_eq!(sum([1.0, 1e100, 1.0, -1e100]), 2.0);
        assert_eq!(sum([f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(sum([f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }

    #[test]
    fn sums_that_may_overflow_are_uncertain() {
        let most = f64::from(f32::MAX);
        assert_eq!(float_total(DType::F32, &[most, most, -most]), Number::Any);
        assert_eq!(float_total(DType::F64, &[most, most, -most]), Number::Float(most));
        assert_eq!(float_total(DType::F32, &[most, most]), Number::Float(2.0 * most));
        assert_eq!(float_total(DType::F32, &[f64::INFINITY, -most]), Number::Float(f64::INFINITY));
    }

    #[test]
    fn integers_are_exact_beyond_their_dtype() {
        let big = Number::Int(i128::from(u64::MAX));
        assert_eq!(crate::array::wrapped(times(big, big).int(), DType::U64), 1);
    }

    #[test]
    fn nan_is_the_greatest() {
        let nan = Number::Float(f64::NAN);
        assert_eq!(order(nan, Number::Float(f64::INFINITY)), Ordering::Greater);
        assert_eq!(order(nan, nan), Ordering::Equal);
        assert_eq!(order(Number::Float(-0.0), Number::Float(0.0)), Ordering::Equal);
    }

    #[test]
    fn groups_and_lines() {
        let a = Array::new(DType::I64, [2, 3], (0..6).map(Number::Int).collect());
        let made = groups(&a, &[true, false], true);
        assert_eq!(made.sizes, [1, 3]);
        assert_eq!(made.members[1], [Number::Int(1), Number::Int(4)]);
        let last = along(&a, 1, DType::I64, 1, |line| vec![line[line.len() - 1]]);
        assert_eq!((last.sizes.clone(), last.ints()), (vec![2, 1], vec![2, 5]));
    }
}
