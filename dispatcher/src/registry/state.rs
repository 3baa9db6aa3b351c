//! The registered entries, and changes to them.

use super::table::Row;
use super::{FallbackPolicy, KernelEntry, KeyHandler, LayoutEntry, LayoutOpsEntry, PreferenceEntry};
use crate::base::error::{Error, Result};
use crate::base::intern::DEVICES;
use crate::base::key::DispatchKey;
use crate::base::plugin::PluginEntry;
use crate::device::{DeviceEntry, server};
use crate::op::schema::Schema;
use crate::op::{OpEntry, OpSpec};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Everything that has been registered.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) ops: Vec<&'static OpEntry>,
    pub(crate) by_name: HashMap<&'static str, &'static OpEntry>,
    pub(crate) kernels: Vec<&'static KernelEntry>,
    pub(crate) devices: Vec<&'static DeviceEntry>,
    pub(crate) layouts: Vec<&'static LayoutEntry>,
    pub(crate) layout_ops: Vec<&'static LayoutOpsEntry>,
    pub(crate) preferences: Vec<&'static PreferenceEntry>,
    /// Declarations that are not valid, with the reason.
    pub(crate) ignored: Vec<(&'static PluginEntry, String)>,
    pub(crate) plugins: Vec<&'static PluginEntry>,
    pub(super) functional: Vec<&'static KeyHandler>,
    pub(super) fallbacks: Fallbacks,
    /// The kernels by op name, including ops that do not exist.
    pub(super) kernels_of: HashMap<&'static str, Vec<&'static KernelEntry>>,
    /// The devices of plugins that lost a device's name to another plugin, by that device and the plugin.
    pub(super) aliases: HashMap<(u16, &'static str), &'static DeviceEntry>,
    pub(super) rows: HashMap<Vec<usize>, Row>,
    pub(super) dirty: Dirty,
    pub(super) generation: u64,
}

/// The parts that the next generation must resolve again.
#[derive(Default)]
pub(super) struct Dirty {
    /// Every op.
    pub(super) all: bool,
    /// Whether the plugins that serve devices are resolved again.
    pub(super) devices: bool,
    /// These ops.
    pub(super) ops: HashSet<&'static str>,
}

static STATE: std::sync::LazyLock<Mutex<State>> = std::sync::LazyLock::new(Mutex::default);

/// A registration in progress. `publish` makes all its entries visible atomically.
pub struct Batch {
    pub(crate) state: MutexGuard<'static, State>,
}

pub(crate) fn lock() -> Batch {
    Batch { state: STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) }
}

/// Registers ops and publishes them.
///
/// # Errors
/// [`Error::Registration`] for a schema that cannot be parsed or a name already in use; none is registered then.
pub fn register_ops(specs: &[OpSpec]) -> Result<Vec<&'static OpEntry>> {
    let mut batch = lock();
    let entries =
        batch.all_or_nothing(|batch| specs.iter().map(|spec| batch.op(*spec)).collect::<Result<Vec<_>>>())?;
    batch.publish();
    Ok(entries)
}

/// Registers the handler of a dispatch key.
///
/// # Errors
/// [`Error::Registration`] if the key is in use.
pub fn register_key_handler(entry: KeyHandler) -> Result<()> {
    let mut batch = lock();
    batch.functional(entry)?;
    batch.publish();
    Ok(())
}

/// The dispatch key of a handler or an interposer, by its name. An interposer that is on by default acts on threads
/// that do not exclude its key, any other handler if a tensor or the thread has its key.
pub fn find_key(name: &str) -> Option<DispatchKey> {
    let batch = lock();
    batch.state.functional.iter().find(|f| f.name == name && !is_retired(f.plugin)).map(|f| f.key)
}

/// Sets the fallback policy of a kind of device, for calls that no candidate serves there.
///
/// # Errors
/// `Value` for a policy that would create a cycle of fallbacks.
pub fn set_fallback(device_kind: u16, policy: FallbackPolicy) -> Result<()> {
    change_fallback(|fallbacks| {
        fallbacks.by_kind.insert(device_kind, policy);
    })
}

/// Sets the fallback policy of every kind of device without its own policy; the fallback device serves calls itself.
///
/// # Errors
/// As [`set_fallback`].
pub fn set_default_fallback(policy: FallbackPolicy) -> Result<()> {
    change_fallback(|fallbacks| fallbacks.default = policy)
}

