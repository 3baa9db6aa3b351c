//! `channel_norm_backward`

use super::channel_norm::{dims, gradients};
use super::channels::check_channels;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, optional, tensor, wide, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{require, wrong_shape};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample, uniform};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = float_tensor(args, 1)?;
    let &[batch, channels, ref rest @ ..] = x.sizes() else {
        let expected = "of 2 or more dimensions, [batch, channels, ..]".to_string();
        return Err(wrong_shape(args, 1, expected, x.sizes()));
    };
    if args.tensor(0)?.sizes() != x.sizes() {
        let expected = format!("of the input's shape {:?}", x.sizes());
        return Err(wrong_shape(args, 0, expected, args.tensor(0)?.sizes()));
    }
    let mut kept = Dims::from_slice(&[if args.bool(5)? { batch } else { 1 }, channels]);
    kept.extend(rest.iter().map(|_| 1));
    let wide = wide(x.dtype());
    for i in [2, 3] {
        let given = args.tensor(i)?;
        require(args, i, given.dtype(), given.dtype().is_float(), "a float dtype, as the statistics have")?;
        if given.sizes() != kept.as_slice() {
            return Err(wrong_shape(args, i, format!("of shape {:?}", kept.as_slice()), given.sizes()));
        }
    }
    check_channels(args, 4, channels)?;
    args.float(6)?;
    let channels = Dims::from_slice(&[channels]);
    let mut plan = Plan::one(x.dtype(), Dims::from_slice(x.sizes()), x.dtype(), Strides::Like(1))
        .and(channels.clone(), wide, Strides::Contiguous)
        .and(channels, wide, Strides::Contiguous);
    plan.cast = 0b1_0011;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 3]> {
    let own = tensor(args, 1)?;
    let per_sample = args.bool(5)?;
    // As in `channel_norm`.
    let single = per_sample && own.rank() == 2;
    let in_x = |i: usize| {
        let t = widened(&tensor(args, i)?)?;
        if single { t.unsqueeze(-1) } else { Ok(t) }
    };
    let (grad, x, mean, var) = (in_x(0)?, in_x(1)?, in_x(2)?, in_x(3)?);
    let (weight, dims) = (optional(args, 4)?, dims(x.rank(), per_sample));
    let [of_x, of_weight, of_bias] =
        gradients(&x, &grad, [&mean, &var], weight.as_ref(), &dims, args.float(6)?)?;
    let of_x = if single { of_x.squeeze(-1)? } else { of_x };
    Ok([cast(of_x, own.dtype())?, of_weight, of_bias])
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], per_sample: bool, affine: bool| {
        let mut kept = vec![1; sizes.len()];
        (kept[0], kept[1]) = (if per_sample { sizes[0] } else { 1 }, sizes[1]);
        let weight = if affine { uniform(&sizes[1..2], 0.5, 1.5) } else { SampleArg::None };
        let statistics = [uniform(&kept, -0.5, 0.5), uniform(&kept, 0.5, 2.0)];
        let options = [weight, SampleArg::Bool(per_sample), SampleArg::Float(0.1)];
        sample([plain(sizes), plain(sizes)].into_iter().chain(statistics).chain(options))
    };
    vec![
        call(&[4, 3], false, true),
        call(&[2, 3, 2], false, false),
        call(&[2, 3, 2], true, true),
        call(&[2, 2, 5, 7], false, true),
        call(&[2, 2, 5, 7], true, false),
        call(&[2, 9, 3, 5], false, true),
        call(&[2, 1, 2, 1, 2], false, true),
        call(&[4, 3], true, true),
    ]
}

/// `channel_norm_backward`: the gradients of input, weight and bias of `channel_norm` from its mean and variance; those of
/// weight and bias in f32 for f16 and bf16. Used where they are not differentiated again.
pub static DEF: OpDef = OpDef::new(
    "channel_norm_backward(Tensor grad, Tensor self, Tensor mean, Tensor var, Tensor? weight, \
     bool per_sample, float eps) -> (Tensor, Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Missing("`channel_norm` uses tensor ops where its gradients are differentiated again"),
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], x: &[usize], mean: &[usize], weight| {
        let tensors = [plain(grad), plain(x), plain(mean), uniform(&[1, 3, 1], 0.5, 2.0)];
        tensors.into_iter().chain([weight, SampleArg::Bool(false), SampleArg::Float(0.1)])
    };
    let (x, kept) = (&[2, 3, 4], &[1, 3, 1]);
    vec![
        error(call(&[3], &[3], kept, SampleArg::None), "2 or more dimensions"),
        error(call(&[2, 3], x, kept, SampleArg::None), "of the input's shape [2, 3, 4]"),
        error(call(x, x, &[3], SampleArg::None), "of shape [1, 3, 1]"),
        error(call(x, x, kept, plain(&[2])), "of shape [3]"),
    ]
})
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
