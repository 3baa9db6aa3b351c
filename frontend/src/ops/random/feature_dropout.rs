//! Dropout of whole channels, and alpha dropout, which preserves mean and variance: compositions of `bernoulli` and
//! element-wise ops.

use crate::error::{Result, called};
use crate::ops::composite::{cast, widened};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Error;

/// The negated limit of `selu` at minus infinity: the product of its alpha and scale.
const SELU_FLOOR: f64 = 1.758_099_340_847_376_6;

/// Refuses invalid probabilities and dtypes that are not floats.
fn check(op: &'static str, x: &Tensor, p: f64) -> Result<()> {
    if !(0.0..=1.0).contains(&p) {
        let expected = "a probability from 0 to 1".to_string();
        return Err(Error::Value { op, argument: "p", expected, got: p.to_string() }.into());
    }
    if !x.dtype().is_float() {
        let expected = "a float dtype".to_string();
        return Err(Error::DType { op, argument: "self", expected, got: x.dtype() }.into());
    }
    Ok(())
}

fn wrong_rank(op: &'static str, x: &Tensor, expected: &str) -> crate::Error {
    Error::Shape { op, argument: "self", expected: expected.to_string(), got: x.shape().into() }.into()
}

/// The mask of dropped elements; with `channels`, of shape `[batch, channels, 1, ..]`.
fn dropped(x: &Tensor, p: f64, channels: bool) -> Result<Tensor> {
    let mut sizes = x.shape().to_vec();
    if channels {
        sizes.iter_mut().skip(2).for_each(|size| *size = 1);
        return Tensor::uninit(&sizes, (DType::BOOL, x.device()))?.bernoulli_(p);
    }
    // The mask has the strides of the result.
    Tensor::uninit_strided(&sizes, x.uninit_like(())?.strides(), (DType::BOOL, x.device()))?.bernoulli_(p)
}

/// 0 where dropped, other elements divided by `1 - p`; with a `p` of 1 all gradients are 0 too.
fn scaled(x: &Tensor, p: f64) -> Result<Tensor> {
    // A product with a number is rounded once, also in f16 and bf16.
    let kept = x.mul(if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) })?;
    dropped(x, p, true)?.where_cond(0, &kept)
}

/// Replaces dropped elements by the limit of `selu`, then applies an affine map that preserves mean and variance of standard
/// normal input.
fn self_normalising(x: &Tensor, p: f64, channels: bool) -> Result<Tensor> {
    if p == 1.0 {
        return x.mul(0);
    }
    let a = 1.0 / ((SELU_FLOOR * SELU_FLOOR * p + 1.0) * (1.0 - p)).sqrt();
    let b = SELU_FLOOR * a * p;
    let kept = widened(x)?.mul(a)?.add(b)?;
    cast(dropped(x, p, channels)?.where_cond(b - SELU_FLOOR * a, &kept)?, x.dtype())
}

impl Tensor {
    /// In training, sets each channel of `[batch, channels, length]`, or of an unbatched tensor, to 0 with probability `p` and
    /// divides the others by `1 - p` (J. Tompson and others, "Efficient object localization using convolutional networks",
    /// 2015).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let y = Tensor::ones((1, 4, 3))?.dropout1d(0.5, true)?;
    /// // A channel is retained or dropped as a whole.
    /// let channels = y.to_vec3::<f32>()?.remove(0);
    /// assert!(channels.iter().all(|c| c == &[0.0; 3] || c == &[2.0; 3]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Another rank; a probability outside 0..=1; a dtype that is not a float.
    pub fn dropout1d(&self, p: f64, training: bool) -> Result<Tensor> {
        let rank = "of 3 dimensions, [batch, channels, length], or of 2 without the batch";
        self.channel_dropout("dropout1d", p, training, [2, 3], rank)
    }