fn change_fallback(change: impl FnOnce(&mut Fallbacks)) -> Result<()> {
    let mut batch = lock();
    let mut changed = batch.state.fallbacks.clone();
    change(&mut changed);
    if let Some(circle) = changed.circle() {
        let names: Vec<&str> = circle.into_iter().map(|kind| DEVICES.name(kind)).collect();
        return Err(Error::Value {
            op: "fallback",
            argument: "policy",
            expected: "devices that do not fall back to each other in a circle".to_string(),
            got: names.join(" -> "),
        });
    }
    let policies = || changed.by_kind.values().chain([&changed.default]);
    ANY_FALLBACK.store(policies().any(|policy| *policy != FallbackPolicy::Error), Ordering::Relaxed);
    batch.state.fallbacks = changed;
    batch.publish();
    Ok(())
}

/// The fallback policies of devices.
#[derive(Clone, Default)]
pub(super) struct Fallbacks {
    by_kind: HashMap<u16, FallbackPolicy>,
    default: FallbackPolicy,
}

/// Whether any policy sends calls to another device.
static ANY_FALLBACK: AtomicBool = AtomicBool::new(false);

/// See [`crate::fallback::is_set`].
#[inline]
pub(crate) fn any_fallback() -> bool {
    ANY_FALLBACK.load(Ordering::Relaxed)
}

impl Fallbacks {
    /// The policy of a kind of device.
    pub(super) fn of(&self, kind: u16) -> FallbackPolicy {
        let default = if self.default.target() == Some(kind) { FallbackPolicy::Error } else { self.default };
        self.by_kind.get(&kind).copied().unwrap_or(default)
    }

    /// The kinds of devices whose fallbacks form a cycle, if any.
    fn circle(&self) -> Option<Vec<u16>> {
        let starts = self.by_kind.keys().copied();
        starts.into_iter().find_map(|start| {
            let mut way = vec![start];
            while let Some(to) = self.of(way[way.len() - 1]).target() {
                way.push(to);
                if to == start {
                    return Some(way);
                }
                // A cycle that does not contain this device is found from its own members.
                if way.len() > self.by_kind.len() + 2 {
                    return None;
                }
            }
            None
        })
    }
}

/// Ranks these plugins, in this order, before all others that serve a key, regardless of priorities.
///
/// # Errors
/// `Value` for a plugin that is not loaded; then nothing is changed.
pub fn prefer(names: &[&str]) -> Result<()> {
    let loaded = plugins();
    for name in names {
        if !loaded.iter().any(|p| p.name == *name) {
            let there: Vec<_> = loaded.iter().map(|p| p.name).collect();
            return Err(Error::Value {
                op: "prefer",
                argument: "backend",
                expected: format!("the name of a loaded backend ({})", there.join(", ")),
                got: format!("`{name}`"),
            });
        }
    }
    for (rank, name) in names.iter().rev().enumerate() {
        set_priority(name, PREFERRED.saturating_add(rank as i32));
    }
    Ok(())
}

/// The maximum effective priority in a manifest.
pub(crate) const MAX_PRIORITY: i32 = 1 << 23;
/// Above every priority that a plugin may declare.
const PREFERRED: i32 = 2 * MAX_PRIORITY;

/// Whether the plugin was preferred; see [`prefer`].
pub fn is_preferred(plugin: &PluginEntry) -> bool {
    plugin.priority() >= PREFERRED
}

/// Sets the priority of a plugin; 0 is the usual one and higher ones are preferred. Returns whether the plugin exists.
pub fn set_priority(plugin: &str, priority: i32) -> bool {
    change_plugin(plugin, |p| p.priority.store(priority, Ordering::Relaxed))
}

/// Removes a plugin's kernels, devices, layouts and interposers from the next generation; its library stays mapped. Returns
/// whether the plugin exists.
pub fn retire(plugin: &str) -> bool {
    change_plugin(plugin, |p| p.retired.store(true, Ordering::Relaxed))
}

/// Restores a retired plugin. Returns whether the plugin exists and keys for its interposers are free: others may have
/// taken all keys meanwhile.
pub fn restore(plugin: &str) -> bool {
    let mut batch = lock();
    let retired = |p: &&'static PluginEntry| p.name == plugin && p.retired.load(Ordering::Relaxed);
    let found: Vec<_> = batch.state.plugins.iter().copied().filter(retired).collect();
    if !found.iter().all(|p| batch.take_keys_again(p)) {
        return false;
    }
    drop(batch);
    change_plugin(plugin, |p| p.retired.store(false, Ordering::Relaxed))
}

fn change_plugin(name: &str, change: impl Fn(&PluginEntry)) -> bool {
    let mut batch = lock();
    let found: Vec<_> = batch.state.plugins.iter().copied().filter(|p| p.name == name).collect();
    found.iter().for_each(|p| change(p));
    batch.touch(&found);
    batch.publish();
    !found.is_empty()
}

/// Returns the op of this name.
pub fn find_op(name: &str) -> Option<&'static OpEntry> {
    lock().state.by_name.get(name).copied()
}

/// All plugins, including retired ones.
pub fn plugins() -> Vec<&'static PluginEntry> {
    lock().state.plugins.clone()
}

