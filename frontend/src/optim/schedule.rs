//! Learning rates that change from epoch to epoch.

use super::Optimizer;
use super::group::refuse;
use crate::Result;
use std::fmt::Debug;

/// Sets the learning rates of an optimiser, by the formula of a schedule and the number of the epoch. `0` is the epoch in
/// which it is made.
pub trait LrScheduler: Debug {
    /// The number of the epoch.
    fn epoch(&self) -> u64;

    /// Goes to an epoch by its number, as when a run is taken up again.
    ///
    /// # Errors
    /// A rate that is negative or not finite, as too large a `gamma` leads to; then nothing is changed.
    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()>;

    /// Goes to the next epoch. Call it once after each.
    ///
    /// # Errors
    /// As [`LrScheduler::seek`].
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.seek(self.epoch() + 1, optimizer)
    }
}

/// Sets the rate of each group to a formula of its first rate.
fn set(optimizer: &mut dyn Optimizer, base: &[f64], rate: impl Fn(f64) -> f64) -> Result<()> {
    let rates: Vec<f64> = base.iter().map(|&base| rate(base)).collect();
    optimizer.set_learning_rates(&rates)
}

/// Multiplies the rates by `gamma` every `step_size` epochs.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::{LrScheduler, Optimizer, Sgd, SgdOptions, StepLr};
/// let w = Tensor::scalar(1.0f32)?.set_requires_grad(true)?;
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
#[derive(Clone, Debug, PartialEq)]
pub struct StepLr {
    base: Vec<f64>,
    step_size: u64,
    gamma: f64,
    epoch: u64,
}

impl StepLr {
    /// A schedule from the rates that the optimiser has now.
    ///
    /// # Errors
    /// A step size of 0, a `gamma` that is negative or not finite.
    pub fn new(optimizer: &dyn Optimizer, step_size: u64, gamma: f64) -> Result<StepLr> {
        if step_size == 0 {
            return Err(refuse("StepLr", "step_size", "at least 1", step_size).into());
        }
        super::group::require_not_negative("StepLr", "gamma", gamma)?;
        Ok(StepLr { base: optimizer.learning_rates(), step_size, gamma, epoch: 0 })
    }
}

impl LrScheduler for StepLr {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let times = i32::try_from(epoch / self.step_size).unwrap_or(i32::MAX);
        set(optimizer, &self.base, |base| base * self.gamma.powi(times))?;
        self.epoch = epoch;
        Ok(())
    }
}

/// Lets the rates fall along half a cosine to `eta_min` in `t_max` epochs, and rise again after them (I. Loshchilov,
/// F. Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017, without the restarts):
/// `eta_min + (rate - eta_min) * (1 + cos(pi * epoch / t_max)) / 2`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::{CosineAnnealingLr, LrScheduler, Optimizer, Sgd, SgdOptions};
/// let w = Tensor::scalar(1.0f32)?.set_requires_grad(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = CosineAnnealingLr::new(&optimizer, 10, 0.0)?;
/// schedule.seek(5, &mut optimizer)?;
/// assert!((optimizer.learning_rates()[0] - 0.5).abs() < 1e-12);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CosineAnnealingLr {
    base: Vec<f64>,
    t_max: u64,
    eta_min: f64,
    epoch: u64,
}

impl CosineAnnealingLr {
    /// A schedule from the rates that the optimiser has now.
    ///
    /// # Errors
    /// A `t_max` of 0, an `eta_min` that is negative or not finite.
    pub fn new(optimizer: &dyn Optimizer, t_max: u64, eta_min: f64) -> Result<CosineAnnealingLr> {
        if t_max == 0 {
            return Err(refuse("CosineAnnealingLr", "t_max", "at least 1", t_max).into());
        }
        super::group::require_not_negative("CosineAnnealingLr", "eta_min", eta_min)?;
        Ok(CosineAnnealingLr { base: optimizer.learning_rates(), t_max, eta_min, epoch: 0 })
    }
}

impl LrScheduler for CosineAnnealingLr {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let angle = std::f64::consts::PI * epoch as f64 / self.t_max as f64;
        let share = (1.0 + angle.cos()) / 2.0;
        set(optimizer, &self.base, |base| self.eta_min + (base - self.eta_min) * share)?;
        self.epoch = epoch;
        Ok(())
    }
}
