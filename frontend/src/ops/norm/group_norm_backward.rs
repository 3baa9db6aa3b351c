//! `group_norm_backward`

use super::channels::{check_channels, spread};
use super::{channel_norm_backward, channel_sums};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, centred, float_tensor, optional, tensor, wide, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, no_result};
use crate::ops::rules::{kept, wrong_shape, wrong_value};
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor as filled, uniform};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};
use keyway_dispatcher::tensor::TensorRef;

/// Checks that argument `i` is an input `[batch, channels, ..]` whose channels are divisible by the number of groups in
/// argument `groups`.
pub(super) fn check_groups<'a>(args: &Args<'a>, i: usize, groups: usize) -> RuleResult<&'a TensorRef> {
    let x = float_tensor(args, i)?;
    let &[_, channels, ..] = x.sizes() else {
        let expected = "of 2 or more dimensions, [batch, channels, ..]".to_string();
        return Err(wrong_shape(args, i, expected, x.sizes()));
    };
    let count = args.int(groups)?;
    if count <= 0 || !channels.is_multiple_of(count as usize) {
        return Err(wrong_value(args, groups, format!("a divisor of the {channels} channels")));
    }
    Ok(x)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = check_groups(args, 1, 2)?;
    if args.tensor(0)?.sizes() != x.sizes() {
        let expected = format!("of the input's shape {:?}", x.sizes());
        return Err(wrong_shape(args, 0, expected, args.tensor(0)?.sizes()));
    }
    check_channels(args, 3, x.sizes()[1])?;
    args.float(4)?;
    let wide = wide(x.dtype());
    let channels = Dims::from_slice(&x.sizes()[1..2]);
    let mut plan = Plan::one(x.dtype(), Dims::from_slice(x.sizes()), x.dtype(), kept(x, x.sizes()))
        .and(channels.clone(), wide, Strides::Contiguous)
        .and(channels, wide, Strides::Contiguous);
    plan.cast = 0b1011;
    Ok(plan)
}

/// The gradient times the weight per channel.
fn weighted(grad: &Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    match weight {
        Some(weight) => grad.mul(&spread(&cast(weight.clone(), grad.dtype())?, grad.rank())?),
        None => Ok(grad.clone()),
    }
}

/// The gradients of input, weight and bias by tensor ops, all in one dtype. The channel dimension is split, so that no copy is
/// needed in either memory format. With `h = (x - mean) * rstd` and `c = g - mean(g)` for `g = grad * weight`, the input's is
/// `rstd * (c - h * mean(c * h))`, means over each group (Wu and He, "Group normalization", 2018, by the chain rule).
pub(super) fn gradients(
    x: &Tensor,
    grad: &Tensor,
    groups: usize,
    weight: Option<&Tensor>,
    eps: f64,
) -> Result<[Tensor; 3]> {
    let channels = x.shape()[1];
    let split = |t: &Tensor| t.unflatten(1, [groups as i64, (channels / groups) as i64]);
    let inner = weighted(grad, weight)?;
    let (parts, inner) = (split(x)?, split(&inner)?);
    let dims: Vec<i64> = (2..parts.rank() as i64).collect();
    let apart = centred(&parts, &dims)?;
    let rstd = apart.square()?.mean_keepdim(&dims)?.add(eps)?.rsqrt()?;
    let hat = apart.mul(&rstd)?;
    let inner = centred(&inner, &dims)?;
    let along = hat.mul(&inner.mul(&hat)?.mean_keepdim(&dims)?)?;
    let of_x = inner.sub(&along)?.mul(&rstd)?.flatten(1, 2)?;
    let others: Vec<i64> = (0..x.rank() as i64).filter(|&d| d != 1).collect();
    Ok([of_x, grad.mul(&hat.flatten(1, 2)?)?.sum(&others)?, grad.sum(&others)?])
}

