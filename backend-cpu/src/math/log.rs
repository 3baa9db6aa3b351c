//! `log`, `log1p`, `log2` and `log10`.
//!
//! `x = 2^e (1 + f)` with `1 + f` within `sqrt(1/2) .. sqrt(2)`. In f32 `log(1 + f)` is `f - f^2/2 + f^3 P(f)`; in f64 it
//! is the series in `s = f / (2 + f)` arranged as in fdlibm. The series of the other bases have coefficients of their own,
//! which include the rounding error of the constant factor of `f`.

use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};

/// `ln 2` in two parts; products of the first with an exponent are exact.
const LN2_HI32: f32 = 0.693_359_4;
const LN2_LO32: f32 = -0.000_212_194_44;
const LN2_HI64: f64 = 0.6931471803691238;
const LN2_LO64: f64 = 1.9082149292705877e-10;

/// `1 / ln 2` and `1 / ln 10`, rounded to f32: the rounding error is part of the first coefficient of [`LOG2_REST32`] and
/// [`LOG10_REST32`].
const INV_LN2_32: f32 = std::f32::consts::LOG2_E;
const INV_LN10_32: f32 = std::f32::consts::LOG10_E;
/// `1 / ln 2` and `1 / ln 10`, each rounded to f64, and the rounding error.
const INV_LN2_64: (f64, f64) = (std::f64::consts::LOG2_E, 2.0355273740931033e-17);
const INV_LN10_64: (f64, f64) = (std::f64::consts::LOG10_E, 1.098319650216765e-17);
/// `log10(2)` in two parts; products of the first with an exponent are exact.
const LOG10_2_32: (f32, f32) = (0.301_025_4, 4.605_039e-6);
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

/// [`LOG64`] times `1 / ln 2`.
const LOG2_64: [f64; 7] = [
    0.961796693925976,
    0.5770780163541355,
    0.41219858389807806,
    0.32059873801756367,
    0.2623236397004895,
    0.22118998721412403,
    0.21087079476015172,
];
/// [`LOG64`] times `1 / ln 10`.
const LOG10_64: [f64; 7] = [
    0.289529654602168,
    0.1737177927608643,
    0.12408413792353762,
    0.09650983671530504,
    0.07896728412159812,
    0.06658482089198381,
    0.06347843443230874,
];
/// `log2(1 + f) / f - INV_LN2_32`.
const LOG2_REST32: [f32; 10] = [
    1.8369855e-8,
    -0.72134733,
    0.48089853,
    -0.36069655,
    0.28855255,
    -0.23960812,
    0.20485765,
    -0.19138838,
    0.18476033,
    -0.10749789,
];
/// `log10(1 + f) / f - INV_LN10_32`.
const LOG10_REST32: [f32; 10] = [
    -1.0370899e-8,
    -0.21714719,
    0.14476489,
    -0.10858048,
    0.086862974,
    -0.072129235,
    0.061668295,
    -0.05761364,
    0.0556184,
    -0.03236009,
];

/// `(f, e)` of a positive normal value.
#[inline(always)]
pub(super) fn split_normal_f32(x: f32) -> (f32, f32) {
    let shifted = x.to_bits().wrapping_sub(ROOT_HALF32);
    let e = (shifted as i32) >> 23;
    let m = f32::from_bits((shifted & 0x007f_ffff).wrapping_add(ROOT_HALF32));
    (m - 1.0, e as f32)
}

/// `(f, e)` of a positive value, with `x = 2^e (1 + f)`.
#[inline(always)]
pub(super) fn split_f32(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let (f, e) = split_normal_f32(if tiny { x * 8_388_608.0 } else { x });
    (f, if tiny { e - 23.0 } else { e })
}

/// `(f, e)` of a positive normal value. The exponent becomes a float through the low bits of `2^52`: AVX2 has no conversion
/// from 64-bit integers.
#[inline(always)]
pub(super) fn split_normal_f64(x: f64) -> (f64, f64) {
    let shifted = x.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - ROOT_HALF64);
    let biased = shifted >> 52;
    let m = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF64));
    let e = f64::from_bits(biased | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    (m - 1.0, e)
}

/// `(f, e)` of a positive value, with `x = 2^e (1 + f)`.
#[inline(always)]
pub(super) fn split_f64(x: f64) -> (f64, f64) {
    let tiny = x < f64::MIN_POSITIVE;
    let (f, e) = split_normal_f64(if tiny { x * 4_503_599_627_370_496.0 } else { x });
    (f, if tiny { e - 52.0 } else { e })
}

/// `y` if `x` is positive and finite; otherwise the limit at zero or infinity, or NaN.
#[inline(always)]
fn with_limits_f32(x: f32, y: f32) -> f32 {
    let y = if x > 0.0 { y } else { f32::NAN };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x == f32::INFINITY { x } else { y }
}

/// `y` if `x` is positive and finite; otherwise the limit at zero or infinity, or NaN.
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
/// If `1 + x` is within the reduced range, `f` is `x` itself; otherwise the rounding error of `1 + x`, divided by `1 + x`,
/// is added.
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

/// Logarithm to base 2, at most 2 ulp; exact for powers of two.
#[inline(always)]
pub fn log2_f32(x: f32) -> f32 {
    let (f, e) = split_f32(x);
    let rest = f * polynomial_f32(f, &LOG2_REST32);
    with_limits_f32(x, e + fma_f32(f, INV_LN2_32, rest))
}

/// `c log(1 + f) - c f`, where `half` is `c / 2` and `series` is `c` times [`LOG64`].
#[inline(always)]
fn curve_f64(f: f64, half: f64, series: &[f64; 7]) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let half_square = half * f * f;
    fma_f64(-s, fma_f64(z, polynomial_f64(z, series), half_square), half_square)
}

/// Logarithm to base 2, at most 2 ulp; exact for powers of two.
#[inline(always)]
pub fn log2_f64(x: f64) -> f64 {
    let (f, e) = split_f64(x);
    let (c, c_low) = INV_LN2_64;
    let rest = fma_f64(f, c_low, -curve_f64(f, 0.5 * c, &LOG2_64));
    with_limits_f64(x, e + fma_f64(f, c, rest))
}

/// Logarithm to base 10, at most 2 ulp.
#[inline(always)]
pub fn log10_f32(x: f32) -> f32 {
    let (f, e) = split_f32(x);
    let rest = fma_f32(e, LOG10_2_32.1, f * polynomial_f32(f, &LOG10_REST32));
    with_limits_f32(x, fma_f32(e, LOG10_2_32.0, fma_f32(f, INV_LN10_32, rest)))
}

/// Logarithm to base 10, at most 2 ulp.
#[inline(always)]
pub fn log10_f64(x: f64) -> f64 {
    let (f, e) = split_f64(x);
    let (c, c_low) = INV_LN10_64;
    let rest = fma_f64(e, LOG10_2_64.1, fma_f64(f, c_low, -curve_f64(f, 0.5 * c, &LOG10_64)));
    with_limits_f64(x, fma_f64(e, LOG10_2_64.0, fma_f64(f, c, rest)))
}
