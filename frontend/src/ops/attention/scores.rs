//! Parts of the attention ops: scores, softmax weights, heads that share a key, and the checks of the fused ops.

use crate::error::Result;
use crate::ops::composite::{cast, optional, tensor, widened};
use crate::ops::rules::{require, wrong_shape, wrong_value};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args};
use keyway_dispatcher::tensor::TensorRef;

/// A key or value with its heads repeated to the query's number of heads, if it is given.
pub(super) fn in_heads(t: &Tensor, heads: Option<usize>) -> Result<Tensor> {
    match heads {
        Some(heads) => repeated(t, heads / t.shape()[t.rank() - 3].max(1)),
        None => Ok(t.clone()),
    }
}

/// Repeats each head (dimension -3) `times` times consecutively.
fn repeated(t: &Tensor, times: usize) -> Result<Tensor> {
    if times == 1 {
        return Ok(t.clone());
    }
    let mut sizes = Dims::from_slice(t.shape());
    let head = t.rank() - 3;
    sizes.insert(head + 1, times);
    let spread = t.unsqueeze(head + 1)?.expand(&sizes)?;
    sizes.remove(head + 1);
    sizes[head] *= times;
    spread.reshape_as_sizes(&sizes)
}

/// Sums over the heads that share a head of `like`: the adjoint of [`repeated`].
fn shared(t: Tensor, like: &Tensor) -> Result<Tensor> {
    if t.shape() == like.shape() {
        return Ok(t);
    }
    let head = t.rank() - 3;
    let own = like.shape()[head];
    let mut sizes = Dims::from_slice(t.shape());
    sizes[head] = sizes[head].checked_div(own).unwrap_or(0);
    sizes.insert(head, own);
    t.reshape_as_sizes(&sizes)?.sum([head as i64 + 1])
}

/// `query @ key^T`, with minus infinity at masked positions; `query` is already multiplied by the scale.
pub(super) fn scores(query: &Tensor, key: &Tensor, mask: Option<&Tensor>, causal: bool) -> Result<Tensor> {
    let scores = query.matmul(&key.transpose(-2, -1)?)?;
    match mask {
        Some(mask) if mask.dtype() == DType::BOOL => {
            scores.masked_fill(&mask.logical_not()?, f64::NEG_INFINITY)
        }
        Some(mask) => scores.add(&cast(mask.clone(), scores.dtype())?),
        None if causal => {
            let [queries, keys] = [2, 1].map(|back| scores.shape()[scores.rank() - back]);
            let later = Tensor::ones_with([queries, keys], (DType::BOOL, scores.device()))?.triu_with(1)?;
            scores.masked_fill(&later, f64::NEG_INFINITY)
        }
        None => Ok(scores),
    }
}

/// Whether all scores of a query are minus infinity.
fn blind(scores: &Tensor) -> Result<Tensor> {
    scores.detach().eq(f64::NEG_INFINITY)?.all_keepdim(-1)
}

/// The softmax of scores. A fully masked row has weights and gradients of zero: it is replaced before the softmax, whose
/// derivative would be NaN.
pub(super) fn weights(scores: &Tensor, is_masked: bool) -> Result<Tensor> {
    if !is_masked {
        return scores.softmax(-1);
    }
    let blind = blind(scores)?;
    scores.masked_fill(&blind, 0)?.softmax(-1)?.masked_fill(&blind, 0)
}

/// The log-sum-exp of each row of scores; 0 for a row that is fully masked or has no keys.
pub(super) fn logsumexp(scores: &Tensor, is_masked: bool) -> Result<Tensor> {
    let made = scores.logsumexp(-1)?;
    match is_masked || scores.shape().last() == Some(&0) {
        true => made.masked_fill(&blind(scores)?.squeeze(-1)?, 0),
        false => Ok(made),
    }
}

/// The inputs of a fused op, where argument `first` is the query: query, key and value widened to f32 and with repeated heads;
/// and the mask, causal flag and scale.
pub(super) struct Given {
    pub query: Tensor,
    pub key: Tensor,
    pub value: Tensor,
    /// Query, key and value as passed by the caller.
    own: [Tensor; 3],
    pub mask: Option<Tensor>,
    pub causal: bool,
    pub scale: f64,
}

impl Given {
    /// Reads a call whose arguments from `at` on are the causal flag and the scale.
    pub(super) fn of(args: &Args<'_>, first: usize, at: usize) -> Result<Given> {
        let own = [tensor(args, first)?, tensor(args, first + 1)?, tensor(args, first + 2)?];
        Given::new(own, optional(args, first + 3)?, args.bool(at)?, args.float(at + 1)?)
    }

