//! Shared parts of the channel norms: inputs `[batch, channels, ..]`, and weights, biases and running statistics `[channels]`.

use super::{channel_norm, frozen_norm};
use crate::Tensor;
use crate::autograd::no_grad;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, optional, tensor};
use crate::ops::def::{OpDef, no_result};
use crate::ops::rules::{wrong_shape, wrong_value};
use crate::ops::sample::{Sample, SampleArg, fixed, plain, sample, tensor as filled, uniform};
use crate::{DType, ops::sample::Fill};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Strides};

/// The arguments `(self, running_mean, running_var, weight, bias, from input, momentum, eps)`.
pub(super) struct Call {
    x: Tensor,
    running: Option<[Tensor; 2]>,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    /// Whether mean and variance are computed from the input.
    from_input: bool,
    momentum: f64,
    eps: f64,
}

/// Refuses an argument `i` that is present and not of shape `[channels]`.
pub(super) fn check_channels(args: &Args<'_>, i: usize, channels: usize) -> RuleResult<()> {
    match args.optional_tensor(i)? {
        Some(t) if t.sizes() != [channels] => {
            let expected = format!("of shape [{channels}], a number for each channel");
            Err(wrong_shape(args, i, expected, t.sizes()))
        }
        _ => Ok(()),
    }
}

/// The plan of such a call with an input of `least` dimensions or more; `values` returns the number of values per statistic,
/// which must be above 1.
pub(super) fn rule(
    args: &Args<'_>,
    least: usize,
    values: fn(&[usize]) -> usize,
    several: &str,
) -> RuleResult<Plan> {
    let x = float_tensor(args, 0)?;
    let sizes = x.sizes();
    if sizes.len() < least {
        let expected = format!("of {least} or more dimensions, [batch, channels, ..]");
        return Err(wrong_shape(args, 0, expected, sizes));
    }
    for i in 1..=4 {
        check_channels(args, i, sizes[1])?;
    }
    let from_input = args.bool(5)?;
    match (args.optional_tensor(1)?, args.optional_tensor(2)?) {
        (Some(_), Some(_)) => {}
        (None, None) if from_input => {}
        (None, _) => return Err(wrong_value(args, 1, "a tensor, as `running_var` or the mode asks".into())),
        (_, None) => return Err(wrong_value(args, 2, "a tensor, as `running_mean` is".into())),
    }
    args.float(6)?;
    args.float(7)?;
    if from_input && values(sizes) == 1 {
        return Err(wrong_shape(args, 0, several.to_string(), sizes));
    }
    let mut plan = Plan::one(x.dtype(), Dims::from_slice(sizes), x.dtype(), Strides::Like(0));
    // The running statistics are updated in place, so they are not cast.
    plan.cast = 0b1_1001;
    Ok(plan)
}

/// Reshapes one value per channel to broadcast with an input of `ndim` dimensions.
pub(super) fn spread(t: &Tensor, ndim: usize) -> Result<Tensor> {
    let mut sizes = vec![1; ndim];
    sizes[1] = t.elem_count();
    t.reshape_as_sizes(&sizes)
}

/// `(x - mean) / sqrt(var + eps) * weight + bias`, with all operands in shapes that broadcast with `x`. `own` are the
/// dimensions over which mean and variance were computed, if they are those of `x`.
pub(super) fn normalised(
    x: &Tensor,
    [mean, var]: [&Tensor; 2],
    [weight, bias]: [Option<&Tensor>; 2],
    eps: f64,
    own: Option<&[i64]>,
) -> Result<Tensor> {
    let centred = x.sub(mean)?;
    let rstd = var.add(eps)?.rsqrt()?;
    let scale = if let Some(weight) = weight { rstd.mul(weight)? } else { rstd };
    let rest = own.map(|dims| rounding(&centred, &scale, dims)).transpose()?;
    match (bias, rest) {
        (Some(bias), Some(rest)) => bias.add(&rest)?.addcmul(&centred, &scale),
        (Some(offset), None) => offset.addcmul(&centred, &scale),
        (None, Some(rest)) => rest.addcmul(&centred, &scale),
        (None, None) => centred.mul(&scale),
    }
}

/// The correction of the rounding error of the mean of large values, times the scale: mathematically 0, and so detached.
fn rounding(centred: &Tensor, scale: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let _off = no_grad();
    centred.mean_keepdim(dims)?.mul(scale)?.mul(-1)
}

/// Calls an op with these arguments: running mean and variance, weight and bias, whether the input's own statistics are used,
/// momentum and eps.
pub(super) fn call(
    def: &'static OpDef,
    x: &Tensor,
    running: Option<(&Tensor, &Tensor)>,
    [weight, bias]: [Option<&Tensor>; 2],
    from_input: bool,
    [momentum, eps]: [f64; 2],
) -> Result<Tensor> {
    def.run(&[
        x.into(),
        Arg::optional(running.map(|(mean, _)| mean)),
        Arg::optional(running.map(|(_, var)| var)),
        Arg::optional(weight),
        Arg::optional(bias),
        Arg::Bool(from_input),
        Arg::Float(momentum),
        Arg::Float(eps),
    ])
}

