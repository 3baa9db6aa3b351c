//! Reductions.

use super::number::{
    along, groups, marked, may_overflow, one, order, overflows, plus, sum, times, total, zero,
};
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;
use std::cmp::Ordering;

/// Sums and products of integers and of bool are i64.
fn wide(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::I64 }
}

/// Reduces argument 0, cast to `compute`, over the dimensions in argument `dims`, which remain with size 1 if argument
/// `keepdim` is true.
fn reduced(
    inputs: &Inputs,
    [dims, keepdim]: [usize; 2],
    compute: DType,
    result: DType,
    of: impl Fn(&[Number]) -> Result<Number, Unknown>,
) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?.cast(compute);
    let made = groups(&a, &marked(inputs, dims, a.ndim())?, inputs.bool(keepdim)?);
    let values = made.members.iter().map(|members| of(members)).collect::<Result<_, _>>()?;
    Ok(vec![Array::new(result, made.sizes, values)])
}

fn floats(members: &[Number]) -> impl Iterator<Item = f64> {
    members.iter().map(|v| v.float())
}

/// Only float dtypes.
fn float(inputs: &Inputs) -> Result<DType, Unknown> {
    let dtype = inputs.array(0)?.dtype;
    if dtype.is_float() { Ok(dtype) } else { Err(Unknown(format!("{dtype} is no float dtype"))) }
}

fn sum_of(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = wide(inputs.array(0)?.dtype);
    reduced(inputs, [1, 2], dtype, dtype, |members| Ok(total(dtype, members)))
}

fn prod(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = wide(inputs.array(0)?.dtype);
    reduced(inputs, [1, 2], dtype, dtype, |members| Ok(product(dtype, members)))
}

/// The product of elements; uncertain if large and small factors may overflow or underflow before they are multiplied, as
/// the backend determines the order.
pub(super) fn product(dtype: DType, members: &[Number]) -> Number {
    if dtype.is_float() && floats(members).all(f64::is_finite) {
        let large: f64 = floats(members).map(|x| x.abs().max(1.0)).product();
        let small: f64 = floats(members).map(|x| x.abs().min(1.0)).product();
        let vanishes = overflows(1.0 / small, dtype) && floats(members).all(|x| x != 0.0);
        if (overflows(large, dtype) && small < 1.0) || (vanishes && large > 1.0) {
            return Number::Any;
        }
    }
    members.iter().copied().fold(one(dtype), times)
}

pub(super) fn average(members: &[Number]) -> f64 {
    sum(floats(members)) / members.len() as f64
}

fn mean(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = float(inputs)?;
    reduced(inputs, [1, 2], dtype, dtype, |members| {
        let uncertain = may_overflow(dtype, &floats(members).collect::<Vec<_>>());
        Ok(if uncertain { Number::Any } else { Number::Float(average(members)) })
    })
}

/// `Σ (x - mean)²`.
fn squares(members: &[Number]) -> f64 {
    let middle = average(members);
    sum(floats(members).map(|x| (x - middle) * (x - middle)))
}

/// `Σ (x - mean)² / max(0, n - correction)`.
fn variance(members: &[Number], correction: f64) -> f64 {
    squares(members) / (members.len() as f64 - correction).max(0.0)
}

/// `finish` applied to the variances of argument 0, which are uncertain if the sum or the squares may overflow.
fn spread(inputs: &Inputs, finish: fn(f64) -> f64) -> Result<Vec<Array>, Unknown> {
    let (dtype, correction) = (float(inputs)?, inputs.float(2)?);
    reduced(inputs, [1, 3], dtype, dtype, |members| {
        let given: Vec<f64> = floats(members).collect();
        let overflow = given.iter().all(|x| x.is_finite()) && overflows(squares(members), dtype);
        let uncertain = overflow || may_overflow(dtype, &given);
        Ok(if uncertain { Number::Any } else { Number::Float(finish(variance(members, correction))) })
    })
}

fn var(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    spread(inputs, |variance| variance)
}

fn std(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    spread(inputs, f64::sqrt)
}

