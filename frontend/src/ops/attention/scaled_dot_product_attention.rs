//! `scaled_dot_product_attention`
//!
//! Arguments:
//! - `dropout_p`: the probability with which a share becomes 0.
//! - `enable_gqa`: whether several heads of queries share one of keys and values.
//! - `value`: the values, `[.., keys, width]`.

use super::flash_attention::with_gradient;
use super::scores::{in_heads, scores, weights};
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, one, optional, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{require, wrong_shape, wrong_value};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};
use keyway_dispatcher::tensor::TensorRef;

/// The options of [`Tensor::scaled_dot_product_attention_with`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::AttentionOptions};
/// // The first query attends only to the first key, the second one to both equally.
/// let (query, key) = (Tensor::zeros((1, 2, 1))?, Tensor::zeros((1, 2, 1))?);
/// let value = Tensor::new([[[1.0f32], [3.0]]])?;
/// let causal = AttentionOptions { is_causal: true, ..AttentionOptions::default() };
/// let y = query.scaled_dot_product_attention_with(&key, &value, causal)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionOptions<'a> {
    /// The mask, broadcast to `[.., queries, keys]`. Bool: `true` where a query attends to a key. Float: added to the scores.
    pub attn_mask: Option<&'a Tensor>,
    /// The dropout probability of the weights; 0 in evaluation.
    pub dropout_p: f64,
    /// Whether query `i` attends only to the keys `0..=i`. Excludes `attn_mask`.
    pub is_causal: bool,
    /// The factor of the products; `1 / sqrt(e)` if `None`.
    pub scale: Option<f64>,
    /// Whether key and value may have fewer heads (dimension -3) than the query, a divisor of its number (grouped-query
    /// attention); each serves consecutive heads of the query.
    pub enable_gqa: bool,
}

impl Tensor {
    /// `softmax(self @ key^T / sqrt(e)) @ value` (A. Vaswani and others, "Attention is all you need",
    /// 2017), for a query `[.., queries, e]`, a key `[.., keys, e]` and a value `[.., keys, ev]`; the result is
    /// `[.., queries, ev]`. f16 and bf16 are computed in f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![0.0f32, 0.0, 0.0, 0.0], (2, 2))?;
    /// let value = Tensor::from_vec(vec![2.0f32, 4.0], (2, 1))?;
    /// assert_eq!(x.scaled_dot_product_attention(&x, &value)?.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Incompatible shapes; a dtype that is not a float.
    pub fn scaled_dot_product_attention(&self, key: &Tensor, value: &Tensor) -> Result<Tensor> {
        self.scaled_dot_product_attention_with(key, value, AttentionOptions::default())
    }