    /// In training, sets each channel of `[batch, channels, height, width]` or `[batch, channels, length]` to 0 with
    /// probability `p` and divides the others by `1 - p`, as in [`Tensor::dropout1d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones((1, 3, 2, 2))?;
    /// let y = x.dropout2d(0.5, true)?.to_vec::<f32>()?;
    /// assert!(y.chunks(4).all(|channel| channel == [0.0; 4] || channel == [2.0; 4]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::dropout1d`].
    pub fn dropout2d(&self, p: f64, training: bool) -> Result<Tensor> {
        let rank = "of 4 dimensions, [batch, channels, height, width], or of 3, [batch, channels, length]";
        self.channel_dropout("dropout2d", p, training, [4, 3], rank)
    }

    /// In training, sets each channel of `[batch, channels, depth, height, width]`, or of an unbatched tensor, to 0 with
    /// probability `p` and divides the others by `1 - p`, as in [`Tensor::dropout1d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let y = Tensor::ones((1, 4, 2, 2, 2))?.dropout3d(0.5, true)?;
    /// let channels = y.flatten_from(2)?.to_vec3::<f32>()?.remove(0);
    /// assert!(channels.iter().all(|c| c == &[0.0; 8] || c == &[2.0; 8]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::dropout1d`].
    pub fn dropout3d(&self, p: f64, training: bool) -> Result<Tensor> {
        let rank = "of 5 dimensions, [batch, channels, depth, height, width], or of 4 without the batch";
        self.channel_dropout("dropout3d", p, training, [4, 5], rank)
    }

    /// Channel dropout for inputs of these two ranks; the first one is unbatched if it is the smaller.
    fn channel_dropout(
        &self,
        op: &'static str,
        p: f64,
        training: bool,
        ranks: [usize; 2],
        expected: &str,
    ) -> Result<Tensor> {
        called(op, &["self", "p"], || {
            check(op, self, p)?;
            if !ranks.contains(&self.rank()) {
                return Err(wrong_rank(op, self, expected));
            }
            if !training || p == 0.0 {
                return Ok(self.clone());
            }
            if ranks[0] < ranks[1] && self.rank() == ranks[0] {
                return scaled(&self.unsqueeze(0)?, p)?.squeeze(0);
            }
            scaled(self, p)
        })
    }

    /// Alpha dropout: in training, replaces each element with probability `p` by the limit of `selu`, then applies an affine
    /// map, so that standard normal input retains mean 0 and variance 1 (G. Klambauer and others, "Self-normalizing neural
    /// networks", 2017).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32; 100])?;
    /// let mut seen = x.alpha_dropout(0.5, true)?.to_vec::<f32>()?;
    /// seen.sort_by(f32::total_cmp);
    /// seen.dedup();
    /// assert_eq!(seen.len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A probability outside 0..=1; a dtype that is not a float.
    pub fn alpha_dropout(&self, p: f64, training: bool) -> Result<Tensor> {
        called("alpha_dropout", &["self", "p", "training"], || {
            check("alpha_dropout", self, p)?;
            if training && p > 0.0 { self_normalising(self, p, false) } else { Ok(self.clone()) }
        })
    }

    /// [`Tensor::alpha_dropout`] of whole channels of `[batch, channels, ..]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones((1, 4, 3))?;
    /// let channels = x.feature_alpha_dropout(0.5, true)?.to_vec3::<f32>()?.remove(0);
    /// assert!(channels.iter().all(|c| c[0] == c[1] && c[1] == c[2]));
    /// assert_eq!(x.feature_alpha_dropout(0.5, false)?.to_vec::<f32>()?, [1.0; 12]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::alpha_dropout`]; fewer than 2 dimensions.
    pub fn feature_alpha_dropout(&self, p: f64, training: bool) -> Result<Tensor> {
        called("feature_alpha_dropout", &["self", "p", "training"], || {
            check("feature_alpha_dropout", self, p)?;
            if self.rank() < 2 {
                return Err(wrong_rank(
                    "feature_alpha_dropout",
                    self,
                    "of 2 or more dimensions, [batch, channels, ..]",
                ));
            }
            if training && p > 0.0 { self_normalising(self, p, true) } else { Ok(self.clone()) }
        })
    }
}
