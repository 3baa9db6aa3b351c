//! Adam and AdamW.

use super::Optimizer;
use super::clock::{Clock, check_same, common_steps, refuse_captured, refuse_first};
use super::fused::{Batch, Batches, is_half, numbered};
use super::group::{
    Group, InitialRates, Options, change, check_moments, memory_of, named, parameters, refuse,
    require_not_negative, set_initial, set_rates, warn_without_gradients,
};
use super::moments::{Moments, lazy_step};
use super::rows::Gradient;
use crate::autograd::no_grad;
use crate::nn::{ModuleError, StateDict};
use crate::ops::index::adam_rows::Step;
use crate::ops::optim::adam_step::{self, Lists};
use crate::{Device, Result, Tensor, profiler};

/// The fields of both kinds of options, which differ in the effect and the default of the weight decay.
macro_rules! options {
    ($(#[$doc:meta])* $name:ident, $(#[$decay_doc:meta])* $decay:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            /// The learning rate.
            pub lr: f64,
            /// Decay rate of the mean of the gradients.
            pub beta1: f64,
            /// Decay rate of the mean of their squares.
            pub beta2: f64,
            /// Added to the root of that mean.
            pub eps: f64,
            $(#[$decay_doc])*
            pub weight_decay: f64,
            /// The effect of a sparse gradient. Off, the step is that of the strided gradient and touches the whole parameter.
            /// On, only the gradient's rows are decayed and updated, and the means of all others are unchanged, so that time and
            /// memory depend on the number of those rows; the bias corrections count all steps. Strided gradients are unaffected.
            pub lazy: bool,
        }

        impl Default for $name {
            fn default() -> $name {
                $name { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: $decay, lazy: false }
            }
        }

        impl Options for $name {
            const NAMES: &'static [&'static str] = &["lr", "beta1", "beta2", "eps", "weight_decay", "lazy"];

            fn values(&self) -> Vec<f64> {
                let lazy = f64::from(u8::from(self.lazy));
                vec![self.lr, self.beta1, self.beta2, self.eps, self.weight_decay, lazy]
            }

            fn from_values(values: &[f64]) -> $name {
                match *values {
                    [lr, beta1, beta2, eps, weight_decay, lazy] => {
                        $name { lr, beta1, beta2, eps, weight_decay, lazy: lazy != 0.0 }
                    }
                    _ => $name::default(),
                }
            }

            fn check(&self, owner: &'static str) -> Result<(), ModuleError> {
                require_not_negative(owner, "lr", self.lr)?;
                require_not_negative(owner, "eps", self.eps)?;
                require_not_negative(owner, "weight_decay", self.weight_decay)?;
                check_moments(owner, self.beta1, self.beta2)
            }

            fn set_lr(&mut self, lr: f64) {
                self.lr = lr;
            }
        }
    };
}

options! {
    /// The options of [`Adam`]; the names and defaults are PyTorch's.
    ///
    /// ```
    /// use keyway::optim::AdamOptions;
    /// let options = AdamOptions { lr: 0.1, ..AdamOptions::default() };
    /// assert_eq!((options.lr, options.weight_decay), (0.1, 0.0));
    /// ```
    AdamOptions,
    /// L2 weight decay: this multiple of the parameter is added to its gradient.
    0.0
}

options! {
    /// The options of [`AdamW`]; the names and defaults are PyTorch's and candle's, which decay weights.
    ///
    /// ```
    /// use keyway::optim::AdamWOptions;
    /// let options = AdamWOptions { lr: 0.1, ..AdamWOptions::default() };
    /// assert_eq!((options.lr, options.weight_decay), (0.1, 0.01));
    /// ```
    #[doc(alias = "ParamsAdamW")]
    AdamWOptions,
    /// Decoupled weight decay: this multiple of the parameter, times the learning rate, is subtracted from it.
    0.01
}

impl From<AdamWOptions> for AdamOptions {
    fn from(o: AdamWOptions) -> AdamOptions {
        let AdamWOptions { lr, beta1, beta2, eps, weight_decay, lazy } = o;
        AdamOptions { lr, beta1, beta2, eps, weight_decay, lazy }
    }
}

/// The common part of Adam and AdamW.
#[derive(Debug)]
struct Core<O> {
    owner: &'static str,
    groups: Vec<Group<O>>,
    initial: InitialRates,
    moments: Vec<Option<Moments>>,
    /// Whether weight decay is applied to the parameter rather than to its gradient.
    decoupled: bool,
    /// The count of steps on the device, where captured work counts them.
    clock: Option<Clock>,
}

