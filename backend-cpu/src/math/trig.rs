//! `sin`, `cos` and `tan`.
//!
//! `x = n P + r`, where `P` is `pi` and `n` an integer for `sin`, half of an odd integer for `cos`, so that one odd
//! polynomial in `|r| <= pi/2` serves both; for `tan`, and for f64 without fused multiply-add, `P` is `pi/2`. The products
//! of `n` with the leading parts of `P` are exact (Cody and Waite) up to [`FAST_LIMIT_F32`] and [`FAST_LIMIT_F64`]; beyond,
//! the system's functions are called. The choice depends on the element alone.

use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};

/// Largest magnitude whose `n` has at most 20 bits.
pub(super) const FAST_LIMIT_F32: f32 = 1_048_576.0;
/// Largest magnitude whose `n` has at most 20 bits.
pub(super) const FAST_LIMIT_F64: f64 = 1_048_576.0;
/// Largest magnitude that is reduced in f32: its `n` has at most 10 bits. Only fused multiply-add has exact products with a
/// part of 24 bits.
pub(super) const NEAR_LIMIT_F32: f32 = if FUSED { 1024.0 } else { FAST_LIMIT_F32 };

const FUSED: bool = cfg!(target_feature = "fma");

/// `1.5 * 2^23`: adding it leaves a rounded integer in the low bits of the sum.
const ROUND32: f32 = 12_582_912.0;
/// `1.5 * 2^52`, the same for f64.
const ROUND64: f64 = 6_755_399_441_055_744.0;

/// `pi/2` in parts of 33 bits and the remainder; `PIO2_1_REST` is `pi/2` minus the first part.
const PIO2_1: f64 = 1.5707963267341256;
const PIO2_1_REST: f64 = 6.077100506506192e-11;
const PIO2_2: f64 = 6.077100506303966e-11;
const PIO2_3: f64 = 2.0222662487111665e-21;
const PIO2_4: f64 = 8.4784276603689e-32;

/// `pi/2` in parts for fused products: 53 bits, 33 bits, and the remainder.
const PIO2_FUSED64: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_384_61e-17, 3.521_559_865_183_2e-27];
/// `pi` in parts for fused products: 53 bits, 33 bits, and the remainder.
const PI_FUSED64: [f64; 3] = [std::f64::consts::PI, 1.224646799076922e-16, 7.0431197303664e-27];
/// `pi/2` in parts for fused products: 24 bits, 14 bits, and the remainder.
const PIO2_FUSED32: [f32; 3] = [std::f32::consts::FRAC_PI_2, -4.371_031_5e-8, -1.074_634_6e-12];
/// `pi` in parts for fused products: 24 bits, 14 bits, and the remainder.
const PI_FUSED32: [f32; 3] = [std::f32::consts::PI, -8.742_063e-8, -2.149_269_3e-12];

/// `(sin(r) / r - 1) / r^2` of `r^2`, for `|r| <= pi/2`: the first coefficient, then its rounding error and the other
/// coefficients.
const SIN32_FIRST: f32 = -0.16666667;
const SIN32_REST: [f32; 5] = [4.994922e-9, 0.008333333, -0.00019841087, 2.753646e-06, -2.4080094e-08];
/// The same for f64.
const SIN64_FIRST: f64 = -0.16666666666666666;
const SIN64_REST: [f64; 8] = [
    -8.914949511232996e-18,
    0.008333333333333316,
    -0.00019841269841254966,
    2.7557319219160833e-06,
    -2.505210761669045e-08,
    1.6058977292642743e-10,
    -7.643969663988074e-13,
    2.7314368769379893e-15,
];
/// `(tan(r) / r - 1) / r^2` of `r^2`, for `|r| <= pi/4`.
const TAN32: [f32; 7] =
    [0.33333334, 0.13333231, 0.05399448, 0.021621002, 0.009962586, 0.0011846202, 0.003843556];
