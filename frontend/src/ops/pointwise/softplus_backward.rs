//! `softplus_backward`
//!
//! Arguments:
//! - `beta`: the factor of the input, by which the result is divided.

use super::backward;
use super::derived;
use crate::Tensor;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::sample::{Sample, SampleArg, broadcast_errors, plain, sample, uniform};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::Arg;

forms! {
    /// The input gradient of [`Tensor::softplus_with`], from the output gradient `self` and the `input`: `self` where
    /// `beta` times the input is above `threshold`, otherwise `self` times the sigmoid of that product.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (grad, input) = (Tensor::new([3.0f32, 3.0])?, Tensor::new([0.0f32, 50.0])?);
    /// assert_eq!(grad.softplus_backward(&input, 1, 20)?.to_vec::<f32>()?, [1.5, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    pub fn softplus_backward<'a>(&'a self, input: &'a Tensor, beta: impl Into<Arg<'a>>, threshold: impl Into<Arg<'a>>);
}

fn samples() -> Vec<Sample> {
    let with = |sizes: &[usize], low, beta, threshold| {
        sample([plain(sizes), uniform(sizes, low, 3.0), SampleArg::Float(beta), SampleArg::Float(threshold)])
    };
    let mut samples: Vec<_> = backward::SHAPES.iter().map(|sizes| with(sizes, -3.0, 1.0, 20.0)).collect();
    samples.extend([with(&[2, 3], -3.0, 2.5, 30.0), with(&[2, 3], 1.5, 2.0, 2.0)]);
    samples
}

/// `softplus_backward`
pub static DEF: OpDef = OpDef::binary(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    rules::binary_float,
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || DEF.run(&[b.grad(0)?.into(), (&b.input(1)?).into(), b.arg(2), b.arg(3)]))?;
        g.set(1, || {
            let x = b.input(1)?.mul(b.arg(2))?;
            let both = b.grad(0)?.mul(&b.input(0)?)?.mul(b.arg(2))?;
            x.gt(b.arg(3))?.where_cond(0, &both.sigmoid_backward(&x)?)
        })
    }),
)
.forms(Forms::New)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(|| broadcast_errors(&[SampleArg::Int(1), SampleArg::Int(20)]))
.decomposed(derived::SOFTPLUS_BACKWARD);
