//! Parameter groups with separate options, and their state dicts.

use crate::nn::{Mismatch, ModuleError, StateDict};
use crate::{Result, Tensor};
use std::collections::BTreeSet;
use std::sync::Once;

/// Parameters that share options.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// use keyway::optim::{Group, Optimizer, Sgd, SgdOptions};
/// let a = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let b = Tensor::new(1.0f32)?.requires_grad_(true)?;
/// let fast = SgdOptions { lr: 0.5, ..SgdOptions::default() };
/// let optimizer = Sgd::with_groups(vec![
///     Group { parameters: vec![a], options: fast },
///     Group { parameters: vec![b], options: SgdOptions { lr: 0.1, ..fast } },
/// ])?;
/// assert_eq!(optimizer.learning_rates(), [0.5, 0.1]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Group<O> {
    /// The parameters: leaves that require grad.
    pub parameters: Vec<Tensor>,
    /// The options.
    pub options: O,
}

/// Options as named scalars.
pub(super) trait Options: Copy {
    /// The names of the options, `lr` first.
    const NAMES: &'static [&'static str];
    /// The values in the order of the names.
    fn values(&self) -> Vec<f64>;
    /// Options with these values. Missing ones have their defaults.
    fn from_values(values: &[f64]) -> Self;
    /// Refuses values out of range, in the name of an optimiser.
    fn check(&self, owner: &'static str) -> Result<(), ModuleError>;
    /// Sets the learning rate, unchecked.
    fn set_lr(&mut self, lr: f64);
    /// Whether the step is right for complex parameters: linear in the gradient.
    const LINEAR: bool = false;
    /// Whether these options need the state of this name.
    fn remembers(&self, name: &str) -> bool {
        let _ = name;
        true
    }
}

/// An option out of range.
pub(super) fn refuse(
    owner: &'static str,
    option: &'static str,
    expected: &'static str,
    got: impl ToString,
) -> ModuleError {
    ModuleError::Option { owner, option, expected, got: got.to_string() }
}

/// Refuses a number that is negative, infinite or not a number.
pub(super) fn require_not_negative(
    owner: &'static str,
    option: &'static str,
    got: f64,
) -> Result<(), ModuleError> {
    if got >= 0.0 && got.is_finite() {
        return Ok(());
    }
    Err(refuse(owner, option, "a finite number of 0 or more", got))
}

/// Refuses shares of running means that are no shares.
pub(super) fn check_moments(owner: &'static str, beta1: f64, beta2: f64) -> Result<(), ModuleError> {
    for (name, beta) in [("beta1", beta1), ("beta2", beta2)] {
        if !(0.0..1.0).contains(&beta) {
            return Err(refuse(owner, name, "a number of at least 0 and below 1", beta));
        }
    }
    Ok(())
}

/// Refuses groups with wrong options or with tensors that cannot be changed.
fn check_groups<O: Options>(owner: &'static str, groups: &[Group<O>]) -> Result<(), ModuleError> {
    groups.iter().try_for_each(|group| group.options.check(owner))?;
    let all: Vec<&Tensor> = groups.iter().flat_map(|group| &group.parameters).collect();
    if all.is_empty() {
        return Err(refuse(
            owner,
            "parameters",
            "at least one tensor; pass `module.parameters()` of a module whose `Module::visit` names its parts",
            "none",
        ));
    }
    for (index, parameter) in all.iter().enumerate() {
        let pass = "pass `module.parameters()`, or call `requires_grad_(true)` on a leaf";
        let wrong = match (parameter.requires_grad(), parameter.is_leaf()) {
            _ if parameter.is_complex() && !O::LINEAR => Some((
                "complex, and the step divides by a mean of squares",
                "make `view_as_real()` of it the parameter, and call `view_as_complex()` in each step",
            )),
            _ if !parameter.as_ref().is_strided() => Some((
                "a sparse tensor, whose elements no step can change",
                "make its values the parameter, and the tensor of them in each step",
            )),
            (true, true) => None,
            (true, false) => Some(("the result of an op", pass)),
            (false, true) => Some((
                "one that does not require grad",
                "leave frozen parameters out, `.into_iter().filter(|p| p.requires_grad())`, or call `requires_grad_(true)` on it",
            )),
            (false, false) => Some(("a result that does not require grad", pass)),
        };
        if let Some((got, hint)) = wrong {
            return Err(ModuleError::NotParameter { owner, index, got, hint });
        }
        if all[..index].iter().any(|earlier| earlier.ptr_eq(parameter)) {
            return Err(ModuleError::Twice { owner, index });
        }
    }
    Ok(())
}

