//! The logarithm of the gamma function and its first two derivatives, by the [coefficients](keyway_sdk::gamma) that the
//! composite ops use.

use super::log::{log_f32, log_f64};
use super::trig::{sin_fast_f64, sin_near_f32};
use super::{fma_f32, fma_f64, polynomial_f32, polynomial_f64, short};
use keyway_sdk::gamma::{BERNOULLI, LARGE, LOG_NARROW, LOG_WIDE, ROOT, SLOPE_NARROW, SLOPE_WIDE};

/// `(log(2 pi) - 1) / 2`
const REST: f64 = 0.418_938_533_204_672_7;

/// The coefficients `B_2k / ((2k)^once (2k - 1)^twice)` of an asymptotic series, from the Bernoulli numbers of even index.
const fn series<const N: usize>(once: bool, twice: bool) -> [f64; N] {
    let mut to = [0.0; N];
    let mut i = 0;
    while i < N {
        let index = (2 * i + 2) as f64;
        to[i] = BERNOULLI[i] / if once { index } else { 1.0 } / if twice { index - 1.0 } else { 1.0 };
        i += 1;
    }
    to
}

/// Defines the functions for one float type. The asymptotic series have `$terms` terms and are used above [`LARGE`], the
/// series of the second derivative above `$far`.
macro_rules! gamma_functions {
    (
        $float:ident, $fma:ident, $polynomial:ident, $log:ident, $sine:ident, $short:ident,
        logarithms: $logs:ident, slopes: $slopes:ident, root: $root:expr, terms: $terms:literal, far: $far:literal, tiny: $tiny:literal;
        $lgamma:ident, $digamma:ident, $trigamma:ident
    ) => {
        /// `log|gamma(x)|`, at most 4 ulp above 0; infinite at 0 and at negative integers. Below 0 by the reflection
        /// `gamma(x) gamma(-x) = -pi / (x sin(pi x))`, and near 0 by `-log|x|`.
        #[inline(always)]
        pub fn $lgamma(x: $float) -> $float {
            const PI: $float = std::f64::consts::PI as $float;
            let size = x.abs();
            let (mut near, mut product) = (size, 1.0);
            for _ in 2..LARGE as usize + 1 {
                let less = near - 1.0;
                let above = near > 2.0;
                product = if above { product * less } else { product };
                near = if above { less } else { near };
            }
            // For `u` from 0 to 1, `log gamma(1 + u)` is `u (u - 1)` times the polynomial; all differences are exact.
            let below = size < 1.0;
            let u = if below { size } else { near - 1.0 };
            let inner = u * (u - 1.0) * $polynomial(u + u - 1.0, &const { $short($logs) });
            let large = size >= LARGE as $float;
            let log = $log(if below | large { size } else { product });
            let small = inner + if below { -log } else { log };

            let inverse = 1.0 / size;
            let series = $polynomial(inverse * inverse, &const { $short(series::<$terms>(true, true)) });
            let rest = $fma(series, inverse, REST as $float);
            let above = if large { $fma(size - 0.5, log - 1.0, rest) } else { small };

            let whole = x.round_ties_even();
            let sine = $sine((x - whole).abs() * PI);
            let reflected = $log(PI / (sine * size)) - above;
            let reflected = if size < $tiny { -log } else { reflected };
            let made = if x < 0.0 { reflected } else { above };
            if x <= 0.0 && x == whole { $float::INFINITY } else { made }
        }

        /// The derivative of `log|gamma(x)|`, at most 4 ulp above 0; at 0 infinite with the opposite sign, NaN at negative
        /// integers. Below 0 by the reflection `digamma(1 - x) - digamma(x) = pi cot(pi x)`.
        #[inline(always)]
        pub fn $digamma(x: $float) -> $float {
            const PI: $float = std::f64::consts::PI as $float;
            let (root, rest) = const { $root };
            let y = if x < 0.0 { 1.0 - x } else { x };
            // The sum of the reciprocals of the recurrence `digamma(y + 1) = digamma(y) + 1 / y`, as one quotient.
            let (mut near, mut above, mut under) = (y, 0.0, 1.0);
            for _ in 2..LARGE as usize + 1 {
                let less = near - 1.0;
                let lower = near > 2.0;
                above = if lower { $fma(above, less, under) } else { above };
                under = if lower { under * less } else { under };
                near = if lower { less } else { near };
            }
            let below = y < 1.0;
            // Below 1 the polynomial is evaluated at `y + 1`, without the rounding error of this sum.
            let distance = if below { y - (root - 1.0) } else { near - root } - rest;
            let u = if below { y } else { near - 1.0 };
            let inner = $polynomial(u + u - 1.0, &const { $short($slopes) }) * distance;
            let small = inner + if below { -1.0 } else { above } / if below { y } else { under };

            let inverse = 1.0 / y;
            let square = inverse * inverse;
            let series = $polynomial(square, &const { $short(series::<$terms>(true, false)) }) * square;
            let large = $log(y) - $fma(inverse, 0.5, series);
            let positive = if y < LARGE as $float { small } else { large };

            let r = x - x.round_ties_even();
            let size = r.abs();
            // Near its zeros the cotangent is computed from a sine, which is accurate there.
            let cotangent = $sine((0.5 - size) * PI) / $sine(size * PI);
            let made = if x < 0.0 { positive - PI * cotangent.copysign(r) } else { positive };
            let made = if x < 0.0 && r == 0.0 { $float::NAN } else { made };
            if x == 0.0 { -1.0 / x } else { made }
        }

        /// The second derivative of `log|gamma(x)|`, at most 4 ulp; infinite at 0 and at negative integers. Below 0 by the
        /// reflection `trigamma(1 - x) + trigamma(x) = (pi / sin(pi x))^2`.
        #[inline(always)]
        pub fn $trigamma(x: $float) -> $float {
            const PI: $float = std::f64::consts::PI as $float;
            let y = if x < 0.0 { 1.0 - x } else { x };
            // The sum of the reciprocal squares of the recurrence without the first one, as quotients of up to five
            // addends.
            let mut sum = 0.0;
            let mut first = ($far as usize - 2) / 5 * 5 + 1;
            while first > 0 {
                let (mut above, mut under) = (0.0, 1.0);
                let mut k = first;
                while k < first + 5 && k < $far as usize {
                    let term = y + k as $float;
                    above = $fma(above, term * term, under);
                    under *= term * term;
                    k += 1;
                }
                sum += above / under;
                first = first.saturating_sub(5);
            }
            let near = y < $far;
            let a = if near { y + $far } else { y };
            let inverse = 1.0 / a;
            let square = inverse * inverse;
            let series = $polynomial(square, &const { $short(series::<$terms>(false, false)) }) * square;
            let tail = $fma(inverse, $fma(inverse, 0.5, series), inverse);
            let reciprocal = 1.0 / y;
            let positive = if near { $fma(reciprocal, reciprocal, sum + tail) } else { tail };

            let whole = x.round_ties_even();
            let share = PI / $sine((x - whole).abs() * PI);
            let made = if x < 0.0 { $fma(share, share, -positive) } else { positive };
            let made = if x <= 0.0 && x == whole { $float::INFINITY } else { made };
            if x == $float::NEG_INFINITY { $float::NAN } else { made }
        }
    };
}

/// The identity: f64 coefficients need no conversion.
const fn long<const N: usize>(of: [f64; N]) -> [f64; N] {
    of
}

/// The root of `digamma` in f32, and its rounding error.
const fn narrow_root() -> (f32, f32) {
    let root = ROOT.0 as f32;
    (root, (ROOT.0 - root as f64) as f32)
}

gamma_functions! {
    f32, fma_f32, polynomial_f32, log_f32, sin_near_f32, short,
    logarithms: LOG_NARROW, slopes: SLOPE_NARROW, root: narrow_root(), terms: 4, far: 6.0, tiny: 1e-9;
    lgamma_f32, digamma_f32, trigamma_f32
}
gamma_functions! {
    f64, fma_f64, polynomial_f64, log_f64, sin_fast_f64, long,
    logarithms: LOG_WIDE, slopes: SLOPE_WIDE, root: ROOT, terms: 10, far: 11.0, tiny: 1e-18;
    lgamma_f64, digamma_f64, trigamma_f64
}
