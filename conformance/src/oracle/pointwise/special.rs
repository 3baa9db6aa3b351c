//! Functions that the standard library lacks, or has with lower precision than f64.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2};

/// `e^(-x^2)`, corrected for the rounding error of the square.
fn gaussian(x: f64) -> f64 {
    let square = x * x;
    let lost = x.mul_add(x, -square);
    if square.is_infinite() { 0.0 } else { (-square).exp() * (1.0 - lost) }
}

/// The limit between the series and the continued fraction.
const SERIES_END: f64 = 1.5;

/// erf by the series of M. Abramowitz, I. A. Stegun, "Handbook of Mathematical Functions", 7.1.6, whose terms have one
/// sign: `2 / sqrt(pi) * e^(-x^2) * sum of 2^n x^(2n+1) / (1 * 3 * ... * (2n+1))`.
fn erf_series(x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > 1e-18 * sum.abs() {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    FRAC_2_SQRT_PI * gaussian(x) * sum
}

/// erfc for `x` above [`SERIES_END`], by the continued fraction of the same book, 7.1.14, evaluated backwards from its
/// 120th term: `e^(-x^2) / sqrt(pi) / (x + 1/2 / (x + 1 / (x + 3/2 / (x + 2 / ...))))`.
fn erfc_fraction(x: f64) -> f64 {
    let below = (1..=120).rev().fold(x, |rest, n| x + f64::from(n) / 2.0 / rest);
    FRAC_2_SQRT_PI / 2.0 * gaussian(x) / below
}

/// The error function.
pub fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() <= SERIES_END {
        return if x == 0.0 { x } else { erf_series(x) };
    }
    (1.0 - erfc_fraction(x.abs())).copysign(x)
}

/// The complementary error function, `1 - erf(x)`, accurate for large `x` too.
pub fn erfc(x: f64) -> f64 {
    if x > SERIES_END { erfc_fraction(x) } else { 1.0 - erf(x) }
}

/// The standard normal cumulative distribution function at `x`.
pub fn normal_share(x: f64) -> f64 {
    0.5 * erfc(-x * FRAC_1_SQRT_2)
}

/// The density of the normal distribution of mean 0 and variance 1.
pub fn normal_density(x: f64) -> f64 {
    0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * gaussian(x * FRAC_1_SQRT_2)
}

/// The inverse hyperbolic sine, `ln(x + sqrt(x^2 + 1))`; no square overflows.
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let value = if a > 1e100 { a.ln() + LN_2 } else { (a + a * a / (1.0 + a.hypot(1.0))).ln_1p() };
    value.copysign(x)
}

/// The inverse hyperbolic cosine, `ln(x + sqrt(x^2 - 1))`; NaN below 1.
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 {
        return f64::NAN;
    }
    let above = x - 1.0;
    if x > 1e100 { x.ln() + LN_2 } else { (above + (above * (x + 1.0)).sqrt()).ln_1p() }
}

/// The inverse hyperbolic tangent, `ln((1 + x) / (1 - x)) / 2`; NaN beyond 1.
pub fn atanh(x: f64) -> f64 {
    0.5 * (2.0 * x.abs() / (1.0 - x.abs())).ln_1p().copysign(x)
}

/// The logistic function, `1 / (1 + e^-x)`.
pub fn sigmoid(x: f64) -> f64 {
    // For negative `x` by its own exponential, which is denormal before the other overflows.
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 4e-16 * expected.abs(), "{got:e} is not {expected:e}");
    }

    /// Digits from the tables of NIST's "Digital Library of Mathematical Functions" and, beyond them, from the
    /// same series in arithmetic of 40 digits.
    #[test]
    fn the_error_function_has_the_digits_of_the_tables() {
        near(erf(0.5), 0.520_499_877_813_046_5);
        near(erf(1.0), 0.842_700_792_949_714_9);
        near(erf(2.0), 0.995_322_265_018_952_7);
        near(erf(2.5), 0.999_593_047_982_555);
        near(erf(-3.0), -0.999_977_909_503_001_4);
        near(erf(1e-10), 1.128_379_167_095_512_6e-10);
        near(erfc(0.5), 0.479_500_122_186_953_5);
        near(erfc(3.0), 2.209_049_699_858_544e-5);
        near(erfc(10.0), 2.088_487_583_762_545e-45);
        assert_eq!((erf(f64::INFINITY), erf(f64::NEG_INFINITY)), (1.0, -1.0));
        assert!(erf(f64::NAN).is_nan() && erfc(f64::NAN).is_nan());
        assert!(erf(-0.0).is_sign_negative());
    }

    #[test]
    fn both_ways_to_the_error_function_meet() {
        near(erf_series(SERIES_END), 1.0 - erfc_fraction(SERIES_END));
        near(erf_series(1.25), 1.0 - erfc_fraction(1.25));
    }

    #[test]
    fn the_normal_distribution() {
        near(normal_share(0.0), 0.5);
        near(normal_share(1.0), 0.841_344_746_068_542_9);
        near(normal_density(0.0), 0.398_942_280_401_432_7);
        near(normal_density(1.0), 0.241_970_724_519_143_37);
    }

    #[test]
    fn inverse_hyperbolic_functions_keep_their_digits_at_the_ends() {
        near(asinh(1.0), 0.881_373_587_019_543);
        near(asinh(-1e-9), -1e-9);
        near(asinh(1e300), 691.468_675_078_773_6);
        near(acosh(2.0), 1.316_957_896_924_816_7);
        near(acosh(1.0 + 2f64.powi(-40)), 2f64.powf(-19.5) * (1.0 - 2f64.powi(-40) / 12.0));
        near(acosh(1e300), 691.468_675_078_773_6);
        near(atanh(0.5), 0.549_306_144_334_054_8);
        near(atanh(-1e-9), -1e-9);
        assert_eq!(atanh(1.0), f64::INFINITY);
        assert!(acosh(0.5).is_nan() && acosh(-1e308).is_nan() && atanh(1.5).is_nan());
    }
}
