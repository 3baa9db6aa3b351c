//! `nll_loss`
//!
//! Arguments:
//! - `weight`: the factor of the loss of each class.
//! - `self`: log probabilities, `[batch, classes, ..]`.

use super::nll_loss_forward::{self, weighted_mean};
use super::{NO_CLASS, Reduction};
use super::{one, reduce, reduced};
use crate::error::Result;
use crate::ops::composite::optional;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, SampleArg, error, fixed, index, plain, sample, uniform};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The mean negative log-likelihood of the target classes; the input is log-probabilities. Classes are in dimension 1, or 0
    /// of a one-dimensional tensor. Targets of -100 are ignored.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![-0.5f32, -2.0], (1, 2))?;
    /// let t = Tensor::new([1i64])?;
    /// assert_eq!(x.nll_loss(&t)?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Incompatible shapes.
    pub fn nll_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.nll_loss_with(target, None, NO_CLASS, Reduction::Mean)
    }

    /// [`Tensor::nll_loss`] with a `weight` per class and an `ignore_index`; the mean is weighted, over the targets that are
    /// not ignored.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (logs, target) = (Tensor::new([[-1.0f32, -2.0], [-3.0, -4.0]])?, Tensor::new([0i64, 1])?);
    /// let weight = Tensor::new([1.0f32, 3.0])?;
    /// // (1 * 1 + 3 * 4) / (1 + 3)
    /// let loss = logs.nll_loss_with(&target, Some(&weight), -100, Reduction::Mean)?;
    /// assert_eq!(loss.item::<f32>()?, 3.25);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn nll_loss_with(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        ignore_index: impl Int,
        reduction: Reduction,
    ) -> Result<Tensor> {
        DEF.run(&[
            self.into(),
            target.into(),
            Arg::optional(weight),
            Arg::Int(ignore_index.to_i64()),
            reduction.into(),
        ])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let sizes = nll_loss_forward::check(args)?;
    args.int(3)?;
    let mut plan = reduced(args, 4, args.tensor(0)?.dtype(), sizes, 0)?;
    plan.cast = 0b101;
    plan.cast_index = 0b10;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (loss, weights) =
        nll_loss_forward::DEF.run_pair(&[args.get(0), args.get(1), args.get(2), args.get(3)])?;
    if args.str(4)? == "mean" {
        let learned = optional(args, 2)?.is_some_and(|weight| weight.requires_grad());
        return weighted_mean(&loss, &weights, learned);
    }
    reduce(args, 4, loss)
}

/// `nll_loss`
pub static DEF: OpDef = OpDef::new(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int ignore_index=-100, \
     str reduction='mean') -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let call = |sizes: &[usize], to: &[usize], weight: SampleArg, ignored: i64, how: &'static str| {
            sample([plain(sizes), index(to, 3), weight, SampleArg::Int(ignored), SampleArg::Str(how)])
        };
        let weight = || fixed(&[3], DType::F64, Fill::Values(vec![0.5, 1.5, 2.0]));
        // The mean of no elements is NaN.
        let ignored = |how| {
            let target = fixed(&[4], DType::I64, Fill::Values(vec![1.0]));
            let rest = [target, SampleArg::None, SampleArg::Int(1), SampleArg::Str(how)];
            Sample { smooth: false, ..sample([plain(&[4, 3])].into_iter().chain(rest)) }
        };
        vec![
            call(&[3], &[], SampleArg::None, -100, "mean"),
            call(&[4, 3], &[4], SampleArg::None, -100, "mean"),
            call(&[8, 3], &[8], weight(), 1, "mean"),
            call(&[8, 3], &[8], uniform(&[3], 0.5, 2.0), 1, "mean"),
            call(&[8, 3], &[8], weight(), 1, "none"),
            call(&[2, 3, 4], &[2, 4], SampleArg::None, -100, "sum"),
            call(&[2, 3, 2, 2], &[2, 2, 2], weight(), 1, "mean"),
            call(&[1, 3, 2, 1, 2], &[1, 2, 1, 2], SampleArg::None, 0, "none"),
            call(&[0, 3], &[0], weight(), -100, "sum"),
            ignored("mean"),
            ignored("sum"),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let target = fixed(&[2], DType::I64, Fill::Values(vec![0.0, 7.0]));
    let call =
        |target| [plain(&[2, 3]), target, SampleArg::None, SampleArg::Int(-100), SampleArg::Str("mean")];
    vec![error(call(target), "0..3"), error(call(index(&[5], 3)), "of shape")]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
