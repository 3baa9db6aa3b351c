//! `channel_sums`

use super::channels::{check_channels, spread};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, tensor, wide, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::wrong_shape;
use crate::ops::sample::{error, plain, sample, uniform};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = float_tensor(args, 1)?;
    let &[_, channels, ..] = x.sizes() else {
        let expected = "of 2 or more dimensions, [batch, channels, ..]".to_string();
        return Err(wrong_shape(args, 1, expected, x.sizes()));
    };
    if args.tensor(0)?.sizes() != x.sizes() {
        let expected = format!("of the input's shape {:?}", x.sizes());
        return Err(wrong_shape(args, 0, expected, args.tensor(0)?.sizes()));
    }
    check_channels(args, 2, channels)?;
    let wide = wide(x.dtype());
    let channels = Dims::from_slice(&[channels]);
    let mut plan = Plan::one(x.dtype(), channels.clone(), wide, Strides::Contiguous).and(
        channels,
        wide,
        Strides::Contiguous,
    );
    plan.cast = 0b11;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 2]> {
    let (grad, x) = (widened(&tensor(args, 0)?)?, widened(&tensor(args, 1)?)?);
    let mean = spread(&cast(tensor(args, 2)?, x.dtype())?, x.rank())?;
    let others: Vec<i64> = (0..x.rank() as i64).filter(|&d| d != 1).collect();
    Ok([grad.mul(&x.sub(&mean)?)?.sum(&others)?, grad.sum(&others)?])
}

/// `channel_sums`: the sums over each channel of `grad * (self - mean)` and of `grad`, in f32 for f16 and bf16, from which the
/// gradients of weight and bias of a norm with given statistics are computed.
pub static DEF: OpDef = OpDef::new(
    "channel_sums(Tensor grad, Tensor self, Tensor mean) -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Missing("`frozen_norm` uses tensor ops where its gradients are differentiated again"),
    || {
        let shapes: [&[usize]; 6] =
            [&[4, 3], &[2, 3, 2], &[2, 2, 5, 7], &[2, 9, 3, 5], &[2, 1, 2, 1, 2], &[0, 3, 2]];
        let call = |sizes: &[usize]| sample([plain(sizes), plain(sizes), uniform(&sizes[1..2], -0.5, 0.5)]);
        shapes.into_iter().map(call).collect()
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    vec![
        error([plain(&[3]), plain(&[3]), plain(&[3])], "2 or more dimensions"),
        error([plain(&[2, 3]), plain(&[2, 3, 4]), plain(&[3])], "of the input's shape [2, 3, 4]"),
        error([plain(&[2, 3]), plain(&[2, 3]), plain(&[1, 3])], "of shape [3]"),
    ]
})
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
