//! Elementary functions of complex numbers in f64.
//!
//! Branch cuts, signs of zero, infinities and NaN are those of C99, Annex G. The formulas are those of W. Kahan, "Branch cuts
//! for complex elementary functions, or much ado about nothing's sign bit" (1987), unless a function names another source.
//! c64 is computed in f64 and rounded once.

use keyway_sdk::author::c128;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LN_10, PI};

/// `x + iy`.
#[inline(always)]
fn at(re: f64, im: f64) -> c128 {
    c128::new(re, im)
}

/// `i z`.
#[inline(always)]
fn times_i(z: c128) -> c128 {
    at(-z.im, z.re)
}

/// `-i z`.
#[inline(always)]
fn over_i(z: c128) -> c128 {
    at(z.im, -z.re)
}

/// Real and imaginary part exchanged: `i conj(z)`, by which asin and atan follow from asinh and atanh.
#[inline(always)]
fn swapped(z: c128) -> c128 {
    at(z.im, z.re)
}

/// The sum and its rounding error (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let rest = sum - a;
    (sum, (a - (sum - rest)) + (b - rest))
}

/// The square and its rounding error.
fn two_square(a: f64) -> (f64, f64) {
    let square = a * a;
    (square, a.mul_add(a, -square))
}

/// `e^x cos y, e^x sin y` for finite `y`, without overflow before the product with the cosine or the sine.
fn exp_times(x: f64, y: f64, factor: f64) -> c128 {
    let (sin, cos) = y.sin_cos();
    // A part that is 0 remains 0, if the other overflows, too.
    let times = |scale: f64, part: f64| if part == 0.0 { part } else { scale * part };
    if x.abs() > 700.0 && x.is_finite() {
        let half = (0.5 * x).exp();
        return at(times(half, times(half * factor, cos)), times(half, times(half * factor, sin)));
    }
    let scale = x.exp() * factor;
    at(times(scale, cos), times(scale, sin))
}

/// `e^z`.
pub fn exp(z: c128) -> c128 {
    match (z.re, z.im) {
        (x, y) if y == 0.0 => at(x.exp(), y),
        (x, y) if y.is_finite() => exp_times(x, y, 1.0),
        // y is infinite or NaN.
        (f64::NEG_INFINITY, _) => at(0.0, 0.0),
        (f64::INFINITY, _) => at(f64::INFINITY, f64::NAN),
        _ => at(f64::NAN, f64::NAN),
    }
}

/// `e^z - 1`: `expm1(x) cos y - 2 sin^2(y/2) + i e^x sin y`.
pub fn expm1(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if !x.is_finite() || !y.is_finite() || x > 700.0 {
        let e = exp(z);
        return at(e.re - 1.0, e.im);
    }
    let half = (0.5 * y).sin();
    at(x.exp_m1() * y.cos() - 2.0 * half * half, if y == 0.0 { y } else { x.exp() * y.sin() })
}

/// `log |z|`. Near 1 it is `log1p(x^2 + y^2 - 1) / 2`, with the argument in double-double arithmetic.
fn log_abs(z: c128) -> f64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    let h = x.hypot(y);
    if (0.5..3.0).contains(&h) {
        let ((x, dx), (y, dy)) = (two_square(x.max(y)), two_square(x.min(y)));
        let (sum, e1) = two_sum(x, -1.0);
        let (sum, e2) = two_sum(sum, y);
        return 0.5 * (sum + (e1 + e2 + dx + dy)).ln_1p();
    }
    if h == f64::INFINITY && x.is_finite() && y.is_finite() {
        return (0.5 * x).hypot(0.5 * y).ln() + LN_2;
    }
    if h < f64::MIN_POSITIVE && h > 0.0 {
        let scale = 2f64.powi(60);
        return (scale * x).hypot(scale * y).ln() - 60.0 * LN_2;
    }
    h.ln()
}

