//! Stochastic gradient descent.

use super::Optimizer;
use super::clock::refuse_first;
use super::fused::{Batch, Batches, is_half, numbered};
use super::group::{
    Group, InitialRates, Loaded, Options, change, load, memory_of, named, parameters, refuse,
    require_not_negative, save, set_initial, set_rates, warn_without_gradients,
};
use crate::autograd::no_grad;
use crate::nn::{ModuleError, StateDict};
use crate::ops::optim::sgd_step::{self, Step};
use crate::{Result, Tensor, profiler};

/// The options of [`Sgd`]; the names and defaults are PyTorch's.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::optim::{Sgd, SgdOptions, Optimizer};
/// use keyway::Tensor;
/// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let options = SgdOptions { lr: 0.5, weight_decay: 0.5, ..SgdOptions::default() };
/// let mut optimizer = Sgd::new(vec![w.clone()], options)?;
/// w.mul(0.0)?.backward()?;
/// optimizer.step()?;
/// assert_eq!(w.item::<f32>()?, 0.75);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdOptions {
    /// The learning rate.
    pub lr: f64,
    /// Momentum: this multiple of the last step's direction is added.
    pub momentum: f64,
    /// The dampening of the momentum buffer: the fraction of the gradient that is not added to it, except in the first step.
    pub dampening: f64,
    /// Weight decay: this multiple of the parameter is added to its gradient.
    pub weight_decay: f64,
    /// Nesterov momentum. Needs momentum and no dampening.
    pub nesterov: bool,
}

impl Default for SgdOptions {
    fn default() -> SgdOptions {
        SgdOptions { lr: 1e-3, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false }
    }
}

impl Options for SgdOptions {
    const LINEAR: bool = true;
    const NAMES: &'static [&'static str] = &["lr", "momentum", "dampening", "weight_decay", "nesterov"];

    fn values(&self) -> Vec<f64> {
        let nesterov = f64::from(u8::from(self.nesterov));
        vec![self.lr, self.momentum, self.dampening, self.weight_decay, nesterov]
    }

    fn from_values(values: &[f64]) -> SgdOptions {
        match *values {
            [lr, momentum, dampening, weight_decay, nesterov] => {
                SgdOptions { lr, momentum, dampening, weight_decay, nesterov: nesterov != 0.0 }
            }
            _ => SgdOptions::default(),
        }
    }

    fn check(&self, owner: &'static str) -> Result<(), ModuleError> {
        require_not_negative(owner, "lr", self.lr)?;
        require_not_negative(owner, "momentum", self.momentum)?;
        require_not_negative(owner, "weight_decay", self.weight_decay)?;
        if !self.dampening.is_finite() {
            return Err(refuse(owner, "dampening", "a finite number", self.dampening));
        }
        if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
            let got = format!("momentum {} and dampening {}", self.momentum, self.dampening);
            return Err(refuse(owner, "nesterov", "off, or with momentum above 0 and no dampening", got));
        }
        Ok(())
    }

    fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }
}

const OWNER: &str = "Sgd";

/// Stochastic gradient descent, with momentum, Nesterov's momentum and weight decay (I. Sutskever and others, "On the
/// importance of initialization and momentum in deep learning", 2013, as PyTorch writes it):
///
/// ```text
/// d = grad + weight_decay * p
/// v = momentum * v + (1 - dampening) * d        (v = d in the first step)
/// p = p - lr * (nesterov ? d + momentum * v : v)
/// ```
///
/// With a sparse gradient, and without momentum and weight decay, the step touches only its rows; with them the step equals that
/// of the strided gradient, and touches all rows.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::{Optimizer, Sgd, SgdOptions};
/// let w = Tensor::new([1.0f32, -1.0])?.requires_grad_(true)?;
/// let options = SgdOptions { lr: 0.25, momentum: 0.9, nesterov: true, ..SgdOptions::default() };
/// let mut optimizer = Sgd::new(vec![w.clone()], options)?;
/// w.mul(&w)?.sum_all()?.backward()?;
/// optimizer.step()?;
/// assert!((w.to_vec::<f32>()?[0] - 0.05).abs() < 1e-6);
/// # Ok(()) }
/// ```
#[doc(alias = "SGD")]
#[derive(Debug)]
pub struct Sgd {
    groups: Vec<Group<SgdOptions>>,
    initial: InitialRates,
    /// The momentum buffer of each parameter, over all groups.
    directions: Vec<Option<Tensor>>,
}

impl Sgd {
    /// An optimizer of these parameters, with options or only a learning rate: `Sgd::new(parameters, 0.1)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Sgd, SgdOptions, Optimizer};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..SgdOptions::default() })?;
    /// w.mul(3.0)?.backward()?;
    /// optimizer.step()?;
    /// assert_eq!(w.item::<f32>()?, -0.5);
    /// assert!(Sgd::new(vec![w.detach()], SgdOptions::default()).is_err(), "it does not require grad");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Options out of range; no parameters, the same twice, or such that cannot be changed.
    pub fn new(parameters: Vec<Tensor>, options: impl Into<SgdOptions>) -> Result<Sgd> {
        Sgd::with_groups(vec![Group { parameters, options: options.into() }])
    }

    /// An optimiser of several parameter groups.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Sgd, SgdOptions, Group, Optimizer};
    /// # use keyway::Tensor;
    /// # let (a, b) = (Tensor::new(1.0f32)?.requires_grad_(true)?, Tensor::new(1.0f32)?.requires_grad_(true)?);
    /// let options = SgdOptions { lr: 0.5, ..SgdOptions::default() };
    /// let optimizer = Sgd::with_groups(vec![
    ///     Group { parameters: vec![a], options },
    ///     Group { parameters: vec![b], options: SgdOptions { lr: 0.25, ..options } },
    /// ])?;
    /// assert_eq!(optimizer.learning_rates(), [0.5, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Sgd::new`].
    pub fn with_groups(groups: Vec<Group<SgdOptions>>) -> Result<Sgd> {
        Ok(Sgd { directions: memory_of(OWNER, &groups)?, groups, initial: None })
    }

