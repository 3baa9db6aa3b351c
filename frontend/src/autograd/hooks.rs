//! Hooks on gradients.

use super::meta;
use super::node::{Edge, Node, lock};
use crate::Tensor;
use crate::error::Result;
use crate::error::autograd::AutogradError;
use keyway_dispatcher::memory::{Shared, Weak};
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Sees a gradient and may replace it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::hooks::HookFn};
/// let halve: Box<HookFn> = Box::new(|gradient| Ok(Some(gradient.mul(0.5)?)));
/// let x = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
/// let _handle = x.register_hook(halve)?;
/// x.sum_all()?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.5, 0.5]);
/// # Ok(()) }
/// ```
pub type HookFn = dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync;
pub(crate) type Hook = Arc<HookFn>;

/// When a hook of a leaf is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// With the gradient, before it is accumulated.
    Before,
    /// With the leaf, after its gradient was accumulated.
    After,
}

/// A hook on the gradient of a leaf.
pub(crate) struct LeafHook {
    pub(crate) id: u64,
    pub(crate) when: When,
    pub(crate) hook: Hook,
}

enum Place {
    Leaf(Weak<TensorImpl>),
    Nodes(Arc<Nodes>),
}

/// The nodes that have a hook: the tensor's node at registration, and those that have replaced it since.
pub(crate) type Nodes = Mutex<SmallVec<[Weak<Node>; 1]>>;

/// A hook on the gradient of a node's output.
#[derive(Clone)]
pub(crate) struct Hooked {
    pub(crate) output: usize,
    pub(crate) id: u64,
    pub(crate) hook: Hook,
    /// `None` for the hook that accumulates the gradient.
    nodes: Option<Arc<Nodes>>,
}

/// A guard: removes its hook when dropped, unless [`HookHandle::keep`] is called.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
/// let handle = w.register_hook(|grad| Ok(Some(grad.neg()?)))?;
/// w.mul(3.0)?.sum_all()?.backward()?;
/// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [-3.0]);
/// drop(handle);
/// w.mul(3.0)?.sum_all()?.backward()?;
/// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [0.0]);
/// # Ok(()) }
/// ```
#[must_use = "the hook is taken away when its handle is dropped; call `keep()` to leave it"]
pub struct HookHandle {
    id: u64,
    place: Option<Place>,
}

impl HookHandle {
    /// Leaves the hook for as long as the tensor lives.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// w.register_hook(|grad| Ok(Some(grad.neg()?)))?.keep();
    /// w.mul(3.0)?.sum_all()?.backward()?;
    /// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [-3.0]);
    /// # Ok(()) }
    /// ```
    pub fn keep(mut self) {
        self.place = None;
    }
}

impl Drop for HookHandle {
    fn drop(&mut self) {
        // The hook is dropped after the list is unlocked: it may own another handle of the same list.
        match self.place.take() {
            Some(Place::Leaf(tensor)) => {
                if let Some(tensor) = tensor.upgrade() {
                    let take = |hooks: &mut Vec<LeafHook>| -> Option<LeafHook> {
                        let at = hooks.iter().position(|of| of.id == self.id)?;
                        Some(hooks.remove(at))
                    };
                    drop(meta::with_hooks(&tensor, take));
                }
            }
            Some(Place::Nodes(nodes)) => {
                // Emptied first, so that a hook that is copied at this moment is not.
                let nodes = std::mem::take(&mut *lock(&nodes));
                for node in nodes.iter().filter_map(Weak::upgrade) {
                    let mut hooks = lock(node.hooks_or_init());
                    let at = hooks.iter().position(|hooked| hooked.id == self.id);
                    let taken = at.map(|at| hooks.remove(at));
                    drop(hooks);
                    drop(taken);
                }
            }
            None => {}
        }
    }
}

/// The identifier of the hook of `retain_grad`. It runs after the other hooks, which may replace the gradient.
pub(super) const RETAINS: u64 = 0;

/// Retains the gradient of an edge; repeated calls register one hook.
pub(crate) fn retain(
    edge: &Edge,
    collect: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
) {
    let mut hooks = lock(edge.node.hooks_or_init());
    if !hooks.iter().any(|hooked| (hooked.output, hooked.id) == (edge.output, RETAINS)) {
        let hook: Hook = Arc::new(collect);
        hooks.push(Hooked { output: edge.output, id: RETAINS, hook, nodes: None });
    }
}

/// Retains the gradient of another edge from now on: that of the tensor after an in-place change.
pub(super) fn move_retained(from: &Edge, to: &Edge) {
    let Some(hooks) = from.node.hooks() else { return };
    let taken = {
        let mut hooks = lock(hooks);
        let at = hooks.iter().position(|hooked| (hooked.output, hooked.id) == (from.output, RETAINS));
        at.map(|at| hooks.remove(at))
    };
    if let Some(collect) = taken {
        lock(to.node.hooks_or_init()).push(Hooked { output: to.output, ..collect });
    }
}

/// Also registers hooks for the gradient of another edge: that of a view whose base was changed in place.
pub(super) fn copy_hooks(from: &Edge, to: &Edge) {
    let Some(hooks) = from.node.hooks() else { return };
    let hooks: Vec<Hooked> =
        lock(hooks).iter().filter(|hooked| hooked.output == from.output).cloned().collect();
    for hooked in hooks {
        let Some(nodes) = hooked.nodes.clone() else { continue };
        let mut nodes = lock(&nodes);
        // Without nodes the handle was dropped meanwhile.
        if !nodes.is_empty() {
            nodes.push(Shared::downgrade(&to.node));
            lock(to.node.hooks_or_init()).push(Hooked { output: to.output, ..hooked });
        }
    }
}

/// The identifier of a new hook.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Registers a hook on a leaf.
fn register_on_leaf(leaf: &TensorRef, when: When, hook: Hook) -> HookHandle {
    let id = next_id();
    meta::with_hooks(leaf, |hooks| hooks.push(LeafHook { id, when, hook }));
    HookHandle { id, place: Some(Place::Leaf(Shared::downgrade(leaf))) }
}

/// Registers a hook that is called with a leaf after each accumulation of its gradient.
pub(crate) fn register_after(tensor: &TensorRef, hook: Box<HookFn>) -> Result<HookHandle> {
    let op = "register_post_accumulate_grad_hook";
    let edge = meta::edge(tensor).ok_or(AutogradError::RequiresNoGrad { op })?;
    if !edge.node.is_accumulator() {
        return Err(AutogradError::NotLeaf.into());
    }
    Ok(register_on_leaf(tensor, When::After, hook.into()))
}

/// Registers a hook, on the tensor if it is a leaf, otherwise on the node that computed it.
pub(crate) fn register(tensor: &TensorRef, hook: Box<HookFn>) -> Result<HookHandle> {
    let edge = meta::edge(tensor).ok_or(AutogradError::RequiresNoGrad { op: "register_hook" })?;
    let hook: Hook = hook.into();
    if edge.node.is_accumulator() {
        return Ok(register_on_leaf(tensor, When::Before, hook));
    }
    let id = next_id();
    let nodes = Arc::new(Mutex::new(SmallVec::from_iter([Shared::downgrade(&edge.node)])));
    let hooked = Hooked { output: edge.output, id, hook, nodes: Some(nodes.clone()) };
    lock(edge.node.hooks_or_init()).push(hooked);
    Ok(HookHandle { id, place: Some(Place::Nodes(nodes)) })
}
