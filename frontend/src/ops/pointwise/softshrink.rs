//! `softshrink`

use super::softshrink_backward;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{
    ErrorSample, Fill, Sample, SampleArg, error, plain, sample, tensor as filled, unary_of,
};
use crate::ops::{forms, rules, sample as samples_of};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Typing};

forms! {
    /// Soft thresholding of each element `x`: `sign(x) * max(|x| - lambd, 0)`, with a `lambd` of 0.5. The gradient where the
    /// result is 0 is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-2.0f32, 0.5, 1.0])?.softshrink()?.to_vec::<f32>()?, [-1.5, 0.0, 0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a `lambd` that is negative or NaN.
    pub fn softshrink(&self), defaults: [Arg::Float(0.5)], in_place: softshrink_, on: -2.5;

    /// [`Tensor::softshrink`] with a `lambd`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([-4.0f32, 0.75, 3.0])?;
    /// assert_eq!(x.softshrink_with(1.0)?.to_vec::<f32>()?, [-3.0, 0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn softshrink_with<'a>(&'a self, lambd: impl Into<Arg<'a>>), in_place: softshrink_with_, on: -2.5;
}

/// Refuses an invalid `lambd`, argument `i`.
pub(super) fn check(args: &Args<'_>, i: usize) -> RuleResult<()> {
    let lambd = args.float(i)?;
    if lambd.is_nan() || lambd < 0.0 {
        return Err(rules::wrong_value(args, i, "0 or more".to_string()));
    }
    Ok(())
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    check(args, 1)?;
    rules::unary_real(args)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, lambd) = (tensor(args, 0)?, args.float(1)?);
    let x = widened(&t)?;
    // A product, so that NaN propagates.
    let inner = x.lt(-lambd)?.where_cond(&x.add(lambd)?, &x.mul(0)?)?;
    cast(x.gt(lambd)?.where_cond(&x.sub(lambd)?, &inner)?, t.dtype())
}

fn samples() -> Vec<Sample> {
    let fill = Fill::AwayFrom(-2.2, 2.2, 0.05);
    let corners = filled(&[6], Fill::Values(vec![-0.5, 0.5, 0.0, -1.0, 1.0, -0.0]));
    let mut samples = [unary_of(&fill, &[SampleArg::Int(1)]), unary_of(&fill, &[SampleArg::Int(0)])].concat();
    samples.push(Sample { smooth: false, ..sample([corners, SampleArg::Float(0.5)]) });
    samples
}

fn errors() -> Vec<ErrorSample> {
    let negative = error([plain(&[2]), SampleArg::Float(-0.5)], "0 or more");
    [vec![negative], samples_of::refuses_integers(&[SampleArg::Int(1)])].concat()
}

/// `softshrink`
pub static DEF: OpDef = OpDef::unary(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    rule,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || softshrink_backward::DEF.run(&[b.grad(0)?.into(), (&b.input(0)?).into(), b.arg(1)]))
    }),
)
.with(OpFlags::ZERO_PRESERVING)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(errors)
.decomposed(|args| one(compose(args)));
