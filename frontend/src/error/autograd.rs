//! Errors of autograd, and what to do instead.

/// An error of autograd.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Error, Tensor, autograd::AutogradError};
/// let w = Tensor::new([1.0f32])?.requires_grad_(true)?;
/// let error = w.add_(1.0).unwrap_err();
/// assert!(matches!(error, Error::Autograd(AutogradError::LeafInPlace { .. })));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AutogradError {
    /// An op without a derivative.
    #[error(
        "{op}: no derivative: {reason}; call it under `no_grad` or on `detach()`ed tensors if no gradient is needed"
    )]
    Missing {
        /// The op.
        op: String,
        /// The reason.
        reason: String,
    },
    /// An in-place change of a leaf.
    #[error(
        "{op}: a leaf tensor that requires grad cannot be changed in place; use the form that returns a new tensor, or `no_grad`"
    )]
    LeafInPlace {
        /// The op.
        op: &'static str,
    },
    /// A write through an accessor or a slice to a tensor that requires grad.
    #[error(
        "{op}: elements that are written by hand are not recorded, and the tensor requires grad; write under `no_grad`, or to \
         `detach().copy()`"
    )]
    WrittenByHand {
        /// The call.
        op: &'static str,
    },
    /// An in-place change of a composite tensor, such as a sparse one, that requires grad.
    #[error(
        "{op}: a sparse tensor cannot be changed in place where a gradient is wanted; use the form that returns a new tensor, \
         or `no_grad`"
    )]
    CompositeInPlace {
        /// The op.
        op: &'static str,
    },
    /// A custom function's `forward` changed an input in place that requires grad.
    #[error(
        "{function}: expected `forward` to leave its inputs as they are, but it changed input {input} in place, whose gradient is \
         wanted; change a `copy()` of it instead"
    )]
    InputChanged {
        /// The function's name.
        function: &'static str,
        /// The position among the inputs.
        input: usize,
    },
    /// An in-place change of a view that autograd cannot follow.
    #[error("{op}: this view cannot be changed in place: it {reason}; change a `copy()` of it instead")]
    ViewInPlace {
        /// The op.
        op: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// A history that cannot be detached in place.
    #[error(
        "detach_: the tensor {reason}; use `detach()`, which returns another tensor over the same memory"
    )]
    DetachInPlace {
        /// The reason.
        reason: &'static str,
    },
    /// `out=` with gradients.
    #[error("{op}: `out=` cannot be differentiated; use the form that returns a new tensor, or `no_grad`")]
    OutRequiresGrad {
        /// The op.
        op: &'static str,
    },
    /// A saved tensor that was changed since.
    #[error(
        "{op}: `{argument}` was saved for backward at version {expected}, but is at version {got}: it was changed \
         in place since; change a `copy()` of it instead, or call backward before"
    )]
    SavedChanged {
        /// The op.
        op: String,
        /// Name of the tensor.
        argument: String,
        /// The version that was saved.
        expected: u32,
        /// The version now.
        got: u32,
    },
    /// A composite tensor of the graph with a component that was changed since.
    #[error(
        "{op}: a component of `{argument}` was changed in place after this tensor was made, which its history does not \
         know; change a `copy()` of the component, and make the tensor anew with `from_components`"
    )]
    ComponentChanged {
        /// The op that received the tensor.
        op: &'static str,
        /// Name of the argument.
        argument: &'static str,
    },
    /// A graph that was used already.
    #[error(
        "{op}: the graph was freed by an earlier backward; pass `retain_graph` to that one if the graph is needed again"
    )]
    Freed {
        /// The op.
        op: String,
    },
    /// Backward from a tensor outside any graph, or the gradient of one.
    #[error(
        "{op}: the tensor is not part of a graph: no tensor that it came from requires grad, or it was made under `no_grad`, as all \
         is in a hook"
    )]
    NoGraph {
        /// `backward` or `grad`.
        op: &'static str,
    },
    /// Backward from several elements.
    #[error(
        "{op}: a gradient can be started only from one element, but the shape is {sizes:?}; pass a gradient to `backward_with`, or call `sum(..)` first"
    )]
    NotScalar {
        /// `backward` or `grad`.
        op: &'static str,
        /// The shape.
        sizes: Vec<usize>,
    },
    /// A gradient of a wrong shape.
    #[error("{op}: expected a gradient of shape {expected:?}, got {got:?}")]
    GradientShape {
        /// The op or function.
        op: String,
        /// The shape that was expected.
        expected: Vec<usize>,
        /// The actual shape.
        got: Vec<usize>,
    },
    /// A gradient of a wrong dtype or on another device.
    #[error("{op}: expected a gradient {expected}, got one {got}; call `{call}` on it before")]
    GradientPlace {
        /// The op or function.
        op: String,
        /// The dtype or the device that was expected.
        expected: String,
        /// The actual dtype or device.
        got: String,
        /// The call that converts one to the other.
        call: &'static str,
    },
    /// A tensor that cannot require grad.
    #[error(
        "{op}: only floating-point tensors can require grad, but this is {dtype}; convert it with `to_dtype`"
    )]
    NotFloating {
        /// The function that was called.
        op: &'static str,
        /// The dtype.
        dtype: String,
    },
    /// A complex result without an initial gradient.
    #[error(
        "{op}: a gradient can be started only from a real result, but this is {dtype}; pass a gradient to `backward_with`, or \
         call `abs()` or `real()` first"
    )]
    ComplexOutput {
        /// The function that was called.
        op: &'static str,
        /// The dtype.
        dtype: String,
    },
    /// A complex tensor in a recorded call of an op without a complex derivative.
    #[error(
        "{op}: a gradient is wanted, but its derivative is defined for real tensors only and this one is {dtype}; apply it \
         to `real()` and `imag()`, or call it under `no_grad`"
    )]
    Complex {
        /// The op.
        op: String,
        /// The dtype.
        dtype: String,
    },
    /// Switching a result of the graph.
    #[error(
        "requires_grad_: it can be switched off only on leaves; use `detach()` for a tensor outside the graph"
    )]
    NotLeaf,
    /// An input of `grad` that the outputs do not depend on.
    #[error(
        "grad: input {index} was not used to compute the outputs; pass `allow_unused` to get None for it"
    )]
    Unused {
        /// The index of the input.
        index: usize,
    },
    /// Something that waits for a gradient, on a tensor that gets none.
    #[error(
        "{op}: the tensor requires no grad, so it receives none; call `requires_grad_(true)` on it, or on an input of it, \
         before"
    )]
    RequiresNoGrad {
        /// The op.
        op: &'static str,
    },
    /// An inference tensor in the graph.
    #[error(
        "{op}: a tensor made in inference mode cannot be saved for backward; use a `copy()` of it made outside"
    )]
    Inference {
        /// The op.
        op: String,
    },
    /// NaN in a gradient, found by anomaly detection.
    #[error("{op}: the backward pass made NaN in gradient {index}; the forward call was made here:\n{trace}")]
    Anomaly {
        /// The op.
        op: String,
        /// Index of the gradient.
        index: usize,
        /// Source location of the forward call.
        trace: String,
    },
    /// A formula that requested a tensor that it did not declare.
    #[error("{op}: the derivative asked for `{what}`, which it did not save")]
    NotSaved {
        /// The op.
        op: String,
        /// The requested tensor.
        what: String,
    },
    /// A pass within a pass, and so on.
    #[error(
        "{op}: expected at most {most} backward passes within each other, but a hook or a function began one more; call it outside of them"
    )]
    NestedTooDeep {
        /// The call.
        op: &'static str,
        /// Maximum number.
        most: u32,
    },
    /// A backward that returned a wrong number of gradients.
    #[error("{op}: backward must return {expected} gradients, but returned {got}")]
    GradientCount {
        /// The op.
        op: String,
        /// Number of inputs.
        expected: usize,
        /// Number of gradients passed.
        got: usize,
    },
}

impl AutogradError {
    /// Replaces the name of the op by that of the composite op that the user called; errors of a backward pass name its own ops.
    pub(crate) fn rename(&mut self, name: &'static str) {
        use AutogradError as E;
        match self {
            E::LeafInPlace { op }
            | E::WrittenByHand { op }
            | E::CompositeInPlace { op }
            | E::ViewInPlace { op, .. }
            | E::OutRequiresGrad { op }
            | E::NotFloating { op, .. }
            | E::ComponentChanged { op, .. }
            | E::RequiresNoGrad { op } => *op = name,
            E::Missing { op, .. } | E::Complex { op, .. } | E::Inference { op } => *op = name.to_string(),
            _ => {}
        }
    }
}
