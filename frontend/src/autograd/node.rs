//! Nodes of the graph: one for each recorded call and one for each leaf that accumulates a gradient.

use super::derivative::OpInfo;
use super::hooks::Hooked;
use super::modes::no_grad;
use super::saved::Saved;
use super::unlink::{self, Outermost};
use crate::error::Result;
use crate::error::autograd::AutogradError;
use crate::{MemoryFormat, Tensor};
use keyway_dispatcher::dims::may_self_overlap;
use keyway_dispatcher::layouts::{can_project, has_pattern_of, may_repeat, projects_gradients};
use keyway_dispatcher::memory::{Shared, Weak, shared};
use keyway_dispatcher::op::{Arg, OpEntry};
use keyway_dispatcher::tensor::{Format, TensorImpl, TensorRef};
use keyway_dispatcher::{DType, Device};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The name of the nodes that collect gradients of leaves.
pub(crate) const ACCUMULATE: &str = "accumulate_grad";

/// The destination of a gradient: an output of a node.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) node: Shared<Node>,
    pub(crate) output: usize,
}

impl Edge {
    /// Metadata of the tensor whose gradient the edge receives.
    #[inline]
    pub(crate) fn shape(&self) -> Option<&Shape> {
        self.node.outputs.get(self.output)
    }

    /// Whether gradients on this edge are per stored entry, see [`Shape::by_entry`].
    pub(crate) fn by_entry(&self) -> bool {
        self.shape().is_some_and(|shape| shape.by_entry)
    }

    /// The pattern of gradients on this edge, see [`Shape::pattern`]; for a leaf, its own pattern.
    pub(crate) fn pattern(&self) -> Option<Tensor> {
        match &self.node.body {
            Body::Accumulate(leaf) => {
                let leaf = leaf.upgrade().filter(|leaf| !leaf.is_strided() && can_project(leaf))?;
                Some(Tensor::from_ref(leaf.shallow_copy()))
            }
            _ => self.node.outputs.get(self.output)?.pattern.clone().map(Tensor::from_ref),
        }
    }

    /// Whether the edge receives the gradient of a strided tensor, the common case.
    #[inline]
    pub(crate) fn is_strided(&self) -> bool {
        self.shape().is_none_or(|shape| shape.strided)
    }

    /// Projects a gradient of a sparse tensor onto the pattern of that tensor, so that no intermediate is allocated at the full
    /// dense size.
    pub(crate) fn on_pattern(&self, grad: Tensor) -> Result<Tensor> {
        match self.pattern() {
            // A formula's gradient passes here twice: when it is computed and when it is accumulated.
            Some(pattern) if has_pattern_of(grad.as_ref(), pattern.as_ref()) => Ok(grad),
            Some(pattern) if grad.dtype() == pattern.dtype() => grad.sparse_mask_like(&pattern),
            Some(pattern) => grad.sparse_mask_like(&pattern.to_dtype(grad.dtype())?),
            None => Ok(grad),
        }
    }
}

/// Metadata of a tensor, without a reference to it.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) sizes: SmallVec<[usize; 4]>,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
    /// Whether the layout is strided; otherwise it is a composite one.
    pub(crate) strided: bool,
    /// Whether the memory format is channels_last; gradients then have it too.
    pub(crate) last: bool,
    /// Whether it is sparse and may have duplicate coordinates; gradients are then per stored entry, not per element.
    pub(crate) by_entry: bool,
    /// For a sparse result whose gradients count only at stored entries: zeros on its pattern, without memory for each entry. A
    /// result of strided tensors alone has dense gradients, since elements that are 0 have derivatives too.
    pub(crate) pattern: Option<TensorRef>,
}

/// Whether gradients of a tensor are per stored entry, see [`Shape::by_entry`].
pub(crate) fn by_entry(tensor: &TensorRef) -> bool {
    !tensor.is_strided() && may_repeat(tensor) && can_project(tensor)
}

/// Whether gradients of a tensor are channels_last, see [`Shape::last`]. A view of rank 3 counts as an image only if its
/// base is one: the gradient of a sequence that was transposed for a product may have any strides.
#[inline]
fn is_channels_last(tensor: &TensorRef) -> bool {
    let is_last = |tensor: &TensorImpl| matches!(tensor.format(), Format::ChannelsLast | Format::EitherLast);
    is_last(tensor) && (tensor.sizes().len() > 3 || tensor.base().is_none_or(|base| is_last(base)))
}

