//! `pow`.
//!
//! A block is checked first: if all bases are positive normal values and no result is near or beyond the limits, the
//! special cases are skipped. The arithmetic is the same, so a result does not depend on its neighbours. The loops for f32
//! and for f64 are separate, so that those for f32 use all lanes of a vector.

use super::exp::{EXP64, bound_f64, scale_f64};
use super::log::{split_f32, split_f64, split_normal_f32, split_normal_f64};
use super::{fma_f64, polynomial_f64};

/// `1.5 * 2^52`: adding it leaves a rounded integer in the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Beyond this exponent of 2 all results are 0 or infinity in f32.
const LARGEST: f32 = 200.0;

/// `log2(1 + f) / f` for `1 + f` within `sqrt(1/2) .. sqrt(2)` to 2^-35, for f32 results.
const LOG2: [f64; 13] = [
    1.4426950408708794,
    -0.7213475209631551,
    0.48089836017624593,
    -0.3606736553159397,
    0.2885373943787391,
    -0.24045433696411458,
    0.20617283226753289,
    -0.1802710257712851,
    0.15878356832499568,
    -0.14349039375114367,
    0.1449505299974389,
    -0.1414478821133463,
    0.07553790398947319,
];

/// `(2^r - 1) / r` for `|r| <= 1/2`, error 2^-27 of `2^r`.
const EXP2: [f64; 6] = [
    0.6931471880262288,
    0.24022650760568126,
    0.055503571142190775,
    0.009618082557277844,
    0.0013390863364671239,
    0.00015453162945122594,
];

/// `y (e + log2(1 + f))`
#[inline(always)]
fn product(f: f32, e: f32, y: f32) -> f64 {
    let f = f64::from(f);
    f64::from(y) * fma_f64(f, polynomial_f64(f, &LOG2), f64::from(e))
}

/// `2^p` for `|p| <= LARGEST`; 0 or infinity beyond the range of f32.
#[inline(always)]
fn exp2(p: f64) -> f32 {
    let t = p + ROUND;
    let r = p - (t - ROUND);
    let fraction = fma_f64(r, polynomial_f64(r, &EXP2), 1.0);
    // The integer part is added to the exponent; it is the low bits of `t`.
    f64::from_bits(fraction.to_bits().wrapping_add(t.to_bits() << 52)) as f32
}

/// `x^y`, at most 1 ulp, with the special cases of IEEE 754 `pow`.
#[inline(always)]
pub fn pow_f32(x: f32, y: f32) -> f32 {
    let magnitude = x.abs();
    let (f, e) = split_f32(magnitude);
    // The logarithms of zero, infinity and NaN.
    let e = if magnitude == 0.0 { f32::NEG_INFINITY } else { e };
    let e = if magnitude < f32::INFINITY { e } else { magnitude };
    let power = exp2(bound_f64(product(f, e, y), -f64::from(LARGEST), f64::from(LARGEST)));
    let power = if magnitude == 1.0 && !y.is_nan() { 1.0 } else { power };

    let integer = y.trunc() == y;
    let half = 0.5 * y;
    let odd = integer & (half.trunc() != half);
    let negative = x.is_sign_negative();
    let signed = if negative & odd { -power } else { power };
    let undefined = (x < 0.0) & !integer & (magnitude != f32::INFINITY);
    let value = if undefined { f32::NAN } else { signed };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { value }
}

/// Elements that are checked together.
const BLOCK: usize = 64;

/// `out = x^y` for each element; see [`pow_f32`].
pub fn pow_slice_f32(x: &[f32], y: &[f32], out: &mut [f32]) {
    let ((xs, x), (ys, y)) = (x.as_chunks::<BLOCK>(), y.as_chunks::<BLOCK>());
    let (outs, out) = out.as_chunks_mut::<BLOCK>();
    xs.iter().zip(ys).zip(outs).for_each(|((x, y), out)| pow_block(x, y, out));
    x.iter().zip(y).zip(out).for_each(|((x, y), out)| *out = pow_f32(*x, *y));
}

