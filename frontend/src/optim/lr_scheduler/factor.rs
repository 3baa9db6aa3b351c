//! Rates that are the first ones times a factor.

use super::{LrScheduler, Progress};
use crate::Result;
use crate::optim::Optimizer;
use crate::optim::group::{refuse, require_not_negative};
use std::fmt;

/// Interpolates the factor of the rates linearly from `start_factor` to `end_factor` in `total_iters` epochs; it is constant
/// after them.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{LinearLr, LrScheduler};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = LinearLr::new(&mut optimizer, 0.5, 1.0, 4)?;
/// assert_eq!(optimizer.learning_rates(), [0.5]);
/// schedule.step(&mut optimizer)?;
/// assert_eq!(optimizer.learning_rates(), [0.625]);
/// # Ok(()) }
/// ```
#[doc(alias = "LinearLR")]
#[derive(Clone, Debug, PartialEq)]
pub struct LinearLr {
    progress: Progress,
    start_factor: f64,
    end_factor: f64,
    total_iters: u64,
}

impl LinearLr {
    /// A schedule from the rates that the optimiser has now, which it sets to its first ones.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, LinearLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = LinearLr::new(&mut optimizer, 0.5, 1.0, 2)?;
    /// assert_eq!(optimizer.learning_rates(), [0.5]);
    /// schedule.step(&mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.75]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A factor that is negative or not finite.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        start_factor: f64,
        end_factor: f64,
        total_iters: u64,
    ) -> Result<LinearLr> {
        require_not_negative("LinearLr", "start_factor", start_factor)?;
        require_not_negative("LinearLr", "end_factor", end_factor)?;
        let progress = Progress::of(optimizer);
        let mut made = LinearLr { progress, start_factor, end_factor, total_iters };
        made.seek(0, optimizer)?;
        Ok(made)
    }
}

impl LrScheduler for LinearLr {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let factor = match epoch < self.total_iters {
            true => {
                let share = epoch as f64 / self.total_iters as f64;
                self.start_factor + (self.end_factor - self.start_factor) * share
            }
            false => self.end_factor,
        };
        self.progress.go(epoch, optimizer, |base| base * factor)
    }
}

/// Decays the rates to 0 in `total_iters` epochs, with the factor `(1 - epoch / total_iters)^power`; they are 0 after them.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{LrScheduler, PolynomialLr};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = PolynomialLr::new(&optimizer, 4, 2.0)?;
/// schedule.seek(2, &mut optimizer)?;
/// assert_eq!(optimizer.learning_rates(), [0.25]);
/// # Ok(()) }
/// ```
#[doc(alias = "PolynomialLR")]
#[derive(Clone, Debug, PartialEq)]
pub struct PolynomialLr {
    progress: Progress,
    total_iters: u64,
    power: f64,
}

impl PolynomialLr {
    /// A schedule from the rates that the optimiser has now.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, PolynomialLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = PolynomialLr::new(&optimizer, 4, 2.0)?;
    /// schedule.seek(2, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// 0 for `total_iters`, a `power` that is negative or not finite.
    pub fn new(optimizer: &dyn Optimizer, total_iters: u64, power: f64) -> Result<PolynomialLr> {
        if total_iters == 0 {
            return Err(refuse("PolynomialLr", "total_iters", "at least 1", total_iters).into());
        }
        require_not_negative("PolynomialLr", "power", power)?;
        Ok(PolynomialLr { progress: Progress::of(optimizer), total_iters, power })
    }
}

impl LrScheduler for PolynomialLr {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let left = 1.0 - epoch.min(self.total_iters) as f64 / self.total_iters as f64;
        let factor = left.powf(self.power);
        self.progress.go(epoch, optimizer, |base| base * factor)
    }
}

/// Multiplies the rates by a function of the epoch's number.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{LambdaLr, LrScheduler};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = LambdaLr::new(&mut optimizer, |epoch| 1.0 / (1.0 + epoch as f64))?;
/// schedule.seek(3, &mut optimizer)?;
/// assert_eq!(optimizer.learning_rates(), [0.25]);
/// # Ok(()) }
/// ```
#[doc(alias = "LambdaLR")]
pub struct LambdaLr {
    progress: Progress,
    factor: Box<dyn Fn(u64) -> f64 + Send + Sync>,
}

impl LambdaLr {
    /// A schedule from the rates that the optimiser has now, which it sets to its first ones.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, LambdaLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = LambdaLr::new(&mut optimizer, |epoch| 1.0 / (epoch + 1) as f64)?;
    /// schedule.seek(3, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A first rate that is negative or not finite.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        factor: impl Fn(u64) -> f64 + Send + Sync + 'static,
    ) -> Result<LambdaLr> {
        let mut made = LambdaLr { progress: Progress::of(optimizer), factor: Box::new(factor) };
        made.seek(0, optimizer)?;
        Ok(made)
    }
}

impl fmt::Debug for LambdaLr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LambdaLr").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl LrScheduler for LambdaLr {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let factor = (self.factor)(epoch);
        self.progress.go(epoch, optimizer, |base| base * factor)
    }
}
