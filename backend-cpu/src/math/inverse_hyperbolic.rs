//! `asinh`, `acosh` and `atanh`: in f64 by `log1p`, in f32 by `2 atanh(s) = log((1 + s) / (1 - s))`.
//!
//! In f32 the argument `u` of the logarithm is scaled close to one by a power of two, `u = 2^e m`, and `s = (m - 1) / (m +
//! 1)`. If `e` is zero, `s` has another formula, which is accurate for all `u` close to one.

use super::log::{log_f64, log1p_f64, split_normal_f32};
use super::{fma_f32, polynomial_f32};
use std::f64::consts::LN_2;

/// `ln 2` in two parts; products of the first with an exponent are exact.
const LN2_HI32: f32 = 0.693_359_4;
const LN2_LO32: f32 = -0.000_212_194_44;

/// `(atanh(s) / s - 1) / s^2` of `s^2`, for `|s| <= 1/5`.
const ATANH32: [f32; 4] = [0.33333334, 0.20000158, 0.14266172, 0.1187767];
/// `(2 atanh(t / 2) / t - 1) / t^2` of `t^2`, for `|t| <= 2/3`.
const TWICE_ATANH32: [f32; 5] = [0.083333336, 0.012499908, 0.0022337786, 0.0004239543, 0.00011340294];

/// Above this, `x^2 + 1` rounds to `x^2`.
const HUGE: f64 = 268_435_456.0;

/// Above this, `x^2 + 1` rounds to `x^2` in f32.
const HUGE32: f32 = 1.0e10;

/// `log(g + h)` for non-negative `g` and `h` with `h^2 - g^2 = 1`.
#[inline(always)]
fn log_of_sum_f32(g: f32, h: f32) -> f32 {
    let half = fma_f32(0.5, g, 0.5 * h);
    let small = half < 1.0;
    let (f, e) = split_normal_f32(half);
    let e = if small { 0.0 } else { e + 1.0 };
    let above = if small { g + g } else { f + f };
    let (most, least) = if small { (h, 1.0) } else { (2.0, f) };
    let below = most + least;
    let quotient = above / below;
    // The rounding error of the sum, divided by the sum, which is within 2 and 2.5.
    let lack = (most - below) + least;
    let t = fma_f32(quotient * lack, -0.45, quotient);
    let z = t * t;
    let tail = fma_f32(t * z, polynomial_f32(z, &TWICE_ATANH32), e * LN2_LO32);
    fma_f32(e, LN2_HI32, t + tail)
}

/// Inverse hyperbolic sine, at most 3 ulp.
#[inline(always)]
pub fn asinh_f32(x: f32) -> f32 {
    let a = x.abs();
    let root = fma_f32(a, a, 1.0).sqrt();
    let y = log_of_sum_f32(a, if a > HUGE32 { a } else { root });
    (if a < f32::INFINITY { y } else { a }).copysign(x)
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

/// Inverse hyperbolic cosine, at most 3 ulp. NaN below one.
#[inline(always)]
pub fn acosh_f32(x: f32) -> f32 {
    let t = x - 1.0;
    let root = fma_f32(t, t, t + t).sqrt();
    let y = log_of_sum_f32(if x > HUGE32 { x } else { root }, x);
    let y = if x < f32::INFINITY { y } else { x };
    if x < 1.0 { f32::NAN } else { y }
}

/// Inverse hyperbolic cosine, at most 2 ulp. NaN below one.
#[inline(always)]
pub fn acosh_f64(x: f64) -> f64 {
    let t = x - 1.0;
    let near = log1p_f64(t + (2.0 * t + t * t).sqrt());
    let far = log_f64(x) + LN_2;
    // For large negative `x` the square above overflows, and its sign is meaningless.
    if x < 1.0 {
        f64::NAN
    } else if x > HUGE {
        far
    } else {
        near
    }
}

/// Inverse hyperbolic tangent, at most 2 ulp. NaN outside `-1..=1`.
///
/// The bits of a float are nearly its binary logarithm, so `e` is the rounded difference of the bits of `1 + |x|` and `1 -
/// |x|`; `m` is within 0.66 and 1.5.
#[inline(always)]
pub fn atanh_f32(x: f32) -> f32 {
    let a = x.abs();
    let ratio = (1.0 + a).to_bits().wrapping_sub((1.0 - a).to_bits()).wrapping_add(0x0040_0000);
    let e = (ratio as i32 >> 23) as f32;
    // `k = 2^-e`, and `(1 + a) / (1 - a) = m / k`.
    let k = f32::from_bits(0x3f80_0000u32.wrapping_sub(ratio & 0xff80_0000));
    // `k (1 + a) - (1 - a)` and `k (1 + a) + (1 - a)`, without the rounding errors of `1 + a` and `1 - a` where they are
    // significant: for `a >= 1/2` the latter has none, and `k` is below 1/2.
    let beyond = a >= 0.5;
    let above = if beyond { fma_f32(k, 1.0 + a, a - 1.0) } else { fma_f32(a, k + 1.0, k - 1.0) };
    let below = if beyond { fma_f32(k, 1.0 + a, 1.0 - a) } else { fma_f32(a, k - 1.0, k + 1.0) };
    let s = above / below;
    let z = s * s;
    let tail = fma_f32(s * z, polynomial_f32(z, &ATANH32), e * (0.5 * LN2_LO32));
    let y = fma_f32(e, 0.5 * LN2_HI32, s + tail);
    let y = if a < 1.0 { y } else { f32::NAN };
    (if a == 1.0 { f32::INFINITY } else { y }).copysign(x)
}

/// Inverse hyperbolic tangent, at most 2 ulp. NaN outside `-1..=1`.
#[inline(always)]
pub fn atanh_f64(x: f64) -> f64 {
    let a = x.abs();
    let t = a + a;
    let quotient = a / (1.0 - a);
    let argument = if a < 0.5 { t + t * quotient } else { quotient + quotient };
    (0.5 * log1p_f64(argument)).copysign(x)
}