/// Zeros where a sparse tensor stores something, all of them one element of memory.
fn zeros_at(tensor: &TensorRef) -> Result<Tensor> {
    let _off = no_grad();
    let like = Tensor::from_ref(tensor.shallow_copy());
    let zeros = |part: Tensor| match part.dtype().is_differentiable() {
        true => Tensor::zeros_with((), (part.dtype(), part.device()))?.expand(part.shape()),
        false => Ok(part),
    };
    let parts = like.components()?.into_iter().map(zeros).collect::<Result<Vec<_>>>()?;
    like.with_components(&parts)
}

/// Sizes one by one, where they are few: a copy of memory has its price.
#[inline]
fn few(sizes: &[usize]) -> SmallVec<[usize; 4]> {
    if sizes.len() > 4 {
        return SmallVec::from_slice(sizes);
    }
    let mut all = [0; 4];
    all.iter_mut().zip(sizes).for_each(|(to, &size)| *to = size);
    SmallVec::from_buf_and_len(all, sizes.len())
}

impl Shape {
    #[inline]
    pub(crate) fn of(tensor: &TensorRef) -> Shape {
        let strided = tensor.is_strided();
        Shape {
            sizes: few(tensor.sizes()),
            dtype: tensor.dtype(),
            device: tensor.device(),
            strided,
            last: is_channels_last(tensor),
            by_entry: !strided && by_entry(tensor),
            pattern: None,
        }
    }

    /// Metadata of a result of these inputs; `of_values` if it was computed from components, not from elements.
    #[inline]
    pub(crate) fn of_result(
        tensor: &TensorRef,
        inputs: &[Shape],
        edges: &[Option<Edge>],
        of_values: bool,
    ) -> Result<Shape> {
        match tensor.is_strided() {
            true => Ok(Shape::of(tensor)),
            false => Shape::of_composite(tensor, inputs, edges, of_values),
        }
    }

    #[cold]
    fn of_composite(
        tensor: &TensorRef,
        inputs: &[Shape],
        edges: &[Option<Edge>],
        of_values: bool,
    ) -> Result<Shape> {
        let mut shape = Shape::of(tensor);
        let whole = |(input, edge): (&Shape, &Option<Edge>)| {
            !input.strided && edge.as_ref().is_some_and(|edge| edge.pattern().is_none())
        };
        let of_strided =
            !of_values && inputs.iter().all(|input| input.strided) && !projects_gradients(tensor);
        if can_project(tensor) && !of_strided && !inputs.iter().zip(edges).any(whole) {
            shape.pattern = Some(zeros_at(tensor)?.into_ref());
        }
        Ok(shape)
    }

    /// A tensor of this value with the metadata.
    pub(super) fn filled(&self, value: f64) -> Result<Tensor> {
        let format = if self.last { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous };
        Tensor::uninit(&self.sizes, (self.dtype, self.device, format))?.fill_(value)
    }

    /// The zeros that replace a missing gradient.
    pub(super) fn zeros(&self) -> Result<Tensor> {
        match &self.pattern {
            Some(zeros) => Ok(Tensor::from_ref(zeros.clone())),
            // Non-differentiable dtypes, such as that of indices, whose gradient no formula reads.
            None if !self.dtype.is_differentiable() => {
                Tensor::zeros_with((), (self.dtype, self.device))?.expand(&self.sizes[..])
            }
            None => self.filled(0.0),
        }
    }

    /// A gradient in the format of the tensor that it is of.
    #[inline]
    pub(crate) fn formatted(&self, grad: Tensor) -> Result<Tensor> {
        if self.last { in_channels_last(grad) } else { Ok(grad) }
    }
}

/// Converts a gradient to channels_last. An expanded gradient, as that of a sum, has no memory format and is returned unchanged.
fn in_channels_last(grad: Tensor) -> Result<Tensor> {
    let there = grad.as_ref();
    let stays = !there.is_strided()
        || there.is_in_channels_last_order()
        || may_self_overlap(grad.shape(), grad.strides());
    if stays { Ok(grad) } else { grad.to(MemoryFormat::ChannelsLast) }
}

/// Converts a gradient to its argument's shape, dtype and memory format; broadcast dimensions are summed. The gradient of a
/// strided argument is strided; that of a sparse argument is on its pattern.
pub(crate) fn fit(op: &'static str, grad: Tensor, shape: &Shape, edge: Option<&Edge>) -> Result<Tensor> {
    let grad = if grad.shape() == shape.sizes.as_slice() { grad } else { sum_to(op, grad, shape)? };
    let grad = if shape.strided && !grad.as_ref().is_strided() { grad.to_strided()? } else { grad };
    let grad = match edge {
        Some(edge) if !edge.is_strided() => edge.on_pattern(grad)?,
        _ => grad,
    };
    shape.formatted(if grad.dtype() == shape.dtype { grad } else { cast(grad, shape.dtype)? })
}