/// The index of the first NaN, otherwise of the first extreme element: one to which no other compares as `wanted`.
pub(super) fn extreme(members: &[Number], wanted: Ordering) -> Result<usize, Unknown> {
    if let Some(nan) = members.iter().position(|v| matches!(v, Number::Float(x) if x.is_nan())) {
        return Ok(nan);
    }
    (0..members.len())
        .reduce(|best, i| if order(members[i], members[best]) == wanted { i } else { best })
        .ok_or_else(|| Unknown("no element is the extreme of none".into()))
}

fn amax(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.array(0)?.dtype;
    reduced(inputs, [1, 2], dtype, dtype, |members| Ok(members[extreme(members, Ordering::Greater)?]))
}

fn amin(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.array(0)?.dtype;
    reduced(inputs, [1, 2], dtype, dtype, |members| Ok(members[extreme(members, Ordering::Less)?]))
}

/// The extreme values over the one dimension in argument 1, or all if it is missing, and their indices.
fn extremes(inputs: &Inputs, wanted: Ordering) -> Result<[Array; 2], Unknown> {
    let a = inputs.array(0)?;
    let mut marks = vec![inputs.is_none(1); a.ndim()];
    if !inputs.is_none(1)
        && let Some(mark) = marks.get_mut(inputs.dim(1, a.ndim())?)
    {
        *mark = true;
    }
    let made = groups(a, &marks, inputs.bool(2)?);
    let indices = made.members.iter().map(|m| extreme(m, wanted)).collect::<Result<Vec<_>, _>>()?;
    let values = made.members.iter().zip(&indices).map(|(m, &at)| m[at]).collect();
    let indices = indices.iter().map(|&at| Number::Int(at as i128)).collect();
    Ok([Array::new(a.dtype, made.sizes.clone(), values), Array::new(DType::I64, made.sizes, indices)])
}

fn max(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    extremes(inputs, Ordering::Greater).map(Vec::from)
}

fn min(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    extremes(inputs, Ordering::Less).map(Vec::from)
}

fn argmax(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    extremes(inputs, Ordering::Greater).map(|[_, indices]| vec![indices])
}

fn argmin(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    extremes(inputs, Ordering::Less).map(|[_, indices]| vec![indices])
}

fn any(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.array(0)?.dtype;
    reduced(inputs, [1, 2], dtype, DType::BOOL, |members| Ok(Number::Bool(members.iter().any(|v| v.truth()))))
}

fn all(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.array(0)?.dtype;
    reduced(inputs, [1, 2], dtype, DType::BOOL, |members| Ok(Number::Bool(members.iter().all(|v| v.truth()))))
}

/// The elements that are not NaN.
fn numbers_of(members: &[Number]) -> Vec<Number> {
    members.iter().copied().filter(|v| !v.float().is_nan()).collect()
}

fn nansum(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = wide(inputs.array(0)?.dtype);
    reduced(inputs, [1, 2], dtype, dtype, |members| Ok(total(dtype, &numbers_of(members))))
}

fn nanmean(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = float(inputs)?;
    reduced(inputs, [1, 2], dtype, dtype, |members| {
        let members = numbers_of(members);
        let uncertain = may_overflow(dtype, &floats(&members).collect::<Vec<_>>());
        Ok(if uncertain { Number::Any } else { Number::Float(average(&members)) })
    })
}

fn count_nonzero(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let made = groups(a, &marked(inputs, 1, a.ndim())?, false);
    let count = |members: &Vec<Number>| members.iter().filter(|v| v.truth()).count() as i128;
    let values = made.members.iter().map(|members| Number::Int(count(members))).collect();
    Ok(vec![Array::new(DType::I64, made.sizes, values)])
}

/// A standard deviation or variance, with arguments `(self, dim, correction, keepdim)`, and the mean, with `(self, dim,
/// keepdim)`.
fn with_mean(inputs: &Inputs, spread: super::Oracle) -> Result<Vec<Array>, Unknown> {
    let of_mean = [0, 1, 3].map(|i| inputs.get(i).clone());
    Ok([spread(inputs)?, mean(&Inputs(of_mean.to_vec()))?].concat())
}

