//! The connectionist temporal classification loss as a module.

use crate::ops::loss::{CtcLossOptions, Reduction};
use crate::{Result, Tensor};

/// [`Tensor::ctc_loss`] as a module.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::CtcLoss};
/// let log_probs = Tensor::randn((5, 2, 4))?.log_softmax(-1)?;
/// let targets = Tensor::new([[1i64, 2], [3, 0]])?;
/// let loss = CtcLoss::default().forward(&log_probs, &targets, &[5, 4], &[2, 1])?;
/// assert!(loss.item::<f32>()? > 0.0);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[doc(alias = "CTCLoss")]
pub struct CtcLoss {
    /// The class that separates labels.
    pub blank: usize,
    /// Whether a target that no alignment reaches has loss and gradient 0; otherwise its loss is infinite.
    pub zero_infinity: bool,
    /// The reduction over the losses of the batch.
    pub reduction: Reduction,
}

impl CtcLoss {
    /// The loss of log-probabilities against targets.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::CtcLoss};
    /// let log_probs = Tensor::new([[0.5f32, 0.5]])?.log()?;
    /// let loss = CtcLoss { blank: 1, ..Default::default() }.forward(&log_probs, &Tensor::new([0i64])?, &[1], &[1])?;
    /// assert!((loss.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::ctc_loss_with`].
    pub fn forward(
        &self,
        log_probs: &Tensor,
        targets: &Tensor,
        input_lengths: &[usize],
        target_lengths: &[usize],
    ) -> Result<Tensor> {
        let &CtcLoss { blank, zero_infinity, reduction } = self;
        let options = CtcLossOptions { blank, zero_infinity, reduction };
        log_probs.ctc_loss_with(targets, input_lengths, target_lengths, options)
    }
}