    /// The groups, with their current options.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Sgd, SgdOptions, Optimizer};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Sgd::new(vec![w], SgdOptions::default())?;
    /// assert_eq!(optimizer.groups()[0].options.lr, 1e-3);
    /// optimizer.set_learning_rates(&[0.5])?;
    /// assert_eq!(optimizer.groups()[0].options.lr, 0.5);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "param_groups")]
    pub fn groups(&self) -> &[Group<SgdOptions>] {
        &self.groups
    }
}

/// The scalars of a step.
fn numbers(o: &SgdOptions, first: bool) -> Step {
    let SgdOptions { lr, momentum, dampening, weight_decay, nesterov } = *o;
    Step { lr, momentum, dampening, weight_decay, nesterov, first }
}

/// One parameter's step. The terms of `d` are added one by one, which needs no memory for `d`; for f16 and bf16 there are some
/// tensors in f32.
fn update(p: &Tensor, grad: &Tensor, direction: &mut Option<Tensor>, o: &SgdOptions) -> Result<()> {
    let touches_all = grad.as_ref().is_strided() || o.momentum != 0.0 || o.weight_decay != 0.0;
    if is_half(p) && touches_all {
        let first = direction.is_none();
        let buffer = match direction {
            _ if o.momentum == 0.0 => None,
            Some(buffer) => Some(buffer.clone()),
            None => Some(p.detach().uninit_like(())?),
        };
        let buffers: Vec<&Tensor> = buffer.iter().collect();
        sgd_step::in_place(&[p], &[&grad.to_dense()?], &buffers, numbers(o, first))?;
        if buffer.is_some() {
            *direction = buffer;
        }
        return Ok(());
    }
    if o.momentum != 0.0 {
        let gradient_share = match direction {
            Some(v) => {
                v.mul_(o.momentum)?.add_with_(grad, 1.0 - o.dampening)?;
                1.0 - o.dampening
            }
            None => {
                *direction = Some(p.detach().uninit_like(())?.copy_(grad)?);
                1.0
            }
        };
        if let Some(v) = direction {
            if o.weight_decay != 0.0 {
                v.add_with_(p, gradient_share * o.weight_decay)?;
            }
            if !o.nesterov {
                p.add_with_(&*v, -o.lr)?;
                return Ok(());
            }
        }
    }
    if o.weight_decay != 0.0 {
        p.mul_(1.0 - o.lr * o.weight_decay)?;
    }
    p.add_with_(grad, -o.lr)?;
    if let (true, Some(v)) = (o.nesterov, direction) {
        p.add_with_(&*v, -o.lr * o.momentum)?;
    }
    Ok(())
}

impl Optimizer for Sgd {
    fn step(&mut self) -> Result<()> {
        let _scope = profiler::scope("Sgd.step");
        let _off = no_grad();
        warn_without_gradients(OWNER, &self.groups);
        let parameters = numbered(&self.groups);
        let grads: Vec<Option<Tensor>> = parameters.iter().map(|(_, p)| p.grad()).collect();
        // Buffers have no contents before the step that creates them.
        let mut fresh: Vec<Option<Tensor>> = vec![None; parameters.len()];
        for (nth, (group, parameter)) in parameters.iter().enumerate() {
            let has_buffer = self.groups[*group].options.momentum != 0.0;
            if has_buffer && grads[nth].is_some() && self.directions[nth].is_none() {
                refuse_first(OWNER, parameter)?;
                fresh[nth] = Some(parameter.detach().uninit_like(())?);
            }
        }
        let buffer = |nth: usize| match self.groups[parameters[nth].0].options.momentum {
            0.0 => None,
            _ => fresh[nth].as_ref().or(self.directions[nth].as_ref()),
        };
        let Batches { together, alone } = Batches::new(&parameters, &grads, sgd_step::is_served, |nth| {
            (buffer(nth).into_iter().collect(), fresh[nth].is_some())
        })?;
        let (mut made, mut result) = (Vec::new(), Ok(()));
        for Batch { key: first, members } in together {
            let own: Vec<&Tensor> = members.iter().map(|&nth| parameters[nth].1).collect();
            let of: Vec<&Tensor> = members.iter().filter_map(|&nth| grads[nth].as_ref()).collect();
            let buffers: Vec<&Tensor> = members.iter().filter_map(|&nth| buffer(nth)).collect();
            let step = numbers(&self.groups[parameters[members[0]].0].options, first);
            result = sgd_step::in_place(&own, &of, &buffers, step);
            if result.is_err() {
                break;
            }
            made.extend(members);
        }
        for nth in made {
            if let Some(buffer) = fresh[nth].take() {
                self.directions[nth] = Some(buffer);
            }
        }
        result?;
        for nth in alone {
            let (Some(grad), (group, parameter)) = (&grads[nth], parameters[nth]) else { continue };
            update(parameter, grad, &mut self.directions[nth], &self.groups[group].options)?;
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
        let memories = self.directions.iter().map(|d| d.as_ref().map(|d| vec![("momentum", d.clone())]));
        save(&self.groups, &self.initial, memories.collect())
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let Loaded { options, initial, memories } = load(OWNER, &self.groups, &["momentum"], &[], state)?;
        self.groups.iter_mut().zip(options).for_each(|(group, options)| group.options = options);
        self.initial = initial;
        self.directions = memories.into_iter().map(|memory| memory?.into_iter().next()).collect();
        Ok(())
    }
}