/// `(sin(r) / r - 1) / r^2` and `(cos(r) - 1 + r^2/2) / r^4` of `r^2`, for `|r| <= pi/4`.
const SIN64: [f64; 7] = [
    -0.16666666666666666,
    0.008333333333333331,
    -0.00019841269841265063,
    2.7557319219337312e-06,
    -2.5052106231802837e-08,
    1.6058531516797758e-10,
    -7.586691094197958e-13,
];
const COS64: [f64; 6] = [
    0.041666666666666664,
    -0.0013888888888887398,
    2.480158729876456e-05,
    -2.7557317271145144e-07,
    2.087614614655861e-09,
    -1.1382623647474604e-11,
];

/// `(n, bits)`: the integer nearest to `x * inverse`, and bits whose low part is this integer.
#[inline(always)]
fn nearest_f32(x: f32, inverse: f32) -> (f32, u32) {
    let t = fma_f32(x, inverse, ROUND32);
    (t - ROUND32, t.to_bits())
}

/// As [`nearest_f32`].
#[inline(always)]
fn nearest_f64(x: f64, inverse: f64) -> (f64, u64) {
    let t = fma_f64(x, inverse, ROUND64);
    (t - ROUND64, t.to_bits())
}

/// `(n, bits)`: the half of an odd integer nearest to `x / pi`, and bits whose low part is the integer below it.
#[inline(always)]
fn nearest_half_f32(x: f32) -> (f32, u32) {
    let t = fma_f32(x, std::f32::consts::FRAC_1_PI, -0.5) + ROUND32;
    ((t - ROUND32) + 0.5, t.to_bits())
}

/// As [`nearest_half_f32`].
#[inline(always)]
fn nearest_half_f64(x: f64) -> (f64, u64) {
    let t = fma_f64(x, std::f64::consts::FRAC_1_PI, -0.5) + ROUND64;
    ((t - ROUND64) + 0.5, t.to_bits())
}

/// `x - n P` for the parts of `P` and an `n` of at most 10 bits, as a value and its rounding error. The first product is exact
/// for `|x|` above 0.6, since both it and `x` are multiples of the result's last bit.
#[inline(always)]
fn reduce_fused_f32(x: f32, n: f32, [first, second, third]: [f32; 3]) -> (f32, f32) {
    let most = fma_f32(n, -first, x);
    let r = fma_f32(n, -second, most);
    (r, fma_f32(n, -third, fma_f32(n, -second, most - r)))
}

/// As [`reduce_fused_f32`], for an `n` of at most 20 bits.
#[inline(always)]
fn reduce_fused_f64(x: f64, n: f64, [first, second, third]: [f64; 3]) -> (f64, f64) {
    let most = fma_f64(n, -first, x);
    let r = fma_f64(n, -second, most);
    (r, fma_f64(n, -third, fma_f64(n, -second, most - r)))
}

/// `x - n pi/2` for an `n` of at most 20 bits.
#[inline(always)]
fn reduce_wide(x: f64, n: f64) -> f64 {
    fma_f64(n, -PIO2_1_REST, fma_f64(n, -PIO2_1, x))
}

/// `a`, negated if the last of `bits` is set.
#[inline(always)]
fn signed_f32(a: f32, bits: u32) -> f32 {
    f32::from_bits(a.to_bits() ^ (bits << 31))
}

/// As [`signed_f32`].
#[inline(always)]
fn signed_f64(a: f64, bits: u64) -> f64 {
    f64::from_bits(a.to_bits() ^ (bits << 63))
}

/// The sine of `r + low` for `|r| <= pi/2`; the factor `cos(r)` of `low` is approximate.
#[inline(always)]
fn sine_f32(r: f32, low: f32) -> f32 {
    let z = r * r;
    let cube = r * z;
    let low = fma_f32(-0.44 * low, z, low);
    r + fma_f32(cube, SIN32_FIRST, fma_f32(cube, polynomial_f32(z, &SIN32_REST), low))
}

