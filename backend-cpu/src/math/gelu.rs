//! The derivative of `gelu`.
//!
//! With the density `d(x)` and the share below `x` as the density times the Mills ratio `M(-x)`, the derivative of `x` times
//! the share is `d(x) (M(-x) + x)` for `x < 0`, which has the digits of its factors far below 0, where a share that was
//! computed from the error function has none. Above 0 it is 1 less that of `-x`.

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

/// The derivative of `gelu` by the normal distribution. Below 0 the error is at most `8 + x^2 / 2` ulp, except next to its root
/// at -0.75, where it is at most 4 ulp of the addends; above 0 at most 2 ulp.
#[inline(always)]
pub fn gelu_slope_f32(x: f32) -> f32 {
    // Beyond the bound the derivative is 0 or 1; NaN stays.
    let a = x.abs();
    let a = if a > 14.5 { 14.5 } else { a };
    let square = a * a;
    // What the square was rounded by, where the level has fused operations.
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
