//! `atan` and `atan2`, both from the angle of a vector in the first quadrant.

use super::{fma_f64, polynomial_f32, polynomial_f64};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// Each angle minus its f64 rounding.
const PI_LOW: f64 = 1.2246467991473532e-16;
const PIO2_LOW: f64 = 6.123233995736766e-17;
const PIO4_LOW: f64 = 3.061616997868383e-17;
const ATAN_HALF: f64 = 0.4636476090008061;
const ATAN_HALF_LOW: f64 = 2.2698777452961687e-17;
const ATAN_THREE_HALVES: f64 = 0.982793723247329;
const ATAN_THREE_HALVES_LOW: f64 = 1.3903311031230998e-17;
const PIO2_LOW32: f32 = -4.371_139e-8;

/// `(atan(t) / t - 1) / t^2` of `t^2`, for `|t| <= 1`.
const ATAN32: [f32; 10] = [
    -0.33333334,
    0.1999995,
    -0.14284004,
    0.11088262,
    -0.08931827,
    0.070319146,
    -0.048960514,
    0.026305001,
    -0.009144629,
    0.0014886919,
];
/// `(atan(t) / t - 1) / t^2` of `t^2`, for `|t| <= 7/16`.
const ATAN64: [f64; 12] = [
    -0.3333333333333333,
    0.1999999999999941,
    -0.14285714285566806,
    0.11111111096645038,
    -0.09090908355602592,
    0.07692285554889286,
    -0.06666241923359964,
    0.05876946456755061,
    -0.05216679739313656,
    0.04492259293193656,
    -0.033128134256069586,
    0.014773184616983806,
];

/// The angle of the vector `(x, y)` with non-negative coordinates, which are not NaN, not both infinite and not both zero.
#[inline(always)]
fn quadrant_f32(y: f32, x: f32) -> f32 {
    let steep = y > x;
    let t = if steep { x } else { y } / if steep { y } else { x };
    let z = t * t;
    let tail = t * z * polynomial_f32(z, &ATAN32);
    let half_pi = std::f32::consts::FRAC_PI_2;
    if steep { half_pi - (t - (PIO2_LOW32 - tail)) } else { t + tail }
}

/// `(angle, low)` of the vector `(x, y)`, as for [`quadrant_f32`]. The reduction to `|t| <= 7/16`
/// by the angles 0, atan(1/2), pi/4, atan(3/2) and pi/2 is fdlibm's.
#[inline(always)]
fn quadrant_f64(y: f64, x: f64) -> (f64, f64) {
    let (above1, above2) = (y > 0.4375 * x, y > 0.6875 * x);
    let (above3, above4) = (y > 1.1875 * x, y > 2.4375 * x);
    let pick = |flat: f64, half: f64, one: f64, three_halves: f64, steep: f64| {
        let v = if above1 { half } else { flat };
        let v = if above2 { one } else { v };
        let v = if above3 { three_halves } else { v };
        if above4 { steep } else { v }
    };
    let up = pick(y, 2.0 * y - x, y - x, fma_f64(-1.5, x, y), -x);
    let along = pick(x, 2.0 * x + y, x + y, fma_f64(1.5, y, x), y);
    let high = pick(0.0, ATAN_HALF, FRAC_PI_4, ATAN_THREE_HALVES, FRAC_PI_2);
    let low = pick(0.0, ATAN_HALF_LOW, PIO4_LOW, ATAN_THREE_HALVES_LOW, PIO2_LOW);
    let t = up / along;
    let z = t * t;
    let tail = fma_f64(t * z, polynomial_f64(z, &ATAN64), low);
    let sum = t + tail;
    let angle = high + sum;
    (angle, (high - angle) + sum)
}

/// Arc tangent, at most 2 ulp.
#[inline(always)]
pub fn atan_f32(x: f32) -> f32 {
    quadrant_f32(x.abs(), 1.0).copysign(x)
}

/// Arc tangent, at most 1 ulp.
#[inline(always)]
pub fn atan_f64(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 1.0e300 { 1.0e300 } else { a };
    quadrant_f64(a, 1.0).0.copysign(x)
}

/// Angle of the vector `(x, y)` within `-pi..=pi`, at most 2 ulp.
#[inline(always)]
pub fn atan2_f32(y: f32, x: f32) -> f32 {
    let (a, b) = (y.abs(), x.abs());
    // Equal infinities have the angle of the diagonal, and `0 / 0` that of the axis.
    let both_infinite = a == f32::INFINITY && b == f32::INFINITY;
    let both_zero = a == 0.0 && b == 0.0;
    let b_safe = if both_infinite | both_zero { 1.0 } else { b };
    let a_safe = if both_infinite { 1.0 } else { a };
    let angle = quadrant_f32(a_safe, b_safe);
    let half_pi = std::f32::consts::FRAC_PI_2;
    let left = (half_pi - (angle - 2.0 * PIO2_LOW32)) + half_pi;
    let angle = if x.is_sign_negative() { left } else { angle };
    let angle = if a.is_nan() | b.is_nan() { f32::NAN } else { angle };
    angle.copysign(y)
}

/// Angle of the vector `(x, y)` within `-pi..=pi`, at most 2 ulp.
#[inline(always)]
pub fn atan2_f64(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let both_infinite = a == f64::INFINITY && b == f64::INFINITY;
    let both_zero = a == 0.0 && b == 0.0;
    let b_safe = if both_infinite | both_zero { 1.0 } else { b };
    let a_safe = if both_infinite { 1.0 } else { a };
    // The reduction adds multiples of the coordinates: scales them away from overflow and underflow.
    let largest = if a_safe > b_safe { a_safe } else { b_safe };
    let scale = if largest > 1.0e300 { 1.0 / 1024.0 } else { 1.0 };
    let scale = if largest < 1.0e-200 { 1.329227995784916e36 } else { scale };
    let (angle, low) = quadrant_f64(a_safe * scale, b_safe * scale);
    let left = PI - (angle - (PI_LOW - low));
    let angle = if x.is_sign_negative() { left } else { angle };
    let angle = if a.is_nan() | b.is_nan() { f64::NAN } else { angle };
    angle.copysign(y)
}
