//! What has been registered, and how the table is resolved from it.

use crate::error::{Error, Result};
use crate::intern::{DEVICES, DTYPES, LAYOUTS};
use crate::key::{DispatchKey, KeySet, Layout};
use crate::op::{Args, OpEntry, OpSpec, Out, Outputs};
use crate::schema::Schema;
use crate::table::{Cell, Generation, OpRows, Row, publish};
use keyway_sdk::abi::codes::device_flag;
use keyway_sdk::abi::device::DeviceApi;
use keyway_sdk::abi::layout::LayoutApi;
use keyway_sdk::abi::tensor::KernelFn;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A loaded plugin.
#[derive(Debug)]
pub struct PluginEntry {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// The CPU level or other variant of this build.
    pub variant: String,
    /// The library.
    pub path: PathBuf,
    /// Order of loading; the lower wins among equal priorities.
    pub order: usize,
    pub(crate) priority: AtomicI32,
    pub(crate) retired: AtomicBool,
}

/// A registered kernel.
#[derive(Debug)]
pub struct KernelEntry {
    /// The function.
    pub run: KernelFn,
    /// See `keyway_sdk::abi::codes::kernel_flag`.
    pub flags: u32,
    /// The op's name.
    pub op: &'static str,
    /// The signature that it was written against.
    pub signature: &'static str,
    /// Device kind.
    pub device: u16,
    /// Layout.
    pub layout: Layout,
    /// Dtype number.
    pub dtype: u16,
    /// Whose it is.
    pub plugin: &'static PluginEntry,
}

/// A device type and who serves it.
#[derive(Debug)]
pub struct DeviceEntry {
    /// Interned name.
    pub kind: u16,
    /// Its functions.
    pub api: &'static DeviceApi,
    /// Whose it is.
    pub plugin: &'static PluginEntry,
}

impl DeviceEntry {
    /// Whether the host may read the device's memory.
    #[inline]
    pub fn host_accessible(&self) -> bool {
        self.api.flags & device_flag::HOST_ACCESSIBLE != 0
    }
}

/// A layout and who owns it.
#[derive(Debug)]
pub struct LayoutEntry {
    /// The layout.
    pub layout: Layout,
    /// The layout whose kernels may serve it.
    pub parent: Option<Layout>,
    /// Names of the components.
    pub components: Vec<String>,
    /// Names of the attributes.
    pub attrs: Vec<String>,
    /// Its functions.
    pub api: &'static LayoutApi,
    /// Whose it is.
    pub plugin: &'static PluginEntry,
}

/// A call on its way down.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Op and arguments.
    pub args: Args<'a>,
    /// Where the results go.
    pub out: Out<'a>,
}

/// What a functionality key does with a call; the key set is what is left to act below it.
pub type Handler = dyn Fn(&Call<'_>, KeySet) -> Result<Outputs> + Send + Sync;

/// A functionality above the backends.
pub struct FunctionalEntry {
    /// Its key.
    pub key: DispatchKey,
    /// Its name.
    pub name: String,
    /// Whether it does something for an op; where not, calls fall through to the next key.
    pub applies: fn(&OpEntry) -> bool,
    /// What it does.
    pub handler: Box<Handler>,
    /// Whose it is; `None` for the program's own.
    pub plugin: Option<&'static PluginEntry>,
}

/// What a device does when it has no kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FallbackPolicy {
    /// The call fails.
    #[default]
    Error,
    /// The call goes to this kind of device, with a line in the log.
    Warn(u16),
    /// The call goes to this kind of device.
    Allow(u16),
}

/// Everything that has been registered.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) ops: Vec<&'static OpEntry>,
    pub(crate) by_name: HashMap<&'static str, &'static OpEntry>,
    pub(crate) kernels: Vec<&'static KernelEntry>,
    pub(crate) devices: Vec<&'static DeviceEntry>,
    pub(crate) layouts: Vec<&'static LayoutEntry>,
    pub(crate) plugins: Vec<&'static PluginEntry>,
    functional: Vec<&'static FunctionalEntry>,
    fallback: HashMap<u16, FallbackPolicy>,
    rows: HashMap<Vec<usize>, Row>,
    generation: u64,
}

static STATE: std::sync::LazyLock<Mutex<State>> = std::sync::LazyLock::new(Mutex::default);

/// A change under way. Everything registered through it becomes visible at once, by [`Batch::publish`].
pub struct Batch {
    pub(crate) state: MutexGuard<'static, State>,
}

pub(crate) fn lock() -> Batch {
    Batch { state: STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) }
}

/// The first generation, for readers that come before any registration.
pub(crate) fn first_generation() -> &'static Generation {
    lock().publish()
}

/// Registers ops and makes them visible.
///
/// # Errors
/// [`Error::Registration`] for a schema that cannot be read or a name that is taken; none is registered then.
pub fn register_ops(specs: &[OpSpec]) -> Result<Vec<&'static OpEntry>> {
    let mut batch = lock();
    let entries = specs.iter().map(|spec| batch.op(*spec)).collect::<Result<Vec<_>>>()?;
    batch.publish();
    Ok(entries)
}