/// The learning rates that schedules begin from, one for each group, once there was a schedule.
pub(super) type InitialRates = Option<Vec<f64>>;

/// Sets the rates that schedules begin from, or none if they are refused.
pub(super) fn set_initial<O>(
    owner: &'static str,
    groups: &[Group<O>],
    initial: &mut InitialRates,
    rates: Option<&[f64]>,
) -> Result<()> {
    if let Some(rates) = rates {
        check_rates(owner, groups, rates)?;
    }
    *initial = rates.map(<[f64]>::to_vec);
    Ok(())
}

/// The options of each group by name.
pub(super) fn named<O: Options>(groups: &[Group<O>]) -> Vec<Vec<(&'static str, f64)>> {
    let of = |group: &Group<O>| O::NAMES.iter().copied().zip(group.options.values()).collect();
    groups.iter().map(of).collect()
}

/// Sets options of a group by name; nothing is changed on an error.
pub(super) fn change<O: Options>(
    owner: &'static str,
    groups: &mut [Group<O>],
    group: usize,
    options: &[(&str, f64)],
) -> Result<()> {
    let count = groups.len();
    let Some(found) = groups.get_mut(group) else {
        return Err(
            refuse(owner, "group", "one of the optimiser's groups", format!("{group} of {count}")).into()
        );
    };
    let mut values = found.options.values();
    for &(name, value) in options {
        match O::NAMES.iter().position(|known| *known == name) {
            Some(at) => values[at] = value,
            None => {
                let got = format!("`{name}`; there are {}", O::NAMES.join(", "));
                return Err(refuse(owner, "option", "one that the optimiser has", got).into());
            }
        }
    }
    let changed = O::from_values(&values);
    changed.check(owner)?;
    found.options = changed;
    Ok(())
}

fn check_rates<O>(owner: &'static str, groups: &[Group<O>], rates: &[f64]) -> Result<()> {
    if rates.len() != groups.len() {
        let got = format!("{} for {}", rates.len(), groups.len());
        return Err(refuse(owner, "rates", "one for each group", got).into());
    }
    rates.iter().try_for_each(|&rate| require_not_negative(owner, "lr", rate))?;
    Ok(())
}

/// Sets the learning rate of each group; none is changed if one is invalid or their number differs from that of the groups.
pub(super) fn set_rates<O: Options>(
    owner: &'static str,
    groups: &mut [Group<O>],
    initial: &mut InitialRates,
    rates: &[f64],
) -> Result<()> {
    check_rates(owner, groups, rates)?;
    *initial = None;
    groups.iter_mut().zip(rates).for_each(|(group, &rate)| group.options.set_lr(rate));
    Ok(())
}

/// Warns once per process that no parameter of a step has a gradient, usually since a module has replaced its parameters.
pub(super) fn warn_without_gradients<O>(owner: &'static str, groups: &[Group<O>]) {
    static ONCE: Once = Once::new();
    if with_options(groups).all(|(parameter, _)| parameter.grad().is_none()) {
        ONCE.call_once(|| {
            let count = with_options(groups).count();
            keyway_dispatcher::log::warn(&format!(
                "{owner}.step changed nothing: none of its {count} parameters has a gradient. Call `backward` before it, and \
                 make the optimiser after `to_device`, `to_dtype` and `to_memory_format`, which replace a module's tensors"
            ));
        });
    }
}

/// The parameters of all groups.
pub(super) fn parameters<O>(groups: &[Group<O>]) -> Vec<Tensor> {
    groups.iter().flat_map(|group| group.parameters.iter().cloned()).collect()
}

/// The parameters of all groups, each with its options.
pub(super) fn with_options<O>(groups: &[Group<O>]) -> impl Iterator<Item = (&Tensor, &O)> {
    groups.iter().flat_map(|group| group.parameters.iter().map(move |parameter| (parameter, &group.options)))
}

/// Refuses gradients of one kind, strided or sparse, of any parameter, before any parameter is changed.
pub(super) fn refuse_gradients<O>(
    owner: &'static str,
    groups: &[Group<O>],
    strided: bool,
    expected: &'static str,
    hint: &'static str,
) -> Result<(), ModuleError> {
    let refused = |p: &Tensor| p.grad().is_some_and(|grad| grad.as_ref().is_strided() == strided);
    match with_options(groups).position(|(parameter, _)| refused(parameter)) {
        None => Ok(()),
        Some(index) => {
            let got = if strided { "strided" } else { "sparse" };
            Err(ModuleError::Gradient { owner, index, expected, got, hint })
        }
    }
}

