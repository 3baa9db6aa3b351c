//! `asinh`, `acosh` and `atanh`, all through `log1p`.

use super::log::{log_f64, log1p_f64};
use std::f64::consts::LN_2;

/// Above this the square of the argument swallows one.
const HUGE: f64 = 268_435_456.0;

/// Inverse hyperbolic sine, at most 1 ulp; computed in f64.
#[inline(always)]
pub fn asinh_f32(x: f32) -> f32 {
    asinh_f64(f64::from(x)) as f32
}

/// Inverse hyperbolic sine, at most 2 ulp.
#[inline(always)]
pub fn asinh_f64(x: f64) -> f64 {
    let a = x.abs();
    let square = a * a;
    let near = log1p_f64(a + square / (1.0 + (1.0 + square).sqrt()));
    let far = log_f64(a) + LN_2;
    (if a > HUGE { far } else { near }).copysign(x)
}

/// Inverse hyperbolic cosine, at most 1 ulp; computed in f64. NaN below one.
#[inline(always)]
pub fn acosh_f32(x: f32) -> f32 {
    acosh_f64(f64::from(x)) as f32
}

/// Inverse hyperbolic cosine, at most 2 ulp. NaN below one.
#[inline(always)]
pub fn acosh_f64(x: f64) -> f64 {
    let t = x - 1.0;
    let near = log1p_f64(t + (2.0 * t + t * t).sqrt());
    let far = log_f64(x) + LN_2;
    // For large negative x the square above overflows; its sign says nothing then.
    if x < 1.0 {
        f64::NAN
    } else if x > HUGE {
        far
    } else {
        near
    }
}

/// Inverse hyperbolic tangent, at most 1 ulp; computed in f64. NaN outside `-1..=1`.
#[inline(always)]
pub fn atanh_f32(x: f32) -> f32 {
    atanh_f64(f64::from(x)) as f32
}

/// Inverse hyperbolic tangent, at most 2 ulp. NaN outside `-1..=1`.
#[inline(always)]
pub fn atanh_f64(x: f64) -> f64 {
    let a = x.abs();
    let t = a + a;
    let argument = if a < 0.5 { t + t * a / (1.0 - a) } else { t / (1.0 - a) };
    (0.5 * log1p_f64(argument)).copysign(x)
}
