//! Attention of several heads.

use super::slot::{Mode, Slot};
use super::{Linear, Members, Module, ModuleError, init};
use crate::ops::attention::scaled_dot_product_attention::AttentionOptions;
use crate::rng::{self, Generator, Philox};
use crate::{Result, Tensor};

/// Attention of several heads, each on its own projections (A. Vaswani and others, "Attention is all you need", 2017), of
/// inputs `[batch, length, width]`. Initial values and names are PyTorch's.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Module, MultiheadAttention}, rng::Philox};
/// let attention = MultiheadAttention::new(8, 2, &mut Philox::new(0))?;
/// let x = Tensor::from_vec(vec![0.5f32; 48], (2, 3, 8))?;
/// assert_eq!(attention.forward(&x)?.shape(), [2, 3, 8]);
/// assert_eq!(attention.state_dict().keys().next().unwrap(), "in_proj_bias");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct MultiheadAttention {
    heads: usize,
    in_proj_weight: Slot,
    in_proj_bias: Slot,
    out_proj: Linear,
    dropout: f64,
    generator: Generator,
    mode: Mode,
}

impl MultiheadAttention {
    /// A module of this width, which the number of heads divides.
    ///
    /// # Errors
    /// A number of heads that does not divide the width.
    pub fn new(width: usize, heads: usize, rng: &mut Philox) -> Result<MultiheadAttention> {
        if heads == 0 || !width.is_multiple_of(heads) {
            let (expected, got) = ("a divisor of the width", format!("{heads} for a width of {width}"));
            let owner = "MultiheadAttention";
            return Err(ModuleError::Option { owner, option: "heads", expected, got }.into());
        }
        let zeros = |count: usize| Tensor::from_vec(vec![0.0f32; count], [count]);
        let in_proj_weight = init::xavier_uniform(&[3 * width, width], 1.0, rng)?;
        let out = init::kaiming_uniform(&[width, width], 5f64.sqrt(), rng)?;
        Ok(MultiheadAttention {
            heads,
            in_proj_weight: Slot::parameter(in_proj_weight)?,
            in_proj_bias: Slot::parameter(zeros(3 * width)?)?,
            out_proj: Linear::from_tensors(out, Some(zeros(width)?))?,
            dropout: 0.0,
            generator: Generator::new(0),
            mode: Mode::default(),
        })
    }

    /// With a share of the weights that is left out while training, drawn from the stream of a seed.
    pub fn dropout(mut self, p: f64, seed: u64) -> MultiheadAttention {
        (self.dropout, self.generator) = (p, Generator::new(seed));
        self
    }

    /// What the query's places gather from the key's and value's: `[batch, queries, width]` from
    /// `[batch, keys, width]`. The options' mask broadcasts to `[batch, heads, queries, keys]`; the dropout
    /// probability is the module's.
    ///
    /// # Errors
    /// Shapes that do not fit.
    pub fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        options: AttentionOptions<'_>,
    ) -> Result<Tensor> {
        let weights = self.in_proj_weight.get().chunk(3, 0)?;
        let biases = self.in_proj_bias.get().chunk(3, 0)?;
        let project = |t: &Tensor, i: usize| -> Result<Tensor> {
            let &[batch, length, width] = t.shape() else {
                let (owner, expected) = ("MultiheadAttention", "[batch, length, width]".to_string());
                return Err(ModuleError::Input { owner, expected, got: t.shape().to_vec() }.into());
            };
            let made = t.linear(&weights[i], Some(&biases[i]))?;
            made.reshape_as_sizes(&[batch, length, self.heads, width / self.heads])?.transpose(1, 2)
        };
        let dropout_p = if self.mode.is_training() { self.dropout } else { 0.0 };
        let options = AttentionOptions { dropout_p, ..options };
        let (q, k, v) = (project(query, 0)?, project(key, 1)?, project(value, 2)?);
        let made = rng::using(&self.generator, || q.scaled_dot_product_attention(&k, &v, options))?;
        self.out_proj.forward(&made.transpose(1, 2)?.reshape_as_sizes(query.shape())?)
    }
}

impl Module for MultiheadAttention {
    /// Of each place to all places of the same input.
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.attend(input, input, input, AttentionOptions::default())
    }

    fn members<'a>(&'a self, members: &mut Members<'a>) {
        members.parameter("in_proj_weight", &self.in_proj_weight);
        members.parameter("in_proj_bias", &self.in_proj_bias);
        members.child("out_proj", &self.out_proj);
        members.mode(&self.mode);
        members.generator("generator", &self.generator);
    }
}
