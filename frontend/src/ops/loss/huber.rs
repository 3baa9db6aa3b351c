//! The Huber loss.

use super::{Reduction, in_pieces};
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::{cast, widened};
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The mean Huber loss of the differences `d` from `target`: `d^2 / 2` where `|d| < delta`, else
    /// `delta * (|d| - delta / 2)`, with a `delta` of 1 (P. J. Huber, "Robust estimation of a location parameter", 1964).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, t) = (Tensor::new([1.0f32, 3.0])?, Tensor::new([0.0f32, 1.0])?);
    /// assert_eq!(x.huber_loss(&t)?.item::<f32>()?, 1.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input that is not a float; incompatible shapes.
    pub fn huber_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.huber_loss_with(target, 1.0, Reduction::Mean)
    }

    /// [`Tensor::huber_loss`] with a `delta` and a reduction. f16 and bf16 are computed in f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (x, t) = (Tensor::new([1.0f32, 3.0])?, Tensor::new([0.0f32, 1.0])?);
    /// assert_eq!(x.huber_loss_with(&t, 0.5, Reduction::None)?.to_vec::<f32>()?, [0.375, 0.875]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a `delta` that is not above 0 or is infinite; [`Reduction::BatchMean`].
    pub fn huber_loss_with(&self, target: &Tensor, delta: f64, reduction: Reduction) -> Result<Tensor> {
        called("huber_loss", &["self", "target", "delta", "reduction"], || {
            let wrong = |argument, expected: &str, got| {
                Err(Error::Value { op: "huber_loss", argument, expected: expected.to_string(), got }.into())
            };
            if !self.dtype().is_float() {
                return wrong("self", "a float dtype; cast integers first", self.dtype().to_string());
            }
            if !(delta > 0.0 && delta.is_finite()) {
                return wrong("delta", "a finite number above 0", delta.to_string());
            }
            let difference = widened(self)?.sub(&widened(target)?)?;
            let loss = in_pieces(&difference, delta, delta)?;
            let loss = match reduction {
                Reduction::None => loss,
                Reduction::Mean => loss.mean_all()?,
                Reduction::Sum => loss.sum_all()?,
                Reduction::BatchMean => {
                    return wrong("reduction", "none, mean or sum", "`batchmean`".to_string());
                }
            };
            cast(loss, self.dtype().promote(target.dtype()).unwrap_or(difference.dtype()))
        })
    }
}
