//! `log`, `log1p`, `log2` and `log10`.
//!
//! `x = 2^e (1 + f)` with `1 + f` within `sqrt(1/2) .. sqrt(2)`. In f32 `log(1 + f)` is
//! `f - f^2/2 + f^3 P(f)`; in f64 it is the series in `s = f / (2 + f)` arranged as in fdlibm.
//! The other bases multiply a two-part logarithm by a two-part constant, as FreeBSD's msun does.

use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};

/// `ln 2` in two parts; products of the first with an exponent are exact.
const LN2_HI32: f32 = 0.693_359_4;
const LN2_LO32: f32 = -0.000_212_194_44;
const LN2_HI64: f64 = 0.6931471803691238;
const LN2_LO64: f64 = 1.9082149292705877e-10;

/// `1 / ln 2`, `1 / ln 10` and `log10(2)`, each in two parts of which the first is short.
const INV_LN2_32: (f32, f32) = (1.442_382_8, 0.000_312_228_4);
const INV_LN10_32: (f32, f32) = (0.434_204_1, 9.038_034e-5);
const LOG10_2_32: (f32, f32) = (0.301_025_4, 4.605_039e-6);
const INV_LN2_64: (f64, f64) = (1.4426950407214463, 1.6751713164886512e-10);
const INV_LN10_64: (f64, f64) = (0.4342944818781689, 2.5082946711645275e-11);
const LOG10_2_64: (f64, f64) = (0.3010299955494702, 1.1451100898021838e-10);

/// Bits of `sqrt(1/2)`.
const ROOT_HALF32: u32 = 0x3f35_04f3;
const ROOT_HALF64: u64 = 0x3fe6_a09e_667f_3bcd;

/// `(log(1 + f) - f + f^2/2) / f^3`.
const LOG32: [f32; 9] = [
    0.3333333,
    -0.24999997,
    0.20000716,
    -0.16667803,
    0.14249058,
    -0.12425687,
    0.1168542,
    -0.11479734,
    0.06971612,
];
/// `(log((1 + s) / (1 - s)) / s - 2) / s^2` of `s^2`.
const LOG64: [f64; 7] = [
    0.666666666666667,
    0.39999999999899505,
    0.28571428625975487,
    0.2222221113479508,
    0.18182889125261723,
    0.15331721600556042,
    0.14616449685043406,
];

/// `(f, e)` of a positive normal number.
#[inline(always)]
pub(super) fn split_normal_f32(x: f32) -> (f32, f32) {
    let shifted = x.to_bits().wrapping_sub(ROOT_HALF32);
    let e = (shifted as i32) >> 23;
    let m = f32::from_bits((shifted & 0x007f_ffff).wrapping_add(ROOT_HALF32));
    (m - 1.0, e as f32)
}

/// `(f, e)` of a positive number.
#[inline(always)]
pub(super) fn split_f32(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let (f, e) = split_normal_f32(if tiny { x * 8_388_608.0 } else { x });
    (f, if tiny { e - 23.0 } else { e })
}

/// `(f, e)` of a positive normal number. The exponent becomes a float through the low bits of
/// `2^52`: AVX2 has no conversion from 64-bit integers.
#[inline(always)]
pub(super) fn split_normal_f64(x: f64) -> (f64, f64) {
    let shifted = x.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - ROOT_HALF64);
    let biased = shifted >> 52;
    let m = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF64));
    let e = f64::from_bits(biased | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    (m - 1.0, e)
}

/// `(f, e)` of a positive number.
#[inline(always)]
pub(super) fn split_f64(x: f64) -> (f64, f64) {
    let tiny = x < f64::MIN_POSITIVE;
    let (f, e) = split_normal_f64(if tiny { x * 4_503_599_627_370_496.0 } else { x });
    (f, if tiny { e - 52.0 } else { e })
}

/// `y` where `x` is positive and finite; else the limit at zero and infinity, or NaN.
#[inline(always)]
fn with_limits_f32(x: f32, y: f32) -> f32 {
    let y = if x > 0.0 { y } else { f32::NAN };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x == f32::INFINITY { x } else { y }
}

/// `y` where `x` is positive and finite; else the limit at zero and infinity, or NaN.
#[inline(always)]
fn with_limits_f64(x: f64, y: f64) -> f64 {
    let y = if x > 0.0 { y } else { f64::NAN };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x == f64::INFINITY { x } else { y }
}

/// `log(1 + f) + e ln 2 + c`.
#[inline(always)]
fn sum_f32(f: f32, e: f32, c: f32) -> f32 {
    let z = f * f;
    let y = fma_f32(f * z, polynomial_f32(f, &LOG32), fma_f32(e, LN2_LO32, c));
    fma_f32(e, LN2_HI32, f + fma_f32(z, -0.5, y))
}

/// `log(1 + f) + e ln 2 + c`.
#[inline(always)]
fn sum_f64(f: f64, e: f64, c: f64) -> f64 {
    let (half_square, tail) = parts_f64(f);
    e * LN2_HI64 - ((half_square - (tail + fma_f64(e, LN2_LO64, c))) - f)
}

