//! The logarithm of the gamma function, its derivatives, and the inverse of the error function. Integers and bool become f32.

use super::special::{erf, erfc};
use super::{Outcome, each, float_of, reals, unknown};
use crate::array::Number;
use crate::oracle::{Family, Inputs};
use std::f64::consts::{FRAC_2_SQRT_PI, PI};

/// The distance to the nearest integer.
fn remainder(x: f64) -> f64 {
    x - x.round()
}

/// The log-gamma function for positive `x`: by recurrence to above 20, and Stirling's series from there.
fn log_gamma_above_0(x: f64) -> f64 {
    let (mut at, mut product) = (x, 1.0);
    while at < 20.0 {
        product *= at;
        at += 1.0;
    }
    let series = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0];
    let sum = series.iter().rev().fold(0.0, |sum, c| sum / (at * at) + c) / at;
    (at - 0.5) * (at.ln() - 1.0) + 0.5 * (2.0 * PI).ln() - 0.5 + sum - product.ln()
}

fn lgamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x <= 0.0 && x == x.floor() {
        return f64::INFINITY;
    }
    if x.abs() < 1e-20 {
        return -x.abs().ln();
    }
    if x > 0.0 {
        return log_gamma_above_0(x);
    }
    // `gamma(x) gamma(1 - x) = pi / sin(pi x)`.
    (PI / (PI * remainder(x)).sin().abs()).ln() - log_gamma_above_0(1.0 - x)
}

fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x.is_nan() || (x < 0.0 && x == x.floor()) {
        return f64::NAN;
    }
    if x < 0.0 {
        return digamma(1.0 - x) - PI / (PI * remainder(x)).tan();
    }
    let (mut at, mut sum) = (x, 0.0);
    while at < 20.0 {
        sum += 1.0 / at;
        at += 1.0;
    }
    let series = [-1.0 / 12.0, 1.0 / 120.0, -1.0 / 252.0, 1.0 / 240.0, -1.0 / 132.0];
    let tail = series.iter().rev().fold(0.0, |rest, c| rest / (at * at) + c) / (at * at);
    at.ln() - 0.5 / at + tail - sum
}

/// The Hurwitz zeta function: the sum of `(x + k)^-s` over all `k` from 0 on, for positive `x`.
fn zeta(s: i32, x: f64) -> f64 {
    let (mut at, mut sum) = (x, 0.0);
    while at < 40.0 {
        sum += at.powi(-s);
        at += 1.0;
    }
    let s = f64::from(s);
    let rising = |count: u32| (0..count).map(|k| s + f64::from(k)).product::<f64>();
    let series = [rising(1) / 12.0, -rising(3) / 720.0, rising(5) / 30_240.0, -rising(7) / 1_209_600.0];
    let rest = series.iter().rev().fold(0.0, |rest, c| rest / (at * at) + c) / (at * at);
    sum + at.powf(1.0 - s) * (1.0 / (s - 1.0) + 0.5 / at + rest)
}

/// The polygamma function: `(-1)^(n+1) n!` times the sum of `(x + k)^-(n+1)` over all `k` from 0 on. For negative `x` the
/// sum is that over all integers minus the one from `1 - x` on.
fn polygamma(n: i32, x: f64) -> f64 {
    if n == 0 {
        return digamma(x);
    }
    let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
    if x.is_nan() || x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    if x <= 0.0 && x == x.floor() {
        return sign * f64::INFINITY;
    }
    let factorial: f64 = (1..=n).map(f64::from).product();
    let sum = if x > 0.0 {
        zeta(n + 1, x)
    } else {
        // Both differences are exact where they are small.
        let (above, below) = (x - x.floor(), x.ceil() - x);
        zeta(n + 1, above) + sign * (zeta(n + 1, below) - zeta(n + 1, 1.0 - x))
    };
    sign * factorial * sum
}

fn polygammas(inputs: &Inputs) -> Outcome {
    let (a, n) = (inputs.array(0)?, inputs.int(1)?);
    let Some(n) = i32::try_from(n).ok().filter(|n| (0..=170).contains(n)) else {
        return unknown("its order is 0 to 170");
    };
    let dtype = float_of(a.dtype);
    each([&a.cast(dtype)], dtype, |[v]| Ok(Number::Float(polygamma(n, v.float()))))
}

/// The inverse of erf, by bisection and then Newton's method: on the error function, or near 1 on its complement, which is
/// exact there.
fn erfinv(y: f64) -> f64 {
    let size = y.abs();
    if size == 0.0 {
        return y;
    }
    if size.is_nan() || size >= 1.0 {
        return if size == 1.0 { f64::INFINITY.copysign(y) } else { f64::NAN };
    }
    let near = size <= 0.5;
    let over = |x: f64| if near { erf(x) - size } else { (1.0 - size) - erfc(x) };
    let (mut low, mut high) = (0.0, if near { 0.5 } else { 6.0 });
    for _ in 0..10 {
        let middle = 0.5 * (low + high);
        if over(middle) < 0.0 { low = middle } else { high = middle }
    }
    // Values below the width of the interval are approximated by the slope at 0.
    let start = if near && size < 1e-3 { size / FRAC_2_SQRT_PI } else { 0.5 * (low + high) };
    let step = |x: f64| x - over(x) / (FRAC_2_SQRT_PI * (-x * x).exp());
    (0..6).fold(start, |x, _| step(x)).copysign(y)
}

/// The ops of this family.
pub const ALL: Family = &[
    ("digamma", |i| reals(i, digamma)),
    ("erfinv", |i| reals(i, erfinv)),
    ("lgamma", |i| reals(i, lgamma)),
    ("polygamma", polygammas),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 4e-15 * expected.abs().max(0.1), "{got:e} is not {expected:e}");
    }

    /// Digits from mpmath with 40 digits.
    #[test]
    fn known_digits() {
        near(lgamma(0.5), 0.572_364_942_924_700_1);
        near(lgamma(-1.5), 0.860_047_015_376_481);
        near(lgamma(100.0), 359.134_205_369_575_4);
        near(digamma(0.5), -1.963_510_026_021_423_5);
        near(digamma(-1.5), 0.703_156_640_645_243_2);
        near(polygamma(1, 0.5), 4.934_802_200_544_679);
        near(polygamma(1, -1.5), 9.379_246_644_989_124);
        near(polygamma(2, -0.5), -0.828_796_644_234_319_9);
        near(polygamma(3, 3.0), 0.118_939_402_266_829_13);
        near(erfinv(0.5), 0.476_936_276_204_469_9);
        near(erfinv(1.0 - 1e-10), 4.572_824_958_544_925);
        near(erfinv(1e-300), 8.862_269_254_527_581e-301);
        assert_eq!((digamma(0.0), digamma(-0.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(digamma(-3.0).is_nan() && lgamma(-3.0) == f64::INFINITY && erfinv(1.5).is_nan());
    }
}
