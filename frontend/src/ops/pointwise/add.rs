//! `add`

use crate::DType;
use crate::ops::def::{Derivative, Facts, OpDef};
use crate::ops::sample::{
    ErrorSample, Fill, PAIRS, Sample, SampleArg, broadcast_errors, error, fixed, plain, sample,
};
use crate::ops::{forms, rules};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Typing};

forms! {
    /// `self + other`, broadcast and promoted.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_slice(&[1.0f32, 2.0])?;
    /// assert_eq!(a.add(10.0)?.to_vec::<f32>()?, [11.0, 12.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    pub fn add<'a>(&'a self, other: impl Into<Arg<'a>>), defaults: [Arg::Int(1)], in_place: add_, out: add_out;

    /// `self + alpha * other`.
    ///
    /// # Errors
    /// As [`Tensor::add`](Self::add); an `alpha` with a fraction where the operands are integers.
    pub fn add_scaled<'a>(&'a self, other: impl Into<Arg<'a>>, alpha: impl Into<Arg<'a>>),
        in_place: add_scaled_;
}

/// Also for `sub`: refuses an `alpha` that the operands' dtype cannot hold.
pub(super) fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::binary(args)?;
    rules::whole_factor(args, 2, typing.compute)?;
    Ok(typing)
}

fn samples() -> Vec<Sample> {
    let pairs = PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b), SampleArg::Int(1)]));
    let more = [
        sample([plain(&[3, 4]), plain(&[4]), SampleArg::Int(3)]),
        sample([plain(&[3, 4]), SampleArg::Int(2), SampleArg::Int(1)]),
    ];
    pairs.chain(more).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = || fixed(&[2], DType::I32, Fill::Index(5));
    let mut errors = broadcast_errors(&[SampleArg::Int(1)]);
    errors.push(error([ints(), ints(), SampleArg::Float(0.5)], "an integer"));
    errors
}

/// `add`
pub static DEF: OpDef = OpDef::binary(
    "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    rule,
    Derivative::of_grad(|b, g| {
        g.set(0, || Ok(b.grad(0)?.clone()))?;
        g.set(1, || match b.arg(2) {
            Arg::Int(1) => Ok(b.grad(0)?.clone()),
            alpha => b.grad(0)?.mul(alpha),
        })
    }),
)
.samples(samples)
.errors(errors)
.with(Facts::SIGNED_ZEROS);
