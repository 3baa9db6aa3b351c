//! The common interface of optimisers.

use crate::nn::StateDict;
use crate::{Result, Tensor};

/// Changes parameters by their gradients.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let mut optimizer = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..SgdOptions::default() })?;
/// w.mul(3.0)?.backward()?;
/// optimizer.step()?;
/// assert_eq!(w.item::<f32>()?, -0.5);
/// # Ok(()) }
/// ```
pub trait Optimizer {
    /// Updates every parameter that has a gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..SgdOptions::default() })?;
    /// w.mul(3.0)?.backward()?;
    /// optimizer.step()?;
    /// assert_eq!(w.item::<f32>()?, -0.5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    fn step(&mut self) -> Result<()>;

    /// The parameters of all groups, in order.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let optimizer = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..SgdOptions::default() })?;
    /// assert!(optimizer.parameters()[0].ptr_eq(&w));
    /// # Ok(()) }
    /// ```
    fn parameters(&self) -> Vec<Tensor>;

    /// Clears the gradients of all parameters.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let optimizer = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..SgdOptions::default() })?;
    /// w.mul(3.0)?.backward()?;
    /// optimizer.zero_grad();
    /// assert!(w.grad().is_none());
    /// # Ok(()) }
    /// ```
    fn zero_grad(&self) {
        self.parameters().iter().for_each(|parameter| parameter.zero_grad());
    }

    /// The learning rate of each group.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let optimizer = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..SgdOptions::default() })?;
    /// assert_eq!(optimizer.learning_rates(), [0.5]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "get_last_lr")]
    fn learning_rates(&self) -> Vec<f64>;

    /// Sets the learning rate of each group, from which later schedules begin.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions::default())?;
    /// optimizer.set_learning_rates(&[0.25])?;
    /// assert_eq!(optimizer.learning_rates(), [0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A rate that is negative or not finite, or a number of rates that differs from that of groups; none is set then.
    fn set_learning_rates(&mut self, rates: &[f64]) -> Result<()>;

    /// The initial learning rate of each group for schedules, PyTorch's `initial_lr`: the rate of the group when the first
    /// schedule was created. `None` before a schedule has taken a step, and once rates were set by hand. It is saved with
    /// the state, so that a schedule created after loading does not begin from an already reduced rate.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{ExponentialLr, LrScheduler};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    /// ExponentialLr::new(&optimizer, 0.5)?.step(&mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.5]);
    /// assert_eq!(optimizer.initial_learning_rates(), Some(vec![1.0]));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "initial_lr")]
    fn initial_learning_rates(&self) -> Option<Vec<f64>> {
        None
    }

    /// Sets the initial rates of schedules. Schedules call it; an optimiser that does not store such rates ignores it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::lr_scheduler::{ExponentialLr, LrScheduler};
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// # let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions { lr: 0.5, ..SgdOptions::default() })?;
    /// optimizer.set_initial_learning_rates(Some(&[1.0]))?;
    /// ExponentialLr::new(&optimizer, 0.5)?.seek(2, &mut optimizer)?;
    /// assert_eq!(optimizer.learning_rates(), [0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Optimizer::set_learning_rates`].
    fn set_initial_learning_rates(&mut self, rates: Option<&[f64]>) -> Result<()> {
        let _ = rates;
        Ok(())
    }

    /// The learning rate of the first group.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::optim::{Optimizer, Sgd};
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// assert_eq!(Sgd::new(vec![w], 0.5)?.learning_rate(), 0.5);
    /// # Ok(()) }
    /// ```
    fn learning_rate(&self) -> f64 {
        self.learning_rates().first().copied().unwrap_or(0.0)
    }

    /// Sets the learning rate of every group to this one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::optim::{Optimizer, Sgd};
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], 0.5)?;
    /// optimizer.set_learning_rate(0.25)?;
    /// assert_eq!(optimizer.learning_rates(), [0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A rate that is negative or not finite; then none is set.
    fn set_learning_rate(&mut self, rate: f64) -> Result<()> {
        self.set_learning_rates(&vec![rate; self.learning_rates().len()])
    }

    /// The options of each group by name, `lr` first; flags are 0 or 1. Empty for an optimiser that names none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let optimizer = Sgd::new(vec![w], SgdOptions { lr: 0.5, momentum: 0.9, ..SgdOptions::default() })?;
    /// assert_eq!(optimizer.options()[0][..2], [("lr", 0.5), ("momentum", 0.9)]);
    /// # Ok(()) }
    /// ```
    fn options(&self) -> Vec<Vec<(&'static str, f64)>> {
        Vec::new()
    }

    /// Sets options of a group by name; the others stay, and so do the initial rates of schedules.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Optimizer, Sgd};
    /// let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], 0.5)?;
    /// optimizer.set_options(0, &[("momentum", 0.9)])?;
    /// assert_eq!((optimizer.groups()[0].options.lr, optimizer.groups()[0].options.momentum), (0.5, 0.9));
    /// assert!(optimizer.set_options(0, &[("beta1", 0.9)]).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No such group, an unknown name, a value out of range; nothing is changed then.
    fn set_options(&mut self, group: usize, options: &[(&str, f64)]) -> Result<()> {
        let got = options.first().map_or_else(|| format!("group {group}"), |(name, _)| (*name).to_string());
        Err(super::group::refuse("Optimizer", "option", "one that the optimiser names", got).into())
    }

    /// Makes one step by the gradients of only this loss: clears the gradients, computes those of the loss, and steps.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::optim::{Optimizer, Sgd};
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w.clone()], 0.5)?;
    /// optimizer.backward_step(&w.mul(3.0)?)?;
    /// assert_eq!(w.item::<f32>()?, -0.5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::backward`] and [`Optimizer::step`].
    fn backward_step(&mut self, loss: &Tensor) -> Result<()> {
        self.zero_grad();
        loss.backward()?;
        self.step()
    }

    /// The options and the state of each parameter, by name: `group.0.lr`, `state.3.momentum`. The tensors are copies.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let optimizer = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..SgdOptions::default() })?;
    /// assert_eq!(optimizer.state_dict()?["group.0.lr"].item::<f64>()?, 0.5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Insufficient memory.
    fn state_dict(&self) -> Result<StateDict>;

    /// Restores options and state.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::optim::{Optimizer, Sgd, SgdOptions};
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let options = SgdOptions { lr: 0.5, momentum: 0.9, ..SgdOptions::default() };
    /// let saved = Sgd::new(vec![w.clone()], options)?.state_dict()?;
    /// let mut other = Sgd::new(vec![w], SgdOptions::default())?;
    /// other.load_state_dict(&saved)?;
    /// assert_eq!(other.learning_rates(), [0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Another number of groups or of parameters in one, names that are missing or not expected, other shapes; then nothing is
    /// changed.
    fn load_state_dict(&mut self, state: &StateDict) -> Result<()>;
}
