//! `exp` and `expm1`.
//!
//! `x = n ln 2 + r` with `|r| <= ln 2 / 2`; `e^r - 1 = r + r^2 P(r)`; the result is scaled by `2^n`.

use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};

/// `1.5 * 2^23`: adding it leaves a rounded integer in the low bits of the sum.
const ROUND32: f32 = 12_582_912.0;
/// `1.5 * 2^52`, the same for f64.
const ROUND64: f64 = 6_755_399_441_055_744.0;

/// `ln 2` in two parts; products of the first with an exponent are exact.
const LN2_HI32: f32 = 0.693_359_4;
const LN2_LO32: f32 = -0.000_212_194_44;
const LN2_HI64: f64 = 0.6931471803691238;
const LN2_LO64: f64 = 1.9082149292705877e-10;

/// `(e^r - 1 - r) / r^2`, error 2^-29 of `expm1`.
const EXP32: [f32; 6] = [0.5, 0.16666667, 0.041666463, 0.0083333105, 0.0013933731, 0.0001989108];
/// `(2^r - 1) / r` for `|r| <= 1/2`, error 2^-27 of `2^r`.
const EXP2_32: [f32; 6] =
    [std::f32::consts::LN_2, 0.240_226_5, 0.055_503_57, 0.009_618_057, 0.001_339_086_7, 0.000_154_614_48];
/// `(e^r - 1 - r) / r^2`, error 2^-60 of `expm1`.
pub(super) const EXP64: [f64; 11] = [
    0.5,
    0.1666666666666667,
    0.04166666666666667,
    0.008333333333326084,
    0.001388888888888384,
    0.0001984126987500228,
    2.480158732543272e-05,
    2.755725517000089e-06,
    2.7557273682072415e-07,
    2.5105312729622103e-08,
    2.0914693884565418e-09,
];

/// `(e^r - 1 - r) / r^2`, error 2^-56 of `expm1`.
const EXP64_SHORT: [f64; 10] = [
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662413,
    0.008333333333330062,
    0.0013888888917213717,
    0.00019841269863053618,
    2.4801521295954376e-05,
    2.7557268459997064e-06,
    2.7620088445409746e-07,
    2.510038549551032e-08,
];

/// `(expm1(r), n)` with `x = n ln 2 + r`. `x` must be bounded so that `n` fits an exponent.
#[inline(always)]
fn reduced_expm1_f32(x: f32) -> (f32, i32) {
    let t = fma_f32(x, std::f32::consts::LOG2_E, ROUND32);
    let n = (t.to_bits() as i32).wrapping_sub(ROUND32.to_bits() as i32);
    let nf = t - ROUND32;
    let high = fma_f32(nf, -LN2_HI32, x);
    let r = fma_f32(nf, -LN2_LO32, high);
    let correction = fma_f32(nf, -LN2_LO32, high - r);
    let p = polynomial_f32(r, &EXP32);
    (r + fma_f32(r * r, p, correction), n)
}

/// `(expm1(r), n)` with `x = n ln 2 + r`. `x` must be bounded so that `n` fits an exponent.
#[inline(always)]
fn reduced_expm1_f64(x: f64) -> (f64, i64) {
    let t = fma_f64(x, std::f64::consts::LOG2_E, ROUND64);
    let n = (t.to_bits() as i64).wrapping_sub(ROUND64.to_bits() as i64);
    let nf = t - ROUND64;
    let high = fma_f64(nf, -LN2_HI64, x);
    let r = fma_f64(nf, -LN2_LO64, high);
    let correction = fma_f64(nf, -LN2_LO64, high - r);
    let p = polynomial_f64(r, &EXP64);
    (r + fma_f64(r * r, p, correction), n)
}