/// `(f^2/2, t)` with `log(1 + f) = f - (f^2/2 - t)`.
#[inline(always)]
fn parts_f64(f: f64) -> (f64, f64) {
    let s = f / (2.0 + f);
    let z = s * s;
    let half_square = 0.5 * f * f;
    (half_square, s * fma_f64(z, polynomial_f64(z, &LOG64), half_square))
}

/// Natural logarithm, at most 1 ulp.
#[inline(always)]
pub fn log_f32(x: f32) -> f32 {
    let (f, e) = split_f32(x);
    with_limits_f32(x, sum_f32(f, e, 0.0))
}

/// Natural logarithm, at most 1 ulp.
#[inline(always)]
pub fn log_f64(x: f64) -> f64 {
    let (f, e) = split_f64(x);
    with_limits_f64(x, sum_f64(f, e, 0.0))
}

/// `log(1 + x)`, at most 2 ulp.
///
/// Where `1 + x` lies within the reduced range `f` is `x` itself; elsewhere the rounding error of
/// `1 + x` is added back, divided by `1 + x`.
#[inline(always)]
pub fn log1p_f32(x: f32) -> f32 {
    let u = 1.0 + x;
    let v = u - 1.0;
    let c = ((1.0 - (u - v)) + (x - v)) / u;
    let (f, e) = split_normal_f32(u);
    let near = e == 0.0;
    let y = sum_f32(if near { x } else { f }, e, if near { 0.0 } else { c });
    let y = with_limits_f32(u, y);
    if x.abs() < 1.0e-8 { x } else { y }
}

/// `log(1 + x)`, at most 2 ulp.
#[inline(always)]
pub fn log1p_f64(x: f64) -> f64 {
    let u = 1.0 + x;
    let v = u - 1.0;
    let c = ((1.0 - (u - v)) + (x - v)) / u;
    let (f, e) = split_normal_f64(u);
    let near = e == 0.0;
    let y = sum_f64(if near { x } else { f }, e, if near { 0.0 } else { c });
    let y = with_limits_f64(u, y);
    if x.abs() < 1.0e-17 { x } else { y }
}

/// `log(1 + f)` as a short high part and the rest.
#[inline(always)]
fn two_part_f32(f: f32) -> (f32, f32) {
    let half_square = 0.5 * f * f;
    let tail = f * (f * f) * polynomial_f32(f, &LOG32);
    let high = f32::from_bits((f - half_square).to_bits() & 0xffff_f000);
    (high, (f - high) - half_square + tail)
}

/// `log(1 + f)` as a short high part and the rest.
#[inline(always)]
fn two_part_f64(f: f64) -> (f64, f64) {
    let (half_square, tail) = parts_f64(f);
    let high = f64::from_bits((f - half_square).to_bits() & 0xffff_ffff_0000_0000);
    (high, (f - high) - half_square + tail)
}

/// Logarithm to base 2, at most 2 ulp; exact for powers of two.
#[inline(always)]
pub fn log2_f32(x: f32) -> f32 {
    let (f, e) = split_f32(x);
    let (high, low) = two_part_f32(f);
    let (c_high, c_low) = INV_LN2_32;
    let main = high * c_high;
    let rest = fma_f32(low + high, c_low, low * c_high);
    let sum = e + main;
    with_limits_f32(x, (rest + ((e - sum) + main)) + sum)
}

/// Logarithm to base 2, at most 2 ulp; exact for powers of two.
#[inline(always)]
pub fn log2_f64(x: f64) -> f64 {
    let (f, e) = split_f64(x);
    let (high, low) = two_part_f64(f);
    let (c_high, c_low) = INV_LN2_64;
    let main = high * c_high;
    let rest = fma_f64(low + high, c_low, low * c_high);
    let sum = e + main;
    with_limits_f64(x, (rest + ((e - sum) + main)) + sum)
}

/// Logarithm to base 10, at most 2 ulp.
#[inline(always)]
pub fn log10_f32(x: f32) -> f32 {
    let (f, e) = split_f32(x);
    let (high, low) = two_part_f32(f);
    let (c_high, c_low) = INV_LN10_32;
    let main = high * c_high;
    let rest = fma_f32(e, LOG10_2_32.1, fma_f32(low + high, c_low, low * c_high));
    let base = e * LOG10_2_32.0;
    let sum = base + main;
    with_limits_f32(x, (rest + ((base - sum) + main)) + sum)
}

/// Logarithm to base 10, at most 2 ulp.
#[inline(always)]
pub fn log10_f64(x: f64) -> f64 {
    let (f, e) = split_f64(x);
    let (high, low) = two_part_f64(f);
    let (c_high, c_low) = INV_LN10_64;
    let main = high * c_high;
    let rest = fma_f64(e, LOG10_2_64.1, fma_f64(low + high, c_low, low * c_high));
    let base = e * LOG10_2_64.0;
    let sum = base + main;
    with_limits_f64(x, (rest + ((base - sum) + main)) + sum)
}
