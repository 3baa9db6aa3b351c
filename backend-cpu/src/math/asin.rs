//! `asin` and `acos`: an odd polynomial up to 1/2, and the half-angle formula `acos(x) = 2 asin(sqrt((1 - x) / 2))` above.
//! The f64 functions carry the rounding error of the root, as fdlibm does.

use super::{fma_f64, polynomial_f32, polynomial_f64};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// `pi/2` minus its f64 rounding.
const PIO2_LOW: f64 = 6.123233995736766e-17;

/// `(asin(x) / x - 1) / x^2` of `x^2`, for `|x| <= 1/2`.
const ASIN32: [f32; 6] = [0.16666666, 0.07500094, 0.044599403, 0.031100662, 0.017149238, 0.033690847];
/// `(asin(x) / x - 1) / x^2` of `x^2`, for `|x| <= 1/2`.
const ASIN64: [f64; 14] = [
    0.16666666666666666,
    0.07500000000000118,
    0.044642857142551895,
    0.03038194447553234,
    0.02237215744350722,
    0.017352816540325496,
    0.01396378001220357,
    0.011566459612121669,
    0.009621842970100282,
    0.009319560794767446,
    0.0030448799094556773,
    0.019554513336123378,
    -0.01924167174674304,
    0.02961201126495512,
];

/// `(s, s^3 P(s^2), large)`, where `s` is `|x|` up to 1/2 and `sqrt((1 - |x|) / 2)` above.
#[inline(always)]
fn parts_f32(x: f32) -> (f32, f32, bool) {
    let a = x.abs();
    let large = a > 0.5;
    let z = if large { 0.5 * (1.0 - a) } else { a * a };
    let s = if large { z.sqrt() } else { a };
    (s, s * z * polynomial_f32(z, &ASIN32), large)
}

/// Arc sine, at most 2 ulp.
#[inline(always)]
pub fn asin_f32(x: f32) -> f32 {
    let (s, tail, large) = parts_f32(x);
    let quarter = std::f32::consts::FRAC_PI_4;
    let y = if large { (quarter - 2.0 * tail) + (quarter - 2.0 * s) } else { s + tail };
    y.copysign(x)
}

/// Arc cosine, at most 2 ulp.
#[inline(always)]
pub fn acos_f32(x: f32) -> f32 {
    /// `pi/2` minus its f32 rounding.
    const LOW: f32 = -4.371_139e-8;
    let (s, tail, large) = parts_f32(x);
    let y = s + tail;
    let half_pi = std::f32::consts::FRAC_PI_2;
    let middle = half_pi - (s.copysign(x) - (LOW - tail.copysign(x)));
    let twice = 2.0 * y;
    let ends = if x < 0.0 { 2.0 * (half_pi - (s - (LOW - tail))) } else { twice };
    if large { ends } else { middle }
}

/// The magic constant of the initial approximation of `1 / (2 s)`: this minus the bits of `s`, as the bits of a float are
/// nearly its binary logarithm.
const HALF_INVERSE: u64 = 0x7fce_6238_22fc_16e6;

struct Parts {
    /// `|x|` up to 1/2, `sqrt((1 - |x|) / 2)` above.
    s: f64,
    /// `asin(s) - s`.
    tail: f64,
    /// `s` with its low half cleared, and the remainder plus the rounding error of the root.
    high: f64,
    low: f64,
    large: bool,
}

#[inline(always)]
fn parts_f64(x: f64) -> Parts {
    let a = x.abs();
    let large = a > 0.5;
    let z = if large { 0.5 * (1.0 - a) } else { a * a };
    let s = if large { z.sqrt() } else { a };
    let tail = s * z * polynomial_f64(z, &ASIN64);
    let high = f64::from_bits(s.to_bits() & 0xffff_ffff_0000_0000);
    let low = if cfg!(target_feature = "fma") {
        // The root has an error of about 1 ULP, so that a reciprocal within an eighth suffices.
        let half_inverse = f64::from_bits(HALF_INVERSE.wrapping_sub(s.to_bits()));
        fma_f64(fma_f64(-s, s, z), half_inverse, s - high)
    } else {
        let rest = (z - high * high) / (s + high);
        if s == 0.0 { 0.0 } else { rest }
    };
    Parts { s, tail, high, low, large }
}

/// Arc sine, at most 1 ulp.
#[inline(always)]
pub fn asin_f64(x: f64) -> f64 {
    let Parts { s, tail, high, low, large } = parts_f64(x);
    let correction = 2.0 * tail - (PIO2_LOW - 2.0 * low);
    let above = FRAC_PI_4 - (correction - fma_f64(-2.0, high, FRAC_PI_4));
    (if large { above } else { s + tail }).copysign(x)
}

/// Arc cosine, at most 1 ulp.
#[inline(always)]
pub fn acos_f64(x: f64) -> f64 {
    let Parts { s, tail, high, low, large } = parts_f64(x);
    let middle = FRAC_PI_2 - (s.copysign(x) - (PIO2_LOW - tail.copysign(x)));
    let right = 2.0 * (high + (tail + low));
    let left = PI - 2.0 * (s + (tail - PIO2_LOW));
    let ends = if x < 0.0 { left } else { right };
    if large { ends } else { middle }
}
