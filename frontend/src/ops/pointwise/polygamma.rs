//! `polygamma`
//!
//! Arguments:
//! - `n`: the order of the derivative of the digamma function.

use super::gamma::{cotangent, is_pole, operand, polynomial};
use super::lgamma;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, in_range, one, whole};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Typing};
use std::f64::consts::PI;

impl Tensor {
    /// The polygamma function, the `n`-th derivative of [`Tensor::digamma`]. At 0 and at negative integers it is infinite, for
    /// an even `n` minus infinity. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f64])?.polygamma(1)?;
    /// assert!((x.item::<f64>()? - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-14);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An order above 170, whose factorial overflows f64.
    pub fn polygamma(&self, n: usize) -> Result<Tensor> {
        DEF.run(&[self.into(), whole(n)])
    }
}

/// The largest order; the factorial of the next one overflows f64.
const HIGHEST: i64 = 170;

/// `B(2k) / (2k)!` for `k` from 1 on, where `B` are the Bernoulli numbers.
const BERNOULLI_SHARES: [f64; 12] = [
    0.083_333_333_333_333_33,
    -0.001_388_888_888_888_889,
    3.306_878_306_878_307e-05,
    -8.267_195_767_195_768e-07,
    2.087_675_698_786_81e-08,
    -5.284_190_138_687_493e-10,
    1.338_253_653_068_467_9e-11,
    -3.389_680_296_322_582_7e-13,
    8.586_062_056_277_845e-15,
    -2.174_868_698_558_062e-16,
    5.509_002_828_360_229_5e-18,
    -1.395_446_468_581_252_2e-19,
];

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    if !(0..=HIGHEST).contains(&args.int(1)?) {
        return Err(rules::wrong_value(args, 1, format!("an order from 0 to {HIGHEST}")));
    }
    rules::unary_float(args)
}

/// `x^-s`, without the logarithm of a power for small exponents.
fn inverse_power(x: &Tensor, s: i64) -> Result<Tensor> {
    match s {
        1 => x.reciprocal(),
        2 => x.reciprocal()?.square(),
        s => x.pow(-(s as f64)),
    }
}

/// The Hurwitz zeta function of an `s` of 2 or more and `x` above 0: the sum of `(x + k)^-s` over `k` from 0 on, by the
/// Euler-Maclaurin formula ("Digital Library of Mathematical Functions", 25.11.28), with the first terms added directly where
/// `x` is small.
fn zeta(x: &Tensor, s: i64) -> Result<Tensor> {
    let first = 9 + s.min(40);
    let mut sum = x.zeros_like()?;
    for k in (0..first).rev() {
        sum = sum.add(&inverse_power(&x.add(k)?, s)?)?;
    }
    let small = x.lt(first)?;
    let a = small.where_cond(&x.add(first)?, x)?;
    let inverse = a.reciprocal()?;
    let mut rising = 1.0;
    let mut list = Vec::new();
    for (j, share) in BERNOULLI_SHARES.iter().enumerate() {
        let from = s + 2 * j as i64 - 1;
        rising *= if j == 0 { s as f64 } else { (from * (from + 1)) as f64 };
        list.push(share * rising);
    }
    let square = inverse.square()?;
    let series = polynomial(&square, list)?.mul(&square)?;
    let tail = series.add(&inverse.mul(0.5)?)?.add(1.0 / (s - 1) as f64)?;
    let tail = tail.mul(&inverse_power(&a, s - 1)?)?;
    small.where_cond(&sum.add(&tail)?, &tail)
}

/// The derivative of order `n` of the cotangent as a polynomial of the cotangent `c`: each is `-(1 + c^2)` times the derivative
/// of the previous polynomial.
fn cotangent_derivative(n: i64) -> Vec<f64> {
    let mut list = vec![0.0, 1.0];
    for _ in 0..n {
        let slope: Vec<f64> = list.iter().enumerate().skip(1).map(|(k, c)| k as f64 * c).collect();
        list = vec![0.0; slope.len() + 2];
        for (k, c) in slope.iter().enumerate() {
            list[k] -= c;
            list[k + 2] -= c;
        }
    }
    list
}

/// `(-1)^(n+1) n! zeta(n + 1, x)`; below 0 by the derivatives of the reflection formula of `digamma`.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let n = args.int(1)?;
    let (x, dtype) = operand(args)?;
    if n == 0 {
        return cast(x.digamma()?, dtype);
    }
    let factorial: f64 = (1..=n).map(|k| k as f64).product();
    let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
    let negative = x.lt(0)?;
    let above = zeta(&negative.where_cond(&x.rsub(1)?, &x)?, n + 1)?.mul(sign * factorial)?;
    let coefficients = cotangent_derivative(n).into_iter().map(|c| c * PI.powi(n as i32 + 1));
    let reflected = above.mul(-sign)?.sub(&polynomial(&cotangent(&x)?, coefficients)?)?;
    let made = negative.where_cond(&reflected, &above)?;
    let made = is_pole(&x)?.where_cond(sign * f64::INFINITY, &made)?;
    cast(x.eq(f64::NEG_INFINITY)?.where_cond(f64::NAN, &made)?, dtype)
}

fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for n in 0..4 {
        let of_order = lgamma::samples().into_iter().enumerate().map(|(nth, mut sample)| {
            sample.args.push(SampleArg::Int(n));
            // The values of higher orders differ widely in magnitude, so finite differences are inaccurate.
            sample.smooth &= n < 2 || nth < 3;
            sample
        });
        samples.extend(of_order);
    }
    samples
}

fn errors() -> Vec<ErrorSample> {
    let call = |n| error([plain(&[2]), SampleArg::Int(n)], "from 0 to 170");
    vec![call(-1), call(171)]
}

/// `polygamma`
pub static DEF: OpDef = OpDef::unary(
    "polygamma(Tensor self, int n) -> Tensor",
    rule,
    Derivative::of_inputs(0b1, |b, g| {
        let next = usize::try_from(b.int(1)?).map_or(usize::MAX, |n| n + 1);
        g.set(0, || b.grad(0)?.mul(&in_range(&b.input(0)?)?.polygamma(next)?))
    }),
)
.samples(samples)
.errors(errors)
.decomposed(|args| one(compose(args)));