/// Casts a gradient. That of a real argument of a complex op is the real part.
fn cast(grad: Tensor, dtype: DType) -> Result<Tensor> {
    let grad = if grad.dtype().is_complex() && !dtype.is_complex() { grad.real()? } else { grad };
    grad.to_dtype(dtype)
}

fn sum_to(op: &'static str, grad: Tensor, shape: &Shape) -> Result<Tensor> {
    let wrong = || AutogradError::GradientShape {
        op: op.to_string(),
        expected: shape.sizes.to_vec(),
        got: grad.shape().to_vec(),
    };
    let lead = grad.rank().checked_sub(shape.sizes.len()).ok_or_else(wrong)?;
    let mut dims: SmallVec<[i64; 8]> = (0..lead as i64).collect();
    for (i, &size) in shape.sizes.iter().enumerate() {
        match grad.shape()[lead + i] {
            got if got == size => {}
            _ if size == 1 => dims.push((lead + i) as i64),
            _ => return Err(wrong().into()),
        }
    }
    if !shape.strided {
        return grad.sum_keepdim(&dims)?.reshape_as_sizes(&shape.sizes);
    }
    // A gradient broadcast to coordinates may be far smaller than a strided tensor of the same sizes, so it is summed first.
    let grad = grad.as_coordinates()?;
    let grad = if grad.is_coordinates() { grad } else { grad.to_strided()? };
    grad.sum_keepdim(&dims)?.to_strided()?.reshape_as_sizes(&shape.sizes)
}

/// An argument of a recorded call, owned. Tensors are slots: indices into the node's list of edges.
#[derive(Clone, Debug)]
pub(crate) enum OwnedArg {
    Tensor { slot: usize },
    Tensors { first: usize, count: usize },
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    // Boxed to keep the common variants small.
    Ints(Box<[i64]>),
    Floats(Box<[f64]>),
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
    /// Indexed by slot.
    pub(crate) inputs: SmallVec<[Option<Saved>; 2]>,
    /// Indexed by output.
    pub(crate) outputs: SmallVec<[Option<Saved>; 1]>,
}

/// A recorded call of an op.
pub(crate) struct OpCall {
    pub(crate) op: &'static OpEntry,
    /// The data of the definition; `None` for an op of a plugin.
    pub(crate) info: Option<&'static OpInfo>,
    pub(crate) args: SmallVec<[OwnedArg; 4]>,
    /// Indexed by slot.
    pub(crate) inputs: SmallVec<[Shape; 2]>,
    /// Freed after backward.
    pub(crate) saved: Mutex<Option<SavedTensors>>,
}

impl OpCall {
    /// Takes the saved tensors out; `None` if the derivative reads no tensor.
    fn free(&self) -> Option<SavedTensors> {
        lock(&self.saved).take_if(|saved| !(saved.inputs.is_empty() && saved.outputs.is_empty()))
    }
}

/// The backward function of a node. Nearly all nodes are calls of ops, so that variant is stored inline.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Body {
    /// Accumulates the gradient of a leaf.
    Accumulate(Weak<TensorImpl>),
    /// The derivative of an op.
    Op(OpCall),
    /// The history of a base after a view of it was changed in place.
    CopySlices(super::view::CopySlices),
    /// A view of a base with a rewritten history.
    ViewOfBase(super::view::Geometry),
    /// A user's function.
    Custom(super::custom::CustomCall),
    /// A node that is being dropped.
    Gone,
}

/// Hooks on the gradients of outputs.
pub(crate) type Hooks = Vec<Hooked>;

/// A node.
pub(crate) struct Node {
    /// Later nodes have higher numbers; the engine runs the highest first.
    pub(crate) number: u64,
    pub(crate) body: Body,
    /// The edge that receives the gradient of each tensor input.
    pub(crate) edges: SmallVec<[Option<Edge>; 2]>,
    pub(crate) outputs: SmallVec<[Shape; 1]>,
    /// The hooks, created with the first one.
    hooks: OnceLock<Mutex<Hooks>>,
    /// Source location of the forward call, when anomaly detection is on.
    pub(crate) trace: Option<Box<str>>,
}