/// The principal logarithm, with its cut along the negative reals.
pub fn log(z: c128) -> c128 {
    at(log_abs(z), angle(z))
}

/// `log z / log 2`.
pub fn log2(z: c128) -> c128 {
    let l = log(z);
    at(l.re / LN_2, l.im / LN_2)
}

/// `log z / log 10`.
pub fn log10(z: c128) -> c128 {
    let l = log(z);
    at(l.re / LN_10, l.im / LN_10)
}

/// `log(1 + z)`: the real part is `log1p(2x + x^2 + y^2) / 2`, with the argument in double-double arithmetic.
pub fn log1p(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    let angle = y.atan2(1.0 + x);
    // `1 + x` is exact below -1/2, and rounded harmlessly above 1.
    if !(x > -0.5 && x < 1.0 && y.abs() < 1.0) {
        return at(log_abs(at(1.0 + x, y)), angle);
    }
    let ((xx, dx), (yy, dy)) = (two_square(x), two_square(y));
    let (sum, e1) = two_sum(2.0 * x, xx);
    let (sum, e2) = two_sum(sum, yy);
    at(0.5 * (sum + (e1 + e2 + dx + dy)).ln_1p(), angle)
}

/// The argument, in `[-pi, pi]`.
pub fn angle(z: c128) -> f64 {
    z.im.atan2(z.re)
}

/// The modulus.
pub fn abs(z: c128) -> f64 {
    z.re.hypot(z.im)
}

/// `z / |z|`, and 0 for 0.
pub fn sgn(z: c128) -> c128 {
    if z.re == 0.0 && z.im == 0.0 {
        return at(0.0, 0.0);
    }
    let h = abs(z);
    if h.is_finite() && h >= f64::MIN_POSITIVE {
        return at(z.re / h, z.im / h);
    }
    if h.is_finite() || z.re.is_finite() && z.im.is_finite() {
        // Scaled, so that the modulus is a normal number.
        let scale = if h.is_finite() { 2f64.powi(200) } else { 0.25 };
        let z = at(z.re * scale, z.im * scale);
        let h = abs(z);
        return at(z.re / h, z.im / h);
    }
    at(z.re / h, z.im / h)
}

/// The principal square root, with its cut along the negative reals.
pub fn sqrt(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if x == 0.0 && y == 0.0 {
        return at(0.0, y);
    }
    if y.is_infinite() {
        return at(f64::INFINITY, y);
    }
    if x.is_nan() {
        return at(f64::NAN, f64::NAN);
    }
    if x.is_infinite() {
        return match x > 0.0 {
            true => at(x, if y.is_nan() { y } else { 0f64.copysign(y) }),
            false => at(if y.is_nan() { y } else { 0.0 }, f64::INFINITY.copysign(y)),
        };
    }
    // Scaled by a power of 4, so that neither the modulus nor the sum overflows or is subnormal.
    let largest = x.abs().max(y.abs());
    let (scale, back) = match largest {
        l if l >= f64::MAX / 8.0 => (2f64.powi(-4), 2f64.powi(2)),
        l if l <= f64::MIN_POSITIVE * 2f64.powi(60) => (2f64.powi(120), 2f64.powi(-60)),
        _ => (1.0, 1.0),
    };
    let (x, y) = (x * scale, y * scale);
    let t = (0.5 * (x.abs() + x.hypot(y))).sqrt();
    if x >= 0.0 {
        at(t * back, y / (2.0 * t) * back)
    } else {
        at(y.abs() / (2.0 * t) * back, t.copysign(y) * back)
    }
}

/// `1 / z` by the method of R. L. Smith (1962), which divides by the part of larger magnitude.
pub fn reciprocal(z: c128) -> c128 {
    div(at(1.0, 0.0), z)
}

