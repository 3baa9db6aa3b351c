//! `softshrink_backward`

use super::backward;
use super::derived;
use super::softshrink::check;
use crate::Tensor;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::sample::{
    ErrorSample, Fill, Sample, SampleArg, broadcast_errors, error, plain, sample, tensor,
};
use crate::ops::{forms, rules};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Typing};

forms! {
    /// The input gradient of [`Tensor::softshrink_with`], from the output gradient `self` and the `input`: 0 where
    /// `|input| <= lambd`. With a `lambd` of 0 it is `self` everywhere, also at 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let grad = Tensor::new([3.0f32, 3.0, 3.0])?;
    /// let input = Tensor::new([-2.0f32, 0.5, 0.75])?;
    /// assert_eq!(grad.softshrink_backward(&input, 0.5)?.to_vec::<f32>()?, [3.0, 0.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast; a `lambd` that is negative or NaN.
    pub fn softshrink_backward<'a>(&'a self, input: &'a Tensor, lambd: impl Into<Arg<'a>>);
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    check(args, 2)?;
    rules::binary_float(args)
}

fn samples() -> Vec<Sample> {
    let away = |sizes: &[usize]| tensor(sizes, Fill::AwayFrom(-2.2, 2.2, 0.05));
    let with = |sizes: &[usize], lambd| sample([plain(sizes), away(sizes), SampleArg::Int(lambd)]);
    let corners = tensor(&[6], Fill::Values(vec![-0.5, 0.5, 0.0, -1.0, 1.0, -0.0]));
    let at_corners = |lambd| {
        let args = [tensor(&[6], Fill::Values(vec![2.0, -3.0])), corners.clone(), SampleArg::Float(lambd)];
        Sample { smooth: false, ..sample(args) }
    };
    let mut samples: Vec<_> = backward::SHAPES.iter().map(|sizes| with(sizes, 1)).collect();
    samples.extend([with(&[2, 3], 0), at_corners(0.5), at_corners(0.0)]);
    samples
}

fn errors() -> Vec<ErrorSample> {
    let mut all = broadcast_errors(&[SampleArg::Float(0.5)]);
    all.push(error([plain(&[2]), plain(&[2]), SampleArg::Float(-0.5)], "0 or more"));
    all
}

/// `softshrink_backward`
pub static DEF: OpDef = OpDef::binary(
    "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd=0.5) -> Tensor",
    rule,
    Derivative::of_inputs(0b10, |b, g| {
        g.set(0, || DEF.run(&[b.grad(0)?.into(), (&b.input(1)?).into(), b.arg(2)]))?;
        g.set(1, || b.grad(0)?.zeros_like())
    }),
)
.forms(Forms::New)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(errors)
.decomposed(derived::SOFTSHRINK_BACKWARD);