/// Registers a functionality key.
///
/// # Errors
/// [`Error::Registration`] when the key is taken.
pub fn register_functional(entry: FunctionalEntry) -> Result<()> {
    let mut batch = lock();
    batch.functional(entry)?;
    batch.publish();
    Ok(())
}

/// The key of a functionality or an interposer, by its name. An interposer acts on every call of threads
/// that do not exclude its key, any other functionality where a tensor or the thread brings its key.
pub fn find_functional(name: &str) -> Option<DispatchKey> {
    let batch = lock();
    batch.state.functional.iter().find(|f| f.name == name && !is_retired(f.plugin)).map(|f| f.key)
}

/// Says what a kind of device does when it has no kernel.
pub fn set_fallback(device_kind: u16, policy: FallbackPolicy) {
    let mut batch = lock();
    batch.state.fallback.insert(device_kind, policy);
    batch.publish();
}

/// Gives a plugin another priority; 0 is usual and higher wins. Returns whether there is such a plugin.
pub fn set_priority(plugin: &str, priority: i32) -> bool {
    change_plugin(plugin, |p| p.priority.store(priority, Ordering::Relaxed))
}

/// Takes a plugin's kernels, devices, layouts and interposers out of the next generation; its library
/// stays mapped. Returns whether there is such a plugin.
pub fn retire(plugin: &str) -> bool {
    change_plugin(plugin, |p| p.retired.store(true, Ordering::Relaxed))
}

/// Puts a retired plugin back. Returns whether there is such a plugin.
pub fn restore(plugin: &str) -> bool {
    change_plugin(plugin, |p| p.retired.store(false, Ordering::Relaxed))
}

fn change_plugin(name: &str, change: impl Fn(&PluginEntry)) -> bool {
    let mut batch = lock();
    let found: Vec<_> = batch.state.plugins.iter().copied().filter(|p| p.name == name).collect();
    found.iter().for_each(|p| change(p));
    batch.publish();
    !found.is_empty()
}

/// The op of this name.
pub fn find_op(name: &str) -> Option<&'static OpEntry> {
    lock().state.by_name.get(name).copied()
}

/// All plugins, retired ones included.
pub fn plugins() -> Vec<&'static PluginEntry> {
    lock().state.plugins.clone()
}

/// All kernels, in the order of registration.
pub fn kernels() -> Vec<&'static KernelEntry> {
    lock().state.kernels.clone()
}

/// All device types that somebody serves, the winner of each kind only.
pub fn devices() -> Vec<&'static DeviceEntry> {
    crate::table::current().device_entries.iter().flatten().copied().collect()
}

/// The registered layouts.
pub fn layouts() -> Vec<&'static LayoutEntry> {
    lock().state.layouts.clone()
}

/// The rank of a layout when arguments of several layouts meet: the more special one decides.
pub(crate) fn more_special(a: Layout, b: Layout) -> Layout {
    if b.id() > a.id() { b } else { a }
}