/// All kernels, in the order of registration.
pub fn kernels() -> Vec<&'static KernelEntry> {
    lock().state.kernels.clone()
}

/// All device types that plugins serve, only the preferred one of each kind.
pub fn devices() -> Vec<&'static DeviceEntry> {
    (0..DEVICES.len() as u16).filter_map(server).collect()
}

/// A kernel that is not used, because its signature differs from the op's.
#[derive(Clone, Copy, Debug)]
pub struct LeftOut {
    /// The kernel.
    pub kernel: &'static KernelEntry,
    /// The op's signature; `None` if no op has this name.
    pub expected: Option<&'static str>,
}

/// The kernels of plugins in use that no call can reach.
pub fn left_out() -> Vec<LeftOut> {
    let batch = lock();
    let state = &*batch.state;
    let in_use = state.kernels.iter().copied().filter(|kernel| !kernel.plugin.is_retired());
    let unreachable = in_use.filter_map(|kernel| match state.by_name.get(kernel.op) {
        Some(op) if op.schema.signature == kernel.signature => None,
        op => Some(LeftOut { kernel, expected: op.map(|op| op.schema.signature.as_str()) }),
    });
    unreachable.collect()
}

/// The declared layouts; a layout that several plugins declare appears once for each.
pub fn layouts() -> Vec<&'static LayoutEntry> {
    lock().state.layouts.clone()
}

impl Batch {
    /// Runs `change`; if it fails, its registrations are rolled back.
    pub(crate) fn all_or_nothing<T>(&mut self, change: impl FnOnce(&mut Batch) -> Result<T>) -> Result<T> {
        let (ops, functional) = (self.state.ops.len(), self.state.functional.len());
        change(self).inspect_err(|_| {
            let state = &mut *self.state;
            for op in state.ops.drain(ops..) {
                state.by_name.remove(op.name);
            }
            state.functional.truncate(functional);
        })
    }

    /// Adds a plugin with its entries except ops and interposers.
    pub(crate) fn add(
        &mut self,
        plugin: &'static PluginEntry,
        devices: Vec<&'static DeviceEntry>,
        layouts: Vec<&'static LayoutEntry>,
        kernels: Vec<&'static KernelEntry>,
    ) {
        let state = &mut *self.state;
        state.plugins.push(plugin);
        if !devices.is_empty() {
            (state.dirty.devices, state.dirty.all) = (true, true);
        }
        state.devices.extend(devices);
        state.layouts.extend(layouts);
        for &kernel in &kernels {
            state.kernels_of.entry(kernel.op).or_default().push(kernel);
            state.dirty.ops.insert(kernel.op);
        }
        state.kernels.extend(kernels);
    }

    /// Notes that something about these plugins has changed.
    fn touch(&mut self, plugins: &[&'static PluginEntry]) {
        let state = &mut *self.state;
        let of = |plugin: &PluginEntry| plugins.iter().any(|p| std::ptr::eq(*p, plugin));
        if state.devices.iter().any(|device| of(device.plugin)) {
            state.dirty.devices = true;
            state.dirty.all = true;
        }
        let touched = state.kernels.iter().filter(|kernel| of(kernel.plugin)).map(|kernel| kernel.op);
        state.dirty.ops.extend(touched);
    }

    pub(crate) fn op(&mut self, spec: OpSpec) -> Result<&'static OpEntry> {
        let schema = Schema::parse(spec.schema)?;
        let name = schema.name;
        if let Some(present) = self.state.by_name.get(name) {
            return Err(Error::Registration {
                what: "op",
                name: name.to_string(),
                reason: format!(
                    "`{}` has defined an op of this name; remove the plugin, or give its op another name",
                    present.spec.owner
                ),
            });
        }
        let id = self.state.ops.len();
        let entry: &'static OpEntry =
            Box::leak(Box::new(OpEntry { id, name, number_slots: schema.number_slots(), schema, spec }));
        self.state.ops.push(entry);
        self.state.by_name.insert(name, entry);
        self.state.dirty.ops.insert(name);
        Ok(entry)
    }

    pub(crate) fn functional(&mut self, entry: KeyHandler) -> Result<()> {
        let taken = self.state.functional.iter().find(|f| f.key == entry.key && !is_retired(f.plugin));
        if let Some(present) = taken {
            return Err(Error::Registration {
                what: "dispatch key",
                name: entry.name,
                reason: format!("key {} belongs to `{}`", entry.key.number(), present.name),
            });
        }
        self.state.functional.push(Box::leak(Box::new(entry)));
        Ok(())
    }
}

pub(super) fn is_retired(plugin: Option<&'static PluginEntry>) -> bool {
    plugin.is_some_and(PluginEntry::is_retired)
}
