//! Shared parts of the log-gamma function and its derivatives: polynomials between 1 and 2, recurrences from there, and
//! Stirling's series for large arguments.
//!
//! The coefficients and their sources are in [`keyway_sdk::gamma`].

use crate::error::Result;
use crate::ops::composite::{cast, tensor, widened};
use crate::ops::rules::float_of;
use crate::{DType, Tensor};
use keyway_dispatcher::op::Args;
use keyway_sdk::gamma::{BERNOULLI, LARGE, LOG_NARROW, LOG_WIDE, ROOT, SLOPE_NARROW, SLOPE_WIDE};
use std::f64::consts::PI;

/// The argument in the float compute dtype, with f16 and bf16 as f32, and the dtype of the result.
pub(super) fn operand(args: &Args<'_>) -> Result<(Tensor, DType)> {
    let t = tensor(args, 0)?;
    let dtype = float_of(t.dtype());
    Ok((widened(&cast(t, dtype)?)?, dtype))
}

/// Evaluates a polynomial (Horner's method); coefficients start with that of the lowest power.
pub(super) fn polynomial(x: &Tensor, coefficients: impl IntoIterator<Item = f64>) -> Result<Tensor> {
    let all: Vec<f64> = coefficients.into_iter().collect();
    let mut made: Option<Tensor> = None;
    for &c in all.iter().rev() {
        made = Some(match made {
            Some(sum) => sum.mul(x)?.add(c)?,
            None => x.full_like(c)?,
        });
    }
    made.map_or_else(|| x.zeros_like(), Ok)
}

/// The number of terms of the series that the precision of the dtype needs.
fn terms(dtype: DType) -> usize {
    if dtype == DType::F64 { BERNOULLI.len() } else { 4 }
}

/// Argument reduction by the recurrence: for `x` above 2 and below [`LARGE`], the value in 1..2 that differs from `x` by an
/// integer, and a fold of `join` over the values in between, starting with `start`.
fn lowered(x: &Tensor, start: f64, join: fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<(Tensor, Tensor)> {
    let (mut near, mut sum) = (x.clone(), x.full_like(start)?);
    for _ in 2..LARGE as usize + 1 {
        let (above, less) = (near.gt(2)?, near.sub(1)?);
        sum = above.where_cond(&join(&sum, &less)?, &sum)?;
        near = above.where_cond(&less, &near)?;
    }
    Ok((near, sum))
}

/// `log(gamma(x))` for `x` above 0.
pub(super) fn log_gamma_above_0(x: &Tensor) -> Result<Tensor> {
    let (near, product) = lowered(x, 1.0, |product, factor| product.mul(factor))?;
    // With `u` in 0..=1, `log(gamma(1 + u))` is `u (u - 1)` times the polynomial; all differences are exact.
    let below = x.lt(1)?;
    let u = below.where_cond(x, &near.sub(1)?)?;
    let wide = x.dtype() == DType::F64;
    let list: &[f64] = if wide { &LOG_WIDE } else { &LOG_NARROW };
    let inner = u.mul(&u.sub(1)?)?.mul(&polynomial(&u.add(&u)?.sub(1)?, list.iter().copied())?)?;
    let log = x.log()?;
    let small = inner.add(&below.where_cond(&log.neg()?, &product.log()?)?)?;

    let inverse = x.reciprocal()?;
    let coefficient = |(k, b): (usize, &f64)| b / ((2 * k + 2) * (2 * k + 1)) as f64;
    let series = BERNOULLI.iter().enumerate().take(terms(x.dtype())).map(coefficient);
    let series = polynomial(&inverse.square()?, series)?.mul(&inverse)?;
    // `(log(2 pi) - 1) / 2`.
    let large = x.sub(0.5)?.mul(&log.sub(1)?)?.add(&series.add(0.418_938_533_204_672_7)?)?;
    x.lt(LARGE)?.where_cond(&small, &large)
}

/// `digamma(x)` for `x` above 0.
pub(super) fn digamma_above_0(x: &Tensor) -> Result<Tensor> {
    let (near, sum) = lowered(x, 0.0, |sum, term| sum.add(&term.reciprocal()?))?;
    let wide = x.dtype() == DType::F64;
    let (root, rest) = if wide {
        ROOT
    } else {
        let narrow = f64::from(ROOT.0 as f32);
        (narrow, ROOT.0 - narrow)
    };
    let (list, below): (&[f64], _) = (if wide { &SLOPE_WIDE } else { &SLOPE_NARROW }, x.lt(1)?);
    // Below 1 the polynomial is evaluated at `x + 1`, whose rounding error would be visible.
    let distance = below.where_cond(&x.sub(root - 1.0)?, &near.sub(root)?)?.sub(rest)?;
    let u = below.where_cond(x, &near.sub(1)?)?;
    let inner = polynomial(&u.add(&u)?.sub(1)?, list.iter().copied())?.mul(&distance)?;
    let inverse = x.reciprocal()?;
    let small = inner.add(&below.where_cond(&inverse.neg()?, &sum)?)?;

    let coefficient = |(k, b): (usize, &f64)| -b / (2 * k + 2) as f64;
    let series = BERNOULLI.iter().enumerate().take(terms(x.dtype())).map(coefficient);
    let square = inverse.square()?;
    let series = polynomial(&square, series)?.mul(&square)?;
    let large = x.log()?.sub(&inverse.mul(0.5)?)?.add(&series)?;
    x.lt(LARGE)?.where_cond(&small, &large)
}

/// The sine of pi times the distance to the nearest integer; not negative.
pub(super) fn sine(x: &Tensor) -> Result<Tensor> {
    x.sub(&x.round()?)?.abs()?.mul(PI)?.sin()
}

/// The cotangent of `pi x`, infinite at integers. Near its zeros it is computed from a sine, which is accurate there.
pub(super) fn cotangent(x: &Tensor) -> Result<Tensor> {
    let r = x.sub(&x.round()?)?;
    let size = r.abs()?;
    let made = size.rsub(0.5)?.mul(PI)?.sin()?.div(&size.mul(PI)?.sin()?)?;
    r.lt(0)?.where_cond(&made.neg()?, &made)
}

/// Whether each element is an integer not above 0, a pole of the gamma function. Minus infinity counts as one.
pub(super) fn is_pole(x: &Tensor) -> Result<Tensor> {
    x.le(0)?.logical_and(&x.eq(&x.floor()?)?)
}
