//! The graph as its user sees it: nodes, edges, saved tensors.

use super::meta;
use super::node::{Body, Edge, Node, lock};
use super::saved::Saved;
use crate::Tensor;
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::tensor::TensorRef;
use std::fmt;

/// A node of the graph: a recorded call, or the leaf that accumulates a gradient (`accumulate_grad`). A handle keeps the graph
/// behind it alive.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let x = Tensor::new([2.0f32])?.requires_grad_(true)?;
/// let y = (&x * &x)?;
/// let node = y.grad_fn().unwrap();
/// assert_eq!(node.name(), "mul");
/// let (leaf, output) = node.next_functions().remove(0).unwrap();
/// assert!(output == 0 && leaf.variable().unwrap().ptr_eq(&x));
/// # Ok(()) }
/// ```
#[doc(alias = "Node")]
#[derive(Clone)]
pub struct GradFn {
    node: Shared<Node>,
}

/// A tensor that a node saved for its derivative.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::SavedSource};
/// let x = Tensor::new([0.0f32])?.requires_grad_(true)?;
/// let saved = x.exp()?.grad_fn().unwrap().saved_tensors().remove(0);
/// assert_eq!(saved.source, SavedSource::Output(0));
/// assert_eq!(saved.tensor.to_vec::<f32>()?, [1.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct SavedTensor {
    /// Input, with its index among the tensors of the call, or output.
    pub source: SavedSource,
    /// The tensor with its current value, outside the graph.
    pub tensor: Tensor,
    /// The version of its memory, the number of in-place changes, at the time of saving; see [`Tensor::version`].
    pub version: u32,
}

/// Identifies a saved tensor of a call.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, autograd::SavedSource};
/// let x = Tensor::new([2.0f32])?.requires_grad_(true)?;
/// let node = x.log()?.grad_fn().unwrap();
/// assert_eq!(node.saved_tensors()[0].source, SavedSource::Input(0));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedSource {
    /// An input, by index among the tensors of the call.
    Input(usize),
    /// An output.
    Output(usize),
}

impl GradFn {
    /// The node that receives a gradient of this tensor; for a leaf, the node that accumulates it. `None` if the tensor does not
    /// require grad.
    pub(crate) fn of(tensor: &TensorRef) -> Option<(GradFn, usize)> {
        meta::edge(tensor).map(GradFn::at)
    }

    fn at(edge: Edge) -> (GradFn, usize) {
        (GradFn { node: edge.node }, edge.output)
    }

    /// The name of the op or custom function, or autograd's name for the node.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// assert_eq!(x.log()?.grad_fn().unwrap().name(), "log");
    /// # Ok(()) }
    /// ```
    pub fn name(&self) -> &'static str {
        self.node.name()
    }

    /// Sequence number: later nodes have higher numbers, and the backward pass runs the highest first.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// let (first, second) = (x.log()?, x.exp()?);
    /// assert!(first.grad_fn().unwrap().number() < second.grad_fn().unwrap().number());
    /// # Ok(()) }
    /// ```
    #[doc(alias = "_sequence_nr")]
    pub fn number(&self) -> u64 {
        self.node.number
    }

    /// For each tensor of the call, the node that receives its gradient and the output of that node; `None` if it requires no
    /// gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// let next = x.log()?.mul(&Tensor::new([3.0f32])?)?.grad_fn().unwrap().next_functions();
    /// assert_eq!(next[0].as_ref().unwrap().0.name(), "log");
    /// assert!(next[1].is_none());
    /// # Ok(()) }
    /// ```
    pub fn next_functions(&self) -> Vec<Option<(GradFn, usize)>> {
        self.node.edges.iter().map(|edge| edge.clone().map(GradFn::at)).collect()
    }

    /// The shape of each output.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones((2, 3))?.requires_grad_(true)?;
    /// assert_eq!(x.sum(1)?.grad_fn().unwrap().output_shapes(), [[2]]);
    /// # Ok(()) }
    /// ```
    pub fn output_shapes(&self) -> Vec<Vec<usize>> {
        self.node.outputs.iter().map(|shape| shape.sizes.to_vec()).collect()
    }

    /// The leaf whose gradient this node accumulates; `None` for a recorded call and for a leaf that was dropped.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// let node = x.log()?.grad_fn().unwrap();
    /// assert!(node.variable().is_none());
    /// let (leaf, _) = node.next_functions().remove(0).unwrap();
    /// assert!(leaf.variable().unwrap().ptr_eq(&x));
    /// # Ok(()) }
    /// ```
    pub fn variable(&self) -> Option<Tensor> {
        match &self.node.body {
            Body::Accumulate(leaf) => leaf.upgrade().map(Tensor::from_ref),
            _ => None,
        }
    }

    /// The tensors that the derivative reads; empty once a backward pass has freed them, and for custom functions, which own
    /// theirs.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// let y = x.log()?;
    /// assert_eq!(y.grad_fn().unwrap().saved_tensors()[0].tensor.to_vec::<f32>()?, [2.0]);
    /// y.sum_all()?.backward()?;
    /// assert!(y.grad_fn().unwrap().saved_tensors().is_empty());
    /// # Ok(()) }
    /// ```
    pub fn saved_tensors(&self) -> Vec<SavedTensor> {
        let Body::Op(call) = &self.node.body else { return Vec::new() };
        let guard = lock(&call.saved);
        let Some(saved) = guard.as_ref() else { return Vec::new() };
        let inputs = saved.inputs.iter().enumerate().map(|(i, saved)| (SavedSource::Input(i), saved));
        let outputs = saved.outputs.iter().enumerate().map(|(i, saved)| (SavedSource::Output(i), saved));
        inputs.chain(outputs).filter_map(|(source, saved)| shown(source, saved.as_ref()?)).collect()
    }

    /// Whether both are the same node.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([2.0f32])?.requires_grad_(true)?;
    /// let y = x.log()?;
    /// assert!(y.grad_fn().unwrap().ptr_eq(&y.grad_fn().unwrap()));
    /// assert!(!y.grad_fn().unwrap().ptr_eq(&x.log()?.grad_fn().unwrap()));
    /// # Ok(()) }
    /// ```
    pub fn ptr_eq(&self, other: &GradFn) -> bool {
        Shared::ptr_eq(&self.node, &other.node)
    }
}

fn shown(source: SavedSource, saved: &Saved) -> Option<SavedTensor> {
    let (data, version) = match saved {
        Saved::Plain { tensor, version } => (tensor, *version),
        Saved::Result { data, version, .. } | Saved::Output { data, version, .. } => (data, *version),
        Saved::Moving { .. } | Saved::Gone => return None,
    };
    Some(SavedTensor { source, tensor: Tensor::from_ref(data.shallow_copy()), version })
}

impl fmt::Debug for GradFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} {}>", self.name(), self.number())
    }
}
