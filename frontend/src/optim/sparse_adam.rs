//! Adam for sparse gradients only.

use super::Optimizer;
use super::group::{
    Group, InitialRates, Options, change, check_moments, memory_of, named, parameters, refuse_gradients,
    require_not_negative, set_initial, set_rates, warn_without_gradients, with_options,
};
use super::moments::{Moments, lazy_step};
use crate::autograd::no_grad;
use crate::nn::{ModuleError, StateDict};
use crate::ops::index::adam_rows::Step;
use crate::tensor::{COO, sparse_layout};
use crate::{Result, Tensor, profiler};

/// The options of [`SparseAdam`]; the names and defaults are PyTorch's.
///
/// ```
/// use keyway::optim::SparseAdamOptions;
/// let options = SparseAdamOptions { lr: 0.1, ..SparseAdamOptions::default() };
/// assert_eq!((options.lr, options.beta1), (0.1, 0.9));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseAdamOptions {
    /// The learning rate.
    pub lr: f64,
    /// Decay rate of the mean of the gradients.
    pub beta1: f64,
    /// Decay rate of the mean of their squares.
    pub beta2: f64,
    /// Added to the root of that mean, before the correction.
    pub eps: f64,
}

impl Default for SparseAdamOptions {
    fn default() -> SparseAdamOptions {
        SparseAdamOptions { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8 }
    }
}

impl Options for SparseAdamOptions {
    const NAMES: &'static [&'static str] = &["lr", "beta1", "beta2", "eps"];

    fn values(&self) -> Vec<f64> {
        vec![self.lr, self.beta1, self.beta2, self.eps]
    }

    fn from_values(values: &[f64]) -> SparseAdamOptions {
        match *values {
            [lr, beta1, beta2, eps] => SparseAdamOptions { lr, beta1, beta2, eps },
            _ => SparseAdamOptions::default(),
        }
    }

    fn check(&self, owner: &'static str) -> Result<(), ModuleError> {
        require_not_negative(owner, "lr", self.lr)?;
        require_not_negative(owner, "eps", self.eps)?;
        check_moments(owner, self.beta1, self.beta2)
    }

    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }
}

const OWNER: &str = "SparseAdam";

/// Adam for sparse gradients, PyTorch's `SparseAdam`: the gradient's rows and their running means are updated, all others are
/// unchanged, and time and memory of a step depend on the number of those rows.
///
/// ```text
/// m = beta1 * m + (1 - beta1) * grad                                                    (rows of the gradient)
/// v = beta2 * v + (1 - beta2) * grad^2
/// p = p - lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)                  (t: the step, from 1)
/// ```
///
/// [`AdamW`](super::AdamW) with [`lazy`](super::AdamWOptions::lazy) also decays weights, adds `eps` at the same point as
/// Adam, and accepts strided and sparse gradients.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::{Optimizer, SparseAdam, SparseAdamOptions};
/// use keyway::{Tensor, nn::{Embedding, Module}};
/// let words = Embedding::new(10, 3)?.sparse(true);
/// let mut optimizer = SparseAdam::new(words.parameters(), SparseAdamOptions::default())?;
/// words.forward(&Tensor::new([4i64, 0])?)?.sum_all()?.backward()?;
/// optimizer.step()?; // rows 0 and 4 alone
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SparseAdam {
    groups: Vec<Group<SparseAdamOptions>>,
    initial: InitialRates,
    moments: Vec<Option<Moments>>,
}

impl SparseAdam {
    /// An optimizer of these parameters, with options or only a learning rate: `SparseAdam::new(parameters, 0.1)`.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{SparseAdam, SparseAdamOptions, Optimizer};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = SparseAdam::new(vec![w.clone()], SparseAdamOptions::default())?;
    /// w.mul(3.0)?.backward()?;
    /// assert!(optimizer.step().is_err(), "the gradient is strided");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No backend for `sparse_coo`; options out of range; no parameters, duplicates, or parameters that cannot be changed.
    pub fn new(parameters: Vec<Tensor>, options: impl Into<SparseAdamOptions>) -> Result<SparseAdam> {
        SparseAdam::with_groups(vec![Group { parameters, options: options.into() }])
    }