impl Call {
    pub(super) fn of(args: &Args<'_>) -> Result<Call> {
        let running = match (optional(args, 1)?, optional(args, 2)?) {
            (Some(mean), Some(var)) => Some([mean, var]),
            _ => None,
        };
        Ok(Call {
            x: tensor(args, 0)?,
            running,
            weight: optional(args, 3)?,
            bias: optional(args, 4)?,
            from_input: args.bool(5)?,
            momentum: args.float(6)?,
            eps: args.float(7)?,
        })
    }

    /// The result; with `per_sample`, statistics from the input are computed for each sample.
    pub(super) fn run(&self, per_sample: bool) -> Result<Tensor> {
        match &self.running {
            Some(running) if !self.from_input => self.by_given(running),
            running => self.by_own(running.as_ref(), per_sample),
        }
    }

    fn by_own(&self, running: Option<&[Tensor; 2]>, per_sample: bool) -> Result<Tensor> {
        let affine = [&self.weight, &self.bias].map(|t| Arg::optional(t.as_ref()));
        let options = [Arg::Bool(per_sample), Arg::Float(self.eps)];
        let [weight, bias] = affine;
        let mut made =
            channel_norm::DEF.run_all(&[(&self.x).into(), weight, bias, options[0], options[1]])?.into_iter();
        match (made.next(), made.next(), made.next()) {
            (Some(result), Some(mean), Some(var)) => {
                if let Some(running) = running {
                    self.update(running, [&mean, &var])?;
                }
                Ok(result)
            }
            _ => Err(no_result(&channel_norm::DEF)),
        }
    }

    fn by_given(&self, [mean, var]: &[Tensor; 2]) -> Result<Tensor> {
        let [weight, bias] = [&self.weight, &self.bias].map(|t| Arg::optional(t.as_ref()));
        frozen_norm::DEF.run(&[(&self.x).into(), mean.into(), var.into(), weight, bias, Arg::Float(self.eps)])
    }

    /// Updates the running statistics with the input's mean and unbiased variance, each averaged over the batch if computed per
    /// sample.
    fn update(&self, running: &[Tensor; 2], [mean, var]: [&Tensor; 2]) -> Result<()> {
        let _off = no_grad();
        let count = self.x.elem_count() / mean.elem_count().max(1);
        // Statistics of no elements are undefined.
        if count == 0 || mean.elem_count() == 0 {
            return Ok(());
        }
        let unbiased = var.detach().mul(count as f64 / (count as f64 - 1.0))?;
        for (running, now) in running.iter().zip([mean.detach(), unbiased]) {
            let (channels, samples) = (running.elem_count(), now.elem_count() / running.elem_count().max(1));
            let now = match samples {
                1 => now.reshape_as_sizes(&[channels])?,
                _ => now.reshape_as_sizes(&[samples, channels])?.mean(0)?,
            };
            if running.dtype() == now.dtype() {
                running.lerp_(&now, self.momentum)?;
                continue;
            }
            // The input's variance may exceed the range of f16.
            running.copy_(&cast(running.clone(), now.dtype())?.lerp(&now, self.momentum)?)?;
        }
        Ok(())
    }
}

fn arguments(
    sizes: &[usize],
    [mean, var]: [SampleArg; 2],
    [weight, bias]: [SampleArg; 2],
    from_input: bool,
) -> [SampleArg; 8] {
    let [momentum, eps] = [0.1, 0.1].map(SampleArg::Float);
    [plain(sizes), mean, var, weight, bias, SampleArg::Bool(from_input), momentum, eps]
}

/// The arguments of a call without running statistics and bias, for error samples.
pub(super) fn plain_call(sizes: &[usize], weight: SampleArg, from_input: bool) -> [SampleArg; 8] {
    let none = || SampleArg::None;
    arguments(sizes, [none(), none()], [weight, none()], from_input)
}

/// Rows of equal values, with weight and bias.
fn equal_rows() -> Sample {
    let args = arguments(
        &[2, 3, 5],
        [SampleArg::None, SampleArg::None],
        [uniform(&[3], 0.5, 1.5), plain(&[3])],
        true,
    );
    let x = filled(&[2, 3, 5], Fill::Values(vec![1234.567]));
    let args = [x].into_iter().chain(args.into_iter().skip(1));
    Sample { smooth: false, ..sample(args) }
}

/// Samples for inputs of these shapes: statistics of the input with and without weight and bias, and given ones. Running
/// statistics are passed only if they are read, since a call in training would change them.
pub(super) fn samples(shapes: &[&[usize]]) -> Vec<Sample> {
    let call = |sizes: &[usize], running: bool, affine: bool| {
        let channels = &[sizes[1]][..];
        let given = match running {
            true => [[0.5, -1.0, 0.25], [0.5, 1.5, 2.0]]
                .map(|v| fixed(channels, DType::F64, Fill::Values(v.into()))),
            false => [SampleArg::None, SampleArg::None],
        };
        let affine = match affine {
            true => [uniform(channels, 0.5, 1.5), plain(channels)],
            false => [SampleArg::None, SampleArg::None],
        };
        sample(arguments(sizes, given, affine, !running))
    };
    shapes
        .iter()
        .flat_map(|s| {
            [call(s, false, true), call(s, false, false), call(s, true, true), call(s, true, false)]
        })
        .chain([call(&[0, 3, 2], true, true), equal_rows()])
        .collect()
}
