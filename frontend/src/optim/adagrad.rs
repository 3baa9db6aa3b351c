//! Adagrad.

use super::Optimizer;
use super::fused::{is_half, keep};
use super::group::{
    Group, InitialRates, Loaded, Options, change, load, memory_of, named, parameters, refuse,
    require_not_negative, save, set_initial, set_rates, steps_of, warn_without_gradients, with_options,
};
use super::rows::Gradient;
use crate::autograd::no_grad;
use crate::nn::{ModuleError, StateDict};
use crate::ops::composite::{cast, widened};
use crate::{Result, Tensor, profiler};

/// The options of [`Adagrad`]; the names and defaults are PyTorch's.
///
/// ```
/// use keyway::optim::AdagradOptions;
/// let options = AdagradOptions { lr: 0.1, ..AdagradOptions::default() };
/// assert_eq!((options.lr, options.eps), (0.1, 1e-10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdagradOptions {
    /// The learning rate.
    pub lr: f64,
    /// Decay of the learning rate: step `t`, from 0, has the rate `lr / (1 + t * lr_decay)`.
    pub lr_decay: f64,
    /// Weight decay: this multiple of the parameter is added to its gradient, which must be strided unless it is 0.
    pub weight_decay: f64,
    /// The sums of squares before the first step.
    pub initial_accumulator_value: f64,
    /// Added to the root of the sums.
    pub eps: f64,
}

impl Default for AdagradOptions {
    fn default() -> AdagradOptions {
        AdagradOptions {
            lr: 1e-2,
            lr_decay: 0.0,
            weight_decay: 0.0,
            initial_accumulator_value: 0.0,
            eps: 1e-10,
        }
    }
}

impl Options for AdagradOptions {
    const NAMES: &'static [&'static str] =
        &["lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"];

    fn values(&self) -> Vec<f64> {
        vec![self.lr, self.lr_decay, self.weight_decay, self.initial_accumulator_value, self.eps]
    }

    fn from_values(values: &[f64]) -> AdagradOptions {
        match *values {
            [lr, lr_decay, weight_decay, initial_accumulator_value, eps] => {
                AdagradOptions { lr, lr_decay, weight_decay, initial_accumulator_value, eps }
            }
            _ => AdagradOptions::default(),
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
}

const OWNER: &str = "Adagrad";

/// Optimiser state of a parameter.
#[derive(Debug)]
struct Sums {
    steps: i64,
    /// The sums of the gradients' squares.
    squares: Tensor,
}

const NAMES: [&str; 2] = ["step", "sum"];

/// Adagrad (J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
/// 2011, as PyTorch writes it):
///
/// ```text
/// g = grad + weight_decay * p
/// s = s + g^2
/// p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)        (t: the step, from 1)
/// ```
///
/// With a sparse gradient the step touches only its rows, and equals that of the strided gradient. Weight decay would touch all
/// rows, and is refused. f16 and bf16 are computed in f32 and rounded when stored.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::{Adagrad, AdagradOptions, Optimizer};
/// let w = Tensor::new(1.0f64)?.requires_grad_(true)?;
/// let mut optimizer = Adagrad::new(vec![w.clone()], AdagradOptions { lr: 0.1, ..AdagradOptions::default() })?;
/// w.mul(&w)?.backward()?;
/// optimizer.step()?;
/// assert!((w.item::<f64>()? - 0.9).abs() < 1e-6);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Adagrad {
    groups: Vec<Group<AdagradOptions>>,
    initial: InitialRates,
    sums: Vec<Option<Sums>>,
}

impl Adagrad {
    /// An optimizer of these parameters, with options or only a learning rate: `Adagrad::new(parameters, 0.1)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Adagrad, AdagradOptions, Optimizer};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Adagrad::new(vec![w.clone()], AdagradOptions { lr: 0.1, ..AdagradOptions::default() })?;
    /// w.mul(3.0)?.backward()?;
    /// optimizer.step()?;
    /// assert!((w.item::<f32>()? - 0.9).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Options out of range; no parameters, the same twice, or such that cannot be changed.
    pub fn new(parameters: Vec<Tensor>, options: impl Into<AdagradOptions>) -> Result<Adagrad> {
        Adagrad::with_groups(vec![Group { parameters, options: options.into() }])
    }

