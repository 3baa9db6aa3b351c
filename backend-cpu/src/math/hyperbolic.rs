//! `sinh`, `cosh` and `tanh`.

use super::exp::{bound_f32, bound_f64, exp_moderate_f32, exp_moderate_f64, exp_scaled_f64};
use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};

/// `(tanh(x) / x - 1) / x^2` of `x^2`, for `|x| < 0.625`.
const TANH32: [f32; 6] = [-0.33333334, 0.13333304, -0.053959258, 0.021768918, -0.008343945, 0.0022927448];
/// `(tanh(x) / x - 1) / x^2` of `x^2`, for `|x| < 0.625`.
const TANH64: [f64; 13] = [
    -0.3333333333333333,
    0.13333333333333322,
    -0.0539682539682359,
    0.021869488535133222,
    -0.008863235499801992,
    0.003592127507599252,
    -0.0014558283998303246,
    0.0005899818158388232,
    -0.00023888944636751174,
    9.604109157026265e-05,
    -3.708106921544234e-05,
    1.2209921790162781e-05,
    -2.438831631472088e-06,
];
/// `(sinh(x) / x - 1) / x^2` of `x^2`, for `|x| < 1`.
const SINH64: [f64; 9] = [
    0.16666666666666666,
    0.008333333333333333,
    0.0001984126984126984,
    2.7557319223985825e-06,
    2.505210838547607e-08,
    1.605904382690051e-10,
    7.647165414593481e-13,
    2.8112909646770106e-15,
    8.309171941866942e-18,
];

/// Hyperbolic tangent, at most 2 ulp: a polynomial below 0.625, `1 - 2 / (e^2x + 1)` above.
#[inline(always)]
pub fn tanh_f32(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let small = fma_f32(a * z, polynomial_f32(z, &TANH32), a);
    let large = 1.0 - 2.0 / (exp_moderate_f32(2.0 * bound_f32(a, 0.0, 12.0)) + 1.0);
    (if a < 0.625 { small } else { large }).copysign(x)
}

/// Hyperbolic tangent, at most 2 ulp: a polynomial below 0.625, `1 - 2 / (e^2x + 1)` above.
#[inline(always)]
pub fn tanh_f64(x: f64) -> f64 {
    let a = x.abs();
    let z = x * x;
    let small = fma_f64(a * z, polynomial_f64(z, &TANH64), a);
    let large = 1.0 - 2.0 / (exp_moderate_f64(2.0 * bound_f64(a, 0.0, 24.0)) + 1.0);
    (if a < 0.625 { small } else { large }).copysign(x)
}

/// Hyperbolic sine, at most 1 ulp; computed in f64.
#[inline(always)]
pub fn sinh_f32(x: f32) -> f32 {
    sinh_f64(f64::from(x)) as f32
}

/// Hyperbolic sine, at most 2 ulp: a polynomial below 1, `(e^x - e^-x) / 2` above.
#[inline(always)]
pub fn sinh_f64(x: f64) -> f64 {
    let a = x.abs();
    let z = x * x;
    let small = fma_f64(a * z, polynomial_f64(z, &SINH64), a);
    let half = exp_scaled_f64(a, -1);
    let large = half - 0.25 / half;
    (if a < 1.0 { small } else { large }).copysign(x)
}

/// Hyperbolic cosine, at most 1 ulp; computed in f64.
#[inline(always)]
pub fn cosh_f32(x: f32) -> f32 {
    cosh_f64(f64::from(x)) as f32
}

/// Hyperbolic cosine, at most 2 ulp.
#[inline(always)]
pub fn cosh_f64(x: f64) -> f64 {
    let half = exp_scaled_f64(x.abs(), -1);
    half + 0.25 / half
}
