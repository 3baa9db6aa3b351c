//! The autograd metadata of a tensor, stored in its extension slot.

use super::alias::{self, Alias};
use super::hooks::{self, Hook, LeafHook, When};
use super::node::{Edge, Node};
use super::unlink;
use crate::Tensor;
use crate::error::Result;
use crate::error::autograd::AutogradError;
use keyway_dispatcher::DType;
use keyway_dispatcher::key::DispatchKey;
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::tensor::{TensorImpl, TensorRef, ViewOrigin};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// The autograd metadata of one tensor.
#[derive(Default)]
pub(crate) struct Meta {
    /// Whether the tensor is a leaf that accumulates a gradient.
    leaf: AtomicBool,
    /// The number of times the history was rebased by in-place changes of this tensor or of its views.
    rebased: AtomicU32,
    /// Whether `state` has an edge, true until `detach_`; lets `requires_grad` avoid the lock.
    recorded: AtomicBool,
    /// Whether `state` has hooks.
    hooked: AtomicBool,
    /// Whether this is the result of a custom function and shares memory with other tensors.
    aliased: AtomicBool,
    accumulator: OnceLock<Shared<Node>>,
    /// Locked while a gradient is added to the accumulated one, which calls ops.
    adding: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    grad: Option<Tensor>,
    edge: Option<Edge>,
    hooks: Vec<LeafHook>,
    /// The base's `rebased` when `edge` was created.
    seen: u32,
    /// Extensions of the program's handlers, by key.
    extensions: Option<Box<Extensions>>,
    /// The input with which a result of a custom function shares memory.
    alias: Option<Box<Alias>>,
}

type Extensions = SmallVec<[(DispatchKey, Extension); 1]>;

/// Data that a handler of the program attaches to a tensor.
pub(crate) type Extension = Arc<dyn Any + Send + Sync>;

/// Hooks, extensions and gradients may own further tensors with hooks and gradients, to any depth.
impl Drop for State {
    #[inline]
    fn drop(&mut self) {
        if self.extensions.is_some() {
            self.drop_extensions();
        }
        if self.alias.is_some() {
            self.drop_alias();
        }
        if !self.hooks.is_empty() || self.grad.as_ref().is_some_and(|grad| get(grad.as_ref()).is_some()) {
            unlink::drop_flat((std::mem::take(&mut self.hooks), self.grad.take()));
        }
    }
}

impl State {
    #[cold]
    fn drop_extensions(&mut self) {
        unlink::drop_flat(self.extensions.take());
    }

    #[cold]
    fn drop_alias(&mut self) {
        unlink::drop_flat(self.alias.take());
    }
}