impl<O: Options + Copy + Into<AdamOptions>> Core<O> {
    fn new(owner: &'static str, groups: Vec<Group<O>>, decoupled: bool) -> Result<Core<O>> {
        Ok(Core { owner, moments: memory_of(owner, &groups)?, groups, initial: None, decoupled, clock: None })
    }

    fn step(&mut self) -> Result<()> {
        let _off = no_grad();
        let parameters = numbered(&self.groups);
        let grads: Vec<Option<Tensor>> = parameters.iter().map(|(_, p)| p.grad()).collect();
        if grads.iter().all(Option::is_none) {
            warn_without_gradients(self.owner, &self.groups);
            return Ok(());
        }
        match self.clock {
            None => parameters.iter().try_for_each(|(_, p)| refuse_captured(self.owner, p))?,
            Some(_) => check_same(self.owner, &grads, &self.moments)?,
        }
        let is_new = |nth: usize| grads[nth].is_some() && self.moments[nth].is_none();
        let mut fresh: Vec<Option<Moments>> = Vec::new();
        for (nth, (_, parameter)) in parameters.iter().enumerate() {
            let new = is_new(nth).then(|| {
                refuse_first(self.owner, parameter)?;
                Moments::zeros(parameter)
            });
            fresh.push(new.transpose()?);
        }
        let Batches { together, alone } = Batches::new(&parameters, &grads, adam_step::is_served, |nth| {
            let moments = self.moments[nth].as_ref().or(fresh[nth].as_ref());
            (moments.map_or(Vec::new(), |m| vec![&m.first, &m.second]), moments.map_or(0, |m| m.steps))
        })?;
        if let (Some(_), Some(&nth)) = (&self.clock, alone.first()) {
            let got = format!(
                "another for parameter {nth}, or memory that it shares with another one, or no kernel of `adam_step` on its device"
            );
            let expected = "used with gradients of the same strides as their parameters";
            return Err(refuse(self.owner, "capturable", expected, got).into());
        }
        // On the errors above nothing was changed.
        for (own, new) in self.moments.iter_mut().zip(fresh).filter(|(_, new)| new.is_some()) {
            *own = new;
        }
        if let Some(clock) = &self.clock {
            clock.advance()?;
        }
        for Batch { key: steps, members } in together {
            let mut lists = Lists::default();
            for &nth in &members {
                let (Some(grad), Some(m)) = (&grads[nth], &self.moments[nth]) else { continue };
                lists.parameters.push(parameters[nth].1);
                lists.grads.push(grad);
                lists.means.push(&m.first);
                lists.squares.push(&m.second);
            }
            let options: AdamOptions = self.groups[parameters[members[0]].0].options.into();
            let corrected = self.clock.as_ref().map(|clock| clock.numbers(&options)).transpose()?;
            adam_step::in_place(&lists, &numbers(&options, steps + 1, self.decoupled), corrected.as_ref())?;
            for nth in members {
                self.moments[nth].iter_mut().for_each(|m| m.steps = steps + 1);
            }
        }
        for nth in alone {
            let (Some(grad), Some(moments)) = (grads[nth].clone(), &mut self.moments[nth]) else { continue };
            let (group, parameter) = parameters[nth];
            update(parameter, grad, moments, &self.groups[group].options.into(), self.decoupled)?;
        }
        Ok(())
    }

    /// Counts steps on the device of the parameters from now on.
    fn count_on_device(&mut self) -> Result<()> {
        let parameters = numbered(&self.groups);
        let device = parameters.first().map_or(Device::CPU, |(_, p)| p.device());
        if let Some((_, other)) = parameters.iter().find(|(_, p)| p.device() != device) {
            let got = format!("parameters on {device} and {}", other.device());
            return Err(refuse(self.owner, "capturable", "used with parameters on one device", got).into());
        }
        let steps = common_steps(self.owner, &self.moments)?;
        self.clock = Some(Clock::new(device, steps)?);
        Ok(())
    }

    fn state_dict(&self) -> Result<StateDict> {
        let mut state = Moments::save(&self.groups, &self.initial, &self.moments)?;
        if let Some(clock) = &self.clock {
            let steps = clock.steps()?;
            let counts = state.iter_mut().filter(|(name, _)| name.ends_with(".step"));
            counts.into_iter().try_for_each(|(_, count)| Tensor::new(steps).map(|made| *count = made))?;
        }
        Ok(state)
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let (options, initial, moments) = Moments::load(self.owner, &self.groups, state)?;
        if let Some(clock) = &self.clock {
            clock.set(common_steps(self.owner, &moments)?)?;
        }
        self.groups.iter_mut().zip(options).for_each(|(group, options)| group.options = options);
        self.initial = initial;
        self.moments = moments;
        Ok(())
    }
}

