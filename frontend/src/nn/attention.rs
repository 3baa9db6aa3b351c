//! Multi-head attention.

use super::parameter::{Parameter, TrainingMode};
use super::{AttentionOptions, KvCache, Linear, Module, ModuleError, ModuleVisitor, init};
use crate::error::called;
use crate::rng::{self, Generator};
use crate::{DType, Result, Tensor};

/// Multi-head attention with learned projections (A. Vaswani and others, "Attention is all you need", 2017) of inputs
/// `[batch, length, width]`. Initial values and parameter names are PyTorch's.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Module, MultiheadAttention}};
/// let attention = MultiheadAttention::new(8, 2)?;
/// let x = Tensor::from_vec(vec![0.5f32; 48], (2, 3, 8))?;
/// assert_eq!(attention.forward(&x)?.shape(), [2, 3, 8]);
/// assert_eq!(attention.state_dict().keys().next().unwrap(), "in_proj_bias");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct MultiheadAttention {
    heads: usize,
    in_proj_weight: Parameter,
    in_proj_bias: Parameter,
    out_proj: Linear,
    dropout: f64,
    generator: Option<Generator>,
    mode: TrainingMode,
}

impl MultiheadAttention {
    /// A module of this width and number of heads; `heads` must divide `width`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Module, MultiheadAttention};
    /// assert_eq!(MultiheadAttention::new(8, 2)?.state_dict()["in_proj_weight"].shape(), [24, 8]);
    /// assert!(MultiheadAttention::new(8, 3).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A number of heads that does not divide the width.
    pub fn new(width: usize, heads: usize) -> Result<MultiheadAttention> {
        called("MultiheadAttention", &["width", "heads"], || {
            if heads == 0 || !width.is_multiple_of(heads) {
                let (expected, got) = ("a divisor of the width", format!("{heads} for a width of {width}"));
                let owner = "MultiheadAttention";
                return Err(ModuleError::Option { owner, option: "heads", expected, got }.into());
            }
            let in_proj_weight = init::xavier_uniform((width.saturating_mul(3), width))?;
            let out = init::kaiming_uniform_with((width, width), 5f64.sqrt(), init::Fan::In)?;
            Ok(MultiheadAttention {
                heads,
                in_proj_weight: Parameter::new(in_proj_weight)?,
                in_proj_bias: Parameter::new(init::constant(width.saturating_mul(3), 0.0)?)?,
                out_proj: Linear::from_tensors(out, Some(init::constant(width, 0.0)?))?,
                dropout: 0.0,
                generator: None,
                mode: TrainingMode::default(),
            })
        })
    }

    /// The output projection; its weight is `[width, width]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// assert_eq!(keyway::nn::MultiheadAttention::new(8, 2)?.out_proj().weight().shape(), [8, 8]);
    /// # Ok(()) }
    /// ```
    pub fn out_proj(&self) -> &Linear {
        &self.out_proj
    }

    /// Sets the dropout probability of the attention weights in training mode.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, MultiheadAttention}};
    /// let attention = MultiheadAttention::new(8, 2)?.dropout(0.5)?;
    /// attention.eval();
    /// let x = Tensor::ones((1, 3, 8))?;
    /// // In evaluation mode dropout is the identity.
    /// assert_eq!(attention.forward(&x)?.to_vec::<f32>()?, attention.forward(&x)?.to_vec::<f32>()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A probability outside 0..=1.
    pub fn dropout(mut self, p: f64) -> Result<MultiheadAttention> {
        self.dropout = super::dropout::share("MultiheadAttention", p)?;
        Ok(self)
    }

    /// Draws the dropout mask from this generator instead of the default one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, MultiheadAttention}, rng::Generator};
    /// let attention = MultiheadAttention::new(8, 2)?.dropout(0.5)?.generator(Generator::new(7));
    /// assert_eq!(attention.named_generators()[0].1.state().seed, 7);
    /// # Ok(()) }
    /// ```
    pub fn generator(mut self, generator: Generator) -> MultiheadAttention {
        self.generator = Some(generator);
        self
    }

