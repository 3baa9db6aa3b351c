//! The autograd side of a tensor.

use super::Tensor;
use crate::autograd::{self, meta};
use crate::error::Result;

impl Tensor {
    /// Whether gradients flow to this tensor.
    pub fn requires_grad(&self) -> bool {
        meta::requires_grad(&self.inner)
    }

    /// Makes this leaf a tensor that collects a gradient, or no longer. Returns it.
    ///
    /// # Errors
    /// A dtype that has no gradient; a tensor that is a result of the graph and cannot be switched off.
    pub fn set_requires_grad(self, on: bool) -> Result<Tensor> {
        meta::set_requires_grad(&self.inner, on)?;
        Ok(self)
    }

    /// Whether this is a leaf of the graph: made by the user, not by an op that was recorded.
    pub fn is_leaf(&self) -> bool {
        meta::edge(&self.inner).is_none_or(|edge| edge.node.is_accumulator())
    }

    /// The gradient collected so far.
    pub fn grad(&self) -> Option<Tensor> {
        meta::grad(&self.inner)
    }

    /// Replaces the gradient. One of another layout, such as a sparse one, may take the place of a strided one.
    ///
    /// # Errors
    /// A gradient of another shape or dtype than this tensor's, or on another device.
    pub fn set_grad(&self, grad: Tensor) -> Result<()> {
        autograd::engine::require_like("set_grad", &self.inner, &grad)?;
        meta::set_grad(&self.inner, Some(grad));
        Ok(())
    }

    /// Drops the gradient.
    pub fn zero_grad(&self) {
        meta::set_grad(&self.inner, None);
    }

    /// The name of the op that made this tensor, as the graph knows it.
    pub fn grad_fn(&self) -> Option<&'static str> {
        meta::edge(&self.inner).filter(|e| !e.node.is_accumulator()).map(|e| e.node.name())
    }

    /// The same memory outside the graph. In-place changes to either are seen by both.
    pub fn detach(&self) -> Tensor {
        Tensor { inner: self.inner.shallow_copy() }
    }

    /// Calls `hook` with the gradient of this tensor whenever one is computed; what it returns, if anything,
    /// takes the gradient's place. Keep the handle: dropping it takes the hook away.
    ///
    /// # Errors
    /// A tensor that does not require grad.
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<autograd::HookHandle> {
        autograd::hooks::register(&self.inner, Box::new(hook))
    }

    /// Computes the gradients of this one-element tensor with respect to every leaf it came from.
    ///
    /// # Errors
    /// A tensor that is not one element or not part of a graph; a graph that was used already; a saved
    /// tensor that was changed in place since.
    pub fn backward(&self) -> Result<()> {
        autograd::backward(std::slice::from_ref(self), autograd::BackwardOptions::default())
    }

    /// [`Tensor::backward`] with options: the gradient to start from, keeping the graph, recording it.
    ///
    /// # Errors
    /// As [`Tensor::backward`].
    pub fn backward_with(&self, options: autograd::BackwardOptions) -> Result<()> {
        autograd::backward(std::slice::from_ref(self), options)
    }
}
