//! `sin`, `cos` and `tan`.
//!
//! `x = n pi/2 + r` with `|r| <= pi/4`. Up to [`FAST_LIMIT_F32`] and [`FAST_LIMIT_F64`] the
//! products of `n` with the leading parts of `pi/2` are exact (Cody and Waite); beyond, the system's
//! functions are called. Which of the two is used depends on the element alone.

use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64};

/// Largest magnitude whose `n` has at most 20 bits.
pub(super) const FAST_LIMIT_F32: f32 = 1_048_576.0;
/// Largest magnitude whose `n` has at most 20 bits.
pub(super) const FAST_LIMIT_F64: f64 = 1_048_576.0;

/// `1.5 * 2^52`: adding it leaves a rounded integer in the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// `pi/2` in parts of 33 bits and the rest; `PIO2_1_REST` is all that follows the first part.
const PIO2_1: f64 = 1.5707963267341256;
const PIO2_1_REST: f64 = 6.077100506506192e-11;
const PIO2_2: f64 = 6.077100506303966e-11;
const PIO2_3: f64 = 2.0222662487111665e-21;
const PIO2_4: f64 = 8.4784276603689e-32;

/// `(sin(r) / r - 1) / r^2` and `(cos(r) - 1 + r^2/2) / r^4` of `r^2`, for f32 arithmetic.
const SIN32: [f32; 4] = [-0.16666667, 0.008333332, -0.00019840087, 2.7249896e-06];
const COS32: [f32; 3] = [0.041666664, -0.0013888302, 2.4547917e-05];
/// The same for f32 results of f64 arithmetic.
const SIN48: [f64; 4] =
    [-0.16666666663854168, 0.008333331874273714, -0.000198400864995936, 2.7249895230611676e-06];
const COS48: [f64; 4] =
    [0.041666666664320264, -0.0013888887671652504, 2.480060018036381e-05, -2.7300933687212943e-07];
/// The same for f64.
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

/// `(r, n mod 2^32)`.
#[inline(always)]
fn reduce_f32(x: f32) -> (f64, u32) {
    let x = f64::from(x);
    let t = fma_f64(x, std::f64::consts::FRAC_2_PI, ROUND);
    let n = t - ROUND;
    let r = fma_f64(n, -PIO2_1_REST, fma_f64(n, -PIO2_1, x));
    (r, t.to_bits() as u32)
}

/// `(r, n)` to `(sin, cos)` of `r` in f32.
#[inline(always)]
fn sin_cos_f32(r: f64) -> (f32, f32) {
    let r = r as f32;
    let z = r * r;
    let sin = fma_f32(r * z, polynomial_f32(z, &SIN32), r);
    let cos = 1.0 - fma_f32(-z * z, polynomial_f32(z, &COS32), 0.5 * z);
    (sin, cos)
}

/// The sine of `r + quadrant pi/2` from both values at `r`.
#[inline(always)]
fn pick_f32(sin: f32, cos: f32, quadrant: u32) -> f32 {
    let value = if quadrant & 1 == 0 { sin } else { cos };
    f32::from_bits(value.to_bits() ^ ((quadrant & 2) << 30))
}

#[inline(always)]
pub(super) fn sin_fast_f32(x: f32) -> f32 {
    let (r, n) = reduce_f32(x);
    let (sin, cos) = sin_cos_f32(r);
    if x == 0.0 { x } else { pick_f32(sin, cos, n) }
}

#[inline(always)]
pub(super) fn cos_fast_f32(x: f32) -> f32 {
    let (r, n) = reduce_f32(x);
    let (sin, cos) = sin_cos_f32(r);
    pick_f32(sin, cos, n.wrapping_add(1))
}

#[inline(always)]
pub(super) fn tan_fast_f32(x: f32) -> f32 {
    let (r, n) = reduce_f32(x);
    let z = r * r;
    let sin = fma_f64(r * z, polynomial_f64(z, &SIN48), r);
    let cos = 1.0 - fma_f64(-z * z, polynomial_f64(z, &COS48), 0.5 * z);
    let even = n & 1 == 0;
    let y = (if even { sin } else { -cos } / if even { cos } else { sin }) as f32;
    if x == 0.0 { x } else { y }
}

/// `(r, low, n)`: `r + low` has some 100 bits, so that `r` is exact to the last place even next to
/// a multiple of `pi/2`.
#[inline(always)]
fn reduce_f64(x: f64) -> (f64, f64, u64) {
    let t = fma_f64(x, std::f64::consts::FRAC_2_PI, ROUND);
    let n = t - ROUND;
    let first = fma_f64(n, -PIO2_1, x);
    let (second, second_error) = two_sum(first, -(n * PIO2_2));
    let (third, third_error) = two_sum(second, -(n * PIO2_3));
    let rest = second_error + third_error - n * PIO2_4;
    let r = third + rest;
    (r, (third - r) + rest, t.to_bits())
}

/// `a + b` and its rounding error.
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
    f64::from_bits(value.to_bits() ^ ((quadrant & 2) << 62))
}

#[inline(always)]
pub(super) fn sin_fast_f64(x: f64) -> f64 {
    let (r, low, n) = reduce_f64(x);
    let (sin, cos) = sin_cos_f64(r, low);
    if x == 0.0 { x } else { pick_f64(sin, cos, n) }
}

#[inline(always)]
pub(super) fn cos_fast_f64(x: f64) -> f64 {
    let (r, low, n) = reduce_f64(x);
    let (sin, cos) = sin_cos_f64(r, low);
    pick_f64(sin, cos, n.wrapping_add(1))
}

#[inline(always)]
pub(super) fn tan_fast_f64(x: f64) -> f64 {
    let (r, low, n) = reduce_f64(x);
    let (sin, cos) = sin_cos_f64(r, low);
    let even = n & 1 == 0;
    let y = if even { sin } else { -cos } / if even { cos } else { sin };
    if x == 0.0 { x } else { y }
}

/// Sine, at most 2 ulp. Loops over many elements use [`super::sin_slice_f32`].
#[cfg(test)]
#[inline]
pub fn sin_f32(x: f32) -> f32 {
    if x.abs() > FAST_LIMIT_F32 { x.sin() } else { sin_fast_f32(x) }
}

/// Cosine, at most 2 ulp. Loops over many elements use [`super::cos_slice_f32`].
#[cfg(test)]
#[inline]
pub fn cos_f32(x: f32) -> f32 {
    if x.abs() > FAST_LIMIT_F32 { x.cos() } else { cos_fast_f32(x) }
}

/// Tangent, at most 2 ulp. Loops over many elements use [`super::tan_slice_f32`].
#[cfg(test)]
#[inline]
pub fn tan_f32(x: f32) -> f32 {
    if x.abs() > FAST_LIMIT_F32 { x.tan() } else { tan_fast_f32(x) }
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

/// Tangent, at most 2 ulp. Loops over many elements use [`super::tan_slice_f64`].
#[cfg(test)]
#[inline]
pub fn tan_f64(x: f64) -> f64 {
    if x.abs() > FAST_LIMIT_F64 { x.tan() } else { tan_fast_f64(x) }
}