    /// Attends from each position of the query to the positions of key and value: `[batch, queries, width]` from
    /// `[batch, keys, width]`. The mask of the options broadcasts to `[batch, heads, queries, keys]`; the dropout probability
    /// is the module's.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AttentionOptions, MultiheadAttention}};
    /// let attention = MultiheadAttention::new(8, 2)?;
    /// let (query, memory) = (Tensor::ones((1, 3, 8))?, Tensor::ones((1, 5, 8))?);
    /// let y = attention.forward_qkv(&query, &memory, &memory, AttentionOptions::default())?;
    /// assert_eq!(y.shape(), [1, 3, 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Incompatible shapes.
    pub fn forward_qkv(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        options: AttentionOptions<'_>,
    ) -> Result<Tensor> {
        called("MultiheadAttention", &[], || {
            let [q, k, v] = self.projected([query, key, value])?;
            self.gathered(query, [&q, &k, &v], options)
        })
    }

    /// Causal self-attention of new positions over the cached positions and the new ones up to themselves:
    /// `[batch, new, width]`. Appends their keys and values to the cache. The results equal those of
    /// [`MultiheadAttention::forward_qkv`] with `is_causal` over all positions in one call.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{AttentionOptions, KvCache, MultiheadAttention};
    /// use keyway::{Tensor, no_grad};
    /// let attention = MultiheadAttention::new(8, 2)?;
    /// let (_off, mut cache) = (no_grad(), KvCache::new());
    /// let x = Tensor::randn((1, 3, 8))?;
    /// let causal = AttentionOptions { is_causal: true, ..AttentionOptions::default() };
    /// let at_once = attention.forward_qkv(&x, &x, &x, causal)?;
    /// attention.forward_cached(&x.narrow(1, 0, 2)?, &mut cache)?;
    /// let last = attention.forward_cached(&x.narrow(1, 2, 1)?, &mut cache)?;
    /// assert!(last.allclose_with(&at_once.narrow(1, 2, 1)?, 1e-4, 1e-5, false)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A shape, dtype or device that differs from the cache's; a call that autograd records.
    pub fn forward_cached(&self, input: &Tensor, cache: &mut KvCache) -> Result<Tensor> {
        called("MultiheadAttention", &[], || {
            let [q, k, v] = self.projected([input; 3])?;
            let before = cache.len();
            let (k, v) = cache.append(&k, &v)?;
            let new = input.shape()[1];
            // Query `i` is at position `before + i`.
            let mask = match (before, new) {
                (0, _) | (_, 0 | 1) => None,
                _ => Some(
                    Tensor::ones_with((new, before + new), (DType::BOOL, q.device()))?
                        .tril_with(before as i64)?,
                ),
            };
            let options = AttentionOptions {
                attn_mask: mask.as_ref(),
                is_causal: before == 0,
                ..AttentionOptions::default()
            };
            self.gathered(input, [&q, &k, &v], options)
        })
    }

    /// Query, key and value split into heads: `[batch, heads, length, width / heads]` each.
    fn projected(&self, inputs: [&Tensor; 3]) -> Result<[Tensor; 3]> {
        let weights = self.in_proj_weight.get().chunk(3, 0)?;
        let biases = self.in_proj_bias.get().chunk(3, 0)?;
        let project = |i: usize| -> Result<Tensor> {
            let &[batch, length, width] = inputs[i].shape() else {
                let (owner, expected) = ("MultiheadAttention", "[batch, length, width]".to_string());
                return Err(ModuleError::Input { owner, expected, got: inputs[i].shape().to_vec() }.into());
            };
            let made = inputs[i].linear(&weights[i], Some(&biases[i]))?;
            made.reshape_as_sizes(&[batch, length, self.heads, width / self.heads])?.transpose(1, 2)
        };
        Ok([project(0)?, project(1)?, project(2)?])
    }

    fn gathered(
        &self,
        query: &Tensor,
        [q, k, v]: [&Tensor; 3],
        options: AttentionOptions<'_>,
    ) -> Result<Tensor> {
        let dropout_p = if self.mode.is_training() { self.dropout } else { 0.0 };
        let options = AttentionOptions { dropout_p, ..options };
        let made = rng::with_some_generator(self.generator.as_ref(), || {
            q.scaled_dot_product_attention_with(k, v, options)
        })?;
        self.out_proj.forward(&made.transpose(1, 2)?.reshape_as_sizes(query.shape())?)
    }
}

impl Module for MultiheadAttention {
    /// Self-attention of the input.
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.forward_qkv(input, input, input, AttentionOptions::default())
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.parameter("in_proj_weight", &self.in_proj_weight);
        visitor.parameter("in_proj_bias", &self.in_proj_bias);
        visitor.child("out_proj", &self.out_proj);
        visitor.training_mode(&self.mode);
        if let Some(generator) = &self.generator {
            visitor.generator("generator", generator);
        }
    }
}
