//! The normal distribution.

use super::erf::erf_f64;
use super::exp::exp2_moderate_f32;
use super::polynomial_f32;

/// The normal CDF at this point is 1 - 8e-9.
const END32: f32 = 5.65625;
/// `log2(Phi(-x))` for `0 <= x <= END32`, weighted for the error of `Phi`.
const TAIL32: [f32; 11] = [
    -1.0,
    -1.151106,
    -0.45920474,
    -0.052493554,
    0.0070286532,
    -6.974082e-05,
    -0.0002451004,
    6.626298e-05,
    -9.2075724e-06,
    6.949764e-07,
    -2.248642e-08,
];

/// The normal CDF at `x`, with an absolute error of 1e-7 and, down to `x = -5.6`, a relative error of 4e-6.
#[inline(always)]
pub fn normal_f32(x: f32) -> f32 {
    let a = x.abs();
    let tail = exp2_moderate_f32(polynomial_f32(a, &TAIL32));
    let tail = if a < END32 { tail } else { 0.0 };
    if x > 0.0 { 1.0 - tail } else { tail }
}

/// The normal CDF at `x`, with an absolute error of 2e-16.
#[inline(always)]
pub fn normal_f64(x: f64) -> f64 {
    0.5 + 0.5 * erf_f64(x * std::f64::consts::FRAC_1_SQRT_2)
}
