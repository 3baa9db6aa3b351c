//! `leaky_relu`
//!
//! Arguments:
//! - `negative_slope`: the factor of negative elements.

use super::derived;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, SampleArg, unary_of};
use crate::ops::{forms, rules, sample};
use keyway_dispatcher::op::Arg;

forms! {
    /// `x` if it is above 0, otherwise `0.01 * x`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-2.0f32, 2.0])?.leaky_relu_with(0.25)?.to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn leaky_relu(&self), defaults: [Arg::Float(0.01)], in_place: leaky_relu_, on: -1.5;

    /// [`Tensor::leaky_relu`](crate::Tensor::leaky_relu) with a slope below 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([-4.0f32, 3.0])?;
    /// assert_eq!(x.leaky_relu_with(0.25)?.to_vec::<f32>()?, [-1.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn leaky_relu_with<'a>(&'a self, negative_slope: impl Into<Arg<'a>>), in_place: leaky_relu_with_, on: -1.5;
}

fn samples() -> Vec<Sample> {
    let fill = Fill::AwayFrom(-2.2, 2.2, 0.05);
    [unary_of(&fill, &[SampleArg::Float(0.01)]), unary_of(&fill, &[SampleArg::Int(2)])].concat()
}

/// `leaky_relu`
pub static DEF: OpDef = OpDef::unary(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    rules::unary_real,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let grad = b.grad(0)?;
            b.input(0)?.gt(0)?.where_cond(grad, &grad.mul(b.arg(1))?)
        })
    }),
)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(|| sample::refuses_integers(&[SampleArg::Float(0.01)]))
.decomposed(derived::LEAKY_RELU)
.with(OpFlags::ZERO_PRESERVING);