    /// An optimiser of several parameter groups.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Adagrad, AdagradOptions, Group, Optimizer};
    /// # use keyway::Tensor;
    /// # let (a, b) = (Tensor::new(1.0f32)?.requires_grad_(true)?, Tensor::new(1.0f32)?.requires_grad_(true)?);
    /// let options = AdagradOptions { lr: 0.5, ..AdagradOptions::default() };
    /// let optimizer = Adagrad::with_groups(vec![
    ///     Group { parameters: vec![a], options },
    ///     Group { parameters: vec![b], options: AdagradOptions { lr: 0.25, ..options } },
    /// ])?;
    /// assert_eq!(optimizer.learning_rates(), [0.5, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Adagrad::new`].
    pub fn with_groups(groups: Vec<Group<AdagradOptions>>) -> Result<Adagrad> {
        Ok(Adagrad { sums: memory_of(OWNER, &groups)?, groups, initial: None })
    }

    /// The groups, with their current options.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::optim::{Adagrad, AdagradOptions, Optimizer};
    /// use keyway::Tensor;
    /// let w = Tensor::new(1.0f32)?.requires_grad_(true)?;
    /// let mut optimizer = Adagrad::new(vec![w], AdagradOptions::default())?;
    /// assert_eq!(optimizer.groups()[0].options.lr, 1e-2);
    /// optimizer.set_learning_rates(&[0.5])?;
    /// assert_eq!(optimizer.groups()[0].options.lr, 0.5);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "param_groups")]
    pub fn groups(&self) -> &[Group<AdagradOptions>] {
        &self.groups
    }
}

/// One parameter's step. Halves are computed in f32, in which `eps` is not 0, and rounded where they are written.
fn update(p: &Tensor, grad: &Gradient, s: &mut Sums, o: &AdagradOptions) -> Result<()> {
    let rate = o.lr / (1.0 + s.steps as f64 * o.lr_decay);
    s.steps += 1;
    let dtype = p.dtype();
    if let Gradient::Rows(rows) = grad {
        let values = widened(&rows.values)?;
        let squares = widened(&rows.read(&s.squares)?)?.addcmul_(&values, &values)?;
        rows.write(&s.squares, &cast(squares.clone(), dtype)?)?;
        let denominator = squares.sqrt_()?.add_(o.eps)?;
        if !is_half(p) {
            return rows.add(p, &values.div(&denominator)?, -rate);
        }
        let moved = widened(&rows.read(p)?)?.addcdiv_with_(&values, &denominator, -rate)?;
        return rows.write(p, &cast(moved, dtype)?);
    }
    let own = widened(&p.detach())?;
    let grad = widened(&grad.plus(&own, o.weight_decay)?)?;
    let squares = widened(&s.squares)?.addcmul_(&grad, &grad)?;
    keep(&s.squares, &squares)?;
    let denominator = squares.sqrt()?.add_(o.eps)?;
    keep(p, &own.addcdiv_with_(&grad, &denominator, -rate)?)
}

impl Optimizer for Adagrad {
    /// Updates every parameter that has a gradient.
    ///
    /// # Errors
    /// A sparse gradient with weight decay, in which case nothing is changed; errors of the backend.
    fn step(&mut self) -> Result<()> {
        let _scope = profiler::scope("Adagrad.step");
        let _off = no_grad();
        warn_without_gradients(OWNER, &self.groups);
        for (p, o) in with_options(&self.groups) {
            if o.weight_decay != 0.0 && p.grad().is_some_and(|grad| !grad.as_ref().is_strided()) {
                let expected = "0 where a gradient is sparse, since it touches all rows";
                return Err(refuse(OWNER, "weight_decay", expected, o.weight_decay).into());
            }
        }
        for ((p, o), sums) in with_options(&self.groups).zip(&mut self.sums) {
            let Some(grad) = p.grad() else { continue };
            let sums = match sums {
                Some(sums) => sums,
                None => {
                    let squares = p.detach().uninit_like(())?.fill_(o.initial_accumulator_value)?;
                    sums.insert(Sums { steps: 0, squares })
                }
            };
            update(p, &Gradient::of(grad)?, sums, o)?;
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
        let memory = |sums: &Option<Sums>| {
            let Some(s) = sums else { return Ok(None) };
            let tensors = [Tensor::new(s.steps)?, s.squares.clone()];
            Ok(Some(NAMES.into_iter().zip(tensors).collect()))
        };
        let memories: Result<Vec<_>> = self.sums.iter().map(memory).collect();
        save(&self.groups, &self.initial, memories?)
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let Loaded { options, initial, memories } = load(OWNER, &self.groups, &NAMES, &NAMES[..1], state)?;
        let mut all = Vec::new();
        for memory in memories {
            all.push(match memory.as_deref() {
                Some([steps, squares]) => {
                    Some(Sums { steps: steps_of(OWNER, steps)?, squares: squares.clone() })
                }
                _ => None,
            });
        }
        self.groups.iter_mut().zip(options).for_each(|(group, options)| group.options = options);
        self.initial = initial;
        self.sums = all;
        Ok(())
    }
}
