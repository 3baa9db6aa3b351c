//! `flash_attention_backward`
//!
//! Arguments:
//! - `out`: the result of the forward call.
//! - `logsumexp`: the logarithm of the sum of exponentials of each query's scores.
//! - `value`: the values, `[.., keys, width]`.

use super::flash_attention::shapes;
use super::scores::{Given, check};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, tensor, wide, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{require, wrong_shape};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample, uniform};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let [made, each] = check(args, 1, 7)?;
    let [query, key, value] = [args.tensor(1)?, args.tensor(2)?, args.tensor(3)?];
    let dtype = query.dtype();
    for i in [0, 5] {
        let given = args.tensor(i)?;
        if given.sizes() != made.as_slice() {
            let expected = format!("of the result's shape {:?}", made.as_slice());
            return Err(wrong_shape(args, i, expected, given.sizes()));
        }
        require(args, i, given.dtype(), given.dtype() == dtype, "of the query's dtype")?;
    }
    let sums = args.tensor(6)?;
    if sums.sizes() != each.as_slice() {
        let expected = format!("of shape {:?}, a number for each query", each.as_slice());
        return Err(wrong_shape(args, 6, expected, sums.sizes()));
    }
    let expected = "f64 for a query of f64, else f32 or the query's";
    require(args, 6, sums.dtype(), sums.dtype() == dtype || sums.dtype() == wide(dtype), expected)?;
    let like = |of: &keyway_dispatcher::tensor::TensorRef| Dims::from_slice(of.sizes());
    Ok(Plan::one(dtype, like(query), dtype, Strides::Contiguous)
        .and(like(key), dtype, Strides::Contiguous)
        .and(like(value), dtype, Strides::Contiguous))
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 3]> {
    let given = Given::of(args, 1, 7)?;
    let dtype = tensor(args, 1)?.dtype();
    let (grad, out) = (widened(&tensor(args, 0)?)?, widened(&tensor(args, 5)?)?);
    let sums = widened(&tensor(args, 6)?)?.unsqueeze(-1)?;
    let weights = given.scores()?.sub(&sums)?.exp()?;
    let mean = grad.mul(&out)?.sum_keepdim(-1)?;
    let slopes = weights.mul(&given.of_weights(&grad)?.sub(&mean)?)?;
    let [of_query, of_key, of_value] = given.gradients(&grad, &weights, &slopes)?;
    Ok([cast(of_query, dtype)?, cast(of_key, dtype)?, cast(of_value, dtype)?])
}

/// A call, from the shapes of query, key and value, of gradient and output, and of the log-sum-exp.
fn call(
    [query, key, value]: [&[usize]; 3],
    [made, each]: [&[usize]; 2],
    mask: SampleArg,
    causal: bool,
    scale: f64,
) -> Vec<SampleArg> {
    let mut all = vec![plain(made), plain(query), plain(key), plain(value), mask, plain(made)];
    all.extend([uniform(each, 0.5, 3.0), SampleArg::Bool(causal), SampleArg::Float(scale)]);
    all
}

fn samples() -> Vec<Sample> {
    let scales = [0.5, 1.0, 0.3, 0.7, -0.5];
    let all = shapes().into_iter().zip(scales.into_iter().cycle());
    all.map(|((shapes, mask, causal), scale)| {
        let [query, _, value] = shapes;
        let each = &query[..query.len() - 1];
        let made: Vec<usize> = each.iter().chain(value.last()).copied().collect();
        // A log-sum-exp that is inconsistent with the scores would result in weights far from 1.
        let made = sample(call(shapes, [&made, each], mask, causal, scale));
        made.tolerance_factor(50.0, "the exponential of a score multiplies the score's error")
    })
    .collect()
}

/// `flash_attention_backward`: the gradients of query, key and value of `flash_attention` from its output and log-sum-exp. Used
/// where they are not differentiated again.
pub static DEF: OpDef = OpDef::new(
    "flash_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? attn_mask, \
     Tensor out, Tensor logsumexp, bool is_causal, float scale) -> (Tensor, Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Missing("`flash_attention` uses tensor ops where its gradients are differentiated again"),
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let none = || SampleArg::None;
    let square: [&[usize]; 3] = [&[2, 3], &[2, 3], &[2, 3]];
    vec![
        error(call([&[3], &[2, 3], &[2, 3]], [&[2, 3], &[2]], none(), false, 1.0), "2 or more dimensions"),
        error(call(square, [&[2, 4], &[2]], none(), false, 1.0), "of the result's shape [2, 3]"),
        error(call(square, [&[2, 3], &[3]], none(), false, 1.0), "a number for each query"),
        error(call(square, [&[2, 3], &[2]], plain(&[4, 2, 2]), false, 1.0), "broadcasts to the scores'"),
    ]
})
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