#[inline(always)]
fn pow_block(x: &[f32; BLOCK], y: &[f32; BLOCK], out: &mut [f32; BLOCK]) {
    let (mut f, mut e, mut special) = ([0.0; BLOCK], [0.0; BLOCK], 0u32);
    for i in 0..BLOCK {
        (f[i], e[i]) = split_normal_f32(x[i]);
        // `|log2 x|` is at most `|e| + 1`.
        let moderate = (e[i].abs() + 1.0) * y[i].abs() <= LARGEST;
        special |= u32::from(!(moderate & (x[i] >= f32::MIN_POSITIVE) & (x[i] < f32::INFINITY)));
    }
    if special == 0 {
        for i in 0..BLOCK {
            out[i] = exp2(product(f[i], e[i], y[i]));
        }
    } else {
        for i in 0..BLOCK {
            out[i] = pow_f32(x[i], y[i]);
        }
    }
}

/// `2/3 / ln 2`, as one value and in two parts; the first part has few bits.
const CP: f64 = 0.9617966939259756;
const CP_PARTS: (f64, f64) = (0.9617967009544373, -7.028461650952758e-9);
/// `log2(3/2)` in two parts; the first part has few bits.
const LOG2_1_5: (f64, f64) = (0.5849624872207642, 1.350039202129749e-8);
/// `(atanh(s) / s - 1 - s^2 / 3) * 3 / s^4` of `s^2`.
const ATANH: [f64; 6] = [
    0.5999999999999946,
    0.4285714285785502,
    0.33333332981837743,
    0.272728123808534,
    0.23066074577556175,
    0.20697501780033842,
];
/// `ln 2` in two parts; the first part has few bits.
const LN2: (f64, f64) = (0.6931471824645996, -1.904654299957768e-9);

/// The first 21 bits of the mantissa: products of two such values are exact.
#[inline(always)]
fn short(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0xffff_ffff_0000_0000)
}

/// `e + log2(1 + f)` in two parts; the first part has few bits.
///
/// The logarithm is `2 atanh(s)` of `m = 1 + f` or of `m / (3/2)`, whichever is nearer to 1, as in fdlibm.
#[inline(always)]
fn log2_parts(f: f64, e: f64) -> (f64, f64) {
    let m = f + 1.0;
    let low = m < 0.8660254037844386;
    let (m, e) = (if low { m + m } else { m }, if low { e - 1.0 } else { e });
    let beside = m > 1.224744871391589;
    let (base, whole, rest) = if beside { (1.5, LOG2_1_5.0, LOG2_1_5.1) } else { (1.0, 0.0, 0.0) };
    // `s = (m - base) / (m + base)`
    let (difference, sum) = (m - base, m + base);
    let inverse = 1.0 / sum;
    let s = difference * inverse;
    let s_high = short(s);
    let sum_high = short(sum);
    let sum_low = m - (sum_high - base);
    let s_low = inverse * ((difference - s_high * sum_high) - s_high * sum_low);
    // `t = 3 + s^2 + s^4 ...`
    let square = s * s;
    let tail = square * square * polynomial_f64(square, &ATANH) + s_low * (s_high + s);
    let square = s_high * s_high;
    let t_high = short(3.0 + square + tail);
    let t_low = tail - ((t_high - 3.0) - square);
    // `log2 = CP s t`
    let (u, v) = (s_high * t_high, s_low * t_high + t_low * s);
    let product_high = short(u + v);
    let product_low = v - (product_high - u);
    let high = CP_PARTS.0 * product_high;
    let low = CP_PARTS.1 * product_high + product_low * CP + rest;
    let first = short(((high + low) + whole) + e);
    (first, low - (((first - e) - whole) - high))
}

