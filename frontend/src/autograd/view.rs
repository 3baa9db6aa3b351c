//! In-place changes of views: the base gets a rebased history in which part of it was replaced, and every view a history as a
//! view of the new base.

use super::engine::Made;
use super::meta;
use super::node::{Body, Edge, Node, Shape};
use crate::Tensor;
use crate::error::Result;
use keyway_dispatcher::dims::{Dims, contiguous_strides};
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};
use smallvec::SmallVec;

/// The sizes, strides and offset of a view in its base.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    base_sizes: Dims,
    /// Strides of a dense copy of the base, in which the view has `strides` and `offset`.
    base_strides: Dims,
    sizes: Dims,
    strides: Dims,
    offset: usize,
}

/// The history of a base after one of its views was changed in place.
pub(crate) struct CopySlices {
    geometry: Geometry,
    /// The node of the change itself, whose argument 0 is the view before the change.
    pub(crate) inner: Shared<Node>,
}

impl Geometry {
    fn of(view: &TensorRef, base: &TensorRef) -> Geometry {
        Geometry {
            base_sizes: Dims::from_slice(base.sizes()),
            base_strides: Dims::from_slice(base.strides()),
            sizes: Dims::from_slice(view.sizes()),
            strides: Dims::from_slice(view.strides()),
            offset: view.offset().saturating_sub(base.offset()),
        }
    }

    /// A copy of a gradient of the base, with the base's own strides.
    fn copy_of(&self, grad: &Tensor) -> Result<Tensor> {
        let copy =
            Tensor::uninit_strided(&self.base_sizes, &self.base_strides, (grad.dtype(), grad.device()))?;
        copy.copy_(grad)?;
        Ok(copy)
    }

    /// The part of a gradient of the base (with the base's strides) that belongs to the view.
    fn part(&self, grad: &Tensor) -> Result<Tensor> {
        let base = grad.as_ref();
        let offset = base.offset() + self.offset;
        let part = TensorImpl::view(base, offset, &self.sizes, Some(&self.strides), false);
        Ok(Tensor::from_ref(part.map_err(crate::Error::from)?))
    }
}

/// Rebases the history of `base` on the change of `view` that was recorded as `inner`.
pub(super) fn rewrite_base(view: &TensorRef, base: &TensorRef, inner: Shared<Node>) {
    let mut edges: SmallVec<[Option<Edge>; 2]> = SmallVec::from_iter([meta::edge(base)]);
    edges.extend(inner.edges.iter().skip(1).cloned());
    let shapes = SmallVec::from_iter([Shape::of(base)]);
    let slices = CopySlices { geometry: Geometry::of(view, base), inner };
    let node = Node::new(Body::CopySlices(slices), edges, shapes);
    let edge = Edge { node, output: 0 };
    meta::rebase_history(base, edge.clone());
    // Rebased now and not at its next use, since its hooks apply to its value before its own change.
    meta::rebase_view(view, base, Edge { node: view_of_base(view, base, edge), output: 0 });
}

/// The node of a view of a base whose history was rewritten.
pub(super) fn view_of_base(view: &TensorRef, base: &TensorRef, base_edge: Edge) -> Shared<Node> {
    let edges = SmallVec::from_iter([Some(base_edge)]);
    Node::new(Body::ViewOfBase(Geometry::of(view, base)), edges, SmallVec::from_iter([Shape::of(view)]))
}

/// The gradients of a rewritten base and of the other inputs of the change.
pub(super) fn copy_slices_backward(slices: &CopySlices, grad: &Tensor, wanted: &[bool]) -> Result<Made> {
    let of_base = slices.geometry.copy_of(grad)?;
    let part = slices.geometry.part(&of_base)?;
    let mut inner_wanted: SmallVec<[bool; 4]> = SmallVec::from_slice(wanted);
    if let Some(first) = inner_wanted.first_mut() {
        *first = true;
    }
    // The part is overwritten below, so the change's own derivative works on a copy.
    let of_part = SmallVec::from_iter([Some(part.mul(1)?)]);
    // The change may be freed separately, see [`Node::free`].
    let mut grads = super::engine::run_node(&slices.inner, of_part, &inner_wanted, true)?;
    // The view's own node is not run: its gradient is a part of the base's.
    if let (Some(Some(before)), Some(first)) = (slices.inner.edges.first(), grads.first_mut()) {
        super::engine::run_hooks_of(before, first)?;
    }
    match grads.first().and_then(Option::as_ref) {
        Some(first) => part.copy_(first)?,
        None => part.zero_()?,
    };
    if let Some(first) = grads.first_mut() {
        *first = Some(of_base);
    }
    Ok(grads)
}

/// The gradient of a base from that of a view of it: zeros around it.
pub(super) fn view_of_base_backward(geometry: &Geometry, grad: &Tensor) -> Result<Tensor> {
    let strides = contiguous_strides(&geometry.base_sizes);
    let strides = if geometry.base_strides.is_empty() { strides } else { geometry.base_strides.clone() };
    let of_base = Tensor::uninit_strided(&geometry.base_sizes, &strides, (grad.dtype(), grad.device()))?;
    of_base.zero_()?;
    geometry.part(&of_base)?.add_overlapping(grad)?;
    Ok(of_base)
}
