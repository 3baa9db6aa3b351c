//! The derivative of `gelu`.
//!
//! With the density `d(x)` and the share below `x` as the density times the Mills ratio `M(-x)`, the derivative of `x` times
//! the share is `d(x) (M(-x) + x)` for `x < 0`, which has the digits of its factors far below 0, where a share that was
//! computed from the error function has none. Above 0 it is 1 less that of `-x`.

use super::exp::{exp_f32, exp_f64};
use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};

/// `1 / sqrt(2 pi)`
const DENSITY: f64 = 0.398_942_280_401_432_7;
/// `(x + 4) M(x)` of `1 - 8 / (x + 4)`, for `0 <= x <= 14.5`: as [`MILLS64`].
const MILLS32: [f32; 9] = [
    1.8932189,
    -1.5237719,
    0.9704165,
    -0.46750197,
    0.15137668,
    -0.019187145,
    -0.009032296,
    0.004485247,
    0.0013009992,
];
/// `(x + 4) M(x)` of `1 - 8 / (x + 4)`, for `0 <= x <= 39`: a least-squares fit weighted by the density up to where the relative
/// error of the derivative counts, and reweighted until its errors are level (Lawson).
const MILLS64: [f64; 19] = [
    1.893219063308471,
    -1.523770910820876,
    0.9704095548672615,
    -0.46754096294404507,
    0.15139176243728011,
    -0.018900451716919175,
    -0.00872229816115641,
    0.004087860106788824,
    0.00033426935197295793,
    -0.0005792686411135669,
    -4.882391611356492e-06,
    8.801618906687895e-05,
    1.9853413961421496e-06,
    -1.456379347116027e-05,
    -1.7023386207832722e-06,
    2.1600968678056618e-06,
    5.906908366483363e-07,
    -1.4688391603613058e-07,
    -6.225144644464261e-08,
];

/// The derivative of `gelu` by the normal distribution. Below 0 within `8 + x^2 / 2` ulp of itself, but for the numbers next to its
/// root at -0.75, where it is within 4 ulp of its parts; above 0 within 2 ulp.
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
    let below = density * fma_f32(r, polynomial_f32(fma_f32(-8.0, r, 1.0), &MILLS32), -a);
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
    let below = density * fma_f64(r, polynomial_f64(fma_f64(-8.0, r, 1.0), &MILLS64), -a);
    if x < 0.0 { below } else { 1.0 - below }
}
