//! A schedule that reduces the rates when a metric stops improving.

use crate::Result;
use crate::optim::Optimizer;
use crate::optim::group::{refuse, require_not_negative};

/// Whether the metric improves by falling or by rising.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::lr_scheduler::*;
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let options = ReduceLrOnPlateauOptions { mode: PlateauMode::Max, patience: 0, ..Default::default() };
/// let mut schedule = ReduceLrOnPlateau::new(options)?;
/// for accuracy in [0.5, 0.6, 0.7] {
///     schedule.step(accuracy, &mut optimizer)?;
/// }
/// assert_eq!(optimizer.learning_rates(), [1.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlateauMode {
    /// A smaller number, as of a loss.
    #[default]
    Min,
    /// A larger number, as of an accuracy.
    Max,
}

/// Minimum change of the metric that counts as an improvement.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::lr_scheduler::*;
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let options = ReduceLrOnPlateauOptions { threshold: Threshold::Absolute(0.5), patience: 0, ..Default::default() };
/// let mut schedule = ReduceLrOnPlateau::new(options)?;
/// for loss in [3.0, 2.75] {
///     schedule.step(loss, &mut optimizer)?;
/// }
/// assert_eq!(optimizer.learning_rates(), [0.1]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Relative to the best value.
    Relative(f64),
    /// Absolute.
    Absolute(f64),
}

/// The options of [`ReduceLrOnPlateau`]; the names and defaults are PyTorch's.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::lr_scheduler::*;
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let options = ReduceLrOnPlateauOptions { patience: 0, factor: 0.5, min_lr: 0.25, ..Default::default() };
/// let mut schedule = ReduceLrOnPlateau::new(options)?;
/// for loss in [1.0, 1.0, 1.0, 1.0] {
///     schedule.step(loss, &mut optimizer)?;
/// }
/// assert_eq!(optimizer.learning_rates(), [0.25]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceLrOnPlateauOptions {
    /// Whether the metric improves by falling or by rising.
    pub mode: PlateauMode,
    /// Factor of the rates at a reduction.
    pub factor: f64,
    /// Number of epochs without improvement that are tolerated.
    pub patience: u64,
    /// Minimum change that counts as an improvement.
    pub threshold: Threshold,
    /// Number of epochs after a reduction that are not counted.
    pub cooldown: u64,
    /// The rates do not fall below this.
    pub min_lr: f64,
    /// Minimum change of a rate; smaller reductions are skipped.
    pub eps: f64,
}

impl Default for ReduceLrOnPlateauOptions {
    fn default() -> ReduceLrOnPlateauOptions {
        ReduceLrOnPlateauOptions {
            mode: PlateauMode::Min,
            factor: 0.1,
            patience: 10,
            threshold: Threshold::Relative(1e-4),
            cooldown: 0,
            min_lr: 0.0,
            eps: 1e-8,
        }
    }
}

/// State of a [`ReduceLrOnPlateau`]. The rates are those of the optimiser, and saved with it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::lr_scheduler::*;
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = ReduceLrOnPlateau::new(ReduceLrOnPlateauOptions::default())?;
/// schedule.step(3.0, &mut optimizer)?;
/// schedule.step(4.0, &mut optimizer)?;
/// assert_eq!(schedule.state(), PlateauState { best: 3.0, bad_epochs: 1, cooldown: 0 });
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlateauState {
    /// The best number.
    pub best: f64,
    /// Epochs since the best value.
    pub bad_epochs: u64,
    /// Epochs that are not yet counted again.
    pub cooldown: u64,
}

/// Multiplies the rates by `factor` when a number, such as the validation loss, has not become better for more than `patience`
/// epochs.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{ReduceLrOnPlateauOptions, ReduceLrOnPlateau};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let mut schedule = ReduceLrOnPlateau::new(ReduceLrOnPlateauOptions { patience: 1, factor: 0.5, ..ReduceLrOnPlateauOptions::default() })?;
/// for loss in [3.0, 2.0, 2.0, 2.0] {
///     schedule.step(loss, &mut optimizer)?;
/// }
/// assert_eq!(optimizer.learning_rates(), [0.5]);
/// # Ok(()) }
/// ```
#[doc(alias = "ReduceLROnPlateau")]
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceLrOnPlateau {
    options: ReduceLrOnPlateauOptions,
    state: PlateauState,
}

const OWNER: &str = "ReduceLrOnPlateau";