impl Node {
    pub(crate) fn new(
        body: Body,
        edges: SmallVec<[Option<Edge>; 2]>,
        outputs: SmallVec<[Shape; 1]>,
    ) -> Shared<Node> {
        Shared::new_with(|| Node {
            number: Node::next_number(),
            body,
            edges,
            outputs,
            hooks: OnceLock::new(),
            trace: super::anomaly::trace(),
        })
    }

    /// A node without edges, outputs and number, which the caller adds.
    #[inline(always)]
    pub(crate) fn unnumbered(body: impl FnOnce() -> Body) -> Shared<Node> {
        shared!(Node {
            number: 0,
            body: body(),
            edges: SmallVec::new(),
            outputs: SmallVec::new(),
            hooks: OnceLock::new(),
            trace: super::anomaly::trace(),
        })
    }

    /// The number of a newly created node.
    #[inline]
    pub(crate) fn next_number() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// The node that accumulates the gradient of a leaf.
    pub(crate) fn accumulator(tensor: &TensorRef) -> Shared<Node> {
        let outputs = SmallVec::from_iter([Shape::of(tensor)]);
        Node::new(Body::Accumulate(Shared::downgrade(tensor)), SmallVec::new(), outputs)
    }

    pub(crate) fn is_accumulator(&self) -> bool {
        matches!(self.body, Body::Accumulate(_))
    }

    pub(crate) fn name(&self) -> &'static str {
        match &self.body {
            Body::Accumulate(_) => ACCUMULATE,
            Body::Op(call) => call.op.name,
            Body::CopySlices(_) => "copy_slices",
            Body::ViewOfBase(_) => "view_of_base",
            Body::Custom(call) => call.name,
            Body::Gone => "gone",
        }
    }

    /// The gradients of the outputs, zeros for missing ones.
    pub(super) fn materialised(&self, grads: SmallVec<[Option<Tensor>; 2]>) -> Result<SmallVec<[Tensor; 2]>> {
        let all = grads.into_iter().zip(&self.outputs);
        all.map(|(grad, shape)| grad.map_or_else(|| shape.zeros(), Ok)).collect()
    }

    /// The hooks, if there ever was one.
    pub(crate) fn hooks(&self) -> Option<&Mutex<Hooks>> {
        self.hooks.get()
    }

    /// The hooks, created at first use.
    pub(crate) fn hooks_or_init(&self) -> &Mutex<Hooks> {
        self.hooks.get_or_init(Mutex::default)
    }

    /// Forgets the saved tensors. A node that saved none can run again.
    pub(crate) fn free(&self) {
        let taken = match &self.body {
            Body::Op(call) => call.free(),
            // A graph of gradients that reads the result of the change refers to the change itself: the change is freed
            // after this node.
            Body::CopySlices(slices) => match &slices.inner.body {
                Body::Op(call) if Shared::strong_count(&slices.inner) == 1 => call.free(),
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

    /// Moves the nodes that this one uniquely owns into `to`, and drops everything else that it owns.
    fn take_links(&mut self, to: &mut Vec<Shared<Node>>) {
        let mut take = |edge: Edge| {
            if Shared::strong_count(&edge.node) == 1 {
                to.push(edge.node);
            }
        };
        for edge in &mut self.edges {
            edge.take().into_iter().for_each(&mut take);
        }
        if let Body::Op(call) = &mut self.body
            && let Some(saved) = call.saved.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
        {
            saved.inputs.iter_mut().flatten().filter_map(Saved::take_edge).for_each(take);
        }
        self.body = Body::Gone;
        drop(self.hooks.take());
    }

    /// Drops everything that the node owns. A chain of edges is unlinked iteratively; nodes found on other paths are passed
    /// to the outermost drop, the caller.
    pub(super) fn dismantle(&mut self) {
        let mut links = Vec::new();
        self.take_links(&mut links);
        while let Some(link) = links.pop() {
            if let Some(mut node) = Shared::into_inner(link) {
                node.take_links(&mut links);
            }
        }
    }

    /// The contents of a node that is being dropped, as a node.
    #[cold]
    fn take(&mut self) -> Node {
        Node {
            number: self.number,
            body: std::mem::replace(&mut self.body, Body::Gone),
            edges: std::mem::take(&mut self.edges),
            outputs: SmallVec::new(),
            hooks: std::mem::take(&mut self.hooks),
            trace: None,
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Unlinks a long chain iteratively: a recursive drop would overflow the stack.
impl Drop for Node {
    #[inline]
    fn drop(&mut self) {
        match Outermost::enter() {
            Some(_outermost) => self.dismantle(),
            None if matches!(self.body, Body::Gone | Body::Accumulate(_)) => {}
            None => unlink::drop_node_later(self.take()),
        }
    }
}
