//! Hooks on gradients.

use super::error::AutogradError;
use super::meta;
use super::node::{Edge, Node, lock};
use crate::Tensor;
use crate::error::Result;
use keyway_dispatcher::memory::{Shared, Weak};
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

enum Place {
    Leaf(Weak<TensorImpl>),
    Node(Weak<Node>),
}

/// Takes its hook away when dropped, unless [`HookHandle::keep`] is called.
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
                    let take = |hooks: &mut Vec<(u64, Hook)>| -> Option<Hook> {
                        let at = hooks.iter().position(|(id, _)| *id == self.id)?;
                        Some(hooks.remove(at).1)
                    };
                    drop(meta::with_hooks(&tensor, take));
                }
            }
            Some(Place::Node(node)) => {
                if let Some(node) = node.upgrade() {
                    let mut hooks = lock(node.hooks_or_init());
                    let at = hooks.iter().position(|(_, id, _)| *id == self.id);
                    let taken = at.map(|at| hooks.remove(at));
                    drop(hooks);
                    drop(taken);
                }
            }
            None => {}
        }
    }
}

/// The number of what collects the gradient of a result, in the place of a hook's. It runs after the hooks, which may replace the
/// gradient.
pub(super) const RETAINS: u64 = 0;

/// Collects the gradient that comes to an edge; once, however often it is asked for.
pub(crate) fn retain(
    edge: &Edge,
    collect: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
) {
    let mut hooks = lock(edge.node.hooks_or_init());
    if !hooks.iter().any(|(output, id, _)| (*output, *id) == (edge.output, RETAINS)) {
        hooks.push((edge.output, RETAINS, Arc::new(collect)));
    }
}

/// Collects from now on what comes to another edge: that of the tensor after a change in place.
pub(super) fn move_retained(from: &Edge, to: &Edge) {
    let Some(hooks) = from.node.hooks() else { return };
    let taken = {
        let mut hooks = lock(hooks);
        let at = hooks.iter().position(|(output, id, _)| (*output, *id) == (from.output, RETAINS));
        at.map(|at| hooks.remove(at).2)
    };
    if let Some(collect) = taken {
        lock(to.node.hooks_or_init()).push((to.output, RETAINS, collect));
    }
}

/// Registers a hook; it belongs to the tensor if that is a leaf, else to the node that made it.
pub(crate) fn register(tensor: &TensorRef, hook: Box<HookFn>) -> Result<HookHandle> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let edge = meta::edge(tensor).ok_or(AutogradError::RequiresNoGrad { op: "register_hook" })?;
    let hook: Hook = hook.into();
    let place = if edge.node.is_accumulator() {
        meta::with_hooks(tensor, |hooks| hooks.push((id, hook)));
        Place::Leaf(Shared::downgrade(tensor))
    } else {
        lock(edge.node.hooks_or_init()).push((edge.output, id, hook));
        Place::Node(Shared::downgrade(&edge.node))
    };
    Ok(HookHandle { id, place: Some(place) })
}
