//! Calls of a thread that go to one plugin's kernels where it has any.

use super::others::{self, Asked, Next};
use super::{Call, Place, backend, place, plan};
use crate::base::error::{Error, Result};
use crate::base::key::{DispatchKey, KeyGuard, KeySet};
use crate::base::plugin::PluginEntry;
use crate::op::{Outputs, Rule};
use crate::registry::table::current;
use crate::registry::{FunctionalEntry, KernelEntry, find_functional, plugins, register_functional};
use std::cell::Cell;

thread_local! {
    static CHOSEN: Cell<Option<&'static PluginEntry>> = const { Cell::new(None) };
}

/// Sends this thread's calls to the backend chosen before when dropped.
#[derive(Debug)]
pub struct BackendGuard {
    before: Option<&'static PluginEntry>,
    _key: KeyGuard,
}

impl Drop for BackendGuard {
    fn drop(&mut self) {
        CHOSEN.set(self.before);
    }
}

/// Prefers the kernels of one plugin for the calls of this thread while the guard lives; what it does not serve goes to the
/// usual candidates. While no thread does so, calls cost nothing for it.
///
/// # Errors
/// `Value` for a plugin that is not loaded.
pub fn choose_backend(plugin: &str) -> Result<BackendGuard> {
    let loaded = plugins();
    let Some(&chosen) = loaded.iter().find(|p| p.name == plugin && !p.is_retired()) else {
        let names: Vec<_> = loaded.iter().map(|p| p.name).collect();
        return Err(Error::Value {
            op: "with_backend",
            argument: "backend",
            expected: format!("the name of a loaded backend ({})", names.join(", ")),
            got: format!("`{plugin}`"),
        });
    };
    if find_functional(NAME).is_none() {
        // Two threads may come here at once: the second finds the key taken by the first.
        let _ = register_functional(FunctionalEntry {
            key: DispatchKey::BACKEND_CHOICE,
            name: NAME.to_string(),
            applies: |op| !matches!(op.spec.rule, Rule::Host(_)),
            handler: Box::new(|call, _| chosen_first(call)),
            plugin: None,
            interposer: None,
        });
    }
    let key = KeyGuard::include(KeySet::of(DispatchKey::BACKEND_CHOICE));
    Ok(BackendGuard { before: CHOSEN.replace(Some(chosen)), _key: key })
}

const NAME: &str = "backend choice";

/// Asks the chosen plugin's kernels of a key first.
fn chosen_first(call: &Call<'_>) -> Result<Outputs> {
    let generation = current();
    let Some(rows) = generation.op(call.args.op) else {
        return Err(Error::UnknownOp { name: call.args.name().to_string() });
    };
    let Some((plan, allocates)) = plan::of(&call.args)? else { return backend(generation, rows, call) };
    let place = place(&call.args)?;
    let Place { device, layout, .. } = place;
    let kernels = generation.cell(rows, device, layout, plan.compute).kernels();
    let of_chosen = |kernel: &&'static KernelEntry| {
        CHOSEN.get().is_some_and(|chosen| std::ptr::eq(kernel.plugin, chosen))
    };
    let (mut order, others): (Vec<_>, Vec<_>) = kernels.partition(of_chosen);
    order.extend(others);
    others::ask(
        call,
        Asked { plan: &plan, allocates, place },
        Next { generation, rest: &order, refused: &[] },
    )
}