/// The scalars of step `steps`, counted from 1. The bias corrections of both means are folded into the scalars: `p - lr * (first
/// / c1) / (sqrt(second / c2) + eps)`, multiplied through by `sqrt(c2)`.
fn numbers(o: &AdamOptions, steps: i64, decoupled: bool) -> Step {
    let root = (1.0 - o.beta2.powf(steps as f64)).sqrt();
    Step {
        beta1: o.beta1,
        beta2: o.beta2,
        eps: o.eps * root,
        rate: o.lr * root / (1.0 - o.beta1.powf(steps as f64)),
        decay: if decoupled { 0.0 } else { o.weight_decay },
        shrink: if decoupled { 1.0 - o.lr * o.weight_decay } else { 1.0 },
    }
}

/// The step of one parameter, with one tensor of its size besides the moments, or some in f32 for f16 and bf16.
fn update(p: &Tensor, grad: Tensor, m: &mut Moments, o: &AdamOptions, decoupled: bool) -> Result<()> {
    // A gradient that is refused counts as no step.
    let steps = m.steps + 1;
    let step = numbers(o, steps, decoupled);
    let Step { eps, rate, decay, shrink, .. } = step;
    if o.lazy && !grad.as_ref().is_strided() {
        lazy_step(p, &grad, m, step)?;
        m.steps = steps;
        return Ok(());
    }
    if is_half(p) {
        let grad = grad.to_dense()?;
        let (means, squares) = (vec![&m.first], vec![&m.second]);
        adam_step::in_place(&Lists { parameters: vec![p], grads: vec![&grad], means, squares }, &step, None)?;
        m.steps = steps;
        return Ok(());
    }
    let grad = Gradient::of(grad)?;
    m.steps = steps;
    m.first.mul_(o.beta1)?;
    m.second.mul_(o.beta2)?;
    match &grad {
        Gradient::Rows(rows) if decay == 0.0 => {
            rows.add(&m.first, &rows.values, 1.0 - o.beta1)?;
            rows.add(&m.second, &rows.values.square()?, 1.0 - o.beta2)?;
        }
        grad => {
            let grad = grad.plus(p, decay)?;
            m.first.add_with_(&grad, 1.0 - o.beta1)?;
            m.second.addcmul_with_(&grad, &grad, 1.0 - o.beta2)?;
        }
    }
    if shrink != 1.0 {
        p.mul_(shrink)?;
    }
    let denominator = m.second.sqrt()?.add_(eps)?;
    p.addcdiv_with_(&m.first, &denominator, -rate)?;
    Ok(())
}