/// `log Σ exp(x)`, computed as `m + log Σ exp(x - m)` for the largest `m` to avoid overflow.
pub(super) fn log_sum_exp(members: &[Number]) -> f64 {
    if floats(members).any(f64::is_nan) {
        return f64::NAN;
    }
    let largest = floats(members).fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    largest + sum(floats(members).map(|x| (x - largest).exp())).ln()
}

fn logsumexp(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let given = inputs.array(0)?.dtype;
    let dtype = if given.is_float() { given } else { DType::F32 };
    reduced(inputs, [1, 2], dtype, dtype, |members| Ok(Number::Float(log_sum_exp(members))))
}

/// The p-norm. Elements are divided by the largest before the powers, so that they do not overflow in f64.
pub(super) fn length(members: &[Number], p: f64) -> Result<f64, Unknown> {
    let sizes: Vec<f64> = floats(members).map(f64::abs).collect();
    if p == 0.0 {
        return Ok(sizes.iter().filter(|x| **x != 0.0).count() as f64);
    }
    if sizes.iter().any(|x| x.is_nan()) {
        return Ok(f64::NAN);
    }
    let (least, most) = sizes.iter().fold((f64::INFINITY, 0.0f64), |(l, m), &x| (l.min(x), m.max(x)));
    if p.is_infinite() {
        return match sizes.is_empty() {
            true => Err(Unknown("no element is the extreme of none".into())),
            false => Ok(if p > 0.0 { most } else { least }),
        };
    }
    // For a negative p the smallest element has the largest power.
    let unit = if p > 0.0 { most } else { least };
    if sizes.is_empty() || unit == 0.0 || unit.is_infinite() {
        return Ok(sum(sizes.iter().map(|x| x.powf(p))).powf(1.0 / p));
    }
    Ok(unit * sum(sizes.iter().map(|x| (x / unit).powf(p))).powf(1.0 / p))
}

/// The p-norm; uncertain if the powers overflow in f64, as a backend need not scale them; narrower dtypes may be computed
/// in f32.
fn norm(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (dtype, p) = (float(inputs)?, inputs.float(1)?);
    reduced(inputs, [2, 3], dtype, dtype, |members| {
        let powers: Vec<f64> = floats(members).map(|x| x.abs().powf(p)).collect();
        let finite = floats(members).all(|x| x.is_finite() && x != 0.0);
        let uncertain = finite && !p.is_infinite() && overflows(sum(powers), DType::F64);
        if uncertain { Ok(Number::Any) } else { length(members, p).map(Number::Float) }
    })
}

/// A cumulative op along a line. After an overflow any value is accepted.
fn running(dtype: DType, line: &[Number], start: Number, join: fn(Number, Number) -> Number) -> Vec<Number> {
    let mut finite = true;
    let step = |so_far: &mut Number, &value: &Number| {
        finite &= value.float().is_finite();
        if finite && dtype.is_float() && overflows(so_far.float(), dtype) {
            *so_far = Number::Any;
        }
        *so_far = join(*so_far, value);
        Some(*so_far)
    };
    line.iter().scan(start, step).collect()
}

fn cumsum(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let (dtype, dim, reverse) = (wide(a.dtype), inputs.dim(1, a.ndim())?, inputs.bool(2)?);
    let n = a.sizes.get(dim).copied().unwrap_or(1);
    Ok(vec![along(&a.cast(dtype), dim, dtype, n, |line| {
        let mut line = line.to_vec();
        if reverse {
            line.reverse();
        }
        let mut made = running(dtype, &line, zero(dtype), plus);
        if reverse {
            made.reverse();
        }
        made
    })])
}

