//! The error function.

use super::exp::{bound_f32, exp_f64, exp_moderate_f32, exp_short_f64};
use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};
use keyway_sdk::mills::SCALED;

/// `erf(x) / x - 1` of `x^2`, for `|x| < 1`.
const ERF32: [f32; 7] =
    [0.12837917, -0.37612626, 0.11283594, -0.026854211, 0.0051890872, -0.00080168643, 7.875875e-05];
/// `-log(1 - erf(x))` of `x`, for `1 <= x <= 4`.
const ERFTAIL32: [f32; 10] = [
    -0.00040966348,
    1.1306471,
    0.631004,
    0.11100255,
    -0.027065715,
    0.00505079,
    -0.0006819786,
    6.163747e-05,
    -3.2570188e-06,
    7.306915e-08,
];
/// Below this the odd polynomial is used.
const SMALL64: f64 = 0.875;
/// `erf(x) / x - 1` of `x^2`, for `|x| <` [`SMALL64`].
const ERF64: [f64; 12] = [
    0.1283791670955126,
    -0.3761263890318374,
    0.11283791670954353,
    -0.026866170644942594,
    0.005223977623059443,
    -0.0008548326845690305,
    0.00012055324561705379,
    -1.492538720169797e-05,
    1.6456607597388118e-06,
    -1.6289242608284092e-07,
    1.4122777660357666e-08,
    -8.666276629203472e-10,
];
/// `e^(x^2) (1 - erf(x))` of `(x - 2) / (x + 2)`, for [`SMALL64`]` <= x <= 6`: a least-squares fit weighted by `e^(-x^2)`,
/// reweighted until its errors are equal (Lawson's algorithm).
const ERFCX64: [f64; 13] = [
    0.2553956763105059,
    -0.42718584741395654,
    0.24165819424228194,
    -0.07897858101841772,
    0.0037328924165145306,
    0.006997462092189097,
    -0.0008471421271624947,
    -0.0009819863316739015,
    4.348755486358129e-05,
    0.0001742957712230934,
    2.8185759618685863e-05,
    -2.518487622184841e-05,
    -1.1501135724415946e-05,
];

/// Error function, at most 2 ulp: an odd polynomial below 1, `1 - e^-q(x)` above.
#[inline(always)]
pub fn erf_f32(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let small = fma_f32(a, polynomial_f32(z, &ERF32), a);
    let q = polynomial_f32(bound_f32(a, 0.0, 4.0), &ERFTAIL32);
    let large = 1.0 - exp_moderate_f32(-q);
    (if a < 1.0 { small } else { large }).copysign(x)
}

/// Error function, at most 1 ulp, or 1.25 without fused multiply-add: an odd polynomial below 7/8, `1 - e^(-x^2) erfcx(x)`
/// above.
#[inline(always)]
pub fn erf_f64(x: f64) -> f64 {
    let a = x.abs();
    let z = x * x;
    let small = fma_f64(a, polynomial_f64(z, &ERF64), a);
    let b = if a > 6.0 { 6.0 } else { a };
    let scaled = polynomial_f64((b - 2.0) / (b + 2.0), &ERFCX64);
    let large = fma_f64(-exp_short_f64(-b * b), scaled, 1.0);
    (if a < SMALL64 { small } else { large }).copysign(x)
}

/// Complementary error function in f64, rounded once.
#[inline(always)]
pub fn erfc_f32(x: f32) -> f32 {
    erfc_f64(f64::from(x)) as f32
}

/// Complementary error function, at most 6 ulp, above the denormal range: `e^(-x^2)` times a polynomial above 0, and 2 minus that
/// of `-x` below. The exponential is corrected for the rounding error of the square.
#[inline(always)]
pub fn erfc_f64(x: f64) -> f64 {
    let a = x.abs();
    let b = if a > 30.0 { 30.0 } else { a };
    // T. J. Dekker's exact product: a fused multiply-add is slow at levels without the instruction.
    let scaled = b * 134_217_729.0;
    let upper = scaled - (scaled - b);
    let lower = b - upper;
    let square = b * b;
    let rest = (upper * upper - square) + 2.0 * upper * lower + lower * lower;
    let gaussian = exp_f64(-square) * (1.0 - rest);
    let tail = polynomial_f64((b - 4.0) / (b + 4.0), &SCALED) / (b + 4.0) * gaussian;
    if x < 0.0 { 2.0 - tail } else { tail }
}
