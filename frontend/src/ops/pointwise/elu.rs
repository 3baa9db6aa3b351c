//! `elu`
//!
//! Arguments:
//! - `alpha`: the negative of the limit at minus infinity.

use crate::ops::composite::in_range;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, SampleArg, unary_of};
use crate::ops::{forms, rules, sample};
use keyway_dispatcher::op::Arg;

forms! {
    /// `x` if it is above 0, otherwise `alpha * (e^x - 1)` with an `alpha` of 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-100.0f32, 2.0])?.elu_with(0.5)?.to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn elu(&self), defaults: [Arg::Int(1)], in_place: elu_, on: -1.5;

    /// [`Tensor::elu`](crate::Tensor::elu) with an `alpha`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([-20.0f32, 3.0])?;
    /// assert_eq!(x.elu_with(2)?.to_vec::<f32>()?, [-2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn elu_with<'a>(&'a self, alpha: impl Into<Arg<'a>>), in_place: elu_with_, on: -1.5;
}

fn samples() -> Vec<Sample> {
    let fill = Fill::AwayFrom(-2.2, 2.2, 0.05);
    [unary_of(&fill, &[SampleArg::Int(1)]), unary_of(&fill, &[SampleArg::Float(0.5)])].concat()
}

/// `elu`
pub static DEF: OpDef = OpDef::unary(
    "elu(Tensor self, Scalar alpha=1) -> Tensor",
    rules::unary_real,
    Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        // The exponent is at most 0, so the exponential is finite; the output plus `alpha` would cancel.
        formula: |b, g| {
            g.set(0, || {
                let (grad, x) = (&in_range(b.grad(0)?)?, in_range(&b.input(0)?)?);
                let below = grad.mul(&x.clamp_max(0)?.exp()?.mul(b.arg(1))?)?;
                x.gt(0)?.where_cond(grad, &below)
            })
        },
    },
)
.with(OpFlags::ZERO_PRESERVING)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(|| sample::refuses_integers(&[SampleArg::Int(1)]));