/// `a / b` by the method of R. L. Smith (1962), of numbers that are scaled by powers of 2 if a sum could overflow or the
/// divisor is subnormal.
pub fn div(a: c128, b: c128) -> c128 {
    if b.re == 0.0 && b.im == 0.0 {
        return at(a.re / b.re.abs(), a.im / b.re.abs());
    }
    let (above, below) = (a.re.abs().max(a.im.abs()), b.re.abs().max(b.im.abs()));
    if above > f64::MAX / 4.0 || below > f64::MAX / 4.0 || below < f64::MIN_POSITIVE * 2f64.powi(60) {
        let of_a = if above > f64::MAX / 4.0 { 0.25 } else { 1.0 };
        let of_b = match below {
            _ if below > f64::MAX / 4.0 => 0.25,
            _ if below < f64::MIN_POSITIVE * 2f64.powi(60) => 2f64.powi(100),
            _ => 1.0,
        };
        let q = smith(a * of_a, b * of_b);
        return q * (of_b / of_a);
    }
    smith(a, b)
}

/// [`div`] without scaling.
#[inline(always)]
fn smith(a: c128, b: c128) -> c128 {
    if b.re.abs() >= b.im.abs() {
        let ratio = b.im / b.re;
        let below = b.re + b.im * ratio;
        return at((a.re + a.im * ratio) / below, (a.im - a.re * ratio) / below);
    }
    let ratio = b.re / b.im;
    let below = b.re * ratio + b.im;
    at((a.re * ratio + a.im) / below, (a.im * ratio - a.re) / below)
}

/// `1 / sqrt z`.
pub fn rsqrt(z: c128) -> c128 {
    reciprocal(sqrt(z))
}

/// `1 / (1 + e^-z)`.
pub fn sigmoid(z: c128) -> c128 {
    if z.re < 0.0 {
        // `e^z / (1 + e^z)`, which does not overflow.
        let e = exp(z);
        return div(e, at(1.0 + e.re, e.im));
    }
    let e = exp(at(-z.re, -z.im));
    reciprocal(at(1.0 + e.re, e.im))
}

/// The hyperbolic sine: `sinh x cos y + i cosh x sin y`.
pub fn sinh(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return at(x.sinh(), y);
    }
    if y.is_finite() {
        return match x.abs() < 22.0 {
            true => at(x.sinh() * y.cos(), x.cosh() * y.sin()),
            false => {
                let e = exp_times(x.abs(), y, 0.5);
                at(if x < 0.0 { -e.re } else { e.re }, e.im)
            }
        };
    }
    match x {
        _ if x == 0.0 => at(x, f64::NAN),
        _ if x.is_infinite() => at(x, f64::NAN),
        _ => at(f64::NAN, f64::NAN),
    }
}

/// The hyperbolic cosine: `cosh x cos y + i sinh x sin y`.
pub fn cosh(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return at(x.cosh(), if x.is_nan() { y } else { signed_zero(x, y) });
    }
    if x == 0.0 && y.is_finite() {
        return at(y.cos(), x * y.sin());
    }
    if y.is_finite() {
        return match x.abs() < 22.0 {
            true => at(x.cosh() * y.cos(), x.sinh() * y.sin()),
            false => {
                let e = exp_times(x.abs(), y, 0.5);
                at(e.re, if x < 0.0 { -e.im } else { e.im })
            }
        };
    }
    match x {
        _ if x == 0.0 => at(f64::NAN, 0.0),
        _ if x.is_infinite() => at(f64::INFINITY, f64::NAN),
        _ => at(f64::NAN, f64::NAN),
    }
}

/// A zero with the sign of `x y`.
fn signed_zero(x: f64, y: f64) -> f64 {
    0f64.copysign(if x.is_sign_negative() == y.is_sign_negative() { 1.0 } else { -1.0 })
}