/// [`gradients`] of a contiguous input, whose groups are rows: calls the backward op of a row norm, and sums over the rows.
fn by_rows(
    x: &Tensor,
    grad: &Tensor,
    groups: usize,
    weight: Option<&Tensor>,
    eps: f64,
) -> Result<[Tensor; 3]> {
    let [batch, channels] = [x.shape()[0], x.shape()[1]];
    let inner: usize = x.shape()[2..].iter().product();
    let rows = |t: &Tensor| t.reshape_as_sizes(&[batch, groups, channels / groups * inner]);
    let x = rows(x)?;
    let apart = x.sub(&x.mean_keepdim(2)?)?;
    let (mean, var) = (apart.mean_keepdim(2)?, apart.var_with(2, 0.0, true)?);
    let scaled = weighted(grad, weight)?;
    let scaled = rows(&scaled)?;
    let by_row = [Arg::None, Arg::Bool(true), Arg::Float(eps)];
    let tensors = [&scaled, &apart, &mean, &var].map(Arg::from);
    let made = channel_norm_backward::DEF.run_all(&[&tensors[..], &by_row].concat())?;
    let of_x = made.into_iter().next().ok_or_else(|| no_result(&channel_norm_backward::DEF))?;
    // One value per channel of each sample.
    let each = |t: &Tensor| {
        let each = t.expand([batch as i64, groups as i64, (channels / groups) as i64])?;
        each.reshape_as_sizes(&[batch, channels])
    };
    let channel = |t: &Tensor| t.reshape_as_sizes(&[1, batch * channels, inner]);
    let (grads, apart, mean) = (channel(grad)?, channel(&apart)?, each(&mean)?.flatten_all()?);
    let made = channel_sums::DEF.run_all(&[(&grads).into(), (&apart).into(), (&mean).into()])?;
    let [along, whole] = &made[..] else { return Err(no_result(&channel_sums::DEF)) };
    let rstd = each(&var.add(eps)?.rsqrt()?)?;
    let of_weight = along.reshape_as_sizes(&[batch, channels])?.mul(&rstd)?.sum(0)?;
    Ok([of_x, of_weight, whole.reshape_as_sizes(&[batch, channels])?.sum(0)?])
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 3]> {
    let own = tensor(args, 1)?;
    let (grad, x) = (widened(&tensor(args, 0)?)?, widened(&own)?);
    let (groups, weight, eps) = (args.int(2)? as usize, optional(args, 3)?, args.float(4)?);
    let [of_x, of_weight, of_bias] = if own.as_ref().is_in_channels_last_order() || x.elem_count() == 0 {
        gradients(&x, &grad, groups, weight.as_ref(), eps)?
    } else {
        by_rows(&x, &grad, groups, weight.as_ref(), eps)?
    };
    let of_x = cast(of_x.reshape_as_sizes(own.shape())?, own.dtype())?;
    Ok([of_x, of_weight, of_bias])
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], groups, affine: bool| {
        let weight = if affine { uniform(&sizes[1..2], 0.5, 1.5) } else { SampleArg::None };
        sample([plain(sizes), plain(sizes), SampleArg::Int(groups), weight, SampleArg::Float(0.1)])
    };
    // Groups of equal values, and equal gradients.
    let equal = |grad: &[f64], x: &[f64]| {
        let [grad, x] = [grad, x].map(|values| filled(&[2, 4, 5], Fill::Values(values.to_vec())));
        let rest = [SampleArg::Int(2), uniform(&[4], 0.5, 1.5), SampleArg::Float(1e-5)];
        Sample { smooth: false, ..sample([grad, x].into_iter().chain(rest)) }
    };
    vec![
        call(&[2, 4], 2, true),
        call(&[2, 4, 3], 2, true),
        call(&[2, 4, 3], 4, false),
        call(&[2, 4, 3], 1, true),
        call(&[2, 6, 5, 7], 3, true),
        call(&[2, 2, 2, 1, 2], 1, false),
        call(&[2, 9, 3, 5], 3, true),
        call(&[0, 4, 2], 2, true),
        equal(&[1.0, -2.0, 0.5], &[1234.567]),
        equal(&[3.0], &[10001.0, 9998.5, 10000.25, 9999.0, 10003.0]),
    ]
}

/// `group_norm_backward`: the gradients of input, weight and bias of `group_norm`; those of weight and bias in f32 for f16 and
/// bf16. Used where they are not differentiated again.
pub static DEF: OpDef = OpDef::new(
    "group_norm_backward(Tensor grad, Tensor self, int num_groups, Tensor? weight=None, \
     float eps=1e-05) -> (Tensor, Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Missing("`group_norm` uses tensor ops where its gradients are differentiated again"),
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], x: &[usize], groups, weight| {
        [plain(grad), plain(x), SampleArg::Int(groups), weight, SampleArg::Float(0.1)]
    };
    vec![
        error(call(&[4], &[4], 2, SampleArg::None), "2 or more dimensions"),
        error(call(&[2, 4], &[2, 4], 3, SampleArg::None), "a divisor of the 4 channels"),
        error(call(&[2, 4], &[2, 4, 3], 2, SampleArg::None), "of the input's shape [2, 4, 3]"),
        error(call(&[2, 4], &[2, 4], 2, plain(&[2])), "of shape [4]"),
    ]
})
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
