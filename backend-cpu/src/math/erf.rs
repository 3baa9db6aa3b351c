//! The error function.

use super::exp::{bound_f32, bound_f64, exp_moderate_f32, exp_moderate_f64};
use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};

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
/// `erf(x) / x - 1` of `x^2`, for `|x| < 1`.
const ERF64: [f64; 14] = [
    0.1283791670955126,
    -0.37612638903183754,
    0.1128379167095512,
    -0.02686617064512984,
    0.0052239776254232985,
    -0.000854832702193483,
    0.00012055332902888736,
    -1.4925647567519332e-05,
    1.6462045441468418e-06,
    -1.6364642158167616e-07,
    1.4792401209404813e-08,
    -1.216456005728345e-09,
    8.709045129053106e-11,
    -4.230945824295338e-12,
];
/// `e^(x^2) (1 - erf(x))` of `(x - 3) / (x + 3)`, for `1 <= x <= 6`.
const ERFCX64: [f64; 15] = [
    0.17900115118138996,
    -0.32623356004303716,
    0.24560380171233195,
    -0.15011593650078744,
    0.07166583719774874,
    -0.024392499318273194,
    0.004269136347508256,
    0.0007077464443901538,
    -0.0005970623517093284,
    4.525472635483354e-05,
    6.406182073530546e-05,
    -1.284889451252353e-05,
    -8.008021319412685e-06,
    2.023603179641757e-06,
    1.2801900862962662e-06,
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

/// Error function, at most 1 ulp: an odd polynomial below 1, `1 - e^(-x^2) erfcx(x)` above.
#[inline(always)]
pub fn erf_f64(x: f64) -> f64 {
    let a = x.abs();
    let z = x * x;
    let small = fma_f64(a, polynomial_f64(z, &ERF64), a);
    let b = bound_f64(a, 0.0, 6.0);
    let scaled = polynomial_f64((b - 3.0) / (b + 3.0), &ERFCX64);
    let large = 1.0 - exp_moderate_f64(-b * b) * scaled;
    (if a < 1.0 { small } else { large }).copysign(x)
}