impl Batch {
    pub(crate) fn op(&mut self, spec: OpSpec) -> Result<&'static OpEntry> {
        let schema = Schema::parse(spec.schema)?;
        let name = schema.name;
        if let Some(present) = self.state.by_name.get(name) {
            return Err(Error::Registration {
                what: "op",
                name: name.to_string(),
                reason: format!("`{}` has defined an op of this name", present.spec.owner),
            });
        }
        let id = self.state.ops.len();
        let entry: &'static OpEntry =
            Box::leak(Box::new(OpEntry { id, name, number_slots: schema.number_slots(), schema, spec }));
        self.state.ops.push(entry);
        self.state.by_name.insert(name, entry);
        Ok(entry)
    }

    pub(crate) fn functional(&mut self, entry: FunctionalEntry) -> Result<()> {
        let taken = self.state.functional.iter().find(|f| f.key == entry.key && !is_retired(f.plugin));
        if let Some(present) = taken {
            return Err(Error::Registration {
                what: "functionality key",
                name: entry.name,
                reason: format!("key {} belongs to `{}`", entry.key.number(), present.name),
            });
        }
        self.state.functional.push(Box::leak(Box::new(entry)));
        Ok(())
    }

    /// The next free key for an interposer.
    pub(crate) fn free_interposer_key(&self) -> Option<DispatchKey> {
        (DispatchKey::INTERPOSER_FIRST.number()..=DispatchKey::INTERPOSER_LAST.number())
            .map(DispatchKey)
            .find(|key| self.state.functional.iter().all(|f| f.key != *key))
    }

    /// Resolves all that is registered and makes it current.
    pub(crate) fn publish(&mut self) -> &'static Generation {
        let state = &mut *self.state;
        state.generation += 1;
        let (devices, layouts) = (DEVICES.len(), LAYOUTS.len());

        let mut device_entries: Vec<Option<&'static DeviceEntry>> = vec![None; devices];
        for &entry in &state.devices {
            if entry.plugin.retired.load(Ordering::Relaxed) {
                continue;
            }
            let slot = &mut device_entries[entry.kind as usize];
            if slot.is_none_or(|present| device_rank(entry) > device_rank(present)) {
                *slot = Some(entry);
            }
        }
        let mut layout_entries: Vec<Option<&'static LayoutEntry>> = vec![None; layouts];
        for &entry in &state.layouts {
            if !entry.plugin.retired.load(Ordering::Relaxed) {
                layout_entries[entry.layout.id() as usize].get_or_insert(entry);
            }
        }
        let mut functional: [Option<&'static FunctionalEntry>; 64] = [None; 64];
        for &entry in &state.functional {
            if !is_retired(entry.plugin) {
                functional[entry.key.number() as usize] = Some(entry);
            }
        }

        let mut best: HashMap<(usize, u16, u16, u16), &'static KernelEntry> = HashMap::new();
        for &kernel in &state.kernels {
            if kernel.plugin.retired.load(Ordering::Relaxed) {
                continue;
            }
            let Some(op) = state.by_name.get(kernel.op) else { continue };
            if op.schema.signature != kernel.signature {
                continue;
            }
            let slot = best.entry((op.id, kernel.device, kernel.layout.id(), kernel.dtype)).or_insert(kernel);
            if kernel_rank(kernel) > kernel_rank(slot) {
                *slot = kernel;
            }
        }

        let parent_of = |layout: u16| -> Option<u16> {
            match layout_entries[layout as usize] {
                Some(entry) => entry.parent.map(Layout::id),
                None if layout == Layout::CHANNELS_LAST.id() => Some(Layout::STRIDED.id()),
                None => None,
            }
        };
        let mut ops = Vec::with_capacity(state.ops.len());
        for &op in &state.ops {
            let mut rows = Vec::with_capacity(devices * layouts);
            for device in 0..devices as u16 {
                for layout in 0..layouts as u16 {
                    let cells: Vec<Cell> = (0..DTYPES.len() as u16)
                        .map(|dtype| {
                            let mut at = Some(layout);
                            while let Some(l) = at {
                                if let Some(kernel) = best.get(&(op.id, device, l, dtype)) {
                                    return Cell::Kernel(kernel);
                                }
                                at = parent_of(l);
                            }
                            if op.spec.decomposition.is_some() {
                                return Cell::Decompose;
                            }
                            match state.fallback.get(&device).copied().unwrap_or_default() {
                                FallbackPolicy::Error => Cell::Missing,
                                FallbackPolicy::Warn(to) => Cell::Fallback { to, warn: true },
                                FallbackPolicy::Allow(to) => Cell::Fallback { to, warn: false },
                            }
                        })
                        .collect();
                    rows.push(shared_row(&mut state.rows, cells));
                }
            }
            let mask = functional
                .iter()
                .flatten()
                .filter(|f| (f.applies)(op))
                .fold(0, |mask, f| mask | KeySet::of(f.key).0);
            ops.push(OpRows { op, functional: mask, rows: rows.into() });
        }
        let interposers = DispatchKey::INTERPOSER_FIRST.number()..=DispatchKey::INTERPOSER_LAST.number();
        let always = functional
            .iter()
            .flatten()
            .filter(|f| interposers.contains(&f.key.number()))
            .fold(0, |mask, f| mask | KeySet::of(f.key).0);
        publish(Generation {
            number: state.generation,
            ops,
            layouts,
            device_entries,
            layout_entries,
            always,
            functional,
        })
    }
}

fn is_retired(plugin: Option<&'static PluginEntry>) -> bool {
    plugin.is_some_and(|p| p.retired.load(Ordering::Relaxed))
}

fn kernel_rank(kernel: &KernelEntry) -> (i32, std::cmp::Reverse<usize>) {
    (kernel.plugin.priority.load(Ordering::Relaxed), std::cmp::Reverse(kernel.plugin.order))
}

fn device_rank(entry: &DeviceEntry) -> (i32, u32, std::cmp::Reverse<usize>) {
    let priority = entry.plugin.priority.load(Ordering::Relaxed);
    (priority, entry.api.priority, std::cmp::Reverse(entry.plugin.order))
}

/// One leaked row for each distinct content.
fn shared_row(known: &mut HashMap<Vec<usize>, Row>, cells: Vec<Cell>) -> Row {
    let fingerprint = cells
        .iter()
        .map(|cell| match cell {
            Cell::Missing => 0,
            Cell::Decompose => 1,
            Cell::Fallback { to, warn } => 2 + 4 * *to as usize + 2 * usize::from(*warn) + 1,
            Cell::Kernel(kernel) => std::ptr::from_ref(*kernel).addr(),
        })
        .collect();
    known.entry(fingerprint).or_insert_with(|| cells.leak())
}
