//! Who may serve a key: the one ordered list that the call, `explain`, listings, the profiler and the suite read.

use super::table::{Generation, OpRows, current};
use super::{FallbackPolicy, KernelEntry};
use crate::base::dtype::DType;
use crate::base::key::{Device, Layout};
use crate::device::is_there;
use crate::op::{OpEntry, Rule};
use smallvec::SmallVec;
use std::sync::OnceLock;

/// One candidate for a key of an op.
#[derive(Clone, Copy, Debug)]
pub enum Candidate {
    /// The host makes a view of a strided tensor: metadata only.
    View,
    /// The host does the work itself, by moving bytes, changing a layout, or casting a plugin's dtype.
    Host,
    /// A kernel, of the exact layout or of its parent.
    Kernel(&'static KernelEntry),
    /// The op's decomposition into others.
    Decomposition,
    /// The same op on another kind of device, because the device's policy says so.
    Fallback {
        /// The other device's kind.
        to: u16,
        /// Whether to say so in the log.
        warn: bool,
    },
}

impl Candidate {
    /// The plugin's name, or how else the key is served.
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

/// Says which ops copy and cast; the first call counts.
pub(crate) fn set_casts(ops: [&OpEntry; 3]) {
    let _ = CASTS.set(ops.map(|op| op.id));
}

fn is_host_cast(op: &OpEntry, layout: Layout, dtype: DType) -> bool {
    let known = layout.is_strided() && !dtype.is_built_in() && dtype.size() > 0;
    known && CASTS.get().is_some_and(|casts| casts.contains(&op.id))
}

/// The candidates of a key in the order in which they are asked: the host where it needs nobody, else kernels of the exact
/// layout by priority, kernels of the layout's parent, the op's decomposition, the host for casts of a plugin's dtype, the
/// device's fallback.
pub fn candidates(
    generation: &Generation,
    rows: &OpRows,
    device: Device,
    layout: Layout,
    dtype: DType,
) -> SmallVec<[Candidate; 4]> {
    let mut found = SmallVec::new();
    match rows.op.spec.rule {
        Rule::Host(_) => found.push(Candidate::Host),
        Rule::View(_) | Rule::Views(_) if layout.is_strided() => found.push(Candidate::View),
        _ => {}
    }
    found.extend(generation.cell(rows, device, layout, dtype).kernels().map(Candidate::Kernel));
    if rows.op.spec.decomposition.is_some() {
        found.push(Candidate::Decomposition);
    }
    if is_host_cast(rows.op, layout, dtype) {
        found.push(Candidate::Host);
    }
    match generation.fallback(device.kind) {
        FallbackPolicy::Error => {}
        FallbackPolicy::Warn(to) => found.push(Candidate::Fallback { to, warn: true }),
        FallbackPolicy::Allow(to) => found.push(Candidate::Fallback { to, warn: false }),
    }
    found
}

/// Who serves a key: the first candidate that can. A decomposition can where each of its parts is served for its dtype, a
/// fallback where the other device serves the key.
pub fn server(op: &OpEntry, device: Device, layout: Layout, dtype: DType) -> Option<Candidate> {
    server_in(current(), op, device, layout, dtype, 0)
}

/// Ops that lead to each other deeper than this are taken for a circle.
const MAX_DEPTH: usize = 16;

fn server_in(
    generation: &Generation,
    op: &OpEntry,
    device: Device,
    layout: Layout,
    dtype: DType,
    depth: usize,
) -> Option<Candidate> {
    let rows = generation.op(op)?;
    if depth > MAX_DEPTH {
        return None;
    }
    candidates(generation, rows, device, layout, dtype).into_iter().find(|candidate| match candidate {
        Candidate::View | Candidate::Host | Candidate::Kernel(_) => true,
        Candidate::Decomposition => missing_part(generation, op, device, layout, dtype, depth).is_none(),
        Candidate::Fallback { to, .. } => {
            let there = Device { kind: *to, index: 0 };
            is_there(*to) && server_in(generation, op, there, layout, dtype, depth + 1).is_some()
        }
    })
}

/// The first part of an op's decomposition that nobody serves for a call of this key, with the dtype that it is wanted
/// for; `None` where all parts are served, or there is no decomposition.
pub fn first_missing_part(
    op: &OpEntry,
    device: Device,
    layout: Layout,
    dtype: DType,
) -> Option<(&'static str, DType)> {
    missing_part(current(), op, device, layout, dtype, 0)
}

fn missing_part(
    generation: &Generation,
    op: &OpEntry,
    device: Device,
    layout: Layout,
    dtype: DType,
    depth: usize,
) -> Option<(&'static str, DType)> {
    let parts = op.spec.decomposition?.parts;
    let unserved = |part: &&crate::op::Part| match super::find_op(part.op) {
        None => true,
        Some(found) => {
            server_in(generation, found, device, layout, part.dtype_for(dtype), depth + 1).is_none()
        }
    };
    parts.iter().find(unserved).map(|part| (part.op, part.dtype_for(dtype)))
}
