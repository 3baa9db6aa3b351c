//! A warm-up before another schedule.

use super::{LrScheduler, Progress};
use crate::Result;
use crate::optim::Optimizer;
use crate::optim::group::require_not_negative;

/// Increases the rates linearly from `start_factor` times their value to their value in `total_iters` epochs, then follows
/// another schedule, whose epoch 0 is the first with the full value (P. Goyal and others, "Accurate, large minibatch SGD:
/// training ImageNet in 1 hour", 2017). In PyTorch, a `LinearLR` and another schedule in a `SequentialLR`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{ExponentialLr, LrScheduler, WarmupLr};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let falling = ExponentialLr::new(&optimizer, 0.5)?;
/// let mut schedule = WarmupLr::new(&mut optimizer, 0.0, 2, falling)?;
/// let mut rates = Vec::new();
/// for _epoch in 0..4 {
///     rates.extend(optimizer.learning_rates());
///     schedule.step(&mut optimizer)?;
/// }
/// assert_eq!(rates, [0.0, 0.5, 1.0, 0.5]);
/// # Ok(()) }
/// ```
#[doc(alias = "SequentialLR")]
#[derive(Debug)]
pub struct WarmupLr {
    progress: Progress,
    start_factor: f64,
    total_iters: u64,
    then: Box<dyn LrScheduler>,
}

impl WarmupLr {
    /// A schedule to the rates that the optimiser has now; it sets the first ones. Make `then` before it, so that both know
    /// the same rates.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::ExponentialLr;
    /// use keyway::optim::lr_scheduler::{LrScheduler, WarmupLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let then = ExponentialLr::new(&optimizer, 0.5)?;
    /// let mut schedule = WarmupLr::new(&mut optimizer, 0.5, 2, then)?;
    /// assert_eq!(optimizer.learning_rates(), [0.5]);
    /// schedule.seek(2, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A factor that is negative or not finite.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        start_factor: f64,
        total_iters: u64,
        then: impl LrScheduler + 'static,
    ) -> Result<WarmupLr> {
        require_not_negative("WarmupLr", "start_factor", start_factor)?;
        let progress = Progress::of(optimizer);
        let mut made = WarmupLr { progress, start_factor, total_iters, then: Box::new(then) };
        made.seek(0, optimizer)?;
        Ok(made)
    }
}

impl LrScheduler for WarmupLr {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        if let Some(later) = epoch.checked_sub(self.total_iters) {
            self.then.seek(later, optimizer)?;
            self.progress.epoch = epoch;
            return Ok(());
        }
        let share = epoch as f64 / self.total_iters as f64;
        let factor = self.start_factor + (1.0 - self.start_factor) * share;
        self.progress.go(epoch, optimizer, |base| base * factor)
    }
}
