//! Responses divided by those of neighbouring channels.

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
    /// Channels that count, the own one among them.
    pub size: usize,
    /// What the mean of their squares is multiplied by.
    pub alpha: f64,
    /// The exponent of the divisor.
    pub beta: f64,
    /// What is added to the mean.
    pub k: f64,
}

impl LocalResponseNorm {
    /// With so many channels and PyTorch's defaults: 1e-4, 0.75 and 1.
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