/// The hyperbolic tangent.
pub fn tanh(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if x.is_nan() {
        return at(x, if y == 0.0 { y } else { f64::NAN });
    }
    if x.is_infinite() {
        let zero = if y.is_finite() { 0f64.copysign((2.0 * y).sin()) } else { 0f64.copysign(y) };
        return at(1f64.copysign(x), zero);
    }
    if !y.is_finite() {
        return at(if x == 0.0 { x } else { f64::NAN }, f64::NAN);
    }
    if x.abs() > 22.0 {
        let (sin, cos) = y.sin_cos();
        return at(1f64.copysign(x), 4.0 * sin * cos * (-2.0 * x.abs()).exp());
    }
    let t = y.tan();
    let beta = 1.0 + t * t;
    let s = x.sinh();
    let rho = (1.0 + s * s).sqrt();
    if t.is_infinite() {
        return at(rho / s, 1.0 / t);
    }
    let below = 1.0 + beta * s * s;
    at(beta * rho * s / below, t / below)
}

/// The sine: `-i sinh(iz)`.
pub fn sin(z: c128) -> c128 {
    over_i(sinh(times_i(z)))
}

/// The cosine: `cosh(iz)`.
pub fn cos(z: c128) -> c128 {
    cosh(times_i(z))
}

/// The tangent: `-i tanh(iz)`.
pub fn tan(z: c128) -> c128 {
    over_i(tanh(times_i(z)))
}

/// `sqrt(1 - z)` and `sqrt(1 + z)`, for finite `z`.
fn roots(z: c128) -> (c128, c128) {
    (sqrt(at(1.0 - z.re, -z.im)), sqrt(at(1.0 + z.re, z.im)))
}

/// The arc cosine, with cuts along the reals beyond -1 and 1.
pub fn acos(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if !(x.is_finite() && y.is_finite()) {
        let below = if y.is_sign_negative() { f64::INFINITY } else { f64::NEG_INFINITY };
        return match (x, y) {
            _ if x.is_nan() || y.is_nan() => match (x, y) {
                _ if x.is_infinite() => at(f64::NAN, f64::INFINITY),
                _ if y.is_infinite() => at(f64::NAN, -y),
                _ if x == 0.0 => at(FRAC_PI_2, f64::NAN),
                _ => at(f64::NAN, f64::NAN),
            },
            _ if x.is_finite() => at(FRAC_PI_2, -y),
            (f64::INFINITY, _) => at(if y.is_finite() { 0.0 } else { FRAC_PI_4 }, below),
            _ => at(if y.is_finite() { PI } else { 3.0 * FRAC_PI_4 }, below),
        };
    }
    if x.abs().max(y.abs()) > LARGE {
        let l = log_twice(z);
        return at(y.abs().atan2(x), if y.is_sign_negative() { l } else { -l });
    }
    let (minus, plus) = roots(z);
    let re = 2.0 * minus.re.atan2(plus.re);
    // Im(conj(sqrt(1 + z)) sqrt(1 - z))
    at(re, (plus.re * minus.im - plus.im * minus.re).asinh())
}

/// Above this modulus, the inverse functions are `log(2z)` up to rounding.
const LARGE: f64 = 1e10;

/// `log |2 z|`.
fn log_twice(z: c128) -> f64 {
    log_abs(z) + LN_2
}

/// The inverse hyperbolic cosine, from [`acos`]: with a real part of 0 or more, and a cut along the reals below 1.
pub fn acosh(z: c128) -> c128 {
    let w = acos(z);
    match (w.re.is_nan(), w.im.is_nan()) {
        (true, true) => at(f64::NAN, f64::NAN),
        (true, false) => at(w.im.abs(), f64::NAN),
        // acos(0 + i NaN) is pi/2 + i NaN.
        (false, true) => at(f64::NAN, if z.re == 0.0 { FRAC_PI_2 } else { f64::NAN }),
        _ => at(w.im.abs(), w.re.copysign(z.im)),
    }
}

