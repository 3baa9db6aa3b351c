//! `lgamma`

use super::gamma::{is_pole, log_gamma_above_0, operand, sine};
use crate::error::Result;
use crate::ops::composite::{cast, one};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::sample::{Fill, Sample, sample, tensor, unary};
use crate::ops::{forms, rules};
use crate::{DType, Tensor};
use keyway_dispatcher::op::Args;
use std::f64::consts::PI;

forms! {
    /// `log(|gamma(x)|)` of each element: infinity at 0 and at negative integers. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f64, 2.0, 5.0])?;
    /// assert_eq!(x.lgamma()?.to_vec::<f64>()?, [0.0, 0.0, 24f64.ln()]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn lgamma(&self), in_place: lgamma_, out: lgamma_out;
}

/// Below 0 by the reflection formula `gamma(x) gamma(-x) = -pi / (x sin(pi x))`, and just below 0 by `-log|x|`.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, dtype) = operand(args)?;
    let size = x.abs()?;
    let (above, log) = (log_gamma_above_0(&size)?, size.log()?);
    let reflected = sine(&x)?.rdiv(PI)?.log()?.sub(&log)?.sub(&above)?;
    let tiny = if x.dtype() == DType::F64 { 2f64.powi(-60) } else { 2f64.powi(-30) };
    let below = size.lt(tiny)?.where_cond(&log.neg()?, &reflected)?;
    let made = x.lt(0)?.where_cond(&below, &above)?;
    cast(is_pole(&x)?.where_cond(f64::INFINITY, &made)?, dtype)
}

/// The samples, shared with the derivatives: on both sides of 0, and at poles.
pub(super) fn samples() -> Vec<Sample> {
    let mut samples = unary(0.4, 4.0);
    let below = vec![-0.4, -1.3, -2.6, -0.75, -3.5, -7.25];
    let large = vec![9.5, 8.5, 30.0, 2.0, 1.0, 3.0];
    let poles = vec![0.0, -1.0, -0.0, -2.0, -4.0];
    samples.push(sample([tensor(&[6], Fill::Values(below))]));
    samples.push(sample([tensor(&[6], Fill::Values(large))]));
    samples.push(Sample { smooth: false, ..sample([tensor(&[5], Fill::Values(poles))]) });
    samples
}

/// `lgamma`
pub static DEF: OpDef = OpDef::unary(
    "lgamma(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.digamma()?))),
)
.samples(samples)
.decomposed(|args| one(compose(args)));
