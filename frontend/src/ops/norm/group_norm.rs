//! `group_norm`
//!
//! Arguments:
//! - `weight`: the factor of each channel; None for 1.
//! - `bias`: added to each channel; None for 0.

use super::channels::{check_channels, normalised, spread};
use super::group_norm_backward::{self, check_groups, gradients};
use crate::Tensor;
use crate::autograd::{Backward, Grads, is_grad_enabled};
use crate::error::Result;
use crate::ops::composite::{cast, gradient_in_format_of, one, optional, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::kept;
use crate::ops::sample::{Sample, SampleArg, error, plain, sample, uniform};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Group normalization: `(x - mean) / sqrt(variance + 1e-5) * weight + bias` for an input `[batch, channels, ..]`, with
    /// mean and (biased) variance over each of `num_groups` groups of consecutive channels of each sample (Y. Wu, K. He, "Group
    /// normalization", 2018). Weight and bias are of shape `[channels]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0, 10.0, 30.0], (1, 4))?;
    /// let y = x.group_norm(2, None, None)?.to_vec::<f32>()?;
    /// assert!((y[0] + 1.0).abs() < 1e-5 && (y[3] - 1.0).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input of fewer than 2 dimensions or not of a float dtype; a number of groups that does not divide the channels; a
    /// weight or bias not of shape `[channels]`.
    pub fn group_norm(
        &self,
        num_groups: impl Int,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
    ) -> Result<Tensor> {
        self.group_norm_with(num_groups, weight, bias, 1e-5)
    }

    /// [`Tensor::group_norm`] with an `eps`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0, 10.0, 30.0], (1, 4))?;
    /// assert_eq!(x.group_norm_with(2, None, None, 0.0)?.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn group_norm_with(
        &self,
        num_groups: impl Int,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let (weight, bias) = (Arg::optional(weight), Arg::optional(bias));
        DEF.run(&[self.into(), Arg::Int(num_groups.to_i64()), weight, bias, Arg::Float(eps)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = check_groups(args, 0, 1)?;
    let channels = x.sizes()[1];
    check_channels(args, 2, channels)?;
    check_channels(args, 3, channels)?;
    args.float(4)?;
    let mut plan = Plan::one(x.dtype(), Dims::from_slice(x.sizes()), x.dtype(), kept(x, x.sizes()));
    plan.cast = 0b1101;
    Ok(plan)
}

/// Calls the fused backward op unless the gradients are differentiated again; otherwise runs tensor ops.
fn formula(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (grad, own, weight) = (b.grad(0)?, b.input(0)?, b.optional_input(2)?);
    let made = if is_grad_enabled() {
        let (x, grad) = (widened(&own)?, widened(grad)?);
        gradients(&x, &grad, b.int(1)? as usize, weight.as_ref(), b.float(4)?)?.into()
    } else {
        let (grad, weight) = (gradient_in_format_of(&own, grad)?, Arg::optional(weight.as_ref()));
        group_norm_backward::DEF.run_all(&[(&grad).into(), (&own).into(), b.arg(1), weight, b.arg(4)])?
    };
    for (i, made) in [0, 2, 3].into_iter().zip(made) {
        g.set(i, || Ok(made))?;
    }
    Ok(())
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, groups, eps) = (tensor(args, 0)?, args.int(1)? as usize, args.float(4)?);
    let (batch, channels) = (x.shape()[0], x.shape()[1]);
    let wide = widened(&x)?;
    let in_x = |i: usize| optional(args, i)?.map(|t| spread(&cast(t, wide.dtype())?, x.rank())).transpose();
    let (weight, bias) = (in_x(2)?, in_x(3)?);
    let made = if x.as_ref().is_in_channels_last_order() {
        // The channel dimension is split, so that the statistics need no copy in either memory format.
        let split = wide.unflatten(1, [groups as i64, (channels / groups) as i64])?;
        let dims: Vec<i64> = (2..split.rank() as i64).collect();
        let (mean, var) = (split.mean_keepdim(&dims)?, split.var_with(&dims, 0.0, true)?);
        normalised(&split, [&mean, &var], [None, None], eps, Some(&dims))?.flatten(1, 2)?
    } else {
        let size = channels / groups * x.shape()[2..].iter().product::<usize>();
        let rows = wide.reshape_as_sizes(&[batch * groups, size])?;
        rows.layer_norm_with([size as i64], None, None, eps)?.reshape_as_sizes(x.shape())?
    };
    let made = match (weight, bias) {
        (Some(weight), Some(bias)) => bias.addcmul(&made, &weight)?,
        (Some(weight), None) => made.mul(&weight)?,
        (None, Some(bias)) => made.add(&bias)?,
        (None, None) => made,
    };
    cast(made, x.dtype())
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], groups, weight: bool, bias: bool| {
        let per = |given, value| if given { value } else { SampleArg::None };
        let channels = &[sizes[1]][..];
        let (weight, bias) = (per(weight, uniform(channels, 0.5, 1.5)), per(bias, plain(channels)));
        sample([plain(sizes), SampleArg::Int(groups), weight, bias, SampleArg::Float(0.1)])
    };
    vec![
        call(&[2, 4], 2, true, true),
        call(&[2, 4, 3], 2, true, true),
        call(&[2, 4, 3], 4, true, false),
        call(&[2, 4, 3], 1, false, true),
        call(&[1, 4, 2, 2], 2, true, true),
        call(&[2, 2, 2, 1, 2], 1, false, false),
        call(&[2, 9, 2, 3], 3, true, true),
        call(&[0, 4, 2], 2, true, true),
    ]
}

/// `group_norm`
pub static DEF: OpDef = OpDef::new(
    "group_norm(Tensor self, int num_groups, Tensor? weight=None, Tensor? bias=None, \
     float eps=1e-05) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b101, saves_outputs: 0, formula },
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |sizes: &[usize], groups, weight| {
        [plain(sizes), SampleArg::Int(groups), weight, SampleArg::None, SampleArg::Float(0.1)]
    };
    vec![
        error(call(&[4], 2, SampleArg::None), "2 or more dimensions"),
        error(call(&[2, 4], 3, SampleArg::None), "a divisor of the 4 channels"),
        error(call(&[2, 4], 0, SampleArg::None), "a divisor of the 4 channels"),
        error(call(&[2, 4], 2, plain(&[2])), "of shape [4]"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