/// The inverse hyperbolic sine, with cuts along the imaginary numbers beyond -i and i.
pub fn asinh(z: c128) -> c128 {
    let (x, y) = (z.re, z.im);
    if !(x.is_finite() && y.is_finite()) {
        return match (x, y) {
            _ if x.is_nan() => match y {
                _ if y == 0.0 => at(f64::NAN, y),
                _ if y.is_infinite() => at(f64::INFINITY, f64::NAN),
                _ => at(f64::NAN, f64::NAN),
            },
            _ if y.is_nan() => at(if x.is_infinite() { x } else { f64::NAN }, f64::NAN),
            _ if x.is_finite() => at(f64::INFINITY.copysign(x), FRAC_PI_2.copysign(y)),
            _ => at(x, if y.is_finite() { 0f64.copysign(y) } else { FRAC_PI_4.copysign(y) }),
        };
    }
    if x.abs().max(y.abs()) > LARGE {
        return at(log_twice(z).copysign(x), y.atan2(x.abs()));
    }
    // asin of iz, whose real part is -y.
    let (minus, plus) = roots(times_i(z));
    // Re(sqrt(1 - iz) sqrt(1 + iz)) and Im(conj(sqrt(1 - iz)) sqrt(1 + iz))
    let below = minus.re * plus.re - minus.im * plus.im;
    let re = (minus.re * plus.im - minus.im * plus.re).asinh();
    at(re.abs().copysign(x), y.abs().atan2(below).copysign(y))
}

/// The arc sine, from [`asinh`].
pub fn asin(z: c128) -> c128 {
    swapped(asinh(swapped(z)))
}

/// The inverse hyperbolic tangent, with cuts along the reals beyond -1 and 1.
pub fn atanh(z: c128) -> c128 {
    let (x, y) = (z.re.abs(), z.im.abs());
    let signed = |re: f64, im: f64| at(re.copysign(z.re), im.copysign(z.im));
    if x.is_nan() || y.is_nan() {
        return match (x, y) {
            _ if x.is_infinite() => signed(0.0, f64::NAN),
            _ if y.is_infinite() => signed(0.0, FRAC_PI_2),
            _ if x == 0.0 => signed(0.0, f64::NAN),
            _ => at(f64::NAN, f64::NAN),
        };
    }
    if x.max(y) > 1e100 {
        // Re(1 / z)
        let re = if x.is_infinite() || y.is_infinite() { 0.0 } else { reciprocal(at(x, y)).re };
        return signed(re, FRAC_PI_2);
    }
    if x == 1.0 && y == 0.0 {
        return signed(f64::INFINITY, 0.0);
    }
    if x == 1.0 && y < 1e-100 {
        // log(sqrt(sqrt(4 + y^2)) / sqrt(y))
        return signed(0.5 * (LN_2 - y.ln()), 0.5 * (FRAC_PI_2 + (0.5 * y).atan()));
    }
    let (below, yy) = (1.0 - x, y * y);
    let re = 0.25 * (4.0 * x / (below * below + yy)).ln_1p();
    // The angle of (1 + z) / (1 - z), halved.
    let im = 0.5 * (2.0 * y).atan2(below * (1.0 + x) - yy);
    signed(re, im)
}

/// The arc tangent, from [`atanh`].
pub fn atan(z: c128) -> c128 {
    swapped(atanh(swapped(z)))
}

/// The largest exponent of a power by repeated multiplication, as in NumPy.
const MOST: f64 = 100.0;

