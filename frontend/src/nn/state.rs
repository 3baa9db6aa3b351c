//! State dicts: named tensors for saving and loading.

use crate::autograd::no_grad;
use crate::error::module::{Mismatch, ModuleError};
use crate::io::state_dict::StateDict;
use crate::ops::memory::copy::check_places;
use crate::rng::GeneratorState;
use crate::{Result, Tensor};
use std::collections::BTreeMap;

/// The names that a non-strict load left out.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Linear, Module};
/// let state = Linear::new(3, 2)?.state_dict();
/// let report = Linear::without_bias(3, 2)?.load_matching(&state)?;
/// assert_eq!(report.unexpected, ["bias"]);
/// assert!(report.missing.is_empty());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Expected names that are missing.
    pub missing: Vec<String>,
    /// Unexpected names.
    pub unexpected: Vec<String>,
}

/// The target of a load.
pub(crate) struct Expected {
    /// The owner of the tensors, for errors.
    pub(crate) owner: &'static str,
    /// The tensors to overwrite, by name.
    pub(crate) targets: Vec<(String, Tensor)>,
}

/// Copies the tensors of a state dict into the targets. All checks precede the first write; unless `strict`, missing and
/// unexpected names are reported instead of refused.
pub(crate) fn fill(expected: &Expected, state: &StateDict, strict: bool) -> Result<LoadReport> {
    let Expected { owner, targets } = expected;
    let mut report = LoadReport::default();
    let mut mismatched = Vec::new();
    let mut known: BTreeMap<&str, &Tensor> = BTreeMap::new();
    for (name, target) in targets {
        known.insert(name, target);
        match state.get(name) {
            None => report.missing.push(name.clone()),
            Some(source) if source.shape() != target.shape() => mismatched.push(Mismatch {
                name: name.clone(),
                expected: target.shape().to_vec(),
                got: source.shape().to_vec(),
            }),
            Some(_) => {}
        }
    }
    report.unexpected = state.keys().filter(|name| !known.contains_key(name.as_str())).cloned().collect();
    report.missing.sort_unstable();
    let incomplete = strict && !(report.missing.is_empty() && report.unexpected.is_empty());
    if incomplete || !mismatched.is_empty() {
        let LoadReport { missing, unexpected } = report;
        return Err(ModuleError::State { owner, missing, unexpected, mismatched }.into());
    }
    let of_entry = |name: &String, loaded| {
        let entry = name.clone();
        move |source| ModuleError::Entry { owner, entry, loaded, source: Box::new(source) }
    };
    let found = || targets.iter().filter_map(|(name, target)| Some((name, target, state.get(name)?)));
    for (name, target, source) in found() {
        check_places(target, source).map_err(of_entry(name, 0))?;
    }
    let _off = no_grad();
    for (loaded, (name, target, source)) in found().enumerate() {
        target.copy_(source).map_err(of_entry(name, loaded))?;
    }
    Ok(report)
}

/// The states of the generators of these names. Missing and unexpected names are errors.
pub(crate) fn generator_states(
    owner: &'static str,
    names: &[&String],
    state: &StateDict,
) -> Result<Vec<GeneratorState>> {
    let missing: Vec<String> =
        names.iter().filter(|name| !state.contains_key(**name)).map(ToString::to_string).collect();
    let unexpected: Vec<String> = state.keys().filter(|name| !names.contains(name)).cloned().collect();
    if !missing.is_empty() || !unexpected.is_empty() {
        return Err(ModuleError::State { owner, missing, unexpected, mismatched: Vec::new() }.into());
    }
    names.iter().filter_map(|name| state.get(*name)).map(GeneratorState::from_tensor).collect()
}
