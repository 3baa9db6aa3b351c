//! The autograd methods of a tensor.

use super::engine::{self, BackwardOptions};
use super::grad_fn::GradFn;
use super::hooks::{self, HookHandle};
use super::modes::is_grad_enabled;
use super::run::require_like;
use super::{extensions, meta};
use crate::Tensor;
use crate::error::Result;
use crate::error::autograd::AutogradError;
use keyway_dispatcher::memory::Shared;

impl Tensor {
    /// Whether gradients are computed for this tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?;
    /// assert!(!w.requires_grad());
    /// assert!(w.requires_grad_(true)?.requires_grad());
    /// # Ok(()) }
    /// ```
    #[doc(alias = "track_op")]
    pub fn requires_grad(&self) -> bool {
        meta::requires_grad(self.as_ref())
    }

    /// Sets whether this leaf accumulates a gradient. Returns the tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// assert!(w.requires_grad() && w.mul(3)?.requires_grad());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not differentiable; a result of the graph, whose gradient cannot be switched off.
    #[doc(alias = "set_requires_grad")]
    #[doc(alias = "Var")]
    pub fn requires_grad_(&self, on: bool) -> Result<Tensor> {
        meta::set_requires_grad(self.as_ref(), on)?;
        Ok(self.clone())
    }

    /// Whether this is a leaf of the graph: created by the user, not the result of a recorded op.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// assert!(w.is_leaf() && !w.mul(3.0)?.is_leaf());
    /// # Ok(()) }
    /// ```
    pub fn is_leaf(&self) -> bool {
        meta::edge(self.as_ref()).is_none_or(|edge| edge.node.is_accumulator())
    }

    /// The accumulated gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// assert!(w.grad().is_none());
    /// w.mul(3.0)?.sum_all()?.backward()?;
    /// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// The gradient of a sparse leaf is sparse and has the leaf's indices: each entry has the gradient at its coordinate, also
    /// among duplicates. Coordinates that the leaf does not store have no gradient.
    #[doc(alias = "GradStore")]
    pub fn grad(&self) -> Option<Tensor> {
        meta::grad(self.as_ref())
    }

    /// Makes [`Tensor::grad`] available for this result, as it is for leaves; no effect on a leaf.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
    /// let y = x.mul(3)?;
    /// y.retain_grad()?;
    /// (&y * &y)?.sum(..)?.backward()?;
    /// assert_eq!(y.grad().unwrap().to_vec::<f32>()?, [6.0, 12.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that does not require grad.
    pub fn retain_grad(&self) -> Result<()> {
        if self.requires_grad() && self.is_leaf() {
            return Ok(());
        }
        let edge = meta::edge(self.as_ref()).ok_or(AutogradError::RequiresNoGrad { op: "retain_grad" })?;
        // The tensor keeps the node alive, and so the hook; a strong handle would be a cycle.
        let tensor = Shared::downgrade(self.as_ref());
        let collect = move |grad: &Tensor| {
            if let Some(tensor) = tensor.upgrade() {
                let sum = meta::grad(&tensor).map_or_else(|| Ok(grad.clone()), |so_far| so_far.add(grad))?;
                meta::set_grad(&tensor, Some(sum));
            }
            Ok(None)
        };
        hooks::retain(&edge, collect);
        Ok(())
    }

    /// Whether this tensor is a view of another tensor, its base.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros((2, 3))?;
    /// assert!(x.t()?.is_view() && !x.is_view());
    /// # Ok(()) }
    /// ```
    pub fn is_view(&self) -> bool {
        self.as_ref().base().is_some()
    }

    /// The tensor that this one is a view of.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// let x = keyway::Tensor::zeros((2, 3))?;
    /// let row = x.select(0, 1)?.narrow(0, 0, 2)?;
    /// assert!(row.is_view() && row.base().unwrap().ptr_eq(&x));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "_base")]
    pub fn base(&self) -> Option<Tensor> {
        self.as_ref().base().cloned().map(Tensor::from_ref)
    }

    /// Replaces the gradient. The layout may differ from that of the old gradient, such as sparse instead of strided.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// w.set_grad(Tensor::new([5.0f32])?)?;
    /// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A gradient of another shape or dtype than this tensor's, or on another device.
    pub fn set_grad(&self, grad: Tensor) -> Result<()> {
        require_like("set_grad", self.as_ref(), &grad)?;
        // Later gradients may be accumulated in place.
        if grad.ptr_eq(self) || grad.shares_storage(self) {
            let expected = "memory of its own; `copied()` of it has".to_string();
            let (op, argument, got) = ("set_grad", "grad", "that of the tensor itself".to_string());
            return Err(keyway_dispatcher::Error::Value { op, argument, expected, got }.into());
        }
        meta::set_grad(self.as_ref(), Some(grad));
        Ok(())
    }

