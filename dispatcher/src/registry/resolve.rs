//! How the table is resolved from what has been registered.

use super::state::{Batch, is_retired};
use super::table::{Cell, Generation, OpRows, Row, publish};
use super::{FallbackPolicy, FunctionalEntry, KernelEntry, LayoutEntry};
use crate::base::intern::{DEVICES, DTYPES, LAYOUTS};
use crate::base::key::{DispatchKey, KeySet, Layout};
use crate::device::{DeviceEntry, set_server};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

impl Batch {
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
        device_entries.iter().enumerate().for_each(|(kind, entry)| set_server(kind as u16, *entry));
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
        publish(Generation { number: state.generation, ops, layouts, layout_entries, always, functional })
    }
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
