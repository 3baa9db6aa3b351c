//! The derivative of `gelu`.
//!
//! With the normal density `d`, the CDF `Phi(x) = d(x) M(-x)` and the Mills ratio `M`, the derivative of `x Phi(x)` is
//! `d(x) (M(-x) + x)` for `x < 0`: a product with full relative precision far below 0, where a CDF computed from the error
//! function cancels. Above 0 it is 1 minus the derivative at `-x`.

use super::exp::{exp_f32, exp_f64};
use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};
use keyway_sdk::mills;

/// `1 / sqrt(2 pi)`
const DENSITY: f64 = 0.398_942_280_401_432_7;
/// The coefficients in f32.
const NARROW: [f32; 9] = {
    let mut narrow = [0.0; 9];
    let mut i = 0;
    while i < narrow.len() {
        narrow[i] = mills::NARROW[i] as f32;
        i += 1;
    }
    narrow
};

/// The derivative of the exact `gelu`. Below 0 the error is at most `8 + x^2 / 2` ulp, except near its root at -0.75, where
/// it is at most 4 ulp of the addends; above 0 at most 2 ulp.
#[inline(always)]
pub fn gelu_slope_f32(x: f32) -> f32 {
    // Beyond the bound the derivative is 0 or 1; NaN propagates.
    let a = x.abs();
    let a = if a > 14.5 { 14.5 } else { a };
    let square = a * a;
    // The rounding error of the square, with fused multiply-add.
    let rest = fma_f32(a, a, -square);
    let density = exp_f32(square * -0.5) * DENSITY as f32;
    let density = fma_f32(density, rest * -0.5, density);
    let r = 1.0 / (a + 4.0);
    let below = density * fma_f32(r, polynomial_f32(fma_f32(-8.0, r, 1.0), &NARROW), -a);
    if x < 0.0 { below } else { 1.0 - below }
}

/// As [`gelu_slope_f32`].
#[inline(always)]
pub fn gelu_slope_f64(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 39.0 { 39.0 } else { a };
    let square = a * a;
    let rest = fma_f64(a, a, -square);
    let density = exp_f64(square * -0.5) * DENSITY;
    let density = fma_f64(density, rest * -0.5, density);
    let r = 1.0 / (a + 4.0);
    let below = density * fma_f64(r, polynomial_f64(fma_f64(-8.0, r, 1.0), &mills::WIDE), -a);
    if x < 0.0 { below } else { 1.0 - below }
}
