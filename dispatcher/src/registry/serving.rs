//! The candidates of a key: the one ordered list that the call, `explain`, listings, the profiler and the suite use.
//!
//! An op that must leave its device does so once, as a whole: if a part of its decomposition is not served on the device,
//! the device's fallback precedes the decomposition if the other device serves the op itself.

use super::table::{Generation, OpRows, current};
use super::{FallbackPolicy, KernelEntry};
use crate::base::dtype::DType;
use crate::base::key::{Device, Layout};
use crate::device::is_there;
use crate::op::{OpEntry, Rule};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::OnceLock;

/// One candidate for a key of an op.
#[derive(Clone, Copy, Debug)]
pub enum Candidate {
    /// The host creates a view of a strided tensor: metadata only.
    View,
    /// The host does the work itself, by moving bytes, changing a layout, or casting a plugin's dtype.
    Host,
    /// A kernel, of the exact layout or of its parent.
    Kernel(&'static KernelEntry),
    /// The op's decomposition into other ops.
    Decomposition,
    /// The same op on another kind of device, by the device's fallback policy.
    Fallback {
        /// The kind of the fallback device.
        to: u16,
        /// Whether to log it.
        warn: bool,
    },
}

impl Candidate {
    /// The plugin's name, or the kind of candidate.
    pub fn name(&self) -> &'static str {
        match self {
            Candidate::View => "(view)",
            Candidate::Host => "(host)",
            Candidate::Kernel(kernel) => kernel.plugin.name,
            Candidate::Decomposition => "(decomposition)",
            Candidate::Fallback { .. } => "(fallback)",
        }
    }
}

/// The ids of the ops that the host does itself, after the kernels, for a plugin's dtype.
static CASTS: OnceLock<[usize; 3]> = OnceLock::new();

/// Sets the ops that copy and cast; only the first call has an effect.
pub(crate) fn set_casts(ops: [&OpEntry; 3]) {
    let _ = CASTS.set(ops.map(|op| op.id));
}

fn is_host_cast(op: &OpEntry, layout: Layout, dtype: DType) -> bool {
    let known = layout.is_strided() && !dtype.is_built_in() && dtype.size() > 0;
    known && CASTS.get().is_some_and(|casts| casts.contains(&op.id))
}

/// The candidates of a key in the order in which they are tried: the host if it serves the call alone, otherwise kernels of
/// the exact layout by priority, kernels of the layout's parent, and then either the op's decomposition, or the host for
/// casts of a plugin's dtype and the device's fallback.
pub fn candidates(
    generation: &Generation,
    rows: &OpRows,
    device: Device,
    layout: Layout,
    dtype: DType,
) -> SmallVec<[Candidate; 4]> {
    let leaves = Search { generation, may_leave: true }.leaves_whole(rows.op, device, layout, dtype, 0);
    all(generation, rows, device, layout, dtype, leaves)
}

/// As [`candidates`]; `leaves` is whether a composite op leaves its device as a whole.
fn all(
    generation: &Generation,
    rows: &OpRows,
    device: Device,
    layout: Layout,
    dtype: DType,
    leaves: bool,
) -> SmallVec<[Candidate; 4]> {
    let mut found = SmallVec::new();
    match rows.op.spec.rule {
        Rule::Host(_) => found.push(Candidate::Host),
        _ if rows.op.spec.rule.is_view() && layout.is_strided() => found.push(Candidate::View),
        _ => {}
    }
    found.extend(generation.cell(rows, device, layout, dtype).kernels().map(Candidate::Kernel));
    found.extend(after_kernels(generation, rows.op, device, layout, dtype, leaves).into_iter().flatten());
    found
}