    /// An optimiser of several parameter groups.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{SparseAdam, SparseAdamOptions, Group, Optimizer};
    /// # use keyway::Tensor;
    /// # let (a, b) = (Tensor::new(1.0f32)?.requires_grad_(true)?, Tensor::new(1.0f32)?.requires_grad_(true)?);
    /// let options = SparseAdamOptions { lr: 0.5, ..SparseAdamOptions::default() };
    /// let optimizer = SparseAdam::with_groups(vec![
    ///     Group { parameters: vec![a], options },
    ///     Group { parameters: vec![b], options: SparseAdamOptions { lr: 0.25, ..options } },
    /// ])?;
    /// assert_eq!(optimizer.learning_rates(), [0.5, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`SparseAdam::new`].
    pub fn with_groups(groups: Vec<Group<SparseAdamOptions>>) -> Result<SparseAdam> {
        let mut parameters = groups.iter().flat_map(|group| &group.parameters);
        if let Some(first) = parameters.next() {
            sparse_layout(COO, OWNER, first.device())?;
        }
        Ok(SparseAdam { moments: memory_of(OWNER, &groups)?, groups, initial: None })
    }

    /// The groups, with their current options.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{SparseAdam, SparseAdamOptions, Optimizer};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = SparseAdam::new(vec![w], SparseAdamOptions::default())?;
    /// assert_eq!(optimizer.groups()[0].options.lr, 1e-3);
    /// optimizer.set_learning_rates(&[0.5])?;
    /// assert_eq!(optimizer.groups()[0].options.lr, 0.5);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "param_groups")]
    pub fn groups(&self) -> &[Group<SparseAdamOptions>] {
        &self.groups
    }
}

impl Optimizer for SparseAdam {
    /// Updates the rows of the gradients.
    ///
    /// # Errors
    /// A strided gradient, in which case nothing is changed; errors of the backend.
    fn step(&mut self) -> Result<()> {
        let _scope = profiler::scope("SparseAdam.step");
        let _off = no_grad();
        warn_without_gradients(OWNER, &self.groups);
        let expected = "sparse, of `embedding` or `embedding_bag` with `sparse`";
        refuse_gradients(OWNER, &self.groups, true, expected, "use `Adam` or `AdamW` for this parameter")?;
        for ((p, o), moments) in with_options(&self.groups).zip(&mut self.moments) {
            let Some(grad) = p.grad() else { continue };
            let grad = grad.as_coordinates()?;
            grad.sparse_dim()?;
            let m = match moments {
                Some(m) => m,
                None => moments.insert(Moments::zeros(p)?),
            };
            // A gradient that is refused counts as no step.
            let steps = m.steps + 1;
            let rate = o.lr * (1.0 - o.beta2.powf(steps as f64)).sqrt() / (1.0 - o.beta1.powf(steps as f64));
            let step = Step { beta1: o.beta1, beta2: o.beta2, eps: o.eps, rate, decay: 0.0, shrink: 1.0 };
            lazy_step(p, &grad, m, step)?;
            m.steps = steps;
        }
        Ok(())
    }

    fn parameters(&self) -> Vec<Tensor> {
        parameters(&self.groups)
    }

    fn learning_rates(&self) -> Vec<f64> {
        self.groups.iter().map(|group| group.options.lr).collect()
    }

    fn set_learning_rates(&mut self, rates: &[f64]) -> Result<()> {
        set_rates(OWNER, &mut self.groups, &mut self.initial, rates)
    }

    fn initial_learning_rates(&self) -> Option<Vec<f64>> {
        self.initial.clone()
    }

    fn set_initial_learning_rates(&mut self, rates: Option<&[f64]>) -> Result<()> {
        set_initial(OWNER, &self.groups, &mut self.initial, rates)
    }

    fn options(&self) -> Vec<Vec<(&'static str, f64)>> {
        named(&self.groups)
    }

    fn set_options(&mut self, group: usize, options: &[(&str, f64)]) -> Result<()> {
        change(OWNER, &mut self.groups, group, options)
    }

    fn state_dict(&self) -> Result<StateDict> {
        Moments::save(&self.groups, &self.initial, &self.moments)
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let (options, initial, moments) = Moments::load(OWNER, &self.groups, state)?;
        self.groups.iter_mut().zip(options).for_each(|(group, options)| group.options = options);
        self.initial = initial;
        self.moments = moments;
        Ok(())
    }
}