impl Meta {
    fn set_edge(&self, edge: Edge, seen: u32) {
        let mut state = self.state();
        if let Some(old) = &state.edge {
            hooks::move_retained(old, &edge);
        }
        let old = state.edge.replace(edge);
        state.seen = seen;
        self.recorded.store(true, Ordering::Release);
        drop(state);
        // The history behind the old edge may be long, and may refer to a tensor whose drop locks too.
        drop(old);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn get(tensor: &TensorImpl) -> Option<&Meta> {
    tensor.extension()
}

/// Only autograd uses the dispatcher's extension slot, so the metadata always exists.
fn ensure(tensor: &TensorImpl) -> Option<&Meta> {
    tensor.extension_or_init(Meta::default)
}

/// Whether the tensor requires grad.
pub(crate) fn requires_grad(tensor: &TensorRef) -> bool {
    if !tensor.keys().has(DispatchKey::AUTOGRAD) {
        return false;
    }
    if let Some((base, _)) = rebased_base(tensor) {
        return edge(base).is_some();
    }
    get(tensor).is_some_and(|m| m.recorded.load(Ordering::Acquire) || m.leaf.load(Ordering::Relaxed))
}

/// The base of a view, if it was changed in place since the view was created, directly or through a view; and the number of
/// rebases.
fn rebased_base(tensor: &TensorRef) -> Option<(&TensorRef, u32)> {
    let base = tensor.base()?;
    if tensor.view_origin() == Some(ViewOrigin::Unrecorded) {
        return None;
    }
    let meta = get(base)?;
    if meta.aliased.load(Ordering::Relaxed) {
        alias::refresh(base);
    }
    let rebased = meta.rebased.load(Ordering::Relaxed);
    (rebased > 0).then_some((base, rebased))
}

/// Refuses a complex tensor in a recorded call of an op whose formula is not meant for complex numbers.
#[cold]
pub(crate) fn no_complex_formula(op: &str, dtype: DType) -> crate::Error {
    AutogradError::Complex { op: op.to_string(), dtype: dtype.to_string() }.into()
}

pub(crate) fn set_requires_grad(tensor: &TensorRef, on: bool) -> Result<()> {
    if on && !tensor.dtype().is_differentiable() {
        return Err(
            AutogradError::NotFloating { op: "requires_grad_", dtype: tensor.dtype().to_string() }.into()
        );
    }
    if on && tensor.is_inference() && !super::is_inference_mode() {
        return Err(AutogradError::Inference { op: "requires_grad_".into() }.into());
    }
    let Some(meta) = ensure(tensor) else { return Ok(()) };
    if meta.recorded.load(Ordering::Acquire) {
        return if on { Ok(()) } else { Err(AutogradError::NotLeaf.into()) };
    }
    meta.leaf.store(on, Ordering::Relaxed);
    tensor.set_key(DispatchKey::AUTOGRAD, on);
    Ok(())
}

/// Removes a tensor's history, so that it is a leaf that does not require grad.
pub(crate) fn forget_history(tensor: &TensorRef) -> Result<()> {
    let refused = |reason| Err(AutogradError::DetachInPlace { reason }.into());
    if tensor.base().is_some() {
        return refused("is a view, and its base may go on in the graph");
    }
    let Some(meta) = get(tensor) else { return Ok(()) };
    if meta.rebased.load(Ordering::Relaxed) > 0 {
        return refused("was changed in place, and its views have their history from it");
    }
    meta.recorded.store(false, Ordering::Release);
    meta.leaf.store(false, Ordering::Relaxed);
    tensor.set_key(DispatchKey::AUTOGRAD, false);
    let old = meta.state().edge.take();
    drop(old);
    Ok(())
}

/// The edge that receives the gradient of this tensor; `None` if it does not require grad.
pub(crate) fn edge(tensor: &TensorRef) -> Option<Edge> {
    if let Some((base, rebased)) = rebased_base(tensor) {
        return refreshed_view_edge(tensor, base, rebased);
    }
    let meta = get(tensor)?;
    if meta.aliased.load(Ordering::Relaxed) {
        alias::refresh(tensor);
    }
    if meta.recorded.load(Ordering::Acquire) {
        return meta.state().edge.clone();
    }
    if !meta.leaf.load(Ordering::Relaxed) {
        return None;
    }
    let node = meta.accumulator.get_or_init(|| Node::accumulator(tensor)).clone();
    Some(Edge { node, output: 0 })
}

/// The history of a view whose base was changed in place, directly or through a view: a view of the current base.
fn refreshed_view_edge(tensor: &TensorRef, base: &TensorRef, rebased: u32) -> Option<Edge> {
    let meta = ensure(tensor)?;
    if let (seen, Some(edge)) = {
        let s = meta.state();
        (s.seen, s.edge.clone())
    } && seen == rebased
    {
        return Some(edge);
    }
    let base_edge = edge(base)?;
    let fresh = Edge { node: super::view::view_of_base(tensor, base, base_edge), output: 0 };
    if let Some(old) = recorded_edge(tensor) {
        hooks::copy_hooks(&old, &fresh);
    }
    meta.set_edge(fresh.clone(), rebased);
    Some(fresh)
}

/// Sets a tensor's history.
pub(crate) fn set_edge(tensor: &TensorRef, edge: Edge) {
    if let Some(meta) = ensure(tensor) {
        meta.set_edge(edge, rebased_so_far(tensor));
        meta.leaf.store(false, Ordering::Relaxed);
    }
    tensor.set_key(DispatchKey::AUTOGRAD, true);
}

/// Sets the history of an op's new result. Such a tensor is nearly always uniquely owned, and no lock is needed.
pub(crate) fn set_first_edge(tensor: &mut TensorRef, edge: Edge) {
    let seen = rebased_so_far(tensor);
    match TensorImpl::extend_new::<Meta>(tensor, DispatchKey::AUTOGRAD) {
        Some(meta) => {
            let state = meta.state.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
            (state.edge, state.seen) = (Some(edge), seen);
            *meta.recorded.get_mut() = true;
        }
        None => set_edge(tensor, edge),
    }
}

/// Number of times the history of a view's base was rebased.
fn rebased_so_far(tensor: &TensorRef) -> u32 {
    tensor.base().map_or(0, times_rebased)
}

/// Number of times the history of a tensor was rebased.
pub(super) fn times_rebased(tensor: &TensorRef) -> u32 {
    get(tensor).map_or(0, |m| m.rebased.load(Ordering::Relaxed))
}

/// Rebases the history of a tensor after it, or a view of it, was changed in place.
pub(crate) fn rebase_history(base: &TensorRef, edge: Edge) {
    set_edge(base, edge);
    if let Some(meta) = get(base) {
        meta.rebased.fetch_add(1, Ordering::Relaxed);
    }
}

/// Rebases the history of a view that was changed in place, after that of its base.
pub(super) fn rebase_view(view: &TensorRef, base: &TensorRef, edge: Edge) {
    if let Some(meta) = ensure(view) {
        meta.set_edge(edge, times_rebased(base));
    }
    view.set_key(DispatchKey::AUTOGRAD, true);
}

/// The edge as recorded, regardless of later in-place changes of the base.
pub(super) fn recorded_edge(tensor: &TensorRef) -> Option<Edge> {
    get(tensor)?.state().edge.clone()
}

/// Records that a result of a custom function shares memory: with an input, or with another tensor.
pub(super) fn set_alias(tensor: &TensorRef, alias: Option<Alias>) {
    let Some(meta) = ensure(tensor) else { return };
    let old = std::mem::replace(&mut meta.state().alias, alias.map(Box::new));
    meta.aliased.store(true, Ordering::Relaxed);
    drop(old);
}

/// For a result of a custom function that shares memory: the input with which it shares memory, if any.
pub(super) fn alias(tensor: &TensorRef) -> Option<Option<Alias>> {
    let meta = get(tensor).filter(|meta| meta.aliased.load(Ordering::Relaxed))?;
    Some(meta.state().alias.as_deref().cloned())
}

/// Whether this is the result of a custom function that shares memory with other tensors, or a view of such a result.
pub(super) fn is_aliased(tensor: &TensorRef) -> bool {
    let owner: &TensorImpl = tensor.base().unwrap_or(tensor);
    get(owner).is_some_and(|meta| meta.aliased.load(Ordering::Relaxed))
}

/// Whether this is a leaf that accumulates a gradient.
pub(crate) fn is_collecting_leaf(tensor: &TensorRef) -> bool {
    get(tensor).is_some_and(|m| m.leaf.load(Ordering::Relaxed))
}

/// The reason why the gradients of a leaf would be lost if another tensor replaced it.
#[cfg(target_os = "linux")]
pub(crate) fn bound_to_handle(tensor: &TensorRef) -> Option<&'static str> {
    let meta = get(tensor)?;
    if meta.accumulator.get().is_some_and(|node| Shared::strong_count(node) > 1) {
        return Some(
            "one whose gradient a graph still computes; call it before the forward pass, or after `backward`",
        );
    }
    meta.hooked.load(Ordering::Acquire).then_some("one with hooks; register them afterwards")
}

/// Whether a recorded call computed the tensor.
pub(crate) fn is_result(tensor: &TensorRef) -> bool {
    edge(tensor).is_some_and(|edge| !edge.node.is_accumulator())
}

pub(crate) fn grad(tensor: &TensorRef) -> Option<Tensor> {
    get(tensor)?.state().grad.clone()
}

/// Serialises additions to the gradient of a leaf.
pub(crate) fn while_adding<R>(leaf: &TensorRef, add: impl FnOnce() -> R) -> R {
    let lock = ensure(leaf).map(|meta| meta.adding.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    let result = add();
    drop(lock);
    result
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

/// The extension of a key on this tensor.
pub(crate) fn extension(tensor: &TensorRef, key: DispatchKey) -> Option<Extension> {
    let state = get(tensor)?.state();
    state.extensions.as_ref()?.iter().find(|(of, _)| *of == key).map(|(_, extension)| extension.clone())
}

/// The extensions of all keys on this tensor.
pub(crate) fn extensions(tensor: &TensorRef) -> Vec<(DispatchKey, Extension)> {
    let of = |meta: &Meta| meta.state().extensions.as_ref().map(|all| all.to_vec());
    get(tensor).and_then(of).unwrap_or_default()
}

/// Sets the extension of a key, replacing an earlier one, and adds the key to the tensor's calls; `None` removes both.
pub(crate) fn set_extension(tensor: &TensorRef, key: DispatchKey, extension: Option<Extension>) {
    if extension.is_none() && get(tensor).is_none() {
        return;
    }
    let Some(meta) = ensure(tensor) else { return };
    tensor.set_key(key, extension.is_some());
    let mut state = meta.state();
    let all = state.extensions.get_or_insert_default();
    let old = all.iter().position(|(of, _)| *of == key).map(|at| all.remove(at));
    all.extend(extension.map(|extension| (key, extension)));
    drop(state);
    drop(old);
}

/// The hooks of a leaf; those of other tensors are stored in their node.
pub(crate) fn with_hooks<R>(tensor: &TensorRef, change: impl FnOnce(&mut Vec<LeafHook>) -> R) -> Option<R> {
    let meta = ensure(tensor)?;
    let mut state = meta.state();
    let result = change(&mut state.hooks);
    meta.hooked.store(!state.hooks.is_empty(), Ordering::Release);
    Some(result)
}

/// The current hooks of a leaf.
pub(crate) fn hooks(tensor: &TensorRef, when: When) -> Vec<Hook> {
    match get(tensor) {
        Some(meta) if meta.hooked.load(Ordering::Acquire) => {
            meta.state().hooks.iter().filter(|of| of.when == when).map(|of| of.hook.clone()).collect()
        }
        _ => Vec::new(),
    }
}
