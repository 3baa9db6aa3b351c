//! RMSprop.

use super::Optimizer;
use super::fused::keep;
use super::group::{
    Group, InitialRates, Loaded, Options, change, load, memory_of, named, parameters, refuse_gradients,
    require_not_negative, save, set_initial, set_rates, warn_without_gradients, with_options,
};
use crate::autograd::no_grad;
use crate::nn::{ModuleError, StateDict};
use crate::ops::composite::widened;
use crate::{Result, Tensor, profiler};

/// The options of [`RmsProp`]; the names and defaults are PyTorch's.
///
/// ```
/// use keyway::optim::RmsPropOptions;
/// let options = RmsPropOptions { lr: 0.1, ..RmsPropOptions::default() };
/// assert_eq!((options.lr, options.alpha), (0.1, 0.99));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsPropOptions {
    /// The learning rate.
    pub lr: f64,
    /// Decay rate of the running means.
    pub alpha: f64,
    /// Added to the root.
    pub eps: f64,
    /// Weight decay: this multiple of the parameter is added to its gradient.
    pub weight_decay: f64,
    /// Momentum: this multiple of the last step's direction is added.
    pub momentum: f64,
    /// Whether the gradient is divided by its standard deviation instead of its root mean square.
    pub centered: bool,
}

impl Default for RmsPropOptions {
    fn default() -> RmsPropOptions {
        RmsPropOptions { lr: 1e-2, alpha: 0.99, eps: 1e-8, weight_decay: 0.0, momentum: 0.0, centered: false }
    }
}

impl Options for RmsPropOptions {
    const NAMES: &'static [&'static str] = &["lr", "alpha", "eps", "weight_decay", "momentum", "centered"];

    fn values(&self) -> Vec<f64> {
        let centered = f64::from(u8::from(self.centered));
        vec![self.lr, self.alpha, self.eps, self.weight_decay, self.momentum, centered]
    }

    fn from_values(values: &[f64]) -> RmsPropOptions {
        match *values {
            [lr, alpha, eps, weight_decay, momentum, centered] => {
                RmsPropOptions { lr, alpha, eps, weight_decay, momentum, centered: centered != 0.0 }
            }
            _ => RmsPropOptions::default(),
        }
    }

    fn check(&self, owner: &'static str) -> Result<(), ModuleError> {
        Self::NAMES
            .iter()
            .zip(self.values())
            .try_for_each(|(name, value)| require_not_negative(owner, name, value))
    }

    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }

    fn remembers(&self, name: &str) -> bool {
        match name {
            DIRECTION => self.momentum != 0.0,
            MEAN => self.centered,
            _ => true,
        }
    }
}

const OWNER: &str = "RmsProp";
const SQUARES: &str = "square_avg";
const DIRECTION: &str = "momentum_buffer";
const MEAN: &str = "grad_avg";
const NAMES: [&str; 3] = [SQUARES, DIRECTION, MEAN];

/// Optimiser state of a parameter, by the names of the options that need it.
#[derive(Debug)]
struct Memory {
    /// The running mean of the gradient's squares.
    squares: Tensor,
    /// The last step's direction.
    direction: Option<Tensor>,
    /// The running mean of the gradient.
    mean: Option<Tensor>,
}

impl Memory {
    /// Zeros for each state tensor that these options need.
    fn new(p: &Tensor, o: &RmsPropOptions) -> Result<Memory> {
        let zeros = || p.detach().zeros_like();
        let some = |name: &str| if o.remembers(name) { zeros().map(Some) } else { Ok(None) };
        Ok(Memory { squares: zeros()?, direction: some(DIRECTION)?, mean: some(MEAN)? })
    }

    /// Adds the state of options that were set since the first step.
    fn complete(&mut self, p: &Tensor, o: &RmsPropOptions) -> Result<()> {
        if o.momentum != 0.0 && self.direction.is_none() {
            self.direction = Some(p.detach().zeros_like()?);
        }
        if o.centered && self.mean.is_none() {
            self.mean = Some(p.detach().zeros_like()?);
        }
        Ok(())
    }

    fn by_name(&self) -> Vec<(&'static str, Tensor)> {
        let mut all = vec![(SQUARES, self.squares.clone())];
        all.extend(self.direction.clone().map(|t| (DIRECTION, t)));
        all.extend(self.mean.clone().map(|t| (MEAN, t)));
        all
    }
}

/// RMSprop (T. Hinton, lecture 6e of "Neural networks for machine learning", 2012; centred: A. Graves, "Generating sequences
/// with recurrent neural networks", 2013; as PyTorch writes it):
///
/// ```text
/// g = grad + weight_decay * p
/// v = alpha * v + (1 - alpha) * g^2
/// m = alpha * m + (1 - alpha) * g                  (centered)
/// d = g / (sqrt(v - m^2) + eps)                    (without m unless centered)
/// b = momentum * b + d
/// p = p - lr * b
/// ```
///
/// f16 and bf16 are computed in f32 and rounded when stored.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::{Optimizer, RmsProp, RmsPropOptions};
/// let w = Tensor::new(1.0f64)?.requires_grad_(true)?;
/// let options = RmsPropOptions { lr: 0.1, alpha: 0.75, ..RmsPropOptions::default() };
/// let mut optimizer = RmsProp::new(vec![w.clone()], options)?;
/// w.mul(3.0)?.backward()?;
/// optimizer.step()?;
/// assert!((w.item::<f64>()? - 0.8).abs() < 1e-6); // 3 / sqrt(0.25 * 9) = 2
/// # Ok(()) }
/// ```
#[doc(alias = "RMSprop")]
#[derive(Debug)]
pub struct RmsProp {
    groups: Vec<Group<RmsPropOptions>>,
    initial: InitialRates,
    memories: Vec<Option<Memory>>,
}

