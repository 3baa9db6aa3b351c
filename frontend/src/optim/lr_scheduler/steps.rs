//! Rates that are multiplied again and again.

use super::{LrScheduler, Progress};
use crate::Result;
use crate::optim::Optimizer;
use crate::optim::group::{refuse, require_not_negative};

/// Integer power with a saturated exponent.
fn power(base: f64, times: u64) -> f64 {
    base.powi(i32::try_from(times).unwrap_or(i32::MAX))
}

/// Multiplies the rates by `gamma` every `step_size` epochs.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{LrScheduler, StepLr};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = StepLr::new(&optimizer, 2, 0.5)?;
/// let mut rates = Vec::new();
/// for _epoch in 0..5 {
///     rates.extend(optimizer.learning_rates());
///     schedule.step(&mut optimizer)?;
/// }
/// assert_eq!(rates, [1.0, 1.0, 0.5, 0.5, 0.25]);
/// # Ok(()) }
/// ```
#[doc(alias = "StepLR")]
#[derive(Clone, Debug, PartialEq)]
pub struct StepLr {
    progress: Progress,
    step_size: u64,
    gamma: f64,
}

impl StepLr {
    /// A schedule from the rates that the optimiser has now.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, StepLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = StepLr::new(&optimizer, 3, 0.5)?;
    /// schedule.seek(6, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A step size of 0, a `gamma` that is negative or not finite.
    pub fn new(optimizer: &dyn Optimizer, step_size: u64, gamma: f64) -> Result<StepLr> {
        if step_size == 0 {
            return Err(refuse("StepLr", "step_size", "at least 1", step_size).into());
        }
        require_not_negative("StepLr", "gamma", gamma)?;
        Ok(StepLr { progress: Progress::of(optimizer), step_size, gamma })
    }
}

impl LrScheduler for StepLr {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let factor = power(self.gamma, epoch / self.step_size);
        self.progress.go(epoch, optimizer, |base| base * factor)
    }
}

/// Multiplies the rates by `gamma` at each of the given epochs.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{LrScheduler, MultiStepLr};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = MultiStepLr::new(&optimizer, &[30, 80], 0.5)?;
/// schedule.seek(30, &mut optimizer)?;
/// assert_eq!(optimizer.learning_rates(), [0.5]);
/// # Ok(()) }
/// ```
#[doc(alias = "MultiStepLR")]
#[derive(Clone, Debug, PartialEq)]
pub struct MultiStepLr {
    progress: Progress,
    milestones: Vec<u64>,
    gamma: f64,
}

impl MultiStepLr {
    /// Creates a schedule from the optimizer's present rates. The order of the milestones is irrelevant; one that occurs
    /// twice counts twice.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, MultiStepLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = MultiStepLr::new(&optimizer, &[3, 5], 0.5)?;
    /// schedule.seek(4, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `gamma` that is negative or not finite.
    pub fn new(optimizer: &dyn Optimizer, milestones: &[u64], gamma: f64) -> Result<MultiStepLr> {
        require_not_negative("MultiStepLr", "gamma", gamma)?;
        Ok(MultiStepLr { progress: Progress::of(optimizer), milestones: milestones.to_vec(), gamma })
    }
}

impl LrScheduler for MultiStepLr {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let reached = self.milestones.iter().filter(|&&milestone| milestone <= epoch).count();
        let factor = power(self.gamma, reached as u64);
        self.progress.go(epoch, optimizer, |base| base * factor)
    }
}

/// Multiplies the rates by `gamma` in every epoch.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{ExponentialLr, LrScheduler};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = ExponentialLr::new(&optimizer, 0.5)?;
/// schedule.seek(3, &mut optimizer)?;
/// assert_eq!(optimizer.learning_rates(), [0.125]);
/// # Ok(()) }
/// ```
#[doc(alias = "ExponentialLR")]
#[derive(Clone, Debug, PartialEq)]
pub struct ExponentialLr {
    progress: Progress,
    gamma: f64,
}

impl ExponentialLr {
    /// A schedule from the rates that the optimiser has now.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, ExponentialLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = ExponentialLr::new(&optimizer, 0.5)?;
    /// schedule.seek(3, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.125]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `gamma` that is negative or not finite.
    pub fn new(optimizer: &dyn Optimizer, gamma: f64) -> Result<ExponentialLr> {
        require_not_negative("ExponentialLr", "gamma", gamma)?;
        Ok(ExponentialLr { progress: Progress::of(optimizer), gamma })
    }
}

impl LrScheduler for ExponentialLr {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let factor = power(self.gamma, epoch);
        self.progress.go(epoch, optimizer, |base| base * factor)
    }
}