    pub(super) fn new(own: [Tensor; 3], mask: Option<Tensor>, causal: bool, scale: f64) -> Result<Given> {
        let heads = own[0].rank().checked_sub(3).map(|d| own[0].shape()[d]);
        let query = widened(&own[0])?.mul(scale)?;
        let [key, value] = [1, 2].map(|i| in_heads(&widened(&own[i])?, heads));
        Ok(Given { query, key: key?, value: value?, own, mask, causal, scale })
    }

    /// The scores of these inputs.
    pub(super) fn scores(&self) -> Result<Tensor> {
        scores(&self.query, &self.key, self.mask.as_ref(), self.causal)
    }

    /// The gradients of query, key and value from the weights and the gradients of the scores.
    pub(super) fn gradients(&self, grad: &Tensor, weights: &Tensor, slopes: &Tensor) -> Result<[Tensor; 3]> {
        let transposed = |t: &Tensor| t.transpose(-2, -1);
        let of_query = slopes.matmul(&self.key)?.mul(self.scale)?;
        let of_key = transposed(slopes)?.matmul(&self.query)?;
        let of_value = transposed(weights)?.matmul(grad)?;
        Ok([of_query, shared(of_key, &self.own[1])?, shared(of_value, &self.own[2])?])
    }

    /// The gradient of the weights.
    pub(super) fn of_weights(&self, grad: &Tensor) -> Result<Tensor> {
        grad.matmul(&self.value.transpose(-2, -1)?)
    }
}

/// Checks query, key, value and mask of a fused op, where argument `first` is the query and argument `at` the causal flag, and
/// returns the sizes of the output and of the log-sum-exp.
pub(super) fn check(args: &Args<'_>, first: usize, at: usize) -> RuleResult<[Dims; 2]> {
    let [query, key, value] = [args.tensor(first)?, args.tensor(first + 1)?, args.tensor(first + 2)?];
    for (i, t) in [query, key, value].into_iter().enumerate() {
        if t.ndim() < 2 {
            return Err(wrong_shape(args, first + i, "of 2 or more dimensions".into(), t.sizes()));
        }
        require(args, first + i, t.dtype(), t.dtype() == query.dtype(), "of the query's dtype")?;
    }
    require(args, first, query.dtype(), query.dtype().is_float(), "a float dtype")?;
    let last = |t: &TensorRef, back: usize| t.sizes()[t.ndim() - back];
    if last(key, 1) != last(query, 1) {
        let expected = format!("[.., keys, {}], as the query's last dimension is", last(query, 1));
        return Err(wrong_shape(args, first + 1, expected, key.sizes()));
    }
    if last(value, 2) != last(key, 2) {
        let expected = format!("[.., {}, ev], a row for each key", last(key, 2));
        return Err(wrong_shape(args, first + 2, expected, value.sizes()));
    }
    if !leads_fit(query.sizes(), key.sizes(), value.sizes()) {
        let expected = format!(
            "with key and value alike in all but the last dimension, and as the query {:?} before the last two but for a \
             number of heads that divides its own",
            query.sizes()
        );
        return Err(wrong_shape(args, first + 1, expected, key.sizes()));
    }
    let each = Dims::from_slice(&query.sizes()[..query.ndim() - 1]);
    let (mut made, mut scores) = (each.clone(), each.clone());
    made.push(last(value, 1));
    scores.push(last(key, 2));
    if let Some(mask) = args.optional_tensor(first + 3)? {
        if broadcast(args.name(), mask.sizes(), &scores)? != scores {
            let expected = format!("of a shape that broadcasts to the scores' {scores:?}");
            return Err(wrong_shape(args, first + 3, expected, mask.sizes()));
        }
        let allowed = mask.dtype() == DType::BOOL || mask.dtype().is_float();
        require(args, first + 3, mask.dtype(), allowed, "bool or a float dtype")?;
    }
    if !matches!(args.get(first + 3), Arg::None) && args.bool(at)? {
        let expected = "false beside a mask, which can hold the triangle itself".to_string();
        return Err(wrong_value(args, at, expected));
    }
    args.float(at + 1)?;
    Ok([made, each])
}

/// Whether the fused ops accept these sizes: equal leading dimensions, except that the number of heads of key and value may
/// divide the query's.
pub(super) fn leads_fit(query: &[usize], key: &[usize], value: &[usize]) -> bool {
    let lead = |sizes: &[usize]| Dims::from_slice(&sizes[..sizes.len() - 2]);
    let (query, mut key, value) = (lead(query), lead(key), lead(value));
    if key != value {
        return false;
    }
    if let (Some(heads), Some(own)) = (query.last(), key.last_mut())
        && *own > 0
        && heads.is_multiple_of(*own)
    {
        *own = *heads;
    }
    query == key
}
