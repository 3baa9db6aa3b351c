//! The inverse of the error function, by the [quantiles](keyway_sdk::quantile) of the normal distribution.

use super::log::{log_f32, log_f64};
use super::{polynomial_f32, polynomial_f64, short};
use keyway_sdk::quantile::{MIDDLE, OUTSIDE, TAIL};
use std::f64::consts::FRAC_1_SQRT_2;

/// The limit between the central and the tail approximation.
const MIDDLE_ENDS: f64 = 0.85;
const MIDDLE32: [[f32; 8]; 2] = [short(MIDDLE[0]), short(MIDDLE[1])];
const OUTSIDE32: [[f32; 8]; 2] = [short(OUTSIDE[0]), short(OUTSIDE[1])];

/// The inverse of the error function, at most 6 ulp; infinity at 1, NaN beyond.
#[inline(always)]
pub fn erfinv_f32(x: f32) -> f32 {
    let size = x.abs();
    let quotient = |x: f32, of: &[[f32; 8]; 2]| polynomial_f32(x, &of[0]) / polynomial_f32(x, &of[1]);
    let middle = quotient(0.180_625 - 0.25 * x * x, &MIDDLE32) * (0.5 * FRAC_1_SQRT_2) as f32 * x;
    let depth = (-log_f32((1.0 - size) * 0.5)).sqrt();
    let outside = quotient(depth - 1.6, &OUTSIDE32) * FRAC_1_SQRT_2 as f32;
    let outside = if size == 1.0 { f32::INFINITY } else { outside };
    if size <= MIDDLE_ENDS as f32 { middle } else { outside.copysign(x) }
}

/// The inverse of the error function, to 16 digits; infinity at 1, NaN beyond.
#[inline(always)]
pub fn erfinv_f64(x: f64) -> f64 {
    let size = x.abs();
    let quotient = |x: f64, of: &[[f64; 8]; 2]| polynomial_f64(x, &of[0]) / polynomial_f64(x, &of[1]);
    let middle = quotient(0.180_625 - 0.25 * x * x, &MIDDLE) * (0.5 * FRAC_1_SQRT_2) * x;
    let depth = (-log_f64((1.0 - size) * 0.5)).sqrt();
    let (near, far) = (quotient(depth - 1.6, &OUTSIDE), quotient(depth - 5.0, &TAIL));
    let outside = if depth <= 5.0 { near } else { far } * FRAC_1_SQRT_2;
    let outside = if size == 1.0 { f64::INFINITY } else { outside };
    if size <= MIDDLE_ENDS { middle } else { outside.copysign(x) }
}
