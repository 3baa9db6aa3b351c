//! Rates along half a cosine (I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017).

use super::{LrScheduler, Progress};
use crate::Result;
use crate::optim::Optimizer;
use crate::optim::group::{refuse, require_not_negative};
use std::f64::consts::PI;

/// Cosine interpolation: `from` at `share` 0, `to` at 1.
pub(super) fn between(from: f64, to: f64, share: f64) -> f64 {
    to + (from - to) * (1.0 + (PI * share).cos()) / 2.0
}

/// Decreases the rates along half a cosine to `eta_min` in `t_max` epochs, and increases them again afterwards: `eta_min +
/// (rate - eta_min) * (1 + cos(pi * epoch / t_max)) / 2`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{CosineAnnealingLr, LrScheduler};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = CosineAnnealingLr::new(&optimizer, 10)?;
/// schedule.seek(5, &mut optimizer)?;
/// assert!((optimizer.learning_rates()[0] - 0.5).abs() < 1e-12);
/// # Ok(()) }
/// ```
#[doc(alias = "CosineAnnealingLR")]
#[derive(Clone, Debug, PartialEq)]
pub struct CosineAnnealingLr {
    progress: Progress,
    t_max: u64,
    eta_min: f64,
}

impl CosineAnnealingLr {
    /// A schedule from the rates that the optimiser has now to 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, CosineAnnealingLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = CosineAnnealingLr::new(&optimizer, 4)?;
    /// schedule.seek(4, &mut optimizer)?;
    /// assert!(optimizer.learning_rates()[0].abs() < 1e-12);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `t_max` of 0.
    pub fn new(optimizer: &dyn Optimizer, t_max: u64) -> Result<CosineAnnealingLr> {
        CosineAnnealingLr::new_with(optimizer, t_max, 0.0)
    }

    /// A schedule from the rates that the optimiser has now to `eta_min`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, CosineAnnealingLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = CosineAnnealingLr::new_with(&optimizer, 4, 0.1)?;
    /// schedule.seek(4, &mut optimizer)?;
    /// assert!((optimizer.learning_rates()[0] - 0.1).abs() < 1e-12);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `t_max` of 0, an `eta_min` that is negative or not finite.
    pub fn new_with(optimizer: &dyn Optimizer, t_max: u64, eta_min: f64) -> Result<CosineAnnealingLr> {
        if t_max == 0 {
            return Err(refuse("CosineAnnealingLr", "t_max", "at least 1", t_max).into());
        }
        require_not_negative("CosineAnnealingLr", "eta_min", eta_min)?;
        Ok(CosineAnnealingLr { progress: Progress::of(optimizer), t_max, eta_min })
    }
}

impl LrScheduler for CosineAnnealingLr {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let (share, eta_min) = (epoch as f64 / self.t_max as f64, self.eta_min);
        self.progress.go(epoch, optimizer, |base| between(base, eta_min, share))
    }
}

/// Decreases the rates along half a cosine to `eta_min`, and restarts from the initial rates: after `t_0` epochs, then
/// after `t_0 * t_mult`, `t_0 * t_mult^2` and so on.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{CosineAnnealingWarmRestarts, LrScheduler};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = CosineAnnealingWarmRestarts::new_with(&optimizer, 4, 2, 0.0)?;
/// schedule.seek(4, &mut optimizer)?;
/// assert_eq!(optimizer.learning_rates(), [1.0]);
/// schedule.seek(8, &mut optimizer)?; // half of the second period, which has 8 epochs
/// assert!((optimizer.learning_rates()[0] - 0.5).abs() < 1e-12);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CosineAnnealingWarmRestarts {
    progress: Progress,
    t_0: u64,
    t_mult: u64,
    eta_min: f64,
}

impl CosineAnnealingWarmRestarts {
    /// A schedule from the rates that the optimiser has now to 0, which begins again every `t_0` epochs.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, CosineAnnealingWarmRestarts};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = CosineAnnealingWarmRestarts::new(&optimizer, 2)?;
    /// schedule.seek(1, &mut optimizer)?;
    /// assert!((optimizer.learning_rates()[0] - 0.5).abs() < 1e-12);
    /// schedule.seek(2, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `t_0` of 0.
    pub fn new(optimizer: &dyn Optimizer, t_0: u64) -> Result<CosineAnnealingWarmRestarts> {
        CosineAnnealingWarmRestarts::new_with(optimizer, t_0, 1, 0.0)
    }

    /// A schedule from the rates that the optimiser has now to `eta_min`, each of whose periods is `t_mult` times the one before.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, CosineAnnealingWarmRestarts};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = CosineAnnealingWarmRestarts::new_with(&optimizer, 2, 2, 0.5)?;
    /// schedule.seek(4, &mut optimizer)?; // half of the second period, which has 4 epochs
    /// assert!((optimizer.learning_rates()[0] - 0.75).abs() < 1e-12);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `t_0` or `t_mult` of 0, an `eta_min` that is negative or not finite.
    pub fn new_with(
        optimizer: &dyn Optimizer,
        t_0: u64,
        t_mult: u64,
        eta_min: f64,
    ) -> Result<CosineAnnealingWarmRestarts> {
        const OWNER: &str = "CosineAnnealingWarmRestarts";
        for (name, got) in [("t_0", t_0), ("t_mult", t_mult)] {
            if got == 0 {
                return Err(refuse(OWNER, name, "at least 1", got).into());
            }
        }
        require_not_negative(OWNER, "eta_min", eta_min)?;
        Ok(CosineAnnealingWarmRestarts { progress: Progress::of(optimizer), t_0, t_mult, eta_min })
    }

    /// The index of an epoch in its period, and the length of that period.
    fn place(&self, epoch: u64) -> (u64, u64) {
        if self.t_mult == 1 {
            return (epoch % self.t_0, self.t_0);
        }
        // Periods grow, so there are few of them.
        let (mut left, mut period) = (epoch, self.t_0);
        while left >= period {
            left -= period;
            period = period.saturating_mul(self.t_mult);
        }
        (left, period)
    }
}

impl LrScheduler for CosineAnnealingWarmRestarts {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let (at, period) = self.place(epoch);
        let (share, eta_min) = (at as f64 / period as f64, self.eta_min);
        self.progress.go(epoch, optimizer, |base| between(base, eta_min, share))
    }
}
