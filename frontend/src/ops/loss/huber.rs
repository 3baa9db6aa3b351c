//! The Huber loss.

use super::{Reduction, finished, floats, in_pieces, wrong};
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::widened;

impl Tensor {
    /// The mean Huber loss of the differences `d` from `target`: `d^2 / 2` if `|d| < delta`, otherwise `delta * (|d| -
    /// delta / 2)`, with a `delta` of 1 (P. J. Huber, "Robust estimation of a location parameter", 1964).
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
            floats("huber_loss", &[("self", self)])?;
            if !(delta > 0.0 && delta.is_finite()) {
                return Err(wrong("huber_loss", "delta", "a finite number above 0", delta));
            }
            let difference = widened(self)?.sub(&widened(target)?)?;
            finished("huber_loss", in_pieces(&difference, delta, delta)?, reduction, &[self, target])
        })
    }
}
