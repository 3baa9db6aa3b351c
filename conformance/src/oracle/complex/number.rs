//! Complex numbers in f64, and elementary functions of them by their definitions.
//!
//! The formulas are accurate to some hundred ULP of the modulus away from branch points and for moduli of 1e-3 to 1e3; values
//! elsewhere, on cuts, and of infinities and NaN are in [`facts`](super::facts).

use crate::array::Number;
use std::f64::consts::{LN_2, LN_10, PI};

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct C {
    /// The real part.
    pub re: f64,
    /// The imaginary part.
    pub im: f64,
}

/// `re + i im`.
pub fn c(re: f64, im: f64) -> C {
    C { re, im }
}

const ONE: C = C { re: 1.0, im: 0.0 };

impl C {
    /// The value of an element; NaN of `Any`.
    pub fn of(number: Number) -> C {
        c(number.float(), number.imaginary())
    }

    /// The value as an element.
    pub fn number(self) -> Number {
        Number::Complex(self.re, self.im)
    }

    /// Whether both parts are finite.
    pub fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }

    /// The modulus.
    pub fn modulus(self) -> f64 {
        self.re.hypot(self.im)
    }

    /// The argument.
    pub fn angle(self) -> f64 {
        self.im.atan2(self.re)
    }

    fn polar(modulus: f64, angle: f64) -> C {
        c(modulus * angle.cos(), modulus * angle.sin())
    }

    /// The sum.
    pub fn plus(self, other: C) -> C {
        c(self.re + other.re, self.im + other.im)
    }

    /// The difference.
    pub fn minus(self, other: C) -> C {
        c(self.re - other.re, self.im - other.im)
    }

    /// The product.
    pub fn times(self, other: C) -> C {
        c(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }

    /// The product with a real number.
    pub fn scaled(self, by: f64) -> C {
        c(self.re * by, self.im * by)
    }

    /// The quotient: both are divided by the modulus of the divisor first, so that no intermediate result overflows.
    pub fn over(self, other: C) -> C {
        let modulus = other.modulus();
        let direction = c(other.re / modulus, -other.im / modulus);
        c(self.re / modulus, self.im / modulus).times(direction)
    }

    fn negated(self) -> C {
        self.scaled(-1.0)
    }

    fn times_i(self) -> C {
        c(-self.im, self.re)
    }

    fn over_i(self) -> C {
        c(self.im, -self.re)
    }
}

/// `e^z`.
pub fn exp(z: C) -> C {
    C::polar(z.re.exp(), z.im)
}

/// `e^z - 1 = 2 e^(z/2) sinh(z/2)`.
pub fn expm1(z: C) -> C {
    let half = z.scaled(0.5);
    exp(half).times(sinh(half)).scaled(2.0)
}

/// The principal logarithm.
pub fn log(z: C) -> C {
    let from_one = z.minus(ONE);
    if from_one.modulus() < 0.5 {
        return c(0.5 * (from_one.re * (2.0 + from_one.re) + from_one.im * from_one.im).ln_1p(), z.angle());
    }
    c(z.modulus().ln(), z.angle())
}

/// `log z / log 2`.
pub fn log2(z: C) -> C {
    log(z).scaled(1.0 / LN_2)
}

/// `log z / log 10`.
pub fn log10(z: C) -> C {
    log(z).scaled(1.0 / LN_10)
}

/// `log(1 + z)`.
pub fn log1p(z: C) -> C {
    let angle = z.im.atan2(1.0 + z.re);
    if z.modulus() < 0.5 {
        return c(0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p(), angle);
    }
    c((1.0 + z.re).hypot(z.im).ln(), angle)
}

/// The principal square root.
pub fn sqrt(z: C) -> C {
    C::polar(z.modulus().sqrt(), 0.5 * z.angle())
}

/// `1 / sqrt(z)`.
pub fn rsqrt(z: C) -> C {
    C::polar(1.0 / z.modulus().sqrt(), -0.5 * z.angle())
}

/// `1 / z`.
pub fn reciprocal(z: C) -> C {
    ONE.over(z)
}

/// `1 / (1 + e^-z)`.
pub fn sigmoid(z: C) -> C {
    reciprocal(ONE.plus(exp(z.negated())))
}

/// `z / |z|`, and 0 of 0.
pub fn sgn(z: C) -> C {
    if z == c(0.0, 0.0) { z } else { c(z.re / z.modulus(), z.im / z.modulus()) }
}