macro_rules! optimizer {
    ($(#[$doc:meta])* $name:ident $options:ident $decoupled:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(Core<$options>);

        impl $name {
            /// An optimizer of these parameters, with options or only a learning rate: `new(parameters, 1e-3)`.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::optim::{", stringify!($name), ", ", stringify!($options), ", Optimizer};\n",
                "let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;\n",
                "let options = ", stringify!($options), " { lr: 0.25, weight_decay: 0.0, ..Default::default() };\n",
                "let mut optimizer = ", stringify!($name), "::new(vec![w.clone()], options)?;\n",
                "w.mul(3.0)?.backward()?;\n",
                "optimizer.step()?;\n",
                "// The first step is of the learning rate, whatever the gradient.\n",
                "assert!((w.item::<f32>()? - 0.75).abs() < 1e-6);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Options out of range; no parameters, the same twice, or such that cannot be changed.
            #[doc(alias = "new_lr")]
            pub fn new(parameters: Vec<Tensor>, options: impl Into<$options>) -> Result<$name> {
                $name::with_groups(vec![Group { parameters, options: options.into() }])
            }

            /// Several groups.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::optim::{", stringify!($name), ", ", stringify!($options), ", Group, Optimizer};\n",
                "let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;\n",
                "let options = ", stringify!($options), " { lr: 0.25, weight_decay: 0.0, ..Default::default() };\n",
                "let optimizer = ", stringify!($name), "::with_groups(vec![Group { parameters: vec![w], options }])?;\n",
                "assert_eq!(optimizer.learning_rates(), [0.25]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// As for one group.
            pub fn with_groups(groups: Vec<Group<$options>>) -> Result<$name> {
                Ok($name(Core::new(stringify!($name), groups, $decoupled)?))
            }

            /// Counts the steps on the parameters' device, so that a captured step ([`graph`](crate::graph)) counts each
            /// replay. All parameters whose gradients have the parameter's strides, that share no memory and are on one
            /// device, share the count: a step in which other parameters have gradients than in the steps before is
            /// refused, and changes nothing.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::optim::{", stringify!($name), ", ", stringify!($options), ", Optimizer};\n",
                "let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;\n",
                "let options = ", stringify!($options), " { lr: 0.25, weight_decay: 0.0, ..Default::default() };\n",
                "let mut optimizer = ", stringify!($name), "::new(vec![w.clone()], options)?.capturable()?;\n",
                "w.mul(3.0)?.backward()?;\n",
                "optimizer.step()?;\n",
                "assert!((w.item::<f32>()? - 0.75).abs() < 1e-6);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Parameters on several devices, or with different numbers of steps; errors of the backend.
            pub fn capturable(mut self) -> Result<$name> {
                self.0.count_on_device()?;
                Ok(self)
            }

            /// The groups, with their current options.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::optim::{", stringify!($name), ", ", stringify!($options), ", Optimizer};\n",
                "let w = keyway::Tensor::new(1.0f32)?.requires_grad_(true)?;\n",
                "let mut optimizer = ", stringify!($name), "::new(vec![w], 0.5)?;\n",
                "optimizer.set_learning_rates(&[0.25])?;\n",
                "assert_eq!(optimizer.groups()[0].options.lr, 0.25);\n",
                "# Ok(()) }\n```",
            )]
            #[doc(alias = "param_groups")]
            pub fn groups(&self) -> &[Group<$options>] {
                &self.0.groups
            }
        }

        impl Optimizer for $name {
            fn step(&mut self) -> Result<()> {
                let _scope = profiler::scope(concat!(stringify!($name), ".step"));
                self.0.step()
            }

            fn parameters(&self) -> Vec<Tensor> {
                parameters(&self.0.groups)
            }

            fn learning_rates(&self) -> Vec<f64> {
                self.0.groups.iter().map(|group| group.options.lr).collect()
            }

            fn set_learning_rates(&mut self, rates: &[f64]) -> Result<()> {
                set_rates(self.0.owner, &mut self.0.groups, &mut self.0.initial, rates)
            }

            fn initial_learning_rates(&self) -> Option<Vec<f64>> {
                self.0.initial.clone()
            }

            fn set_initial_learning_rates(&mut self, rates: Option<&[f64]>) -> Result<()> {
                set_initial(self.0.owner, &self.0.groups, &mut self.0.initial, rates)
            }

            fn options(&self) -> Vec<Vec<(&'static str, f64)>> {
                named(&self.0.groups)
            }

            fn set_options(&mut self, group: usize, options: &[(&str, f64)]) -> Result<()> {
                change(self.0.owner, &mut self.0.groups, group, options)
            }

            fn state_dict(&self) -> Result<StateDict> {
                self.0.state_dict()
            }

            fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
                self.0.load_state_dict(state)
            }
        }
    };
}

optimizer! {
    /// Adam (D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", 2015).
    ///
    /// ```text
    /// g = grad + weight_decay * p
    /// m = beta1 * m + (1 - beta1) * g
    /// v = beta2 * v + (1 - beta2) * g^2
    /// p = p - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)        (t: the step, from 1)
    /// ```
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::optim::{Adam, AdamOptions, Optimizer};
    /// let w = Tensor::new(1.0f64)?.requires_grad_(true)?;
    /// let mut optimizer = Adam::new(vec![w.clone()], AdamOptions { lr: 0.1, ..AdamOptions::default() })?;
    /// w.mul(&w)?.backward()?;
    /// optimizer.step()?;
    /// assert!((w.item::<f64>()? - 0.9).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    Adam AdamOptions false
}

optimizer! {
    /// [`Adam`] whose weight decay acts on the parameter itself (I. Loshchilov, F. Hutter, "Decoupled weight decay
    /// regularization", 2019): first `p = p * (1 - lr * weight_decay)`, then a step of Adam without weight decay. With
    /// [`AdamWOptions::lazy`] both are of the rows that a sparse gradient has.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::optim::{AdamW, AdamWOptions, Optimizer};
    /// let w = Tensor::new(1.0f64)?.requires_grad_(true)?;
    /// let mut optimizer = AdamW::new(vec![w.clone()], AdamWOptions { lr: 0.1, ..AdamWOptions::default() })?;
    /// w.mul(&w)?.backward()?;
    /// optimizer.step()?;
    /// assert!((w.item::<f64>()? - 0.899).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    AdamW AdamWOptions true
}