/// `a^b = exp(b log a)`. `0^b` is 1 for `b = 0` and 0 for a positive real part. A whole real exponent of at most 100 is a
/// product, so that powers of Gaussian integers are exact.
pub fn pow(a: c128, b: c128) -> c128 {
    if b.re == 0.0 && b.im == 0.0 {
        return at(1.0, 0.0);
    }
    if a.re == 0.0 && a.im == 0.0 {
        return if b.re > 0.0 { at(0.0, 0.0) } else { at(f64::NAN, f64::NAN) };
    }
    if b.im == 0.0 && b.re.fract() == 0.0 && b.re.abs() <= MOST {
        let (mut square, mut rest) = (a, b.re.abs() as u32);
        let mut product: Option<c128> = None;
        while rest != 0 {
            if rest & 1 != 0 {
                product = Some(product.map_or(square, |p| p * square));
            }
            rest >>= 1;
            if rest != 0 {
                square *= square;
            }
        }
        let product = product.unwrap_or(at(1.0, 0.0));
        return if b.re < 0.0 { reciprocal(product) } else { product };
    }
    let l = log(a);
    exp(at(b.re * l.re - b.im * l.im, b.re * l.im + b.im * l.re))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions with arguments and values as bits: `name re im re im`. The values are from 2200 bits of precision, those at
    /// infinities, NaN and zeros from C99, Annex G.
    const FACTS: &str = include_str!("complex_facts.txt");

    fn function(name: &str) -> fn(c128) -> c128 {
        match name {
            "exp" => exp,
            "expm1" => expm1,
            "log" => log,
            "log2" => log2,
            "log10" => log10,
            "log1p" => log1p,
            "sqrt" => sqrt,
            "rsqrt" => rsqrt,
            "reciprocal" => reciprocal,
            "sigmoid" => sigmoid,
            "sgn" => sgn,
            "sin" => sin,
            "cos" => cos,
            "tan" => tan,
            "sinh" => sinh,
            "cosh" => cosh,
            "tanh" => tanh,
            "asin" => asin,
            "acos" => acos,
            "atan" => atan,
            "asinh" => asinh,
            "acosh" => acosh,
            "atanh" => atanh,
            other => panic!("no function {other}"),
        }
    }

    /// Equal up to 8 ulp of the modulus, and in the sign of zeros; any NaN equals any.
    fn agrees(got: f64, expected: f64, modulus: f64) -> bool {
        if expected.is_nan() || got.is_nan() {
            return expected.is_nan() && got.is_nan();
        }
        if expected == 0.0 && got == 0.0 {
            return expected.is_sign_negative() == got.is_sign_negative();
        }
        got == expected || (got - expected).abs() <= 8.0 * f64::EPSILON * modulus
    }

    #[test]
    fn functions_have_the_values_of_the_table() {
        let mut lines = 0;
        for line in FACTS.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |i: usize| f64::from_bits(u64::from_str_radix(words[i], 16).unwrap());
            let (z, expected) = (at(number(1), number(2)), at(number(3), number(4)));
            let got = function(words[0])(z);
            let modulus =
                if expected.re.is_finite() && expected.im.is_finite() { abs(expected) } else { 0.0 };
            let right = agrees(got.re, expected.re, modulus) && agrees(got.im, expected.im, modulus);
            assert!(right, "{}({z}) = {got}, expected {expected}", words[0]);
            lines += 1;
        }
        assert!(lines > 1000, "{lines} lines");
    }

    #[test]
    fn powers_with_whole_exponents_are_products() {
        assert_eq!(pow(at(1.0, 2.0), at(2.0, 0.0)), at(-3.0, 4.0));
        assert_eq!(pow(at(0.0, 2.0), at(-1.0, 0.0)), at(0.0, -0.5));
        assert_eq!(pow(at(0.0, 0.0), at(0.0, 0.0)), at(1.0, 0.0));
        assert_eq!(pow(at(0.0, 0.0), at(2.5, 1.0)), at(0.0, 0.0));
        let root = pow(at(-4.0, 0.0), at(0.5, 0.0));
        assert!(abs(root - at(0.0, 2.0)) < 1e-15, "{root}");
    }

    #[test]
    fn quotients_do_not_overflow() {
        assert_eq!(div(at(1e308, 1e308), at(1e308, 1e308)), at(1.0, 0.0));
        assert_eq!(div(at(1.0, 1.0), at(0.0, 0.0)).re, f64::INFINITY);
    }
}
