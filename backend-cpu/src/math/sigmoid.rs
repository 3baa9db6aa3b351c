//! The logistic function.

use super::exp::{exp_nonpositive_f32, exp_nonpositive_f64};
use super::{fma_f32, fma_f64};

/// `1 / (1 + e^-x)`, at most 2 ulp, without intermediate overflow. For negative `x` it is `e^x / (1 + e^x)`, computed as
/// `e^x - e^2x / (1 + e^x)`, which has one significant rounding where the result is small.
#[inline(always)]
pub fn sigmoid_f32(x: f32) -> f32 {
    let e = exp_nonpositive_f32(-x.abs());
    let right = 1.0 / (1.0 + e);
    let left = fma_f32(-e, e * right, e);
    if x < 0.0 { left } else { right }
}

/// `1 / (1 + e^-x)`, at most 2 ulp, without intermediate overflow. For negative `x` it is `e^x / (1 + e^x)`, computed as
/// `e^x - e^2x / (1 + e^x)`, which has one significant rounding where the result is small.
#[inline(always)]
pub fn sigmoid_f64(x: f64) -> f64 {
    let e = exp_nonpositive_f64(-x.abs());
    let right = 1.0 / (1.0 + e);
    let left = fma_f64(-e, e * right, e);
    if x < 0.0 { left } else { right }
}
