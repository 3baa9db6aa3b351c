//! One cycle of the rate over a whole training.

use super::cosine::between;
use super::{LrScheduler, Progress};
use crate::Result;
use crate::optim::Optimizer;
use crate::optim::group::refuse;

/// The line between the ends of a phase.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::lr_scheduler::{Anneal, OneCycleLrOptions};
/// use keyway::optim::lr_scheduler::{LrScheduler, OneCycleLr};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let straight = OneCycleLrOptions { anneal: Anneal::Linear, pct_start: 0.5, div_factor: 2.0, ..Default::default() };
/// let mut schedule = OneCycleLr::new(&mut optimizer, 1.0, 10, straight)?;
/// schedule.seek(2, &mut optimizer)?;
/// assert!((optimizer.learning_rates()[0] - 0.75).abs() < 1e-12);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anneal {
    /// Half a cosine.
    #[default]
    Cos,
    /// Straight.
    Linear,
}

/// The options of [`OneCycleLr`]; the names and defaults are PyTorch's.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::lr_scheduler::OneCycleLrOptions;
/// use keyway::optim::lr_scheduler::{LrScheduler, OneCycleLr};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
/// let options = OneCycleLrOptions { div_factor: 4.0, ..OneCycleLrOptions::default() };
/// OneCycleLr::new(&mut optimizer, 1.0, 10, options)?;
/// assert_eq!(optimizer.learning_rates(), [0.25]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneCycleLrOptions {
    /// The share of the steps in which the rate rises.
    pub pct_start: f64,
    /// The line between the ends of a phase.
    pub anneal: Anneal,
    /// The first rate is `max_lr` divided by this.
    pub div_factor: f64,
    /// The last rate is the first one divided by this.
    pub final_div_factor: f64,
    /// Whether the rate first decreases to the initial one as fast as it rose, and then to the final one in the remaining
    /// steps; otherwise it decreases to the final one in one phase.
    pub three_phase: bool,
}

impl Default for OneCycleLrOptions {
    fn default() -> OneCycleLrOptions {
        OneCycleLrOptions {
            pct_start: 0.3,
            anneal: Anneal::Cos,
            div_factor: 25.0,
            final_div_factor: 1e4,
            three_phase: false,
        }
    }
}

/// The 1cycle schedule: the rate of every group rises to `max_lr` and falls to nearly 0 in `total_steps` steps (L. Smith, N.
/// Topin, "Super-convergence: very fast training of neural networks using large learning rates", 2018, in PyTorch's form). A step
/// is a batch here: call `step` after each. The momentum is unchanged.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::lr_scheduler::{LrScheduler, OneCycleLr, OneCycleLrOptions};
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w], SgdOptions::default())?;
/// let mut schedule = OneCycleLr::new(&mut optimizer, 1.0, 10, OneCycleLrOptions::default())?;
/// assert!((optimizer.learning_rates()[0] - 0.04).abs() < 1e-12);
/// schedule.seek(2, &mut optimizer)?;
/// assert_eq!(optimizer.learning_rates(), [1.0]);
/// # Ok(()) }
/// ```
#[doc(alias = "OneCycleLR")]
#[derive(Clone, Debug, PartialEq)]
pub struct OneCycleLr {
    progress: Progress,
    max_lr: f64,
    total_steps: u64,
    options: OneCycleLrOptions,
}

const OWNER: &str = "OneCycleLr";

impl OneCycleLr {
    /// Creates the schedule and sets the initial rate.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::OneCycleLrOptions;
    /// use keyway::optim::lr_scheduler::{LrScheduler, OneCycleLr};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// let mut schedule = OneCycleLr::new(&mut optimizer, 2.0, 10, OneCycleLrOptions::default())?;
    /// schedule.seek(2, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No steps, a share outside 0 to 1, a `max_lr` or a factor that is not positive and finite.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        max_lr: f64,
        total_steps: u64,
        options: OneCycleLrOptions,
    ) -> Result<OneCycleLr> {
        if total_steps == 0 {
            return Err(refuse(OWNER, "total_steps", "at least 1", total_steps).into());
        }
        if !(0.0..=1.0).contains(&options.pct_start) {
            return Err(refuse(OWNER, "pct_start", "a share from 0 to 1", options.pct_start).into());
        }
        let OneCycleLrOptions { div_factor, final_div_factor, .. } = options;
        let positive =
            [("max_lr", max_lr), ("div_factor", div_factor), ("final_div_factor", final_div_factor)];
        for (name, got) in positive {
            if !(got > 0.0 && got.is_finite()) {
                return Err(refuse(OWNER, name, "a finite number above 0", got).into());
            }
        }
        let mut made = OneCycleLr { progress: Progress::of(optimizer), max_lr, total_steps, options };
        made.seek(0, optimizer)?;
        Ok(made)
    }

    /// The rate of a step below `total_steps`.
    fn rate(&self, step: f64) -> f64 {
        let OneCycleLrOptions { pct_start, anneal, div_factor, final_div_factor, three_phase } = self.options;
        let first = self.max_lr / div_factor;
        let last = first / final_div_factor;
        let all = self.total_steps as f64;
        // The end of each phase, and its first and last rate.
        let rising = (pct_start * all - 1.0, first, self.max_lr);
        let phases = match three_phase {
            true => {
                vec![rising, (2.0 * pct_start * all - 2.0, self.max_lr, first), (all - 1.0, first, last)]
            }
            false => vec![rising, (all - 1.0, self.max_lr, last)],
        };
        let mut begin = 0.0;
        for (end, from, to) in phases {
            if step <= end {
                let share = if end > begin { (step - begin) / (end - begin) } else { 1.0 };
                return match anneal {
                    Anneal::Cos => between(from, to, share),
                    Anneal::Linear => from + (to - from) * share,
                };
            }
            begin = end;
        }
        last
    }
}

impl LrScheduler for OneCycleLr {
    fn epoch(&self) -> u64 {
        self.progress.epoch
    }

    /// Sets the step by its index. After the last one, the rate is constant.
    ///
    /// # Errors
    /// An index above `total_steps`; nothing is changed then.
    fn seek(&mut self, step: u64, optimizer: &mut dyn Optimizer) -> Result<()> {
        if step > self.total_steps {
            let got = format!("step {step} of {}", self.total_steps);
            return Err(refuse(OWNER, "step", "at most `total_steps`; make it with more steps", got).into());
        }
        let rate = self.rate(step.min(self.total_steps - 1) as f64);
        self.progress.go(step, optimizer, |_| rate)
    }
}