/// The tangent of `r + low + n pi/2` for `|r| <= pi/4`: `tan(r)`, or its negative reciprocal with one Newton step.
#[inline(always)]
fn tangent_f32(r: f32, low: f32, n: u32) -> f32 {
    let z = r * r;
    let tail = fma_f32(r * z, polynomial_f32(z, &TAN32), fma_f32(low, z, low));
    let y = r + tail;
    let rest = (r - y) + tail;
    let inverse = -1.0 / y;
    // `1 + inverse * (y + rest)`, the residual of the reciprocal.
    let lack = fma_f32(inverse, rest, fma_f32(inverse, y, 1.0));
    let odd = fma_f32(inverse, lack, inverse);
    if n & 1 == 0 { y } else { odd }
}

/// Sine of `|x| <=` [`NEAR_LIMIT_F32`].
#[inline(always)]
pub(super) fn sin_near_f32(x: f32) -> f32 {
    if !FUSED {
        return sin_fast_f32(x);
    }
    let (n, bits) = nearest_f32(x, std::f32::consts::FRAC_1_PI);
    let (r, low) = reduce_fused_f32(x, n, PI_FUSED32);
    let y = signed_f32(sine_f32(r, low), bits);
    if x == 0.0 { x } else { y }
}

/// Cosine of `|x| <=` [`NEAR_LIMIT_F32`].
#[inline(always)]
pub(super) fn cos_near_f32(x: f32) -> f32 {
    if !FUSED {
        return cos_fast_f32(x);
    }
    let (n, bits) = nearest_half_f32(x);
    let (r, low) = reduce_fused_f32(x, n, PI_FUSED32);
    signed_f32(sine_f32(r, low), !bits)
}

/// Tangent of `|x| <=` [`NEAR_LIMIT_F32`].
#[inline(always)]
pub(super) fn tan_near_f32(x: f32) -> f32 {
    if !FUSED {
        return tan_fast_f32(x);
    }
    let (n, bits) = nearest_f32(x, std::f32::consts::FRAC_2_PI);
    let (r, low) = reduce_fused_f32(x, n, PIO2_FUSED32);
    let y = tangent_f32(r, low, bits);
    if x == 0.0 { x } else { y }
}

/// `r` in f32 and its rounding error.
#[inline(always)]
fn narrow(r: f64) -> (f32, f32) {
    let high = r as f32;
    (high, (r - f64::from(high)) as f32)
}

/// Sine of `|x| <=` [`FAST_LIMIT_F32`].
#[inline(always)]
pub(super) fn sin_fast_f32(x: f32) -> f32 {
    let (n, bits) = nearest_f64(f64::from(x), std::f64::consts::FRAC_1_PI);
    let (r, low) = narrow(reduce_wide(f64::from(x), n + n));
    let y = signed_f32(sine_f32(r, low), bits as u32);
    if x == 0.0 { x } else { y }
}

/// Cosine of `|x| <=` [`FAST_LIMIT_F32`].
#[inline(always)]
pub(super) fn cos_fast_f32(x: f32) -> f32 {
    let (n, bits) = nearest_half_f64(f64::from(x));
    let (r, low) = narrow(reduce_wide(f64::from(x), n + n));
    signed_f32(sine_f32(r, low), !bits as u32)
}

/// Tangent of `|x| <=` [`FAST_LIMIT_F32`].
#[inline(always)]
pub(super) fn tan_fast_f32(x: f32) -> f32 {
    let (n, bits) = nearest_f64(f64::from(x), std::f64::consts::FRAC_2_PI);
    let (r, low) = narrow(reduce_wide(f64::from(x), n));
    let y = tangent_f32(r, low, bits as u32);
    if x == 0.0 { x } else { y }
}

