//! Records the candidate that served the last call of a thread, and every call that ran on another device than requested.

use crate::base::key::Device;
use crate::op::OpEntry;
use crate::registry::KernelEntry;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The candidate that served a call.
#[derive(Clone, Copy, Debug)]
pub enum Served {
    /// The host, with a view of the same memory.
    View,
    /// The host itself, by moving bytes or changing a layout.
    Host,
    /// The decomposition into other ops.
    Decomposition,
    /// Another device.
    Fallback,
    /// A kernel of a plugin.
    Kernel(&'static KernelEntry),
    /// None since [`forget_served`].
    Nobody,
}

impl Served {
    /// The plugin's name, or the kind of candidate.
    pub fn name(self) -> &'static str {
        match self {
            Served::View => "(view)",
            Served::Host => "(host)",
            Served::Decomposition => "(decomposition)",
            Served::Fallback => "(fallback)",
            Served::Kernel(kernel) => kernel.plugin.name,
            Served::Nobody => "(none)",
        }
    }
}

thread_local! {
    static SERVED: Cell<Served> = const { Cell::new(Served::View) };
}

#[inline(always)]
pub(crate) fn set_served(served: Served) {
    // `LocalKey::set` would be a call.
    SERVED.with(|place| place.set(served));
}

/// The candidate that served the last call of this thread that finished or failed.
pub fn last_served() -> Served {
    SERVED.get()
}

/// Resets [`last_served`] to `Nobody` until a call of this thread is served, so that a call refused by its op's rule is not
/// confused with the previous one.
pub fn forget_served() {
    SERVED.set(Served::Nobody);
}

/// Calls and moved tensors.
type Entries = BTreeMap<(&'static str, Device, Device), (u64, u64)>;
static FALLBACKS: Mutex<Entries> = Mutex::new(BTreeMap::new());

fn fallback_entries() -> std::sync::MutexGuard<'static, Entries> {
    FALLBACKS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Acquires the lock while the process forks.
pub(crate) fn held() -> crate::base::fork::Held {
    Box::new(fallback_entries())
}

/// Records a call that runs on another device; returns whether it is the first of its kind.
pub(crate) fn record_fallback(op: &OpEntry, from: Device, to: Device) -> bool {
    let mut entries = fallback_entries();
    let (calls, _) = entries.entry((op.name, from, to)).or_default();
    *calls += 1;
    *calls == 1
}

/// Adds to the number of tensors that were moved for calls of an op, to the device and back.
pub(crate) fn record_moves(op: &OpEntry, from: Device, to: Device, count: u64) {
    fallback_entries().entry((op.name, from, to)).or_default().1 += count;
}

/// Records that the derivative of a call ran on another device, with the number of tensors that were moved; for the layer
/// that runs derivatives.
pub fn record_derivative(op: &OpEntry, from: Device, to: Device, moves: u64) {
    record_fallback(op, from, to);
    record_moves(op, from, to, moves);
}

/// An entry of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fallback {
    /// The op.
    pub op: String,
    /// The requested device.
    pub from: String,
    /// The device that did the work.
    pub to: String,
    /// The number of calls.
    pub calls: u64,
    /// The number of tensors that were moved for these calls, to the device and back.
    #[serde(default)]
    pub moves: u64,
}

/// Every call so far that ran on another device than requested.
///
/// ```
/// assert!(keyway_dispatcher::ledger::fallbacks().is_empty(), "nothing has run elsewhere");
/// ```
pub fn fallbacks() -> Vec<Fallback> {
    fallback_entries()
        .iter()
        .map(|((op, from, to), &(calls, moves))| Fallback {
            op: op.to_string(),
            from: from.to_string(),
            to: to.to_string(),
            calls,
            moves,
        })
        .collect()
}