/// The hyperbolic sine.
pub fn sinh(z: C) -> C {
    c(z.re.sinh() * z.im.cos(), z.re.cosh() * z.im.sin())
}

/// The hyperbolic cosine.
pub fn cosh(z: C) -> C {
    c(z.re.cosh() * z.im.cos(), z.re.sinh() * z.im.sin())
}

/// The hyperbolic tangent: the quotient of sine and cosine, `e^2z - 1 / e^2z + 1`, which is -1 or 1 far from 0.
pub fn tanh(z: C) -> C {
    if z.re.abs() > 300.0 { c(z.re.signum(), 0.0) } else { sinh(z).over(cosh(z)) }
}

/// The sine.
pub fn sin(z: C) -> C {
    c(z.re.sin() * z.im.cosh(), z.re.cos() * z.im.sinh())
}

/// The cosine.
pub fn cos(z: C) -> C {
    c(z.re.cos() * z.im.cosh(), -z.re.sin() * z.im.sinh())
}

/// The tangent.
pub fn tan(z: C) -> C {
    tanh(z.times_i()).over_i()
}

/// The inverse hyperbolic sine, `log(z + sqrt(z^2 + 1))`, an odd function.
pub fn asinh(z: C) -> C {
    if z.re < 0.0 {
        return asinh(z.negated()).negated();
    }
    // z + sqrt(z^2 + 1) - 1 = z + z^2 / (sqrt(z^2 + 1) + 1), without cancellation near 0.
    let square = z.times(z);
    let root = sqrt(c(z.re + 0.0, z.im - 1.0)).times(sqrt(c(z.re + 0.0, z.im + 1.0)));
    log1p(z.plus(square.over(root.plus(ONE))))
}

/// The inverse hyperbolic cosine.
pub fn acosh(z: C) -> C {
    let root = sqrt(z.plus(ONE)).times(sqrt(z.minus(ONE)));
    log(z.plus(root))
}

/// The inverse hyperbolic tangent: half the difference of `log(1 + z)` and `log(1 - z)`.
pub fn atanh(z: C) -> C {
    log1p(z).minus(log1p(z.negated())).scaled(0.5)
}

/// The arc sine.
pub fn asin(z: C) -> C {
    asinh(z.times_i()).over_i()
}

/// The arc cosine.
pub fn acos(z: C) -> C {
    c(PI / 2.0, 0.0).minus(asin(z))
}

/// The arc tangent.
pub fn atan(z: C) -> C {
    atanh(z.times_i()).over_i()
}

/// `a^b = e^(b log a)`; of a base of 0 it is 1 for an exponent of 0, and 0 for one with a positive real part.
pub fn pow(a: C, b: C) -> C {
    let zero = c(0.0, 0.0);
    match (a == zero, b == zero) {
        (_, true) => ONE,
        (true, _) if b.re > 0.0 => zero,
        (true, _) => c(f64::NAN, f64::NAN),
        _ => exp(b.times(log(a))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: C, b: C) -> bool {
        a.minus(b).modulus() <= 1e-13 * b.modulus()
    }

    #[test]
    fn functions_invert_each_other() {
        for z in [c(0.3, 0.4), c(-0.7, 0.2), c(0.01, -0.9), c(-0.5, -0.6), c(0.002, 0.001)] {
            for (name, f, inverse) in [
                ("exp", exp as fn(C) -> C, log as fn(C) -> C),
                ("expm1", expm1, log1p),
                ("sinh", sinh, asinh),
                ("tanh", tanh, atanh),
                ("sin", sin, asin),
                ("tan", tan, atan),
                ("rsqrt", rsqrt, |w| reciprocal(w.times(w))),
            ] {
                assert!(near(inverse(f(z)), z), "{name} {z:?} {:?}", inverse(f(z)));
            }
            assert!(near(cosh(acosh(z)), z) && near(cos(acos(z)), z), "{z:?}");
            assert!(near(sqrt(z).times(sqrt(z)), z) && near(pow(z, c(0.5, 0.0)), sqrt(z)), "{z:?}");
            assert!(
                near(sgn(z).scaled(z.modulus()), z)
                    && near(sigmoid(z).times(ONE.plus(exp(z.negated()))), ONE)
            );
            assert!(near(exp(log2(z).scaled(LN_2)), z) && near(exp(log10(z).scaled(LN_10)), z));
        }
    }
}
