//! `smooth_l1_loss`
//!
//! Arguments:
//! - `beta`: the difference from which the loss is linear.

use super::Reduction;
use super::smooth_l1_loss_backward;
use super::{in_pieces, one, reduce_narrowed, wide_pair};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::wrong_value;
use crate::ops::sample::{Fill, SampleArg, sample, tensor as filled, uniform};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The mean smooth L1 loss of the differences `d` from `target`: `d^2 / (2 beta)` if `|d| < beta`, otherwise `|d| -
    /// beta / 2`, with a `beta` of 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 3.0])?;
    /// let t = Tensor::new([0.0f32, 1.0])?;
    /// assert_eq!(x.smooth_l1_loss(&t)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input that is not a float; incompatible shapes.
    pub fn smooth_l1_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.smooth_l1_loss_with(target, 1.0, Reduction::Mean)
    }

    /// [`Tensor::smooth_l1_loss`] with a `beta` and a reduction.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (x, target) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([5.0f32, 1.0])?);
    /// let losses = x.smooth_l1_loss_with(&target, 2.0, Reduction::None)?;
    /// assert_eq!(losses.to_vec::<f32>()?, [3.0, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a `beta` that is negative or not finite.
    pub fn smooth_l1_loss_with(&self, target: &Tensor, beta: f64, reduction: Reduction) -> Result<Tensor> {
        DEF.run(&[self.into(), target.into(), Arg::Float(beta), reduction.into()])
    }
}

/// Refuses an invalid `beta`, argument `i`.
pub(super) fn check(args: &Args<'_>, i: usize) -> RuleResult<()> {
    let beta = args.float(i)?;
    if !(beta >= 0.0 && beta.is_finite()) {
        return Err(wrong_value(args, i, "0 or more, finite".to_string()));
    }
    Ok(())
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    check(args, 2)?;
    super::rule(args, 3, 0b11)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let beta = args.float(2)?;
    let (x, target) = wide_pair(args)?;
    let difference = x.sub(&target)?;
    let loss = if beta == 0.0 { difference.abs()? } else { in_pieces(&difference, beta, 1.0)? };
    reduce_narrowed(args, 3, loss, 0b11)
}

/// `smooth_l1_loss`
pub static DEF: OpDef = OpDef::new(
    "smooth_l1_loss(Tensor self, Tensor target, Scalar beta=1, str reduction='mean') -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b11, |b, g| {
        let (x, target) = (b.input(0)?, b.input(1)?);
        let args = [b.grad(0)?.into(), (&x).into(), (&target).into(), b.arg(2), b.arg(3)];
        let made = smooth_l1_loss_backward::DEF.run(&args)?;
        g.set(0, || Ok(made.clone()))?;
        g.set(1, || made.neg())
    }),
    || {
        let near = [
            filled(&[4], Fill::Distinct(0.1, 0.5)),
            uniform(&[4], -0.1, 0.0),
            SampleArg::Float(1.0),
            SampleArg::Str("mean"),
        ];
        let pair = |sizes: &[usize]| [filled(sizes, Fill::Distinct(2.1, 4.0)), uniform(sizes, -1.0, 1.0)];
        super::samples(vec![sample(near)], pair, &[SampleArg::Float(0.7)])
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| super::errors(&[SampleArg::Float(1.0)]))
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
