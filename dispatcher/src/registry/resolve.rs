//! Resolves the dispatch table from the registered entries.

use super::access::may_serve;
use super::state::{Batch, Dirty, State, is_retired};
use super::table::{Cell, Generation, Layouts, OpRows, Row, current_if_any, publish};
use super::{KernelEntry, KeyHandler, LayoutEntry};
use crate::base::intern::{DEVICES, LAYOUTS};
use crate::base::key::{KeySet, Layout};
use crate::device::{DeviceEntry, is_there, server, set_server};
use crate::op::OpEntry;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;

impl Batch {
    /// Resolves the changed parts and publishes the new generation.
    pub(crate) fn publish(&mut self) -> &'static Generation {
        let state = &mut *self.state;
        state.generation += 1;
        let dirty = std::mem::take(&mut state.dirty);
        if dirty.devices {
            settle_devices(state);
        }
        let mut layout_entries: Vec<Option<&'static LayoutEntry>> = vec![None; LAYOUTS.len()];
        for &entry in state.layouts.iter().filter(|entry| !entry.plugin.is_retired()) {
            layout_entries[entry.layout.id() as usize].get_or_insert(entry);
        }
        let mut functional: [Option<&'static KeyHandler>; 64] = [None; 64];
        for &entry in state.functional.iter().filter(|entry| !is_retired(entry.plugin)) {
            functional[entry.key.number() as usize] = Some(entry);
        }
        super::layouts::settle(state);
        let before = current_if_any();
        let mut ops = Vec::with_capacity(state.ops.len());
        for i in 0..state.ops.len() {
            let op = state.ops[i];
            let unchanged = before.and_then(|b| b.op(op)).filter(|_| !dirty.has(op.name));
            let devices = match unchanged {
                Some(rows) => rows.devices,
                None => resolve_op(state, op),
            };
            let applies = functional.iter().flatten().filter(|f| f.acts_on(op));
            let functional = applies.fold(0, |mask, f| mask | KeySet::of(f.key).0);
            ops.push(OpRows { op, functional, devices });
        }
        let on = |f: &&KeyHandler| f.interposer.as_ref().is_some_and(|spec| spec.default_on);
        let acting = functional.iter().flatten().copied().filter(on);
        let always = acting.fold(0, |mask, f| mask | KeySet::of(f.key).0);
        let fallback = (0..DEVICES.len() as u16).map(|kind| state.fallbacks.of(kind)).collect();
        publish(Generation {
            number: state.generation,
            ops,
            layout_entries,
            always,
            functional,
            fallback,
            default_fallback: state.fallbacks.of(u16::MAX),
        })
    }
}

/// Decides which plugin serves each device. The preferred one gets the device's name; each of the others becomes a separate
/// device, `name@plugin`, so that memory and kernels of two plugins never mix.
fn settle_devices(state: &mut State) {
    let mut by_kind: BTreeMap<u16, Vec<&'static DeviceEntry>> = BTreeMap::new();
    for &entry in &state.devices {
        let same = by_kind.entry(entry.kind).or_default();
        if !entry.plugin.is_retired() {
            same.push(entry);
        }
    }
    for alias in state.aliases.values() {
        set_server(alias.kind, None);
    }
    for (kind, mut entries) in by_kind {
        entries.sort_by_key(|entry| Reverse(device_rank(entry)));
        set_server(kind, entries.first().copied());
        for &loser in entries.iter().skip(1) {
            let key = (kind, loser.plugin.name);
            let alias = match state.aliases.get(&key) {
                Some(alias) => *alias,
                None => {
                    let name = format!("{}@{}", DEVICES.name(kind), loser.plugin.name);
                    let Some(kind) = DEVICES.intern(&name) else { continue };
                    let alias: &'static DeviceEntry =
                        Box::leak(Box::new(DeviceEntry { kind, api: loser.api, plugin: loser.plugin }));
                    state.aliases.insert(key, alias);
                    alias
                }
            };
            set_server(alias.kind, Some(alias));
        }
    }
}

