//! Nodes of the graph: one for each recorded call, one for each collecting leaf.

use super::hooks::Hook;
use super::saved::Saved;
use crate::ops::def::OpDef;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::op::{Arg, OpEntry};
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};
use keyway_dispatcher::{DType, Device};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Where a gradient goes: an output of a node.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) node: Arc<Node>,
    pub(crate) output: usize,
}

/// What is known of a tensor without keeping it.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) sizes: Dims,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
}

impl Shape {
    pub(crate) fn of(tensor: &TensorRef) -> Shape {
        Shape { sizes: Dims::from_slice(tensor.sizes()), dtype: tensor.dtype(), device: tensor.device() }
    }
}

/// An argument of a recorded call, owned. Tensors are slots: places in the node's list of edges.
#[derive(Clone, Debug)]
pub(crate) enum OwnedArg {
    Tensor { slot: usize },
    Tensors { first: usize, count: usize },
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    Ints(SmallVec<[i64; 4]>),
    Floats(SmallVec<[f64; 2]>),
    Str(Box<str>),
    DType(DType),
}

impl OwnedArg {
    /// The argument as a value; tensors have none.
    pub(crate) fn arg(&self) -> Arg<'_> {
        match self {
            OwnedArg::Tensor { .. } | OwnedArg::Tensors { .. } | OwnedArg::None => Arg::None,
            OwnedArg::Int(v) => Arg::Int(*v),
            OwnedArg::Float(v) => Arg::Float(*v),
            OwnedArg::Bool(v) => Arg::Bool(*v),
            OwnedArg::Ints(v) => Arg::Ints(v),
            OwnedArg::Floats(v) => Arg::Floats(v),
            OwnedArg::Str(v) => Arg::Str(v),
            OwnedArg::DType(v) => Arg::DType(*v),
        }
    }
}

/// The tensors that a call's derivative reads.
#[derive(Default)]
pub(crate) struct SavedTensors {
    /// By slot.
    pub(crate) inputs: SmallVec<[Option<Saved>; 2]>,
    /// By output.
    pub(crate) outputs: SmallVec<[Option<Saved>; 1]>,
}

/// A recorded call of an op.
pub(crate) struct OpCall {
    pub(crate) op: &'static OpEntry,
    /// The definition; `None` for an op of a plugin.
    pub(crate) def: Option<&'static OpDef>,
    pub(crate) args: SmallVec<[OwnedArg; 4]>,
    /// By slot.
    pub(crate) inputs: SmallVec<[Shape; 2]>,
    /// Freed after backward.
    pub(crate) saved: Mutex<Option<SavedTensors>>,
}

/// What a node does with the gradients of its outputs.
pub(crate) enum Body {
    /// Adds to the gradient of a leaf.
    Accumulate(Weak<TensorImpl>),
    /// The derivative of an op.
    Op(OpCall),
    /// The history of a base after a view of it was changed in place.
    CopySlices(super::view::CopySlices),
    /// A view of a base with a rewritten history.
    ViewOfBase(super::view::Geometry),
    /// A user's function.
    Custom(super::custom::CustomCall),
}

/// A node.
pub(crate) struct Node {
    /// Later nodes have higher numbers; the engine runs the highest first.
    pub(crate) number: u64,
    pub(crate) body: Body,
    /// Where the gradient of each tensor input goes.
    pub(crate) edges: SmallVec<[Option<Edge>; 2]>,
    pub(crate) outputs: SmallVec<[Shape; 1]>,
    hooks: Mutex<Vec<(usize, u64, Hook)>>,
    /// Where the forward call was made, when anomaly detection is on.
    pub(crate) trace: Option<Box<str>>,
}

impl Node {
    pub(crate) fn new(
        body: Body,
        edges: SmallVec<[Option<Edge>; 2]>,
        outputs: SmallVec<[Shape; 1]>,
    ) -> Arc<Node> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let trace = super::anomaly::trace();
        Arc::new(Node { number, body, edges, outputs, hooks: Mutex::default(), trace })
    }

    /// The node that collects the gradient of a leaf.
    pub(crate) fn accumulator(tensor: &TensorRef) -> Arc<Node> {
        let outputs = SmallVec::from_iter([Shape::of(tensor)]);
        Node::new(Body::Accumulate(Arc::downgrade(tensor)), SmallVec::new(), outputs)
    }

    pub(crate) fn is_accumulator(&self) -> bool {
        matches!(self.body, Body::Accumulate(_))
    }

    pub(crate) fn name(&self) -> &'static str {
        match &self.body {
            Body::Accumulate(_) => "accumulate_grad",
            Body::Op(call) => call.op.name,
            Body::CopySlices(_) => "copy_slices",
            Body::ViewOfBase(_) => "view_of_base",
            Body::Custom(call) => call.name,
        }
    }

    pub(crate) fn hooks(&self) -> MutexGuard<'_, Vec<(usize, u64, Hook)>> {
        self.hooks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Forgets the saved tensors.
    pub(crate) fn free(&self) {
        let taken = match &self.body {
            Body::Op(call) => lock(&call.saved).take(),
            Body::CopySlices(slices) => match &slices.inner.body {
                Body::Op(call) => lock(&call.saved).take(),
                _ => None,
            },
            Body::Custom(call) => {
                call.free();
                None
            }
            _ => None,
        };
        drop(taken);
    }

    /// Moves everything that keeps other nodes alive into `to`.
    fn take_links(&mut self, to: &mut Vec<Arc<Node>>) {
        to.extend(self.edges.drain(..).flatten().map(|e| e.node));
        if let Body::Op(call) = &self.body {
            if let Some(saved) = lock(&call.saved).as_mut() {
                let links = saved.inputs.iter_mut().flatten().filter_map(Saved::take_edge);
                to.extend(links.map(|e| e.node));
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A long chain is taken apart link by link: dropped recursively it would overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut links = Vec::new();
        self.take_links(&mut links);
        while let Some(link) = links.pop() {
            if let Some(mut node) = Arc::into_inner(link) {
                node.take_links(&mut links);
            }
        }
    }
}
