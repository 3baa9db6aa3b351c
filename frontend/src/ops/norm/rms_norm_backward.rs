//! `rms_norm_backward`

use super::layer_norm::{check, leading};
use super::rms_norm::{epsilon, optional_float, reciprocal_root};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, in_format_of, optional, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{keeping, wrong_shape};
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor as filled, uniform};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = args.tensor(1)?;
    let lead = leading(args, 1, 2)?;
    let (grad, shape) = (args.tensor(0)?.sizes(), &x.sizes()[lead..]);
    if grad != x.sizes() {
        return Err(wrong_shape(args, 0, format!("of the input's shape {:?}", x.sizes()), grad));
    }
    check(args, 3, shape)?;
    optional_float(args, 4)?;
    let mut plan = keeping(x, x.dtype(), Dims::from_slice(x.sizes()), x.dtype()).and(
        Dims::from_slice(shape),
        x.dtype(),
        Strides::Contiguous,
    );
    plan.cast = 0b1011;
    Ok(plan)
}

/// The gradients of input and weight for f32 and f64, that of the weight not yet summed over samples: with
/// `r = 1 / sqrt(mean(x^2) + eps)`, `h = x * r` and `g = grad * weight` they are `r * (g - h * mean(g * h))` and `grad * h`.
pub(super) fn gradients(
    x: &Tensor,
    grad: &Tensor,
    weight: Option<&Tensor>,
    lead: usize,
    eps: f64,
) -> Result<[Tensor; 2]> {
    let dims: Vec<i64> = (lead..x.rank()).map(|d| d as i64).collect();
    let root = reciprocal_root(x, &dims, eps)?;
    let hat = x.mul(&root)?;
    let inner = if let Some(weight) = weight { grad.mul(weight)? } else { grad.clone() };
    let along = hat.mul(&inner.mul(&hat)?.mean_keepdim(&dims)?)?;
    Ok([inner.sub(&along)?.mul(&root)?, grad.mul(&hat)?])
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 2]> {
    let own = tensor(args, 1)?;
    let x = widened(&own)?;
    let in_x = |t: Tensor| cast(t, x.dtype());
    let (grad, weight) = (in_x(tensor(args, 0)?)?, optional(args, 3)?.map(in_x).transpose()?);
    let lead = x.rank() - args.ints(2)?.len();
    let eps = epsilon(optional_float(args, 4)?, x.dtype());
    let [of_x, of_weight] = gradients(&x, &grad, weight.as_ref(), lead, eps)?;
    // The weight is shared by all samples.
    let leading: Vec<i64> = (0..lead as i64).collect();
    let of_weight = if lead == 0 { of_weight } else { of_weight.sum(&leading)? };
    Ok([in_format_of(&own, cast(of_x, own.dtype())?)?, cast(of_weight, own.dtype())?.contiguous()?])
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], shape: &[usize], weight: bool, eps: Option<f64>| {
        let ints = SampleArg::Ints(shape.iter().map(|&s| s as i64).collect());
        let weight = if weight { uniform(shape, 0.5, 1.5) } else { SampleArg::None };
        let eps = eps.map_or(SampleArg::None, SampleArg::Float);
        sample([plain(sizes), plain(sizes), ints, weight, eps])
    };
    // Equal values, whose gradient vanishes but for `eps`.
    let equal = |value: f64| {
        let [grad, x] = [0.75, value].map(|value| filled(&[3, 8], Fill::Values(vec![value])));
        Sample {
            smooth: false,
            ..sample([grad, x, SampleArg::Ints(vec![8]), SampleArg::None, SampleArg::Float(0.1)])
        }
    };
    vec![
        call(&[5], &[5], true, Some(0.1)),
        call(&[3, 4], &[4], true, Some(0.1)),
        call(&[3, 4], &[4], false, None),
        call(&[2, 3, 4], &[3, 4], true, None),
        call(&[2, 1, 2, 4], &[4], false, Some(1e-5)),
        call(&[7, 33], &[33], true, Some(0.1)),
        call(&[0, 4], &[4], true, Some(0.1)),
        equal(0.0),
        equal(2.5),
    ]
}

/// `rms_norm_backward`: the gradients of input and weight in one pass. Used where they are not differentiated again.
pub static DEF: OpDef = OpDef::new(
    "rms_norm_backward(Tensor grad, Tensor self, int[] normalized_shape, Tensor? weight=None, \
     float? eps=None) -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Missing("`rms_norm` uses tensor ops where its gradients are differentiated again"),
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], shape, weight| {
        [plain(grad), plain(&[3, 4]), SampleArg::Ints(shape), weight, SampleArg::None]
    };
    vec![
        error(call(&[3, 4], vec![3], SampleArg::None), "normalized shape"),
        error(call(&[4], vec![4], SampleArg::None), "of the input's shape [3, 4]"),
        error(call(&[3, 4], vec![4], plain(&[3])), "of the normalized shape [4]"),
    ]
})
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
