//! The preference of a thread's calls for the kernels of one plugin.

use super::candidates::ask;
use super::kernel::Request;
use super::target::Target;
use super::{Call, backend, plan};
use crate::base::error::{Error, Result};
use crate::base::key::{DispatchKey, KeyGuard, KeySet};
use crate::base::plugin::PluginEntry;
use crate::op::{Outputs, Rule};
use crate::registry::table::current;
use crate::registry::{KernelEntry, KeyHandler, find_key, plugins, register_key_handler};
use std::cell::{Cell, RefCell};

thread_local! {
    /// The live choices with their guards' numbers, in the order of their creation.
    static CHOSEN: RefCell<Vec<(u64, &'static PluginEntry)>> = const { RefCell::new(Vec::new()) };
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// Ends a choice when dropped; guards may be dropped in any order. This thread's calls use the most recent choice whose guard
/// is alive.
#[derive(Debug)]
pub struct BackendGuard {
    number: u64,
    _key: KeyGuard,
}

impl Drop for BackendGuard {
    fn drop(&mut self) {
        // At the end of a thread its list may be destroyed.
        let _ = CHOSEN.try_with(|all| all.borrow_mut().retain(|(number, _)| *number != self.number));
    }
}

/// Prefers the kernels of one plugin for the calls of this thread while the guard lives; calls that it does not serve use
/// the usual candidates. Free of overhead while no thread uses it.
///
/// # Errors
/// `Value` if the plugin is not loaded.
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
    if find_key(NAME).is_none() {
        // Two threads may race here: the second finds the key registered by the first.
        let _ = register_key_handler(KeyHandler {
            key: DispatchKey::BACKEND_CHOICE,
            name: NAME.to_string(),
            applies: |op| !matches!(op.spec.rule, Rule::Host(_)),
            handler: Box::new(|call, _| chosen_first(call)),
            plugin: None,
            interposer: None,
        });
    }
    let key = KeyGuard::include(KeySet::of(DispatchKey::BACKEND_CHOICE));
    let number = MADE.get() + 1;
    MADE.set(number);
    CHOSEN.with_borrow_mut(|all| all.push((number, chosen)));
    Ok(BackendGuard { number, _key: key })
}

const NAME: &str = "backend choice";

/// Tries the chosen plugin's kernels of a key first.
fn chosen_first(call: &Call<'_>) -> Result<Outputs> {
    let generation = current();
    let Some(rows) = generation.op(call.args.op) else {
        return Err(Error::UnknownOp { name: call.args.name().to_string() });
    };
    let Some((plan, allocates)) = plan::of(&call.args)? else { return backend(generation, rows, call) };
    let target = Target::of(&call.args)?;
    let Target { device, layout, .. } = target;
    let kernels = generation.cell(rows, device, layout, plan.compute).kernels();
    let chosen = CHOSEN.with_borrow(|all| all.last().map(|(_, chosen)| *chosen));
    let of_chosen =
        |kernel: &&'static KernelEntry| chosen.is_some_and(|chosen| std::ptr::eq(kernel.plugin, chosen));
    let (mut order, others): (Vec<_>, Vec<_>) = kernels.partition(of_chosen);
    order.extend(others);
    ask(generation, &Request { call, plan: &plan, allocates, target }, &order, None)
}
