//! Local response normalization.

use super::Module;
use crate::{Result, Tensor};

/// [`Tensor::local_response_norm`] of inputs `[batch, channels, ..]`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{LocalResponseNorm, Module}};
/// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 2, 1))?;
/// let norm = LocalResponseNorm { beta: 1.0, alpha: 2.0, ..LocalResponseNorm::new(2) };
/// assert_eq!(norm.forward(&x)?.to_vec::<f32>()?, [0.5, 3.0 / 11.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LocalResponseNorm {
    /// The window: the number of neighbouring channels, the channel itself included.
    pub size: usize,
    /// The factor of the mean of squares.
    pub alpha: f64,
    /// The exponent of the divisor.
    pub beta: f64,
    /// The constant added to the scaled mean.
    pub k: f64,
}

impl LocalResponseNorm {
    /// A module with this window and PyTorch's defaults: `alpha` 1e-4, `beta` 0.75 and `k` 1.
    ///
    /// ```
    /// use keyway::nn::LocalResponseNorm;
    /// let norm = LocalResponseNorm::new(5);
    /// assert_eq!((norm.size, norm.alpha, norm.beta, norm.k), (5, 1e-4, 0.75, 1.0));
    /// ```
    pub fn new(size: usize) -> LocalResponseNorm {
        LocalResponseNorm { size, alpha: 1e-4, beta: 0.75, k: 1.0 }
    }
}

impl Module for LocalResponseNorm {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.local_response_norm_with(self.size, self.alpha, self.beta, self.k)
    }
}