/// The candidates of one call, in the order of [`candidates`]: these kernels, then the others of the key, which are
/// determined lazily.
pub(crate) fn in_order(
    generation: &'static Generation,
    op: &'static OpEntry,
    (device, layout, dtype): (Device, Layout, DType),
    kernels: &[&'static KernelEntry],
) -> impl Iterator<Item = Candidate> {
    let others = std::iter::once_with(move || {
        let leaves = op.spec.decomposition.is_some() && leaves_whole(generation, op, device, layout, dtype);
        after_kernels(generation, op, device, layout, dtype, leaves)
    });
    kernels.iter().copied().map(Candidate::Kernel).chain(others.flatten().flatten())
}

/// The candidates after the kernels of a key, in order; `leaves` is whether a composite op leaves its device as a whole.
fn after_kernels(
    generation: &Generation,
    op: &OpEntry,
    device: Device,
    layout: Layout,
    dtype: DType,
    leaves: bool,
) -> [Option<Candidate>; 3] {
    let decomposed = op.spec.decomposition.is_some() && !leaves;
    let fallback = match generation.fallback(device.kind) {
        _ if decomposed => None,
        FallbackPolicy::Error => None,
        FallbackPolicy::Warn(to) => Some(Candidate::Fallback { to, warn: true }),
        FallbackPolicy::Allow(to) => Some(Candidate::Fallback { to, warn: false }),
    };
    [
        decomposed.then_some(Candidate::Decomposition),
        is_host_cast(op, layout, dtype).then_some(Candidate::Host),
        fallback,
    ]
}

/// The first candidate that can serve a key. A decomposition can if each of its parts is served for its dtype, a fallback
/// if the other device serves the key.
pub fn server(op: &OpEntry, device: Device, layout: Layout, dtype: DType) -> Option<Candidate> {
    Search { generation: current(), may_leave: true }.server(op, device, layout, dtype, 0)
}

/// The first part of an op's decomposition that no candidate serves for a call of this key, with its dtype; `None` if all
/// parts are served, or there is no decomposition.
pub fn first_missing_part(
    op: &OpEntry,
    device: Device,
    layout: Layout,
    dtype: DType,
) -> Option<(&'static str, DType)> {
    Search { generation: current(), may_leave: true }.missing_part(op, device, layout, dtype, 0)
}

/// As [`first_missing_part`], if no part may leave the device.
pub fn first_leaving_part(
    op: &OpEntry,
    device: Device,
    layout: Layout,
    dtype: DType,
) -> Option<(&'static str, DType)> {
    Search { generation: current(), may_leave: false }.missing_part(op, device, layout, dtype, 0)
}

/// Whether a call of a composite op that no kernel serves runs as a whole on the fallback device instead of its
/// decomposition: a part is not served here, and the other device serves the op.
#[inline]
pub(crate) fn leaves_whole(
    generation: &'static Generation,
    op: &OpEntry,
    device: Device,
    layout: Layout,
    dtype: DType,
) -> bool {
    generation.fallback(device.kind) != FallbackPolicy::Error
        && leaves_whole_cached(generation, op, device, layout, dtype)
}

/// Whether calls leave their device as a whole, by op, kind of device, layout and dtype, in one generation of the table.
type Leaving = (u64, HashMap<(usize, u16, u16, u16), bool>);

#[inline(never)]
fn leaves_whole_cached(
    generation: &'static Generation,
    op: &OpEntry,
    device: Device,
    layout: Layout,
    dtype: DType,
) -> bool {
    thread_local! {
        static LEAVING: RefCell<Leaving> = RefCell::default();
    }
    LEAVING.with_borrow_mut(|(number, known)| {
        if *number != generation.number {
            (*number, *known) = (generation.number, HashMap::new());
        }
        let key = (op.id, device.kind, layout.id(), dtype.code());
        let search = Search { generation, may_leave: true };
        *known.entry(key).or_insert_with(|| search.leaves_whole(op, device, layout, dtype, 0))
    })
}

/// The maximum nesting of decompositions; deeper ones are treated as a cycle.
const MAX_DEPTH: usize = 16;

/// A search for candidates in one generation.
#[derive(Clone, Copy)]
struct Search<'a> {
    generation: &'a Generation,
    /// Whether a fallback to another device is allowed.
    may_leave: bool,
}

impl Search<'_> {
    fn server(
        self,
        op: &OpEntry,
        device: Device,
        layout: Layout,
        dtype: DType,
        depth: usize,
    ) -> Option<Candidate> {
        let rows = self.generation.op(op)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let leaves = self.leaves_whole(op, device, layout, dtype, depth);
        all(self.generation, rows, device, layout, dtype, leaves).into_iter().find(|candidate| {
            match *candidate {
                Candidate::Decomposition => self.missing_part(op, device, layout, dtype, depth).is_none(),
                Candidate::Fallback { to, .. } => {
                    let there = Device { kind: to, index: 0 };
                    self.may_leave
                        && is_there(to)
                        && self.server(op, there, layout, dtype, depth + 1).is_some()
                }
                _ => true,
            }
        })
    }

    fn missing_part(
        self,
        op: &OpEntry,
        device: Device,
        layout: Layout,
        dtype: DType,
        depth: usize,
    ) -> Option<(&'static str, DType)> {
        let parts = op.spec.decomposition?.parts;
        let unserved = |part: &&crate::op::Part| match super::find_op(part.op) {
            None => true,
            Some(found) => self.server(found, device, layout, part.dtype_for(dtype), depth + 1).is_none(),
        };
        parts.iter().find(unserved).map(|part| (part.op, part.dtype_for(dtype)))
    }

    /// Whether a call leaves its device; see [`leaves_whole`].
    fn leaves_whole(self, op: &OpEntry, device: Device, layout: Layout, dtype: DType, depth: usize) -> bool {
        let Some(to) = self.generation.fallback(device.kind).target() else { return false };
        if !self.may_leave || op.spec.decomposition.is_none() || !is_there(to) {
            return false;
        }
        let staying = Search { may_leave: false, ..self };
        staying.missing_part(op, device, layout, dtype, depth).is_some()
            && self.server(op, Device { kind: to, index: 0 }, layout, dtype, depth + 1).is_some()
    }
}