/// `2^(high + low)` without its integer part, which is in the low bits of the second value.
#[inline(always)]
fn exp2_parts(high: f64, low: f64) -> (f64, f64) {
    let t = (high + low) + ROUND;
    let high = high - (t - ROUND);
    let sum = short(high + low);
    let (u, v) = (sum * LN2.0, (low - (sum - high)) * std::f64::consts::LN_2 + sum * LN2.1);
    let r = u + v;
    let rest = v - (r - u);
    (1.0 + fma_f64(r * r, polynomial_f64(r, &EXP64), fma_f64(r, rest, rest) + r), t)
}

/// `x^y`, less than 1 ulp, with the special cases of IEEE 754 `pow`.
#[inline(always)]
pub fn pow_f64(x: f64, y: f64) -> f64 {
    const BEYOND: f64 = 2000.0;
    let magnitude = x.abs();
    let limit = (magnitude == 0.0) | (magnitude == f64::INFINITY);
    let (f, e) = split_f64(if limit { 1.0 } else { magnitude });
    let (l_high, l_low) = log2_parts(f, e);
    let l_high = if magnitude == 0.0 { f64::NEG_INFINITY } else { l_high };
    let l_high = if magnitude == f64::INFINITY { magnitude } else { l_high };
    let y_high = short(y);
    // The first part of a subnormal exponent may be 0, whose product with an infinite logarithm is NaN.
    let high = if limit { y * l_high } else { y_high * l_high };
    let high = bound_f64(high, -BEYOND, BEYOND);
    let low = (y - y_high) * l_high + y * l_low;
    let low = if high.abs() < BEYOND { low } else { 0.0 };
    let (power, t) = exp2_parts(high, low);
    let power = scale_f64(power, (t.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64));
    let power = if magnitude == 1.0 { 1.0 } else { power };

    let integer = y.trunc() == y;
    let half = 0.5 * y;
    let odd = integer & (half.trunc() != half);
    let signed = if x.is_sign_negative() & odd { -power } else { power };
    let undefined = (x < 0.0) & !integer & (magnitude != f64::INFINITY) | x.is_nan() | y.is_nan();
    let value = if undefined { f64::NAN } else { signed };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { value }
}

/// `out = x^y` for each element; see [`pow_f64`].
pub fn pow_slice_f64(x: &[f64], y: &[f64], out: &mut [f64]) {
    let ((xs, x), (ys, y)) = (x.as_chunks::<BLOCK>(), y.as_chunks::<BLOCK>());
    let (outs, out) = out.as_chunks_mut::<BLOCK>();
    xs.iter().zip(ys).zip(outs).for_each(|((x, y), out)| pow_block_f64(x, y, out));
    x.iter().zip(y).zip(out).for_each(|((x, y), out)| *out = pow_f64(*x, *y));
}

#[inline(always)]
fn pow_block_f64(x: &[f64; BLOCK], y: &[f64; BLOCK], out: &mut [f64; BLOCK]) {
    let (mut highs, mut lows, mut special) = ([0.0; BLOCK], [0.0; BLOCK], 0u64);
    for i in 0..BLOCK {
        let (f, e) = split_normal_f64(x[i]);
        let (l_high, l_low) = log2_parts(f, e);
        let y_high = short(y[i]);
        (highs[i], lows[i]) = (y_high * l_high, (y[i] - y_high) * l_high + y[i] * l_low);
        // Neither the result nor its scale is subnormal.
        let moderate = highs[i].abs() <= 1000.0;
        special |= u64::from(!(moderate & (x[i] >= f64::MIN_POSITIVE) & (x[i] < f64::INFINITY)));
    }
    if special == 0 {
        for i in 0..BLOCK {
            let (power, t) = exp2_parts(highs[i], lows[i]);
            out[i] = f64::from_bits(power.to_bits().wrapping_add(t.to_bits() << 52));
        }
    } else {
        let mut powers = [0.0; BLOCK];
        for i in 0..BLOCK {
            powers[i] = pow_f64(x[i], y[i]);
        }
        *out = powers;
    }
}
