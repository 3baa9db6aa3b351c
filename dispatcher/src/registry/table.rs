//! The resolved table: what serves each (op, device, layout, dtype), decided when something is registered.
//!
//! Readers never lock: a generation is immutable, and registering publishes the next one with one atomic
//! store. Generations and their rows are never freed, because a reader may hold them; they are made only
//! when a plugin is registered or retired, and equal rows are shared between generations.

use super::{FunctionalEntry, KernelEntry, LayoutEntry};
use crate::base::dtype::DType;
use crate::base::key::{Device, Layout};
use crate::op::OpEntry;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What serves one key of one op.
#[derive(Clone, Copy)]
pub enum Cell {
    /// Nothing.
    Missing,
    /// A kernel, perhaps that of the layout's parent.
    Kernel(&'static KernelEntry),
    /// Other ops.
    Decompose,
    /// The same op on another device, because the device's policy says so.
    Fallback {
        /// The other device's kind.
        to: u16,
        /// Whether to say so in the log.
        warn: bool,
    },
}

/// One cell for each dtype number.
pub type Row = &'static [Cell];

/// The rows of one op.
pub struct OpRows {
    /// The op.
    pub op: &'static OpEntry,
    /// The functionality keys that do something for this op.
    pub functional: u64,
    pub(crate) rows: Box<[Row]>,
}

/// One state of everything that is registered.
pub struct Generation {
    /// Counts up from 1.
    pub number: u64,
    pub(crate) ops: Vec<OpRows>,
    pub(crate) layouts: usize,
    pub(crate) layout_entries: Vec<Option<&'static LayoutEntry>>,
    /// The keys of interposers, which act on every call.
    pub(crate) always: u64,
    pub(crate) functional: [Option<&'static FunctionalEntry>; 64],
}

impl Generation {
    /// The rows of an op.
    #[inline]
    pub fn op(&self, op: &OpEntry) -> Option<&OpRows> {
        self.ops.get(op.id)
    }

    /// What serves this key.
    #[inline]
    pub fn cell(&self, rows: &OpRows, device: Device, layout: Layout, dtype: DType) -> Cell {
        let place = device.kind as usize * self.layouts + layout.id() as usize;
        match rows.rows.get(place).and_then(|row| row.get(dtype.code() as usize)) {
            Some(cell) => *cell,
            None => Cell::Missing,
        }
    }

    /// Who owns a layout.
    pub fn layout(&self, layout: Layout) -> Option<&'static LayoutEntry> {
        self.layout_entries.get(layout.id() as usize).copied().flatten()
    }

    /// All ops, in the order of registration.
    pub fn ops(&self) -> impl Iterator<Item = &OpRows> {
        self.ops.iter()
    }
}

static CURRENT: AtomicPtr<Generation> = AtomicPtr::new(std::ptr::null_mut());

/// The current generation.
#[inline]
pub fn current() -> &'static Generation {
    // SAFETY: the pointer is null or came from `publish`, which leaks what it publishes.
    match unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        Some(generation) => generation,
        None => crate::registry::first_generation(),
    }
}

/// Makes `generation` the current one.
pub(crate) fn publish(generation: Generation) -> &'static Generation {
    let leaked: &'static mut Generation = Box::leak(Box::new(generation));
    let pointer: *mut Generation = leaked;
    CURRENT.store(pointer, Ordering::Release);
    // SAFETY: leaked above, and nobody holds the mutable reference any more.
    unsafe { &*pointer }
}
