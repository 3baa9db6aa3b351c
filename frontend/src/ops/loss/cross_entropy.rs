//! `cross_entropy`
//!
//! Arguments:
//! - `self`: logits, `[batch, classes, ..]` or `[classes]`.
//! - `target`: class indices, `[batch, ..]`, or the probabilities of the classes, of the shape of `self`.
//! - `weight`: the factor of the loss of each class; the mean is divided by the sum of those of the targets.
//! - `ignore_index`: the class index of targets that count neither in the sum nor in the mean.
//! - `label_smoothing`: the share of each target, from 0 to 1, that is distributed evenly over all classes.

use super::nll_loss_forward::{self, weighted_mean};
use super::{NO_CLASS, Reduction};
use super::{one, reduce, reduced, tensor};
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, optional, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{FIRST_TWO, wrong_shape, wrong_value};
use crate::ops::sample::{
    Fill, Sample, SampleArg, error, fixed, index, plain, sample, tensor as filled, uniform,
};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// [`Tensor::nll_loss`] of [`Tensor::log_softmax`]. An integer `target` holds classes; a float one of the input's shape
    /// holds class probabilities, and then the mean is over the samples.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![3.0f32, 3.0], (1, 2))?;
    /// let t = Tensor::new([1i64])?;
    /// let loss = x.cross_entropy(&t)?.item::<f32>()?;
    /// assert!((loss - 2.0f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input that is not a float; incompatible shapes.
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        self.cross_entropy_with(target, None, NO_CLASS, 0.0, Reduction::Mean)
    }

    /// [`Tensor::cross_entropy`] with the options of [`Tensor::nll_loss_with`]; `label_smoothing` is the share of the target
    /// distribution that is replaced by the uniform distribution.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let scores = Tensor::new([[0.0f32, 0.0], [5.0, 1.0]])?;
    /// // The target of the second row is ignored.
    /// let loss = scores.cross_entropy_with(&Tensor::new([0i64, 1])?, None, 1, 0.0, Reduction::Mean)?;
    /// assert!((loss.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a `label_smoothing` outside 0..=1.
    pub fn cross_entropy_with(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        ignore_index: impl Int,
        label_smoothing: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        DEF.run(&[
            self.into(),
            target.into(),
            Arg::optional(weight),
            Arg::Int(ignore_index.to_i64()),
            Arg::Float(label_smoothing),
            reduction.into(),
        ])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (x, target) = (float_tensor(args, 0)?, args.tensor(1)?);
    if x.ndim() == 0 {
        return Err(wrong_shape(args, 0, "of one dimension or more".into(), x.sizes()));
    }
    args.int(3)?;
    if !(0.0..=1.0).contains(&args.float(4)?) {
        return Err(wrong_value(args, 4, "a share from 0 to 1".into()));
    }
    if !target.dtype().is_float() {
        let sizes = nll_loss_forward::check(args)?;
        let mut plan = reduced(args, 5, x.dtype(), sizes, 0)?;
        plan.cast = 0b101;
        plan.cast_index = 0b10;
        return Ok(plan);
    }
    if target.sizes() != x.sizes() {
        let expected = format!("of the input's shape {:?}, as probabilities are", x.sizes());
        return Err(wrong_shape(args, 1, expected, target.sizes()));
    }
    let mut sizes = Dims::from_slice(x.sizes());
    let classes = sizes.remove(usize::from(x.ndim() > 1));
    nll_loss_forward::check_weight(args, classes)?;
    let mut plan = reduced(args, 5, args.promote(FIRST_TWO)?, sizes, 0)?;
    plan.cast = 0b111;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (own, target) = (tensor(args, 0)?, tensor(args, 1)?);
    let classes = target.dtype().is_integer();
    // If the loss has several parts, f16 and bf16 are rounded once, at the end.
    let x = if !classes || args.float(4)? > 0.0 { widened(&own)? } else { own.clone() };
    let target = if classes { target } else { widened(&target)? };
    let dtype = if classes { own.dtype() } else { args.promote(FIRST_TWO)? };
    cast(loss(args, &x, &target)?, dtype)
}

fn loss(args: &Args<'_>, x: &Tensor, target: &Tensor) -> Result<Tensor> {
    let smoothing = args.float(4)?;
    let dim = x.rank().min(2) as i64 - 1;
    let classes = x.dim(dim)?;
    let logs = x.log_softmax(dim)?;
    let weight = match optional(args, 2)? {
        Some(weight) => {
            let mut shape = vec![1; x.rank()];
            shape[dim as usize] = classes;
            Some(cast(weight, logs.dtype())?.reshape_as_sizes(&shape)?)
        }
        None => None,
    };
    // A class of probability 0 without a share has no loss: 0 times infinity would be NaN.
    let shared = |share: &Tensor| {
        logs.gt(f64::NEG_INFINITY)?.logical_or(&share.ne(0)?)?.where_cond(&logs, 0)?.mul(share)
    };
    if target.dtype().is_float() {
        let target = target.mul(1.0 - smoothing)?.add(smoothing / classes as f64)?;
        let share = weight.map_or_else(|| Ok(target.clone()), |weight| target.mul(&weight))?;
        return reduce(args, 5, shared(&share)?.sum(dim)?.neg()?);
    }
    let (loss, weights) =
        nll_loss_forward::DEF.run_pair(&[(&logs).into(), args.get(1), args.get(2), args.get(3)])?;
    let mut total = loss;
    if smoothing > 0.0 {
        let ignored = target.eq(args.get(3))?;
        let weighted = match weight {
            // So that a weight gets no gradient from ignored elements, which may be NaN.
            Some(weight) => shared(&ignored.unsqueeze(dim)?.where_cond(0, &weight)?)?,
            None => logs,
        };
        let even = ignored.where_cond(0.0, &weighted.sum(dim)?.neg()?)?;
        total = total.mul(1.0 - smoothing)?.add_with(&even, smoothing / classes as f64)?;
    }
    if args.str(5)? == "mean" {
        let learned = optional(args, 2)?.is_some_and(|weight| weight.requires_grad());
        return weighted_mean(&total, &weights, learned);
    }
    reduce(args, 5, total)
}

