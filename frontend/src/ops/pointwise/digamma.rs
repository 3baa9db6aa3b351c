//! `digamma`

use super::gamma::{cotangent, digamma_above_0, is_pole, operand};
use super::lgamma::samples;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, in_range, one};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::Args;
use std::f64::consts::PI;

forms! {
    /// The digamma function, the derivative of [`Tensor::lgamma`]: minus infinity at 0, infinity at -0, NaN at negative
    /// integers. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f64])?.digamma()?;
    /// assert!((x.item::<f64>()? + 0.577_215_664_901_532_9).abs() < 1e-15);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn digamma(&self), in_place: digamma_, out: digamma_out;
}

/// Below 0 by the reflection formula `digamma(1 - x) - digamma(x) = pi cot(pi x)`.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, dtype) = operand(args)?;
    let negative = x.lt(0)?;
    let above = digamma_above_0(&negative.where_cond(&x.rsub(1)?, &x)?)?;
    let below = above.sub(&cotangent(&x)?.mul(PI)?)?;
    let made = negative.where_cond(&below, &above)?;
    let made = is_pole(&x)?.where_cond(f64::NAN, &made)?;
    // `-1 / x` has the right sign for both zeros.
    cast(x.eq(0)?.where_cond(&x.rdiv(-1)?, &made)?, dtype)
}

/// `digamma`
pub static DEF: OpDef = OpDef::unary(
    "digamma(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&in_range(&b.input(0)?)?.polygamma(1)?))),
)
.samples(samples)
.decomposed(|args| one(compose(args)));