impl RmsProp {
    /// An optimizer of these parameters, with options or only a learning rate: `RmsProp::new(parameters, 0.1)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{RmsProp, RmsPropOptions, Optimizer};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = RmsProp::new(vec![w.clone()], RmsPropOptions { lr: 0.01, ..RmsPropOptions::default() })?;
    /// w.mul(3.0)?.backward()?;
    /// optimizer.step()?;
    /// // 0.01 * 3 / sqrt(0.01 * 9)
    /// assert!((w.item::<f32>()? - 0.9).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Options out of range; no parameters, the same twice, or such that cannot be changed.
    pub fn new(parameters: Vec<Tensor>, options: impl Into<RmsPropOptions>) -> Result<RmsProp> {
        RmsProp::with_groups(vec![Group { parameters, options: options.into() }])
    }

    /// An optimiser of several parameter groups.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{RmsProp, RmsPropOptions, Group, Optimizer};
    /// # use keyway::Tensor;
    /// # let (a, b) = (Tensor::new(1.0f32)?.requires_grad_(true)?, Tensor::new(1.0f32)?.requires_grad_(true)?);
    /// let options = RmsPropOptions { lr: 0.5, ..RmsPropOptions::default() };
    /// let optimizer = RmsProp::with_groups(vec![
    ///     Group { parameters: vec![a], options },
    ///     Group { parameters: vec![b], options: RmsPropOptions { lr: 0.25, ..options } },
    /// ])?;
    /// assert_eq!(optimizer.learning_rates(), [0.5, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RmsProp::new`].
    pub fn with_groups(groups: Vec<Group<RmsPropOptions>>) -> Result<RmsProp> {
        Ok(RmsProp { memories: memory_of(OWNER, &groups)?, groups, initial: None })
    }

    /// The groups, with their current options.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{RmsProp, RmsPropOptions, Optimizer};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = RmsProp::new(vec![w], RmsPropOptions::default())?;
    /// assert_eq!(optimizer.groups()[0].options.lr, 1e-2);
    /// optimizer.set_learning_rates(&[0.5])?;
    /// assert_eq!(optimizer.groups()[0].options.lr, 0.5);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "param_groups")]
    pub fn groups(&self) -> &[Group<RmsPropOptions>] {
        &self.groups
    }
}

/// One parameter's step.
fn update(p: &Tensor, grad: &Tensor, memory: &Memory, o: &RmsPropOptions) -> Result<()> {
    let own = widened(&p.detach())?;
    let mut grad = widened(grad)?;
    if o.weight_decay != 0.0 {
        grad = grad.add(&own.mul(o.weight_decay)?)?;
    }
    let squares = widened(&memory.squares)?.mul_(o.alpha)?.addcmul_with_(&grad, &grad, 1.0 - o.alpha)?;
    keep(&memory.squares, &squares)?;
    let spread = match &memory.mean {
        Some(kept) => {
            let mean = widened(kept)?.lerp_(&grad, 1.0 - o.alpha)?;
            keep(kept, &mean)?;
            squares.addcmul_with(&mean, &mean, -1.0)?.sqrt_()?
        }
        None => squares.sqrt()?,
    };
    let divisor = spread.add_(o.eps)?;
    match &memory.direction {
        Some(kept) => {
            let direction = widened(kept)?.mul_(o.momentum)?.addcdiv_(&grad, &divisor)?;
            keep(kept, &direction)?;
            own.add_with_(&direction, -o.lr)?;
        }
        None => {
            own.addcdiv_with_(&grad, &divisor, -o.lr)?;
        }
    }
    keep(p, &own)
}

impl Optimizer for RmsProp {
    /// Updates every parameter that has a gradient.
    ///
    /// # Errors
    /// A sparse gradient, in which case nothing is changed; errors of the backend.
    fn step(&mut self) -> Result<()> {
        let _scope = profiler::scope("RmsProp.step");
        let _off = no_grad();
        warn_without_gradients(OWNER, &self.groups);
        refuse_gradients(
            OWNER,
            &self.groups,
            false,
            "strided",
            "use `Sgd`, `Adagrad` or `Adam` for this parameter",
        )?;
        for ((p, o), memory) in with_options(&self.groups).zip(&mut self.memories) {
            let Some(grad) = p.grad() else { continue };
            let memory = match memory {
                Some(memory) => memory,
                None => memory.insert(Memory::new(p, o)?),
            };
            memory.complete(p, o)?;
            update(p, &grad, memory, o)?;
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
        save(
            &self.groups,
            &self.initial,
            self.memories.iter().map(|m| m.as_ref().map(Memory::by_name)).collect(),
        )
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let Loaded { options, initial, memories } = load(OWNER, &self.groups, &NAMES, &[], state)?;
        self.groups.iter_mut().zip(options).for_each(|(group, options)| group.options = options);
        self.initial = initial;
        let memory = |(memory, (_, o)): (Option<Vec<Tensor>>, (&Tensor, &RmsPropOptions))| {
            // Sorted by name, those that the options need.
            let mut tensors = memory?.into_iter();
            let squares = tensors.next()?;
            let mut next = |name| if o.remembers(name) { tensors.next() } else { None };
            Some(Memory { squares, direction: next(DIRECTION), mean: next(MEAN) })
        };
        self.memories = memories.into_iter().zip(with_options(&self.groups)).map(memory).collect();
        Ok(())
    }
}
