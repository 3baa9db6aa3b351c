//! Learning rates that change from epoch to epoch.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::Tensor;
//! use keyway::optim::lr_scheduler::{CosineAnnealingLr, LrScheduler, WarmupLr};
//! use keyway::optim::{Optimizer, Sgd, SgdOptions};
//! let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
//! let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
//! let cosine = CosineAnnealingLr::new(&optimizer, 10)?;
//! let mut schedule = WarmupLr::new(&mut optimizer, 0.1, 3, cosine)?;
//! let mut rates = Vec::new();
//! for _epoch in 0..5 {
//!     rates.extend(optimizer.learning_rates());
//!     schedule.step(&mut optimizer)?;
//! }
//! let expected = [0.1, 0.4, 0.7, 1.0, 0.975];
//! assert!(rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() < 1e-3));
//! # Ok(()) }
//! ```
//!
//! Decisions:
//! - a schedule is a formula of the epoch's index and of its initial rates, so its position is restored by
//!   [`seek`](LrScheduler::seek). Only [`ReduceLrOnPlateau`] depends on the past, and has a state;
//! - the initial rates are those of the optimiser when the first schedule is made. The optimiser stores them
//!   ([`initial_learning_rates`](super::Optimizer::initial_learning_rates)) and saves them with its state, so a schedule may be
//!   made before or after [`load_state_dict`](super::Optimizer::load_state_dict). As in PyTorch a further schedule has the same
//!   initial rates; to begin one from the present rates, set these by hand. A schedule with another first rate takes the
//!   optimiser mutably, and sets it immediately.

mod cosine;
mod factor;
mod one_cycle;
mod plateau;
mod steps;
mod warmup;

#[cfg(test)]
mod tests;

pub use cosine::{CosineAnnealingLr, CosineAnnealingWarmRestarts};
pub use factor::{LambdaLr, LinearLr, PolynomialLr};
pub use one_cycle::{Anneal, OneCycleLr, OneCycleLrOptions};
pub use plateau::{PlateauMode, PlateauState, ReduceLrOnPlateau, ReduceLrOnPlateauOptions, Threshold};
pub use steps::{ExponentialLr, MultiStepLr, StepLr};
pub use warmup::WarmupLr;

use super::Optimizer;
use crate::Result;
use std::fmt::Debug;

/// Sets the learning rates of an optimiser, by the formula of a schedule and the index of the epoch. The schedule is constructed
/// in epoch `0`. An epoch is the time between two calls of `step`: for some schedules, one batch.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::lr_scheduler::{LrScheduler, StepLr};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = StepLr::new(&optimizer, 2, 0.5)?;
/// let mut rates = Vec::new();
/// for _epoch in 0..4 {
///     rates.extend(optimizer.learning_rates());
///     schedule.step(&mut optimizer)?;
/// }
/// assert_eq!(rates, [1.0, 1.0, 0.5, 0.5]);
/// # Ok(()) }
/// ```
#[doc(alias = "LRScheduler")]
pub trait LrScheduler: Debug {
    /// The number of the epoch.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, StepLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = StepLr::new(&optimizer, 2, 0.5)?;
    /// schedule.step(&mut optimizer)?;
    /// assert_eq!(schedule.epoch(), 1);
    /// # Ok(()) }
    /// ```
    fn epoch(&self) -> u64;

    /// Sets the epoch by its index, as when a run is resumed.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, StepLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = StepLr::new(&optimizer, 2, 0.5)?;
    /// schedule.seek(5, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A rate that is negative or not finite, as with too large a `gamma`; nothing is changed then.
    fn seek(&mut self, epoch: u64, optimizer: &mut dyn Optimizer) -> Result<()>;

    /// Advances to the next epoch. Call it once after each.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{LrScheduler, ExponentialLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = ExponentialLr::new(&optimizer, 0.5)?;
    /// schedule.step(&mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`LrScheduler::seek`].
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.seek(self.epoch().saturating_add(1), optimizer)
    }
}

/// The rates that a schedule began from, and the epoch that it is in.
#[derive(Clone, Debug, PartialEq)]
struct Progress {
    base: Vec<f64>,
    epoch: u64,
}

impl Progress {
    fn of(optimizer: &dyn Optimizer) -> Progress {
        let initial = optimizer.initial_learning_rates();
        Progress { base: initial.unwrap_or_else(|| optimizer.learning_rates()), epoch: 0 }
    }

    /// Sets the rate of each group to a formula of its first rate.
    fn go(&mut self, epoch: u64, optimizer: &mut dyn Optimizer, rate: impl Fn(f64) -> f64) -> Result<()> {
        let rates: Vec<f64> = self.base.iter().map(|&base| rate(base)).collect();
        optimizer.set_learning_rates(&rates)?;
        optimizer.set_initial_learning_rates(Some(&self.base))?;
        self.epoch = epoch;
        Ok(())
    }
}