/// The sine of `r + low` for `|r| <= pi/2`, with the sign of `r`. Needs fused multiply-add: the rounding error of the cube
/// would exceed 1 ulp near `pi/2`.
#[inline(always)]
fn sine_fused_f64(r: f64, low: f64) -> f64 {
    let z = r * r;
    let cube = r * z;
    let cube_low = fma_f64(r, fma_f64(r, r, -z), fma_f64(r, z, -cube));
    let cos = fma_f64(z, fma_f64(z, 0.0371, -0.4955), 1.0);
    let rest = fma_f64(cube, polynomial_f64(z, &SIN64_REST), fma_f64(cube_low, SIN64_FIRST, low * cos));
    (r + fma_f64(cube, SIN64_FIRST, rest)).copysign(r)
}

/// `(r, low, n)`: `r + low` has about 100 bits, so that `r` is correctly rounded even next to a multiple of `pi/2`.
#[inline(always)]
fn reduce_f64(x: f64) -> (f64, f64, u64) {
    let (n, bits) = nearest_f64(x, std::f64::consts::FRAC_2_PI);
    if FUSED {
        let (r, low) = reduce_fused_f64(x, n, PIO2_FUSED64);
        return (r, low, bits);
    }
    let first = fma_f64(n, -PIO2_1, x);
    let (second, second_error) = two_sum(first, -(n * PIO2_2));
    let (third, third_error) = two_sum(second, -(n * PIO2_3));
    let rest = second_error + third_error - n * PIO2_4;
    let r = third + rest;
    (r, (third - r) + rest, bits)
}

/// `a + b` and its rounding error (Knuth's TwoSum).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// `(sin, cos)` of `r + low`, arranged as in fdlibm's kernels.
#[inline(always)]
fn sin_cos_f64(r: f64, low: f64) -> (f64, f64) {
    let z = r * r;
    let sin_tail = fma_f64(r * z, polynomial_f64(z, &SIN64), fma_f64(low, -0.5 * z, low));
    let half = 0.5 * z;
    let cos = 1.0 - half;
    let cos_tail = fma_f64(z * z, polynomial_f64(z, &COS64), -(r * low));
    (r + sin_tail, cos + (((1.0 - cos) - half) + cos_tail))
}

/// The sine of `r + quadrant pi/2` from both values at `r`.
#[inline(always)]
fn pick_f64(sin: f64, cos: f64, quadrant: u64) -> f64 {
    let value = if quadrant & 1 == 0 { sin } else { cos };
    signed_f64(value, quadrant >> 1)
}

/// Sine of `|x| <=` [`FAST_LIMIT_F64`].
#[inline(always)]
pub(super) fn sin_fast_f64(x: f64) -> f64 {
    if FUSED {
        let (n, bits) = nearest_f64(x, std::f64::consts::FRAC_1_PI);
        let (r, low) = reduce_fused_f64(x, n, PI_FUSED64);
        return signed_f64(sine_fused_f64(r, low), bits);
    }
    let (r, low, n) = reduce_f64(x);
    let (sin, cos) = sin_cos_f64(r, low);
    if x == 0.0 { x } else { pick_f64(sin, cos, n) }
}

/// Cosine of `|x| <=` [`FAST_LIMIT_F64`].
#[inline(always)]
pub(super) fn cos_fast_f64(x: f64) -> f64 {
    if FUSED {
        let (n, bits) = nearest_half_f64(x);
        let (r, low) = reduce_fused_f64(x, n, PI_FUSED64);
        // The first product has a rounding error where the argument is near zero.
        let [first, ..] = PI_FUSED64;
        let lost = x - fma_f64(n, first, fma_f64(n, -first, x));
        return signed_f64(sine_fused_f64(r, low + lost), !bits);
    }
    let (r, low, n) = reduce_f64(x);
    let (sin, cos) = sin_cos_f64(r, low);
    pick_f64(sin, cos, n.wrapping_add(1))
}

/// Sine and cosine of `|x| <=` [`FAST_LIMIT_F64`], at most 1 ulp each.
#[inline(always)]
pub fn sin_cos_fast_f64(x: f64) -> (f64, f64) {
    let (r, low, n) = reduce_f64(x);
    let (sin, cos) = sin_cos_f64(r, low);
    (pick_f64(sin, cos, n), pick_f64(sin, cos, n.wrapping_add(1)))
}

