//! `binary_cross_entropy_with_logits`
//!
//! Arguments:
//! - `pos_weight`: the factor of the loss of positive targets, broadcast to the input.
//! - `weight`: the factor of each element's loss, broadcast to the input.

use super::Reduction;
use super::{one, reduce_narrowed, wide_pair};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{optional, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, SampleArg, plain, sample, tensor as filled, uniform};
use keyway_dispatcher::op::{Arg, Args, Rule};

impl Tensor {
    /// [`Tensor::binary_cross_entropy`] of the sigmoid of this tensor, without overflow.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([0.0f32])?;
    /// let t = Tensor::new([1.0f32])?;
    /// let loss = x.binary_cross_entropy_with_logits(&t)?;
    /// assert!((loss.item::<f32>()? - 2.0f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input that is not a float; incompatible shapes.
    #[doc(alias = "binary_cross_entropy_with_logit")]
    pub fn binary_cross_entropy_with_logits(&self, target: &Tensor) -> Result<Tensor> {
        self.binary_cross_entropy_with_logits_with(target, None, None, Reduction::Mean)
    }

    /// [`Tensor::binary_cross_entropy_with_logits`] with a `weight` and a weight `pos_weight` of the positive part; both
    /// broadcast.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (logits, target) = (Tensor::new([0.0f32])?, Tensor::new([1.0f32])?);
    /// let twice = Tensor::new([2.0f32])?;
    /// let loss = logits.binary_cross_entropy_with_logits_with(&target, None, Some(&twice), Reduction::None)?;
    /// assert!((loss.item::<f32>()? - 2.0 * 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn binary_cross_entropy_with_logits_with(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        DEF.run(&[
            self.into(),
            target.into(),
            Arg::optional(weight),
            Arg::optional(pos_weight),
            reduction.into(),
        ])
    }
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, target) = wide_pair(args)?;
    // log(1 + exp(-x)) and log(1 + exp(x)) as one op each, whose derivatives are smooth at 0. The addends are not negative,
    // so they do not cancel if a logit is far on its target's side.
    let positive = match optional(args, 3)? {
        Some(factor) => widened(&factor)?.mul(&target)?,
        None => target.clone(),
    };
    let (on, off) = (x.neg()?.softplus_with(1, f64::INFINITY)?, x.softplus_with(1, f64::INFINITY)?);
    let loss = positive.mul(&on)?.add(&target.rsub(1.0)?.mul(&off)?)?;
    let loss = if let Some(weight) = optional(args, 2)? { loss.mul(&widened(&weight)?)? } else { loss };
    reduce_narrowed(args, 4, loss, 0b1111)
}

/// `binary_cross_entropy_with_logits`
pub static DEF: OpDef = OpDef::new(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, \
     Tensor? pos_weight=None, str reduction='mean') -> Tensor",
    Rule::Structured(|args| super::rule(args, 4, 0b1111)),
    Derivative::Composite,
    || {
        let full = [
            filled(&[4], Fill::Distinct(-3.0, -0.1)),
            uniform(&[4], 0.1, 0.9),
            plain(&[4]),
            plain(&[4]),
            SampleArg::Str("mean"),
        ];
        let pair = |sizes: &[usize]| [filled(sizes, Fill::Distinct(0.1, 3.0)), uniform(sizes, 0.1, 0.9)];
        let zeros = [
            filled(&[5], Fill::Values(vec![0.0, 0.0, -60.0, 60.0, 1e-3])),
            filled(&[5], Fill::Values(vec![1.0, 0.0, 0.5])),
            SampleArg::None,
            SampleArg::None,
            SampleArg::Str("none"),
        ];
        super::samples(vec![sample(full), sample(zeros)], pair, &[SampleArg::None, SampleArg::None])
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| super::errors(&[SampleArg::None, SampleArg::None]))
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