    /// [`Tensor::scaled_dot_product_attention`] with options: `softmax(self @ key^T * scale + mask) @ value`. The result of a
    /// query without keys is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::AttentionOptions};
    /// let x = Tensor::from_vec(vec![0.0f32, 0.0, 0.0, 0.0], (2, 2))?;
    /// let value = Tensor::from_vec(vec![2.0f32, 4.0], (2, 1))?;
    /// let options = AttentionOptions { is_causal: true, ..Default::default() };
    /// let y = x.scaled_dot_product_attention_with(&x, &value, options)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a mask that is neither bool nor float, or given with `is_causal`; a dropout probability outside 0..=1.
    pub fn scaled_dot_product_attention_with(
        &self,
        key: &Tensor,
        value: &Tensor,
        options: AttentionOptions<'_>,
    ) -> Result<Tensor> {
        DEF.run(&[
            self.into(),
            key.into(),
            value.into(),
            Arg::optional(options.attn_mask),
            Arg::Float(options.dropout_p),
            Arg::Bool(options.is_causal),
            Arg::optional(options.scale),
            Arg::Bool(options.enable_gqa),
        ])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let query = float_tensor(args, 0)?;
    let [key, value] = [args.tensor(1)?, args.tensor(2)?];
    let (causal, grouped) = (args.bool(5)?, args.bool(7)?);
    let least = if grouped { 3 } else { 2 };
    for (i, t) in [query, key, value].into_iter().enumerate() {
        if t.ndim() < least {
            return Err(wrong_shape(args, i, format!("of {least} or more dimensions"), t.sizes()));
        }
        require(args, i, t.dtype(), t.dtype() == query.dtype(), "of the query's dtype")?;
    }
    let last = |t: &TensorRef, back: usize| t.sizes()[t.ndim() - back];
    if last(key, 1) != last(query, 1) {
        let expected = format!("[.., keys, {}], as the query's last dimension is", last(query, 1));
        return Err(wrong_shape(args, 1, expected, key.sizes()));
    }
    if last(value, 2) != last(key, 2) {
        let expected = format!("[.., {}, ev], a row for each key", last(key, 2));
        return Err(wrong_shape(args, 2, expected, value.sizes()));
    }
    if !matches!(args.get(3), Arg::None) && causal {
        let expected = "false beside a mask, which can hold the triangle itself".to_string();
        return Err(wrong_value(args, 5, expected));
    }
    let mut leads = [key, value].map(|t| Dims::from_slice(&t.sizes()[..t.ndim() - 2]));
    if grouped {
        let heads = last(query, 3);
        for (i, lead) in leads.iter_mut().enumerate() {
            let own = lead.last_mut().filter(|own| **own > 0 && heads.is_multiple_of(**own));
            match own {
                Some(own) => *own = heads,
                None => {
                    let expected = format!("of a number of heads that divides the query's {heads}");
                    return Err(wrong_shape(args, i + 1, expected, args.tensor(i + 1)?.sizes()));
                }
            }
        }
    }
    let [key_lead, value_lead] = leads;
    let own_lead = &query.sizes()[..query.ndim() - 2];
    let joined = |i: usize, to: &[usize], lead: &[usize]| {
        broadcast(args.name(), to, lead).map_err(|error| {
            let hint = if grouped {
                ""
            } else {
                "; fewer heads, which serve several of the query's, go by `enable_gqa`"
            };
            let expected =
                format!("of leading dimensions that broadcast with the query's {own_lead:?}{hint}");
            args.tensor(i).map_or(error, |t| wrong_shape(args, i, expected, t.sizes()))
        })
    };
    let mut scores = joined(1, own_lead, &key_lead)?;
    let mut sizes = joined(2, &scores, &value_lead)?;
    scores.extend([last(query, 2), last(key, 2)]);
    sizes.extend([last(query, 2), last(value, 1)]);
    if let Some(mask) = args.optional_tensor(3)? {
        if broadcast(args.name(), mask.sizes(), &scores)? != scores {
            let expected = format!("of a shape that broadcasts to the scores' {scores:?}");
            return Err(wrong_shape(args, 3, expected, mask.sizes()));
        }
        let allowed = mask.dtype() == DType::BOOL || mask.dtype().is_float();
        require(args, 3, mask.dtype(), allowed, "bool or a float dtype")?;
    }
    if !(0.0..=1.0).contains(&args.float(4)?) {
        return Err(wrong_value(args, 4, "a probability from 0 to 1".into()));
    }
    if !matches!(args.get(6), Arg::None) {
        args.float(6)?;
    }
    Ok(Plan::one(query.dtype(), sizes, query.dtype(), Strides::Contiguous))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let [query, key, value] = [tensor(args, 0)?, tensor(args, 1)?, tensor(args, 2)?];
    let (mask, p, causal, grouped) = (optional(args, 3)?, args.float(4)?, args.bool(5)?, args.bool(7)?);
    let length = query.shape()[query.rank() - 1] as f64;
    let scale = if matches!(args.get(6), Arg::None) { 1.0 / length.sqrt() } else { args.float(6)? };
    let as_many = grouped || key.shape()[..key.rank() - 2] == query.shape()[..query.rank() - 2];
    if p == 0.0
        && as_many
        && let Some(made) = with_gradient([&query, &key, &value], mask.as_ref(), causal, scale)?
    {
        return Ok(made);
    }
    let heads = grouped.then(|| query.shape()[query.rank() - 3]);
    let [key, value] = [key, value].map(|t| in_heads(&widened(&t)?, heads));
    let (wide, key, value) = (widened(&query)?, key?, value?);
    let scores = scores(&wide.mul(scale)?, &key, mask.as_ref(), causal)?;
    let weights = weights(&scores, mask.is_some())?;
    let weights = if p > 0.0 { weights.dropout(p, true)? } else { weights };
    cast(weights.matmul(&value)?, query.dtype())
}

fn call(
    shapes: [&[usize]; 3],
    mask: SampleArg,
    causal: bool,
    scale: Option<f64>,
    gqa: bool,
) -> Vec<SampleArg> {
    let [query, key, value] = shapes.map(plain);
    let scale = scale.map_or(SampleArg::None, SampleArg::Float);
    vec![query, key, value, mask, SampleArg::Float(0.0), SampleArg::Bool(causal), scale, SampleArg::Bool(gqa)]
}

fn samples() -> Vec<Sample> {
    let none = || SampleArg::None;
    let some = |sizes: &[usize]| fixed(sizes, DType::BOOL, Fill::Values(vec![1.0, 0.0, 1.0, 0.0, 0.0, 0.0]));
    let batched: [&[usize]; 3] = [&[2, 2, 2, 3], &[2, 2, 3, 3], &[2, 2, 3, 2]];
    vec![
        sample(call([&[3, 4], &[2, 4], &[2, 3]], none(), false, None, false)),
        sample(call([&[3, 4], &[3, 4], &[3, 4]], none(), true, None, false)),
        sample(call([&[2, 3, 2], &[2, 4, 2], &[2, 4, 2]], none(), true, Some(0.3), false)),
        sample(call(batched, plain(&[2, 3]), false, None, false)),
        sample(call(batched, some(&[2, 3]), false, None, false)),
        sample(call(batched, some(&[2, 1, 2, 3]), false, Some(1.5), false)),
        sample(call([&[4, 2, 3], &[2, 3, 3], &[2, 3, 2]], none(), false, None, true)),
        sample(call([&[2, 1, 2, 1, 3], &[2, 1, 2, 2, 3], &[2, 1, 2, 2, 3]], none(), false, None, false)),
        sample(call([&[0, 2, 3], &[0, 2, 3], &[0, 2, 3]], none(), false, None, false)),
    ]
}

fn errors() -> Vec<ErrorSample> {
    let none = || SampleArg::None;
    let square: [&[usize]; 3] = [&[2, 3], &[2, 3], &[2, 3]];
    vec![
        error(call([&[3], &[2, 3], &[2, 3]], none(), false, None, false), "2 or more dimensions"),
        error(call([&[2, 3], &[2, 4], &[2, 3]], none(), false, None, false), "[.., keys, 3]"),
        error(call([&[2, 3], &[4, 3], &[2, 3]], none(), false, None, false), "a row for each key"),
        error(call(square, plain(&[2, 2]), true, None, false), "false beside a mask"),
        error(call(square, plain(&[4, 2, 2]), false, None, false), "broadcasts to the scores'"),
        error(call([&[3, 2, 3], &[2, 2, 3], &[2, 2, 3]], none(), false, None, true), "divides the query's 3"),
    ]
}

/// `scaled_dot_product_attention`
pub static DEF: OpDef = OpDef::new(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, \
     float dropout_p=0, bool is_causal=False, float? scale=None, bool enable_gqa=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST);
