//! `flash_attention`
//!
//! Arguments:
//! - `value`: the values, `[.., keys, width]`.

use super::flash_attention_backward;
use super::scores::{Given, check, leads_fit, logsumexp, weights};
use crate::autograd::{Backward, Grads, is_grad_enabled};
use crate::error::Result;
use crate::ops::composite::{cast, tensor, wide, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, plain, sample};
use crate::{DType, Layout, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};
use keyway_dispatcher::registry::serving::{Candidate, server};

/// Calls the fused op if the inputs require gradients and a kernel serves the op: its decomposition would save as many
/// tensors as the unfused ops.
pub(super) fn with_gradient(
    operands: [&Tensor; 3],
    mask: Option<&Tensor>,
    causal: bool,
    scale: f64,
) -> Result<Option<Tensor>> {
    let [query, key, value] = operands;
    let wanted = is_grad_enabled() && operands.iter().any(|t| t.requires_grad());
    // The fused backward op computes no gradient of a mask.
    let direct =
        operands.into_iter().chain(mask).all(|t| t.as_ref().is_strided() && t.device() == query.device())
            && !mask.is_some_and(Tensor::requires_grad);
    if !wanted || !direct || !leads_fit(query.shape(), key.shape(), value.shape()) {
        return Ok(None);
    }
    let served = server(DEF.entry()?, query.device(), Layout::STRIDED, query.dtype());
    if !matches!(served, Some(Candidate::Kernel(_))) {
        return Ok(None);
    }
    let mask = Arg::optional(mask);
    let args = [query.into(), key.into(), value.into(), mask, Arg::Bool(causal), Arg::Float(scale)];
    Ok(Some(DEF.run_pair(&args)?.0))
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let [made, each] = check(args, 0, 4)?;
    let dtype = args.tensor(0)?.dtype();
    Ok(Plan::one(dtype, made, dtype, Strides::Contiguous).and(each, wide(dtype), Strides::Contiguous))
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 2]> {
    let given = Given::of(args, 0, 4)?;
    let (scores, is_masked) = (given.scores()?, given.mask.is_some());
    let made = weights(&scores, is_masked)?.matmul(&given.value)?;
    Ok([cast(made, tensor(args, 0)?.dtype())?, logsumexp(&scores, is_masked)?])
}

/// Calls the fused backward op unless the gradients are differentiated again, the log-sum-exp output has a gradient, or the
/// mask requires one; else tensor ops. Softmax backward: `grad_score = weight * (grad_weight - sum(weight * grad_weight))` per
/// row.
fn formula(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let own = [b.input(0)?, b.input(1)?, b.input(2)?];
    let mask = b.optional_input(3)?;
    let grad = b.grad(0)?;
    if !is_grad_enabled() && !b.has_grad(1) && !g.needs(3) {
        let (out, sums) = (b.output(0)?, b.output(1)?);
        let [query, key, value] = &own;
        let mask = Arg::optional(mask.as_ref());
        let (query, key, value) = (query.into(), key.into(), value.into());
        let args = [grad.into(), query, key, value, mask, (&out).into(), (&sums).into(), b.arg(4), b.arg(5)];
        for (i, made) in flash_attention_backward::DEF.run_all(&args)?.into_iter().enumerate() {
            g.set(i, || Ok(made))?;
        }
        return Ok(());
    }
    let given = Given::new(own, mask, b.bool(4)?, b.float(5)?)?;
    let grad = widened(grad)?;
    let weights = weights(&given.scores()?, given.mask.is_some())?;
    let of_weights = given.of_weights(&grad)?;
    let mean = of_weights.mul(&weights)?.sum_keepdim(-1)?;
    let through = cast(b.grad(1)?.unsqueeze(-1)?, mean.dtype())?;
    let slopes = weights.mul(&of_weights.sub(&mean)?.add(&through)?)?;
    for (i, made) in given.gradients(&grad, &weights, &slopes)?.into_iter().enumerate() {
        g.set(i, || Ok(made))?;
    }
    g.set(3, || Ok(slopes))
}