impl ReduceLrOnPlateau {
    /// A schedule that has not yet seen a number.
    ///
    /// ```
    /// use keyway::optim::lr_scheduler::{ReduceLrOnPlateau, ReduceLrOnPlateauOptions};
    /// assert!(ReduceLrOnPlateau::new(ReduceLrOnPlateauOptions::default()).is_ok());
    /// assert!(ReduceLrOnPlateau::new(ReduceLrOnPlateauOptions { factor: 2.0, ..Default::default() }).is_err());
    /// ```
    ///
    /// # Errors
    /// A `factor` that is not below 1; one, a threshold, a `min_lr` or an `eps` that is negative or not finite.
    pub fn new(options: ReduceLrOnPlateauOptions) -> Result<ReduceLrOnPlateau> {
        if !(0.0..1.0).contains(&options.factor) {
            return Err(refuse(OWNER, "factor", "at least 0 and below 1", options.factor).into());
        }
        let (Threshold::Relative(threshold) | Threshold::Absolute(threshold)) = options.threshold;
        let numbers = [("threshold", threshold), ("min_lr", options.min_lr), ("eps", options.eps)];
        numbers.into_iter().try_for_each(|(name, got)| require_not_negative(OWNER, name, got))?;
        let best = match options.mode {
            PlateauMode::Min => f64::INFINITY,
            PlateauMode::Max => f64::NEG_INFINITY,
        };
        Ok(ReduceLrOnPlateau { options, state: PlateauState { best, bad_epochs: 0, cooldown: 0 } })
    }

    /// The state, to be saved.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::*;
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = ReduceLrOnPlateau::new(ReduceLrOnPlateauOptions::default())?;
    /// schedule.step(3.0, &mut optimizer)?;
    /// assert_eq!(schedule.state().best, 3.0);
    /// # Ok(()) }
    /// ```
    pub fn state(&self) -> PlateauState {
        self.state
    }

    /// Restores the state that [`ReduceLrOnPlateau::state`] returned.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::*;
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let options = ReduceLrOnPlateauOptions { patience: 2, ..Default::default() };
    /// let mut schedule = ReduceLrOnPlateau::new(options)?;
    /// schedule.set_state(PlateauState { best: 3.0, bad_epochs: 2, cooldown: 0 });
    /// schedule.step(3.0, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.1]);
    /// # Ok(()) }
    /// ```
    pub fn set_state(&mut self, state: PlateauState) {
        self.state = state;
    }

    /// Passes the metric of an epoch. NaN is never an improvement.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::*;
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let options = ReduceLrOnPlateauOptions { patience: 0, ..Default::default() };
    /// let mut schedule = ReduceLrOnPlateau::new(options)?;
    /// schedule.step(3.0, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [1.0]);
    /// schedule.step(f64::NAN, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the optimiser about its rates.
    pub fn step(&mut self, metric: f64, optimizer: &mut dyn Optimizer) -> Result<()> {
        let mut next = self.state;
        if self.is_better(metric) {
            (next.best, next.bad_epochs) = (metric, 0);
        } else {
            next.bad_epochs += 1;
        }
        if next.cooldown > 0 {
            (next.cooldown, next.bad_epochs) = (next.cooldown - 1, 0);
        }
        if next.bad_epochs > self.options.patience {
            let ReduceLrOnPlateauOptions { factor, min_lr, eps, .. } = self.options;
            let reduced = |rate: f64| {
                let lower = (rate * factor).max(min_lr);
                if rate - lower > eps { lower } else { rate }
            };
            let rates: Vec<f64> = optimizer.learning_rates().into_iter().map(reduced).collect();
            // The initial rates of other schedules are unchanged.
            let initial = optimizer.initial_learning_rates();
            optimizer.set_learning_rates(&rates)?;
            optimizer.set_initial_learning_rates(initial.as_deref())?;
            (next.cooldown, next.bad_epochs) = (self.options.cooldown, 0);
        }
        self.state = next;
        Ok(())
    }

    fn is_better(&self, metric: f64) -> bool {
        let best = self.state.best;
        if best.is_infinite() {
            // The first number, whatever the threshold.
            return match self.options.mode {
                PlateauMode::Min => metric < best,
                PlateauMode::Max => metric > best,
            };
        }
        match (self.options.mode, self.options.threshold) {
            (PlateauMode::Min, Threshold::Relative(share)) => metric < best * (1.0 - share),
            (PlateauMode::Min, Threshold::Absolute(by)) => metric < best - by,
            (PlateauMode::Max, Threshold::Relative(share)) => metric > best * (1.0 + share),
            (PlateauMode::Max, Threshold::Absolute(by)) => metric > best + by,
        }
    }
}