/// The kernels of an op that may serve a key, by device, layout and dtype, in order of preference.
type Best = BTreeMap<u16, BTreeMap<u16, BTreeMap<u16, Vec<&'static KernelEntry>>>>;

fn resolve_op(state: &mut State, op: &'static OpEntry) -> &'static [Layouts] {
    let Some(kernels) = state.kernels_of.get(op.name) else { return &[] };
    let mut best: Best = BTreeMap::new();
    for &kernel in kernels {
        if kernel.plugin.is_retired() || op.schema.signature != kernel.signature {
            continue;
        }
        let aliases = state.aliases.iter().filter(|((kind, _), _)| *kind == kernel.device);
        let alias_kinds = aliases.map(|(_, alias)| alias.kind);
        for kind in std::iter::once(kernel.device).chain(alias_kinds) {
            // A device that no plugin provides has no memory, so a kernel for it serves nothing.
            if is_there(kind) && may_serve(kernel.plugin, kernel.device, server(kind)) {
                let layouts = best.entry(kind).or_default().entry(kernel.layout.id()).or_default();
                layouts.entry(kernel.dtype).or_default().push(kernel);
            }
        }
    }
    let Some((&last, _)) = best.last_key_value() else { return &[] };
    let mut devices: Vec<Layouts> = vec![&[]; last as usize + 1];
    for (kind, mut layouts) in best {
        for dtypes in layouts.values_mut() {
            dtypes.values_mut().for_each(|kernels| kernels.sort_by_key(|k| Reverse(kernel_rank(k))));
        }
        devices[kind as usize] = layouts_of(state, layouts);
    }
    devices.leak()
}

fn layouts_of(
    state: &mut State,
    layouts: BTreeMap<u16, BTreeMap<u16, Vec<&'static KernelEntry>>>,
) -> Layouts {
    let mut rows: Vec<Row> = Vec::new();
    for id in 0..LAYOUTS.len() as u16 {
        let chain = [Some(Layout(id)), Layout(id).parent()];
        let mut dtypes: BTreeMap<u16, Vec<&'static KernelEntry>> = BTreeMap::new();
        for layout in chain.into_iter().flatten() {
            for (dtype, kernels) in layouts.get(&layout.id()).into_iter().flatten() {
                dtypes.entry(*dtype).or_default().extend(kernels);
            }
        }
        rows.push(row_of(state, dtypes));
    }
    while rows.last().is_some_and(|row| row.is_empty()) {
        rows.pop();
    }
    rows.leak()
}

/// Returns a leaked row, shared by all rows of the same content.
fn row_of(state: &mut State, dtypes: BTreeMap<u16, Vec<&'static KernelEntry>>) -> Row {
    let Some((&last, _)) = dtypes.last_key_value() else { return &[] };
    let mut fingerprint = Vec::new();
    for (dtype, kernels) in &dtypes {
        fingerprint.push(*dtype as usize);
        fingerprint.extend(kernels.iter().map(|k| std::ptr::from_ref(*k).addr()));
    }
    let rows: &mut HashMap<Vec<usize>, Row> = &mut state.rows;
    rows.entry(fingerprint).or_insert_with(|| {
        let mut cells = vec![Cell::default(); last as usize + 1];
        for (dtype, kernels) in dtypes {
            if let Some((&first, rest)) = kernels.split_first() {
                cells[dtype as usize] = Cell { kernel: Some(first), rest: rest.to_vec().leak() };
            }
        }
        cells.leak()
    })
}

fn kernel_rank(kernel: &KernelEntry) -> (i32, Reverse<usize>) {
    (kernel.plugin.priority.load(Ordering::Relaxed), Reverse(kernel.plugin.order))
}

fn device_rank(entry: &DeviceEntry) -> (i32, u32, Reverse<usize>) {
    let priority = entry.plugin.priority.load(Ordering::Relaxed);
    (priority, entry.api.priority, Reverse(entry.plugin.order))
}

impl Dirty {
    fn has(&self, op: &str) -> bool {
        self.all || self.ops.contains(op)
    }
}