/// Tangent of `|x| <=` [`FAST_LIMIT_F64`].
#[inline(always)]
pub(super) fn tan_fast_f64(x: f64) -> f64 {
    let (r, low, n) = reduce_f64(x);
    let even = n & 1 == 0;
    let y = if FUSED {
        tangent_fused_f64(r, low, even)
    } else {
        let (sin, cos) = sin_cos_f64(r, low);
        (if even { sin } else { -cos }) / (if even { cos } else { sin })
    };
    if x == 0.0 { x } else { y }
}

/// The tangent of `r + low`, or its negative reciprocal, for `|r| <= pi/4`. The quotient is corrected by the rounding
/// errors of numerator, denominator and quotient, which needs fused multiply-add.
#[inline(always)]
fn tangent_fused_f64(r: f64, low: f64, even: bool) -> f64 {
    let z = r * r;
    let sin_tail = fma_f64(r * z, polynomial_f64(z, &SIN64), fma_f64(-0.5 * low, z, low));
    let sin = r + sin_tail;
    let sin_low = (r - sin) + sin_tail;
    let cos_tail = fma_f64(z, fma_f64(z, polynomial_f64(z, &COS64), -0.5), -(r * low));
    let cos = 1.0 + cos_tail;
    let cos_low = (1.0 - cos) + cos_tail;
    let (above, above_low) = if even { (sin, sin_low) } else { (-cos, -cos_low) };
    let (below, below_low) = if even { (cos, cos_low) } else { (sin, sin_low) };
    let inverse = 1.0 / below;
    let y = above * inverse;
    let lack = fma_f64(-y, below_low, above_low) + fma_f64(-y, below, above);
    fma_f64(lack, inverse, y)
}

/// Sine, at most 2 ulp. Loops over many elements use [`super::sin_slice_f32`].
#[cfg(test)]
#[inline]
pub fn sin_f32(x: f32) -> f32 {
    by_size_f32(x, [sin_near_f32, sin_fast_f32, f32::sin])
}

/// Cosine, at most 2 ulp. Loops over many elements use [`super::cos_slice_f32`].
#[cfg(test)]
#[inline]
pub fn cos_f32(x: f32) -> f32 {
    by_size_f32(x, [cos_near_f32, cos_fast_f32, f32::cos])
}

/// Tangent, at most 2 ulp. Loops over many elements use [`super::tan_slice_f32`].
#[cfg(test)]
#[inline]
pub fn tan_f32(x: f32) -> f32 {
    by_size_f32(x, [tan_near_f32, tan_fast_f32, f32::tan])
}

#[cfg(test)]
fn by_size_f32(x: f32, [near, fast, slow]: [fn(f32) -> f32; 3]) -> f32 {
    match x.abs() {
        a if a > FAST_LIMIT_F32 => slow(x),
        a if a > NEAR_LIMIT_F32 => fast(x),
        _ => near(x),
    }
}

/// Sine, at most 1 ulp. Loops over many elements use [`super::sin_slice_f64`].
#[cfg(test)]
#[inline]
pub fn sin_f64(x: f64) -> f64 {
    if x.abs() > FAST_LIMIT_F64 { x.sin() } else { sin_fast_f64(x) }
}

/// Cosine, at most 1 ulp. Loops over many elements use [`super::cos_slice_f64`].
#[cfg(test)]
#[inline]
pub fn cos_f64(x: f64) -> f64 {
    if x.abs() > FAST_LIMIT_F64 { x.cos() } else { cos_fast_f64(x) }
}

/// Tangent, at most 2 ulp, or 2.25 without fused multiply-add. Loops over many elements use [`super::tan_slice_f64`].
#[cfg(test)]
#[inline]
pub fn tan_f64(x: f64) -> f64 {
    if x.abs() > FAST_LIMIT_F64 { x.tan() } else { tan_fast_f64(x) }
}
