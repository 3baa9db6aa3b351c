//! What autograd hangs on a tensor.

use super::error::AutogradError;
use super::hooks::Hook;
use super::node::{Edge, Node};
use crate::Tensor;
use crate::error::Result;
use keyway_dispatcher::key::DispatchKey;
use keyway_dispatcher::tensor::{TensorImpl, TensorRef, ViewOrigin};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The autograd side of one tensor.
#[derive(Default)]
pub(crate) struct Meta {
    /// A leaf that collects a gradient.
    leaf: AtomicBool,
    /// How often in-place changes of this tensor or of its views have given it another history.
    rebased: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    grad: Option<Tensor>,
    edge: Option<Edge>,
    accumulator: Option<Arc<Node>>,
    hooks: Vec<(u64, Hook)>,
    /// The base's `rebased` when `edge` was made.
    seen: u32,
}

impl Meta {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn get(tensor: &TensorImpl) -> Option<&Meta> {
    tensor.extension()
}

/// The dispatcher's extension slot is used by autograd alone, so this is always there.
fn ensure(tensor: &TensorImpl) -> Option<&Meta> {
    tensor.extension_or_init(Meta::default)
}

/// Whether gradients flow to the tensor.
pub(crate) fn requires_grad(tensor: &TensorRef) -> bool {
    tensor.keys().has(DispatchKey::AUTOGRAD) && edge(tensor).is_some()
}

pub(crate) fn set_requires_grad(tensor: &TensorRef, on: bool) -> Result<()> {
    if on && !tensor.dtype().is_differentiable() {
        return Err(AutogradError::NotFloating { dtype: tensor.dtype().to_string() }.into());
    }
    if on && tensor.is_inference() && !super::is_inference_mode() {
        return Err(AutogradError::Inference { op: "set_requires_grad".into() }.into());
    }
    let Some(meta) = ensure(tensor) else { return Ok(()) };
    if meta.state().edge.is_some() {
        return if on { Ok(()) } else { Err(AutogradError::NotLeaf.into()) };
    }
    meta.leaf.store(on, Ordering::Relaxed);
    tensor.set_key(DispatchKey::AUTOGRAD, on);
    Ok(())
}

/// Where the gradient of this tensor goes; `None` if none is wanted.
pub(crate) fn edge(tensor: &TensorRef) -> Option<Edge> {
    if let (Some(base), Some(ViewOrigin::Recorded | ViewOrigin::OneOfMany)) =
        (tensor.base(), tensor.view_origin())
    {
        let rebased = get(base).map_or(0, |m| m.rebased.load(Ordering::Relaxed));
        if rebased > 0 {
            return refreshed_view_edge(tensor, base, rebased);
        }
    }
    let meta = get(tensor)?;
    let mut state = meta.state();
    if let Some(edge) = &state.edge {
        return Some(edge.clone());
    }
    if !meta.leaf.load(Ordering::Relaxed) {
        return None;
    }
    let node = state.accumulator.get_or_insert_with(|| Node::accumulator(tensor)).clone();
    Some(Edge { node, output: 0 })
}

/// The history of a view whose base was changed in place, itself or through a view: a view of the base as
/// it is now.
fn refreshed_view_edge(tensor: &TensorRef, base: &TensorRef, rebased: u32) -> Option<Edge> {
    let meta = ensure(tensor)?;
    if let (seen, Some(edge)) = {
        let s = meta.state();
        (s.seen, s.edge.clone())
    } {
        if seen == rebased {
            return Some(edge);
        }
    }
    let base_edge = edge(base)?;
    let fresh = Edge { node: super::view::view_of_base(tensor, base, base_edge), output: 0 };
    let mut state = meta.state();
    state.edge = Some(fresh.clone());
    state.seen = rebased;
    Some(fresh)
}

/// Gives a tensor its history.
pub(crate) fn set_edge(tensor: &TensorRef, edge: Edge) {
    if let Some(meta) = ensure(tensor) {
        let seen = tensor.base().and_then(|b| get(b)).map_or(0, |m| m.rebased.load(Ordering::Relaxed));
        let mut state = meta.state();
        state.edge = Some(edge);
        state.seen = seen;
        meta.leaf.store(false, Ordering::Relaxed);
    }
    tensor.set_key(DispatchKey::AUTOGRAD, true);
}

/// Gives a tensor another history after it, or a view of it, was changed in place.
pub(crate) fn rebase(base: &TensorRef, edge: Edge) {
    set_edge(base, edge);
    if let Some(meta) = get(base) {
        meta.rebased.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether this is a leaf that collects a gradient.
pub(crate) fn is_collecting_leaf(tensor: &TensorRef) -> bool {
    get(tensor).is_some_and(|m| m.leaf.load(Ordering::Relaxed))
}

pub(crate) fn grad(tensor: &TensorRef) -> Option<Tensor> {
    get(tensor)?.state().grad.clone()
}

pub(crate) fn set_grad(tensor: &TensorRef, grad: Option<Tensor>) {
    if grad.is_none() && get(tensor).is_none() {
        return;
    }
    if let Some(meta) = ensure(tensor) {
        let old = std::mem::replace(&mut meta.state().grad, grad);
        drop(old);
    }
}

/// The hooks of a leaf; those of other tensors stand with their node.
pub(crate) fn with_hooks<R>(
    tensor: &TensorRef,
    change: impl FnOnce(&mut Vec<(u64, Hook)>) -> R,
) -> Option<R> {
    ensure(tensor).map(|meta| change(&mut meta.state().hooks))
}
