//! `pow`.

use super::exp::{bound_f64, power_of_two_f64};
use super::log::log2_f64;
use super::{fma_f64, polynomial_f64};

/// `1.5 * 2^52`: adding it leaves a rounded integer in the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// `(e^r - 1 - r) / r^2` to 2^-31, for results that become f32.
const EXP48: [f64; 6] = [
    0.500000001353873,
    0.16666666681704215,
    0.04166646419740569,
    0.008333310844647862,
    0.0013933730715792083,
    0.00019891080463998843,
];

/// `x^y`, at most 1 ulp, with the special cases of IEEE 754 `pow`; computed in f64 as
/// `2^(y log2 |x|)`.
#[inline(always)]
pub fn pow_f32(x: f32, y: f32) -> f32 {
    let magnitude = x.abs();
    let product = f64::from(y) * log2_f64(f64::from(magnitude));
    let bounded = bound_f64(product, -200.0, 200.0);
    let t = bounded + ROUND;
    let n = (t.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64);
    let r = (bounded - (t - ROUND)) * std::f64::consts::LN_2;
    let p = fma_f64(r * r, polynomial_f64(r, &EXP48), r);
    let power = ((1.0 + p) * power_of_two_f64(n)) as f32;
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

/// `x^y` by the system's function: a vector form needs a logarithm of twice the precision.
#[inline(always)]
pub fn pow_f64(x: f64, y: f64) -> f64 {
    x.powf(y)
}