/// `2^n` for `-126 <= n <= 127`.
#[inline(always)]
fn power_of_two_f32(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `2^n` for `-1022 <= n <= 1023`.
#[inline(always)]
fn power_of_two_f64(n: i64) -> f64 {
    f64::from_bits((n.wrapping_add(1023) as u64) << 52)
}

/// `p * 2^n` for `-252 <= n <= 254`, rounded once.
#[inline(always)]
fn scale_f32(p: f32, n: i32) -> f32 {
    let half = n >> 1;
    p * power_of_two_f32(half) * power_of_two_f32(n.wrapping_sub(half))
}

/// `p * 2^n` for `-2044 <= n <= 2046`, rounded once.
///
/// The shift is a logical one of a biased value: AVX2 has no arithmetic shift of 64-bit integers.
#[inline(always)]
pub(super) fn scale_f64(p: f64, n: i64) -> f64 {
    let half = ((n.wrapping_add(4096) as u64) >> 1).wrapping_sub(2048) as i64;
    p * power_of_two_f64(half) * power_of_two_f64(n.wrapping_sub(half))
}

/// `x` clamped to `low..=high`; NaN propagates.
#[inline(always)]
pub(super) fn bound_f32(x: f32, low: f32, high: f32) -> f32 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

/// `x` clamped to `low..=high`; NaN propagates.
#[inline(always)]
pub(super) fn bound_f64(x: f64, low: f64, high: f64) -> f64 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

/// `e^x`, at most 1 ulp.
#[inline(always)]
pub fn exp_f32(x: f32) -> f32 {
    let x = bound_f32(x, -104.0, 89.0);
    let t = fma_f32(x, std::f32::consts::LOG2_E, ROUND32);
    let n = (t.to_bits() as i32).wrapping_sub(ROUND32.to_bits() as i32);
    let nf = t - ROUND32;
    let r = fma_f32(nf, -LN2_LO32, fma_f32(nf, -LN2_HI32, x));
    let p = fma_f32(r * r, polynomial_f32(r, &EXP32), r);
    scale_f32(1.0 + p, n)
}

/// `e^x`, at most 1 ulp.
#[inline(always)]
pub fn exp_f64(x: f64) -> f64 {
    exp_scaled_f64(x, 0)
}

/// `e^x * 2^shift` without intermediate overflow; `shift` is -1, 0 or 1.
#[inline(always)]
pub(super) fn exp_scaled_f64(x: f64, shift: i64) -> f64 {
    let x = bound_f64(x, -747.0, 711.0);
    let t = fma_f64(x, std::f64::consts::LOG2_E, ROUND64);
    let n = (t.to_bits() as i64).wrapping_sub(ROUND64.to_bits() as i64);
    let nf = t - ROUND64;
    let r = fma_f64(nf, -LN2_LO64, fma_f64(nf, -LN2_HI64, x));
    let p = fma_f64(r * r, polynomial_f64(r, &EXP64), r);
    scale_f64(1.0 + p, n.wrapping_add(shift))
}

/// `e^x` for `|x| < 80`, whose scale is a single power of two.
#[inline(always)]
pub(super) fn exp_moderate_f32(x: f32) -> f32 {
    let t = fma_f32(x, std::f32::consts::LOG2_E, ROUND32);
    let n = (t.to_bits() as i32).wrapping_sub(ROUND32.to_bits() as i32);
    let nf = t - ROUND32;
    let r = fma_f32(nf, -LN2_LO32, fma_f32(nf, -LN2_HI32, x));
    let p = fma_f32(r * r, polynomial_f32(r, &EXP32), r);
    (1.0 + p) * power_of_two_f32(n)
}

/// `2^x` for `|x| < 120`, whose scale is a single power of two.
#[inline(always)]
pub(super) fn exp2_moderate_f32(x: f32) -> f32 {
    let t = x + ROUND32;
    let n = (t.to_bits() as i32).wrapping_sub(ROUND32.to_bits() as i32);
    let r = x - (t - ROUND32);
    fma_f32(r, polynomial_f32(r, &EXP2_32), 1.0) * power_of_two_f32(n)
}

/// `e^x` for `|x| < 700`, whose scale is a single power of two.
#[inline(always)]
pub(super) fn exp_moderate_f64(x: f64) -> f64 {
    let t = fma_f64(x, std::f64::consts::LOG2_E, ROUND64);
    let n = (t.to_bits() as i64).wrapping_sub(ROUND64.to_bits() as i64);
    let nf = t - ROUND64;
    let r = fma_f64(nf, -LN2_LO64, fma_f64(nf, -LN2_HI64, x));
    let p = fma_f64(r * r, polynomial_f64(r, &EXP64), r);
    (1.0 + p) * power_of_two_f64(n)
}

/// `e^x` for `-40 < x <= 0`, within 2^-51: for results that are added to a larger value.
#[inline(always)]
pub(super) fn exp_short_f64(x: f64) -> f64 {
    let t = fma_f64(x, std::f64::consts::LOG2_E, ROUND64);
    let r = fma_f64(t - ROUND64, -std::f64::consts::LN_2, x);
    let p = fma_f64(r * r, polynomial_f64(r, &EXP64_SHORT), r);
    // The integer part of the exponent is in the low bits of `t`.
    let scale = t.to_bits().wrapping_add(1023) << 52;
    fma_f64(p, f64::from_bits(scale), f64::from_bits(scale))
}

/// `e^x` for `x <= 0` from the corrected reduction, a quarter ulp more accurate than [`exp_f32`].
#[inline(always)]
pub(super) fn exp_nonpositive_f32(x: f32) -> f32 {
    let (p, n) = reduced_expm1_f32(bound_f32(x, -104.0, 0.0));
    // The first product is exact, so there is one rounding.
    (1.0 + p) * power_of_two_f32(n.wrapping_add(64)) * power_of_two_f32(-64)
}

/// `e^x` for `x <= 0` from the corrected reduction, a quarter ulp more accurate than [`exp_f64`].
#[inline(always)]
pub(super) fn exp_nonpositive_f64(x: f64) -> f64 {
    let (p, n) = reduced_expm1_f64(bound_f64(x, -747.0, 0.0));
    // The first product is exact, so there is one rounding.
    (1.0 + p) * power_of_two_f64(n.wrapping_add(512)) * power_of_two_f64(-512)
}

/// `e^x` for `x <= 0`, at most 1 ulp, and 0 below `e^-87`: an addend of softmax that is negligible beside the others.
#[inline(always)]
pub fn exp_share_f32(x: f32) -> f32 {
    let held = if x < -87.0 { -87.0 } else { x };
    let t = fma_f32(held, std::f32::consts::LOG2_E, ROUND32);
    let nf = t - ROUND32;
    let r = fma_f32(nf, -LN2_LO32, fma_f32(nf, -LN2_HI32, held));
    let p = fma_f32(r * r, polynomial_f32(r, &EXP32), r);
    // The integer part of the exponent is in the low bits of `t`.
    let scale = f32::from_bits(t.to_bits().wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { fma_f32(p, scale, scale) }
}

/// `e^x` for `x <= 0`, at most 1 ulp, and 0 below `e^-708`: an addend of softmax that is negligible beside the others.
#[inline(always)]
pub fn exp_share_f64(x: f64) -> f64 {
    let held = if x < -708.0 { -708.0 } else { x };
    let t = fma_f64(held, std::f64::consts::LOG2_E, ROUND64);
    let nf = t - ROUND64;
    let r = fma_f64(nf, -LN2_LO64, fma_f64(nf, -LN2_HI64, held));
    let p = fma_f64(r * r, polynomial_f64(r, &EXP64), r);
    let scale = f64::from_bits(t.to_bits().wrapping_add(1023) << 52);
    if x < -708.0 { 0.0 } else { fma_f64(p, scale, scale) }
}

/// `e^x - 1` without cancellation near zero, at most 2 ulp.
///
/// `2^n expm1(r) + (2^n - 1)` is computed at half scale, so that the largest results do not overflow.
#[inline(always)]
pub fn expm1_f32(x: f32) -> f32 {
    let (p, n) = reduced_expm1_f32(bound_f32(x, -20.0, 89.0));
    let half = power_of_two_f32(n.wrapping_sub(1));
    let y = 2.0 * fma_f32(p, half, half - 0.5);
    if x.abs() < 1.0e-8 { x } else { y }
}

/// `e^x - 1` without cancellation near zero, at most 2 ulp.
#[inline(always)]
pub fn expm1_f64(x: f64) -> f64 {
    let (p, n) = reduced_expm1_f64(bound_f64(x, -40.0, 710.0));
    let half = power_of_two_f64(n.wrapping_sub(1));
    let y = 2.0 * fma_f64(p, half, half - 0.5);
    if x.abs() < 1.0e-17 { x } else { y }
}