    /// Drops the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// w.mul(3.0)?.sum_all()?.backward()?;
    /// w.zero_grad();
    /// assert!(w.grad().is_none());
    /// # Ok(()) }
    /// ```
    pub fn zero_grad(&self) {
        meta::set_grad(self.as_ref(), None);
    }

    /// The node of the call that computed this tensor; `None` for a leaf.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// assert!(w.grad_fn().is_none());
    /// assert_eq!(w.mul(3.0)?.grad_fn().unwrap().name(), "mul");
    /// # Ok(()) }
    /// ```
    pub fn grad_fn(&self) -> Option<GradFn> {
        GradFn::of(self.as_ref()).filter(|_| !self.is_leaf()).map(|(node, _)| node)
    }

    /// Returns a tensor over the same memory outside the graph. In-place changes are visible through both.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// let plain = w.detach();
    /// assert!(!plain.requires_grad() && plain.shares_storage(&w));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "as_detached_tensor")]
    #[doc(alias = "data")]
    pub fn detach(&self) -> Tensor {
        let detached = self.as_ref().shallow_copy();
        extensions::carry(self.as_ref(), &detached);
        Tensor::from_ref(detached)
    }

    /// Detaches the tensor itself from the graph, so that it is a leaf that does not require grad; an accumulated gradient is
    /// retained. Earlier results computed from it keep their history. Returns the tensor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// let mut state = Tensor::new([1.0f32])?;
    /// for _ in 0..3 {
    ///     state = state.mul(&w)?; // a step of a recurrent net, whose graph would become longer and longer
    ///     state.detach_()?;
    /// }
    /// assert!(state.is_leaf() && !state.requires_grad());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A view; a tensor that was changed in place while it had a history.
    pub fn detach_(&self) -> Result<Tensor> {
        meta::forget_history(self.as_ref())?;
        Ok(self.clone())
    }

    /// Calls `hook` with the gradient of this tensor whenever one is computed; a returned tensor replaces the gradient. Store the
    /// handle: dropping it removes the hook.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// let _halved = w.register_hook(|grad| Ok(Some(grad.mul(0.5)?)))?;
    /// w.mul(3.0)?.sum_all()?.backward()?;
    /// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [1.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that does not require grad.
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        hooks::register(self.as_ref(), Box::new(hook))
    }

    /// Calls `hook` with this leaf whenever a backward pass has accumulated its gradient, for example to update the parameter and
    /// drop the gradient. Store the handle: dropping it removes the hook.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// let _step = w.register_post_accumulate_grad_hook(|w| {
    ///     w.detach().sub_(&w.grad().unwrap())?;
    ///     w.zero_grad();
    ///     Ok(())
    /// })?;
    /// w.mul(3.0)?.sum_all()?.backward()?;
    /// assert_eq!((w.to_vec::<f32>()?, w.grad().is_none()), (vec![-1.0], true));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that does not require grad; a result of the graph.
    pub fn register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        hooks::register_after(self.as_ref(), Box::new(move |leaf| hook(leaf).map(|()| None)))
    }

    /// Computes the gradients of this one-element tensor with respect to every leaf that it was computed from.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
    /// x.square()?.sum_all()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that does not have one element or is not part of a graph; a graph that was freed; a saved tensor that was changed
    /// in place since.
    pub fn backward(&self) -> Result<()> {
        engine::backward(std::slice::from_ref(self), BackwardOptions::default())
    }

    /// [`Tensor::backward`] with an initial gradient, or with options: retain the graph, record it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
    /// x.mul(3)?.backward_with(&Tensor::new([1.0f32, 10.0])?)?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [3.0, 30.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::backward`].
    pub fn backward_with(&self, options: impl Into<BackwardOptions>) -> Result<()> {
        engine::backward(std::slice::from_ref(self), options.into())
    }

    pub(crate) fn check_unrecorded(&self, op: &'static str) -> Result<()> {
        if is_grad_enabled() && self.requires_grad() {
            return Err(AutogradError::WrittenByHand { op }.into());
        }
        Ok(())
    }
}