fn cumprod(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let (dtype, dim) = (wide(a.dtype), inputs.dim(1, a.ndim())?);
    let n = a.sizes.get(dim).copied().unwrap_or(1);
    Ok(vec![along(&a.cast(dtype), dim, dtype, n, |line| running(dtype, line, one(dtype), times))])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("all", all),
    ("amax", amax),
    ("amin", amin),
    ("any", any),
    ("argmax", argmax),
    ("argmin", argmin),
    ("count_nonzero", count_nonzero),
    ("cumprod", cumprod),
    ("cumsum", cumsum),
    ("logsumexp", logsumexp),
    ("max", max),
    ("mean", mean),
    ("min", min),
    ("nanmean", nanmean),
    ("nansum", nansum),
    ("norm", norm),
    ("prod", prod),
    ("std", std),
    ("std_mean", |i| with_mean(i, std)),
    ("sum", sum_of),
    ("var", var),
    ("var_mean", |i| with_mean(i, var)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;

    fn numbers(values: &[f64]) -> Vec<Number> {
        values.iter().map(|&v| Number::Float(v)).collect()
    }

    #[test]
    fn moments_by_hand() {
        // Mean 5, squares of the distances 32.
        let x = numbers(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((average(&x), variance(&x, 0.0), variance(&x, 1.0)), (5.0, 4.0, 32.0 / 7.0));
        assert!(variance(&x[..1], 1.0).is_nan());
        assert_eq!(variance(&x, 9.0), f64::INFINITY);
    }

    #[test]
    fn what_is_not_nan_and_what_is_not_zero() {
        let x = Array::new(DType::F64, [2, 2], numbers(&[f64::NAN, 3.0, f64::NAN, f64::NAN]));
        let of = |op: &str, rest: &[Value]| {
            let inputs = Inputs([&[Value::Array(x.clone()), Value::Ints(vec![1])], rest].concat());
            crate::oracle::find(op).expect("an oracle")(&inputs).expect("an answer").swap_remove(0)
        };
        let no = [Value::Bool(false)];
        assert_eq!(of("nansum", &no).floats(), [3.0, 0.0]);
        let mean = of("nanmean", &no).floats();
        assert!(mean[0] == 3.0 && mean[1].is_nan());
        assert_eq!(of("count_nonzero", &[]).ints(), [2, 2]);
    }

    #[test]
    fn norms_by_hand() {
        let x = numbers(&[3.0, -4.0, 0.0]);
        let of = |p| length(&x, p).unwrap();
        assert_eq!((of(0.0), of(1.0), of(2.0)), (2.0, 7.0, 5.0));
        assert_eq!((of(f64::INFINITY), of(f64::NEG_INFINITY), of(-1.0)), (4.0, 0.0, 0.0));
        assert!((length(&numbers(&[3e200, 4e200]), 2.0).unwrap() / 5e200 - 1.0).abs() < 1e-15);
        assert!(length(&[], f64::INFINITY).is_err());
    }

    #[test]
    fn what_overflows_on_the_way_is_uncertain() {
        assert_eq!(product(DType::F32, &numbers(&[1e30, 1e30, 1e-30])), Number::Any);
        assert_eq!(product(DType::F64, &numbers(&[2.0, 0.0, 3.0])), Number::Float(0.0));
        assert_eq!(product(DType::F32, &numbers(&[1e30, 1e30])), Number::Float(1e30 * 1e30));
        let line = numbers(&[3e38, 3e38, -3e38]);
        assert_eq!(
            running(DType::F32, &line, Number::Float(0.0), plus)[1..],
            [Number::Float(6e38), Number::Any]
        );
    }

    #[test]
    fn log_sum_exp_by_hand() {
        assert_eq!(log_sum_exp(&numbers(&[1000.0, 1000.0])), 1000.0 + 2.0f64.ln());
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&numbers(&[f64::INFINITY, f64::NEG_INFINITY])), f64::INFINITY);
        assert!(log_sum_exp(&numbers(&[f64::INFINITY, f64::NAN])).is_nan());
    }

    #[test]
    fn the_first_of_equals_and_of_nans_is_the_extreme() {
        assert_eq!(extreme(&numbers(&[1.0, 3.0, 3.0]), Ordering::Greater), Ok(1));
        assert_eq!(extreme(&numbers(&[1.0, f64::NAN, -3.0, f64::NAN]), Ordering::Less), Ok(1));
    }
}