/// Empty state for each parameter of these groups, which are checked first.
pub(super) fn memory_of<O: Options, M>(
    owner: &'static str,
    groups: &[Group<O>],
) -> Result<Vec<Option<M>>, ModuleError> {
    check_groups(owner, groups)?;
    let count = groups.iter().map(|group| group.parameters.len()).sum();
    Ok(std::iter::repeat_with(|| None).take(count).collect())
}

/// The number of steps in a state dict.
///
/// # Errors
/// A value that is not an integer, or negative.
pub(super) fn steps_of(owner: &'static str, saved: &Tensor) -> Result<i64> {
    let steps = saved.to_vec_f64()?.first().copied().unwrap_or(0.0);
    // Above 2^53 not every integer is an f64.
    if !(0.0..=(1u64 << 53) as f64).contains(&steps) || steps.fract() != 0.0 {
        return Err(refuse(owner, "step", "an integer of 0 or more in the state dict", steps).into());
    }
    Ok(steps as i64)
}

/// Names and tensors that one parameter has in a state dict.
pub(super) type Memory = Vec<(&'static str, Tensor)>;

/// The name of a group's number of parameters in a state dict.
const COUNT: &str = "parameters";
/// The name of the rate that schedules begin from.
const INITIAL: &str = "initial_lr";

/// Writes the groups' options and numbers of parameters, the initial rates of schedules, and the state of each parameter.
pub(super) fn save<O: Options>(
    groups: &[Group<O>],
    initial: &InitialRates,
    memories: Vec<Option<Memory>>,
) -> Result<StateDict> {
    let mut state = StateDict::new();
    for (g, group) in groups.iter().enumerate() {
        state.insert(format!("group.{g}.{COUNT}"), Tensor::new(group.parameters.len() as i64)?);
        if let Some(rate) = initial.as_ref().and_then(|rates| rates.get(g)) {
            state.insert(format!("group.{g}.{INITIAL}"), Tensor::new(*rate)?);
        }
        for (name, value) in O::NAMES.iter().zip(group.options.values()) {
            state.insert(format!("group.{g}.{name}"), Tensor::new(value)?);
        }
    }
    for (p, memory) in memories.into_iter().enumerate() {
        for (name, tensor) in memory.into_iter().flatten() {
            state.insert(format!("state.{p}.{name}"), tensor.copy()?);
        }
    }
    Ok(state)
}

/// The contents of a state dict, once checked: options by group, state by parameter.
pub(super) struct Loaded<O> {
    pub(super) options: Vec<O>,
    pub(super) initial: InitialRates,
    pub(super) memories: Vec<Option<Vec<Tensor>>>,
}

/// Reads the output of [`save`]. A parameter has either all `names` that its options need, or none; those in `scalars` are 0-d
/// and preserve their dtype, the others have the parameter's shape, dtype and device.
pub(super) fn load<O: Options>(
    owner: &'static str,
    groups: &[Group<O>],
    names: &[&'static str],
    scalars: &[&'static str],
    state: &StateDict,
) -> Result<Loaded<O>> {
    check_counts(owner, groups, state)?;
    let mut check =
        Check { owner, state, seen: BTreeSet::new(), missing: Vec::new(), mismatched: Vec::new() };
    let mut options: Vec<Vec<&Tensor>> = Vec::new();
    for g in 0..groups.len() {
        options
            .push(O::NAMES.iter().filter_map(|name| check.take(format!("group.{g}.{name}"), &[])).collect());
    }
    // A state dict saved before a schedule was created lacks such rates, and older ones also lack numbers of parameters.
    let mut initial: Vec<&Tensor> = Vec::new();
    for g in 0..groups.len() {
        check.take_if_there(format!("group.{g}.{COUNT}"));
        initial.extend(check.take_if_there(format!("group.{g}.{INITIAL}")));
    }
    let number = |tensor: &&Tensor| Ok(tensor.to_vec_f64()?.first().copied().unwrap_or(0.0));
    let initial = initial.iter().map(number).collect::<Result<Vec<f64>>>()?;
    let numbers: Result<Vec<Vec<f64>>> = options.iter().map(|of| of.iter().map(number).collect()).collect();
    let options: Vec<O> = numbers?.iter().map(|values| O::from_values(values)).collect();
    let of_groups = groups.iter().zip(&options);
    let parameters: Vec<(&Tensor, Vec<&'static str>)> = of_groups
        .flat_map(|(group, o)| group.parameters.iter().map(move |p| (p, o)))
        .map(|(p, o)| (p, names.iter().copied().filter(|name| o.remembers(name)).collect()))
        .collect();
    let mut memories: Vec<Option<Vec<&Tensor>>> = Vec::new();
    for (p, (parameter, names)) in parameters.iter().enumerate() {
        let some = names.iter().any(|name| state.contains_key(&format!("state.{p}.{name}")));
        let sizes = |name| if scalars.contains(name) { &[] } else { parameter.shape() };
        let mut take = |name| check.take(format!("state.{p}.{name}"), sizes(name));
        memories.push(some.then(|| names.iter().filter_map(&mut take).collect()));
    }
    check.finish()?;

    options.iter().try_for_each(|options| options.check(owner))?;
    initial.iter().try_for_each(|&rate| require_not_negative(owner, INITIAL, rate))?;
    let initial = Some(initial).filter(|rates| rates.len() == groups.len());
    let fitted = |p: usize, name: &&str, tensor: &Tensor| {
        if scalars.contains(name) {
            return tensor.copy();
        }
        parameters[p].0.detach().uninit_like(())?.copy_(tensor)
    };
    let mut made = Vec::new();
    for (p, tensors) in memories.iter().enumerate() {
        let memory: Option<Result<Vec<Tensor>>> = tensors
            .as_ref()
            .map(|found| parameters[p].1.iter().zip(found).map(|(name, t)| fitted(p, name, t)).collect());
        made.push(memory.transpose()?);
    }
    Ok(Loaded { options, initial, memories: made })
}

/// The number after `prefix` in a name, as in `state.3.step`.
fn number_in(name: &str, prefix: &str) -> Option<usize> {
    name.strip_prefix(prefix)?.split('.').next()?.parse().ok()
}

/// Refuses a state dict with another number of groups or parameters, whose state would be assigned to the wrong ones.
fn check_counts<O>(owner: &'static str, groups: &[Group<O>], state: &StateDict) -> Result<()> {
    let refused = |what: String, expected: usize, got: usize| {
        Err(ModuleError::StateCount { owner, what, expected, got }.into())
    };
    let last = |prefix: &str| state.keys().filter_map(|name| number_in(name, prefix)).max();
    let got = last("group.").map_or(0, |g| g.saturating_add(1));
    if got != groups.len() && got > 0 {
        return refused("groups".to_string(), groups.len(), got);
    }
    for (g, group) in groups.iter().enumerate() {
        let Some(saved) = state.get(&format!("group.{g}.{COUNT}")) else { continue };
        let (expected, got) =
            (group.parameters.len(), saved.to_vec_f64()?.first().map_or(0, |n| *n as usize));
        if expected != got {
            return refused(format!("parameters in group {g}"), expected, got);
        }
    }
    let expected = groups.iter().map(|group| group.parameters.len()).sum();
    match last("state.") {
        Some(p) if p >= expected => refused("parameters".to_string(), expected, p.saturating_add(1)),
        _ => Ok(()),
    }
}

struct Check<'a> {
    owner: &'static str,
    state: &'a StateDict,
    seen: BTreeSet<String>,
    missing: Vec<String>,
    mismatched: Vec<Mismatch>,
}

impl<'a> Check<'a> {
    /// Like [`Check::take`], for an optional scalar.
    fn take_if_there(&mut self, name: String) -> Option<&'a Tensor> {
        if self.state.contains_key(&name) { self.take(name, &[]) } else { None }
    }

    fn take(&mut self, name: String, sizes: &[usize]) -> Option<&'a Tensor> {
        let found = self.state.get(&name);
        match found {
            None => self.missing.push(name.clone()),
            Some(tensor) if tensor.shape() != sizes => self.mismatched.push(Mismatch {
                name: name.clone(),
                expected: sizes.to_vec(),
                got: tensor.shape().to_vec(),
            }),
            Some(_) => {}
        }
        self.seen.insert(name);
        found
    }

    fn finish(self) -> Result<(), ModuleError> {
        let Check { owner, state, seen, missing, mismatched } = self;
        let unexpected: Vec<String> = state.keys().filter(|name| !seen.contains(*name)).cloned().collect();
        if missing.is_empty() && unexpected.is_empty() && mismatched.is_empty() {
            return Ok(());
        }
        Err(ModuleError::State { owner, missing, unexpected, mismatched })
    }
}