/// `cross_entropy`
pub static DEF: OpDef = OpDef::new(
    "cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int ignore_index=-100, \
     Scalar label_smoothing=0, str reduction='mean') -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let call = |sizes: &[usize],
                    to: &[usize],
                    weight: SampleArg,
                    ignored: i64,
                    smoothing: f64,
                    how: &'static str| {
            sample([
                plain(sizes),
                index(to, 3),
                weight,
                SampleArg::Int(ignored),
                SampleArg::Float(smoothing),
                SampleArg::Str(how),
            ])
        };
        // The mean of no elements is NaN.
        let ignored = |share, how| {
            let target = fixed(&[4], DType::I64, Fill::Values(vec![1.0]));
            let rest =
                [target, SampleArg::None, SampleArg::Int(1), SampleArg::Float(share), SampleArg::Str(how)];
            Sample { smooth: false, ..sample([plain(&[4, 3])].into_iter().chain(rest)) }
        };
        let weight = || fixed(&[3], DType::F64, Fill::Values(vec![0.5, 1.5, 2.0]));
        // A class of probability 0 without a share, due to its target or its weight; an ignored row of such classes.
        let none = f64::NEG_INFINITY;
        let impossible = |target, weight, smoothing| {
            let x = filled(&[3, 3], Fill::Values(vec![0.5, none, 1.0, 0.0, none, -1.0, none, none, none]));
            let rest = [SampleArg::Int(2), SampleArg::Float(smoothing), SampleArg::Str("none")];
            Sample { smooth: false, ..sample([x, target, weight].into_iter().chain(rest)) }
        };
        let classes = || fixed(&[3], DType::I64, Fill::Values(vec![0.0, 1.0, 2.0]));
        let without = || fixed(&[3], DType::F64, Fill::Values(vec![0.5, 0.0, 2.0]));
        let shares = filled(&[2, 3], Fill::Values(vec![0.25, 0.0, 0.75, 1.0, 0.0, 0.0]));
        let soft = {
            let x = filled(&[2, 3], Fill::Values(vec![0.5, none, 1.0, 0.0, none, -1.0]));
            let rest = [SampleArg::None, SampleArg::Int(2), SampleArg::Float(0.0), SampleArg::Str("none")];
            Sample { smooth: false, ..sample([x, shares].into_iter().chain(rest)) }
        };
        vec![
            call(&[3], &[], SampleArg::None, -100, 0.1, "mean"),
            call(&[4, 3], &[4], SampleArg::None, -100, 0.1, "mean"),
            call(&[5, 3], &[5], SampleArg::None, -100, 0.0, "mean"),
            call(&[8, 3], &[8], weight(), 1, 0.1, "mean"),
            call(&[8, 3], &[8], uniform(&[3], 0.5, 2.0), 1, 0.1, "mean"),
            call(&[2, 3, 2, 1, 2], &[2, 2, 1, 2], uniform(&[3], 0.5, 2.0), -100, 0.1, "mean"),
            call(&[8, 3], &[8], weight(), 1, 0.0, "none"),
            call(&[2, 3, 4], &[2, 4], SampleArg::None, -100, 0.1, "sum"),
            call(&[2, 3, 2, 2], &[2, 2, 2], weight(), 1, 0.1, "mean"),
            call(&[0, 3], &[0], weight(), -100, 0.1, "sum"),
            ignored(0.0, "mean"),
            ignored(0.1, "mean"),
            ignored(0.1, "sum"),
            impossible(classes(), without(), 0.0),
            impossible(classes(), without(), 0.1),
            soft,
            sample([
                plain(&[4, 3]),
                uniform(&[4, 3], 0.1, 0.9),
                SampleArg::None,
                SampleArg::Int(-100),
                SampleArg::Float(0.1),
                SampleArg::Str("mean"),
            ]),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let target = fixed(&[2], DType::I64, Fill::Values(vec![0.0, 7.0]));
    let call = |target| {
        [
            plain(&[2, 3]),
            target,
            SampleArg::None,
            SampleArg::Int(-100),
            SampleArg::Float(0.0),
            SampleArg::Str("mean"),
        ]
    };
    let smoothed = |share| {
        let mut args = call(index(&[2], 3));
        args[4] = SampleArg::Float(share);
        args
    };
    let scalar = [plain(&[]), index(&[], 1)].into_iter().chain(call(index(&[], 1)).into_iter().skip(2));
    vec![
        error(call(target), "0..3"),
        error(call(index(&[5], 3)), "of shape"),
        error(call(plain(&[2])), "of the input's shape"),
        error(scalar, "one dimension or more"),
        error(smoothed(-0.1), "a share from 0 to 1"),
        error(smoothed(1.5), "a share from 0 to 1"),
        error(smoothed(f64::NAN), "a share from 0 to 1"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
