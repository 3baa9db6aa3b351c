//! Huber's loss.

use super::Reduction;
use crate::Tensor;
use crate::error::Result;

impl Tensor {
    /// The mean of half the square of the difference from `target` where it is below `delta`, else of `delta` times its absolute
    /// value less half of `delta`, which is 1 (P. J. Huber, "Robust estimation of a location parameter", 1964).
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
    /// An input that is no float; shapes that do not fit.
    pub fn huber_loss(&self, target: &Tensor) -> Result<Tensor> {
        self.huber_loss_with(target, 1.0, Reduction::Mean)
    }

    /// [`Tensor::huber_loss`] with another `delta`, reduced otherwise: `delta` times [`Tensor::smooth_l1_loss_with`].
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
    /// The same.
    pub fn huber_loss_with(&self, target: &Tensor, delta: f64, reduction: Reduction) -> Result<Tensor> {
        self.smooth_l1_loss_with(target, delta, reduction)?.mul(delta)
    }
}
