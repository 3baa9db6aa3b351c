//! In-place changes of views: the base gets a rebased history in which part of it was replaced, and every view a history as a
//! view of the new base.

use super::meta;
use super::node::{Body, Edge, Node, Shape};
use crate::error::Result;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};
use smallvec::SmallVec;

/// The sizes, strides and offset of a view in its base.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(super) base_sizes: Dims,
    /// Strides of a dense copy of the base, in which the view has `strides` and `offset`.
    pub(super) base_strides: Dims,
    pub(super) sizes: Dims,
    pub(super) strides: Dims,
    pub(super) offset: usize,
    parts: Parts,
}

/// The elements of a view in those of its base.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Parts {
    /// Elements of the base.
    Same,
    /// Real and imaginary parts of the complex base.
    OfComplex,
    /// Complex numbers whose parts are elements of the base.
    ToComplex,
}

impl Parts {
    fn of(view: &TensorRef, base: &TensorRef) -> Parts {
        match (base.dtype().is_complex(), view.dtype().is_complex()) {
            (true, false) => Parts::OfComplex,
            (false, true) => Parts::ToComplex,
            _ => Parts::Same,
        }
    }

    /// An offset in elements of the base as an offset in elements of the view.
    fn offset(self, base: usize) -> usize {
        match self {
            Parts::Same => base,
            Parts::OfComplex => 2 * base,
            Parts::ToComplex => base / 2,
        }
    }
}

/// The history of a base after one of its views was changed in place.
pub(crate) struct CopySlices {
    pub(super) geometry: Geometry,
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
            offset: view.offset().saturating_sub(Parts::of(view, base).offset(base.offset())),
            parts: Parts::of(view, base),
        }
    }

    /// The dtype of a gradient of the base, given that of the view.
    pub(super) fn base_dtype(&self, view: DType) -> DType {
        match self.parts {
            Parts::Same => view,
            Parts::OfComplex => view.to_complex().unwrap_or(view),
            Parts::ToComplex => view.to_real(),
        }
    }

    /// A copy of a gradient of the base, with the base's own strides.
    pub(super) fn copy_of(&self, grad: &Tensor) -> Result<Tensor> {
        let copy =
            Tensor::uninit_strided(&self.base_sizes, &self.base_strides, (grad.dtype(), grad.device()))?;
        copy.copy_(grad)?;
        Ok(copy)
    }

    /// The part of a gradient of the base (with the base's strides) that belongs to the view.
    pub(super) fn part(&self, grad: &Tensor) -> Result<Tensor> {
        let base = grad.as_ref();
        let offset = self.parts.offset(base.offset()) + self.offset;
        let dtype = base.dtype();
        let strides = Some(&self.strides[..]);
        let part = match self.parts {
            Parts::Same => TensorImpl::view(base, offset, &self.sizes, strides, false),
            Parts::OfComplex => {
                TensorImpl::reinterpreted(base, dtype.to_real(), offset, &self.sizes, strides)
            }
            Parts::ToComplex => {
                let dtype = dtype.to_complex().unwrap_or(dtype);
                TensorImpl::reinterpreted(base, dtype, offset, &self.sizes, strides)
            }
        };
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
