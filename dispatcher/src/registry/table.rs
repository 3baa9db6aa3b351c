//! The resolved dispatch table: the kernels of each (op, device, layout, dtype), computed at registration.
//!
//! Readers never lock: a generation is immutable, and registering publishes the next one with one atomic store. Generations
//! and their rows are never freed, because a reader may hold them; they are created only by registering or retiring, and
//! share the rows that did not change.
//!
//! Only keys that have a kernel take memory: an op has a row for each (device, layout) for which it has a kernel, so the
//! table grows with the number of kernels and not with the product of all names.

use super::{FallbackPolicy, KernelEntry, KeyHandler, LayoutEntry};
use crate::base::dtype::DType;
use crate::base::key::{Device, Layout};
use crate::memory::Published;
use crate::op::OpEntry;

/// The kernels of one key of one op, in the order in which they are tried: kernels of the exact layout by priority,
/// then kernels of its parent. The later candidates (the op's decomposition, the device's fallback) are the same for
/// all keys of an op or a device, see [`super::serving`].
#[derive(Clone, Copy, Default)]
pub struct Cell {
    /// The first.
    pub kernel: Option<&'static KernelEntry>,
    /// The kernels tried after the first refuses a call.
    pub rest: &'static [&'static KernelEntry],
}

impl Cell {
    /// All of them.
    pub fn kernels(&self) -> impl Iterator<Item = &'static KernelEntry> + use<> {
        self.kernel.into_iter().chain(self.rest.iter().copied())
    }
}

static NO_KERNEL: Cell = Cell { kernel: None, rest: &[] };

/// One cell for each dtype code; shorter if the last dtypes have no kernel.
pub type Row = &'static [Cell];
/// One row for each layout code.
pub(super) type Layouts = &'static [Row];

/// The rows of one op.
#[derive(Clone, Copy)]
pub struct OpRows {
    /// The op.
    pub op: &'static OpEntry,
    /// The dispatch keys with a handler for this op.
    pub functional: u64,
    /// The rows by device code.
    pub(super) devices: &'static [Layouts],
}

/// An immutable state of the registry.
pub struct Generation {
    /// The generation's number, from 1.
    pub number: u64,
    pub(super) ops: Vec<OpRows>,
    pub(super) layout_entries: Vec<Option<&'static LayoutEntry>>,
    /// The keys of the interposers that are on by default.
    pub(crate) always: u64,
    pub(crate) functional: [Option<&'static KeyHandler>; 64],
    pub(super) fallback: Vec<FallbackPolicy>,
    /// The fallback policy of devices without their own.
    pub(super) default_fallback: FallbackPolicy,
}

impl Generation {
    /// The rows of an op.
    #[inline]
    pub fn op(&self, op: &OpEntry) -> Option<&OpRows> {
        self.ops.get(op.id)
    }

    /// The kernels of this key.
    #[inline]
    pub fn cell(&self, rows: &OpRows, device: Device, layout: Layout, dtype: DType) -> &'static Cell {
        // A code assigned after this generation was built is beyond the end of its list.
        let row =
            rows.devices.get(device.kind as usize).and_then(|layouts| layouts.get(layout.id() as usize));
        row.and_then(|row| row.get(dtype.code() as usize)).unwrap_or(&NO_KERNEL)
    }

    /// The fallback policy of a kind of device.
    pub fn fallback(&self, kind: u16) -> FallbackPolicy {
        self.fallback.get(kind as usize).copied().unwrap_or(self.default_fallback)
    }

    /// The declaration of a layout.
    pub fn layout(&self, layout: Layout) -> Option<&'static LayoutEntry> {
        self.layout_entries.get(layout.id() as usize).copied().flatten()
    }

    /// All ops, in the order of registration.
    pub fn ops(&self) -> impl Iterator<Item = &OpRows> {
        self.ops.iter()
    }
}

#[cfg(not(loom))]
static CURRENT: Published<Generation> = Published::new();
#[cfg(loom)]
loom::lazy_static! {
    static ref CURRENT: Published<Generation> = Published::new();
}

/// The current generation.
#[inline]
pub fn current() -> &'static Generation {
    match CURRENT.get() {
        Some(generation) => generation,
        None => first(),
    }
}

/// The current generation, if anything has been published.
pub(super) fn current_if_any() -> Option<&'static Generation> {
    CURRENT.get()
}

/// The first generation, for readers before any registration.
#[cold]
fn first() -> &'static Generation {
    CURRENT.get_or_first(super::lock, |mut batch| batch.publish())
}

/// Makes `generation` the current one.
pub(super) fn publish(generation: Generation) -> &'static Generation {
    CURRENT.publish(generation)
}