/// The arguments of a call, from the shapes of query, key and value.
fn call(shapes: [&[usize]; 3], mask: SampleArg, causal: bool, scale: f64) -> Vec<SampleArg> {
    let [query, key, value] = shapes.map(plain);
    vec![query, key, value, mask, SampleArg::Bool(causal), SampleArg::Float(scale)]
}

/// Sample shapes, masks and causal flags of both fused ops.
pub(super) fn shapes() -> Vec<([&'static [usize]; 3], SampleArg, bool)> {
    let none = || SampleArg::None;
    let some = |sizes: &[usize]| fixed(sizes, DType::BOOL, Fill::Values(vec![1.0, 0.0, 1.0, 0.0, 0.0, 0.0]));
    let batched: [&[usize]; 3] = [&[2, 2, 2, 3], &[2, 2, 3, 3], &[2, 2, 3, 2]];
    vec![
        ([&[3, 4], &[2, 4], &[2, 3]], none(), false),
        ([&[3, 4], &[3, 4], &[3, 4]], none(), true),
        ([&[2, 3, 2], &[2, 4, 2], &[2, 4, 2]], none(), true),
        ([&[1, 5, 2], &[1, 3, 2], &[1, 3, 2]], none(), true),
        (batched, plain(&[2, 3]), false),
        (batched, some(&[2, 3]), false),
        (batched, some(&[2, 1, 2, 3]), false),
        ([&[4, 2, 3], &[2, 3, 3], &[2, 3, 2]], none(), false),
        ([&[2, 6, 2, 3], &[2, 2, 3, 3], &[2, 2, 3, 3]], none(), true),
        ([&[0, 2, 3], &[0, 2, 3], &[0, 2, 3]], none(), false),
        ([&[2, 3], &[0, 3], &[0, 2]], none(), false),
        ([&[40, 5], &[70, 5], &[70, 3]], none(), false),
        ([&[10, 3], &[7, 3], &[7, 6]], none(), true),
    ]
}

fn samples() -> Vec<Sample> {
    let scales = [0.5, 1.0, 0.3, 0.7, -0.5];
    let all = shapes().into_iter().zip(scales.into_iter().cycle());
    all.map(|((shapes, mask, causal), scale)| sample(call(shapes, mask, causal, scale))).collect()
}

fn errors() -> Vec<ErrorSample> {
    let none = || SampleArg::None;
    let square: [&[usize]; 3] = [&[2, 3], &[2, 3], &[2, 3]];
    vec![
        error(call([&[3], &[2, 3], &[2, 3]], none(), false, 1.0), "2 or more dimensions"),
        error(call([&[2, 3], &[2, 4], &[2, 3]], none(), false, 1.0), "[.., keys, 3]"),
        error(call([&[2, 3], &[4, 3], &[2, 3]], none(), false, 1.0), "a row for each key"),
        error(call([&[3, 2, 3], &[2, 2, 3], &[2, 2, 3]], none(), false, 1.0), "divides its own"),
        error(call(square, plain(&[2, 2]), true, 1.0), "false beside a mask"),
        error(call(square, plain(&[4, 2, 2]), false, 1.0), "broadcasts to the scores'"),
    ]
}

/// `flash_attention`: `scaled_dot_product_attention` without dropout, and the log-sum-exp of the scores of each query (f32 for
/// f16 and bf16), from which the backward op recomputes the scores (T. Dao and others, "FlashAttention", 2022); 0 for a query
/// without keys. The leading dimensions of key and value equal the query's, except that their number of heads may be a divisor
/// of its own. With `is_causal` it is unspecified whether a value that is not finite affects queries before its key.
pub static DEF: OpDef = OpDef::new(
    "flash_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, \
     float scale) -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b1111, saves_outputs: 0b11, formula },
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
