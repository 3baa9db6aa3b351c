//! The gradients of one node.

use super::anomaly;
use super::away;
use super::context::{Backward, Grads, SavedArg, widened, widest};
use super::custom;
use super::derivative::Derivative;
use super::hooks::Hook;
use super::node::{Body, Edge, Node, OpCall, Shape, lock};
use super::pending::{Slots, places};
use super::view::{CopySlices, Geometry};
use crate::error::Result;
use crate::error::autograd::AutogradError;
use crate::op::flags::OpFlags;
use crate::profiler::backward_scope;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::contiguous_strides;
use keyway_dispatcher::fallback;
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::op::{Arg, OpEntry};
use keyway_dispatcher::registry::find_op;
use keyway_dispatcher::schema::Kind;
use keyway_dispatcher::tensor::TensorRef;
use once_cell::unsync::OnceCell;
use smallvec::SmallVec;

/// Gradients of a node's inputs, where there is one.
pub(super) type Made = SmallVec<[Option<Tensor>; 4]>;

/// Runs one node: gradients of its outputs in, gradients of its inputs out.
pub(super) fn run_node(node: &Shared<Node>, grads: Slots, wanted: &[bool], retain: bool) -> Result<Made> {
    let _scope = backward_scope(node.name());
    let made = match &node.body {
        Body::Accumulate(_) | Body::Gone => return Ok(Made::new()),
        Body::Op(call) => op_backward(node, call, grads, wanted)?,
        Body::CopySlices(slices) => copy_slices_backward(slices, &node.materialised(grads)?[0], wanted)?,
        Body::ViewOfBase(geometry) => {
            Made::from_iter([Some(view_of_base_backward(geometry, &node.materialised(grads)?[0])?)])
        }
        Body::Custom(call) => Made::from_vec(custom::backward(node, call, grads, wanted)?),
    };
    if !retain {
        node.free();
    }
    Ok(made)
}

/// Runs the formula of an op. Zeros for missing gradients are created on request: most formulas read only the first
/// output's.
fn op_backward(node: &Shared<Node>, call: &OpCall, grads: Slots, wanted: &[bool]) -> Result<Made> {
    let saved = lock(&call.saved);
    let saved = saved.as_ref().ok_or_else(|| AutogradError::Freed { op: node.name().to_string() })?;
    // The backward op of a plugin receives the dtypes that its op has.
    let wide = call.info.and_then(|info| {
        let by_itself = |wide: &DType| *wide == DType::F32 && info.flags.has(OpFlags::DERIVED_IN_F32);
        widest(&grads, &node.outputs, &call.inputs, wanted).filter(|wide| !by_itself(wide))
    });
    let came: SmallVec<[bool; 2]> = grads.iter().map(Option::is_some).collect();
    let conjugate = call.info.is_some_and(|info| info.flags.has(OpFlags::HOLOMORPHIC))
        && node.outputs.iter().any(|output| output.dtype.is_complex());
    let given = |grad: Option<Tensor>| match grad {
        Some(grad) if conjugate => Ok(OnceCell::with_value(grad.conj()?)),
        Some(grad) => widened(grad, wide).map(OnceCell::with_value),
        None => Ok(OnceCell::new()),
    };
    let grads = grads.into_iter().map(given).collect::<Result<SmallVec<[OnceCell<Tensor>; 2]>>>()?;
    let backward = Backward { node, call, saved, grads: &grads, came: &came, wide, away: None };
    let mut made = Grads { call, edges: &node.edges, wanted, conjugate, slots: places(call.inputs.len()) };
    match call.info.map(|info| &info.derivative) {
        Some(&Derivative::Formula { formula, .. }) if fallback::is_set() => {
            away::run(formula, &backward, &mut made)?;
        }
        Some(&Derivative::Formula { formula, .. }) => formula(&backward, &mut made)?,
        _ => foreign_backward(&backward, &mut made)?,
    }
    Ok(made.slots)
}

/// Calls the backward op that a plugin named, with the gradients of the outputs, the saved inputs, the saved outputs, other
/// arguments and, if the op takes it, the mask of requested gradients.
fn foreign_backward(backward: &Backward<'_>, made: &mut Grads<'_>) -> Result<()> {
    let spec = &backward.call.op.spec;
    let Some(named) = spec.foreign.and_then(|foreign| foreign.backward) else { return Ok(()) };
    let op = backward_op(backward.call.op)
        .ok_or_else(|| keyway_dispatcher::Error::UnknownOp { name: named.op.to_string() })?;
    let params = &backward.call.op.schema.params;
    let is_tensor =
        |i: usize| matches!(params.get(i).map(|p| p.kind), Some(Kind::Tensor | Kind::OptionalTensor));
    let bit = |mask: u32, i: usize| i < 32 && mask & (1 << i) != 0;
    let tensors: Vec<usize> = (0..params.len()).filter(|&i| is_tensor(i)).collect();
    // A scalar may have been passed instead of a tensor, and no value for an optional one.
    let inputs = tensors
        .iter()
        .filter(|&&i| bit(named.saves, i))
        .map(|&i| backward.saved(i))
        .collect::<Result<Vec<_>>>()?;
    let outputs = (0..backward.grads.len())
        .filter(|&i| bit(named.saves_outputs, i))
        .map(|i| backward.output(i))
        .collect::<Result<Vec<_>>>()?;
    let wanted: Vec<i64> = tensors.iter().map(|&i| i64::from(made.needs(i))).collect();
    let mut values: Vec<Arg<'_>> =
        (0..backward.grads.len()).map(|i| Ok(backward.grad(i)?.into())).collect::<Result<_>>()?;
    values.extend(inputs.iter().map(SavedArg::arg));
    values.extend(outputs.iter().map(Arg::from));
    values.extend((0..params.len()).filter(|&i| !is_tensor(i)).map(|i| backward.arg(i)));
    if named.wants {
        values.push(Arg::Ints(&wanted));
    }
    let call = keyway_dispatcher::op::Args { op, values: &values };
    let grads = keyway_dispatcher::call::call(call, keyway_dispatcher::op::Out::New)?;
    if grads.len() != tensors.len() {
        let (expected, got) = (tensors.len(), grads.len());
        let op = format!("`{}`, the `backward` of `{}` by `{}`", named.op, backward.call.op.name, spec.owner);
        return Err(AutogradError::GradientCount { op, expected, got }.into());
    }
    for (i, grad) in tensors.into_iter().zip(grads) {
        made.set(i, || Ok(Tensor::from_ref(grad)))?;
    }
    Ok(())
}

/// The gradients of a rewritten base and of the other inputs of the change.
fn copy_slices_backward(slices: &CopySlices, grad: &Tensor, wanted: &[bool]) -> Result<Made> {
    let of_base = slices.geometry.copy_of(grad)?;
    let part = slices.geometry.part(&of_base)?;
    let mut inner_wanted: SmallVec<[bool; 4]> = SmallVec::from_slice(wanted);
    if let Some(first) = inner_wanted.first_mut() {
        *first = true;
    }
    // The part is overwritten below, so the change's own derivative works on a copy.
    let of_part = SmallVec::from_iter([Some(part.mul(1)?)]);
    // The change may be freed separately, see [`Node::free`].
    let mut grads = run_node(&slices.inner, of_part, &inner_wanted, true)?;
    // The view's own node is not run: its gradient is a part of the base's.
    if let (Some(Some(before)), Some(first)) = (slices.inner.edges.first(), grads.first_mut()) {
        run_hooks_of(before, first)?;
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
fn view_of_base_backward(geometry: &Geometry, grad: &Tensor) -> Result<Tensor> {
    let strides = contiguous_strides(&geometry.base_sizes);
    let strides = if geometry.base_strides.is_empty() { strides } else { geometry.base_strides.clone() };
    let of_base = Tensor::uninit_strided(
        &geometry.base_sizes,
        &strides,
        (geometry.base_dtype(grad.dtype()), grad.device()),
    )?;
    of_base.zero_()?;
    geometry.part(&of_base)?.add_overlapping(grad)?;
    Ok(of_base)
}

/// The backward op that a plugin names for its op; `None` if it names none, or an op that is not registered.
pub(super) fn backward_op(op: &OpEntry) -> Option<&'static OpEntry> {
    let foreign = op.spec.foreign?;
    if let Some(found) = foreign.backward_entry.get() {
        return Some(found);
    }
    let found = find_op(foreign.backward?.op)?;
    Some(foreign.backward_entry.get_or_init(|| found))
}

/// Runs the hooks of one output of a node that is part of another node's derivative.
pub(super) fn run_hooks_of(edge: &Edge, grad: &mut Option<Tensor>) -> Result<()> {
    let Some(hooks) = edge.node.hooks() else { return Ok(()) };
    let hooks = lock(hooks).clone();
    for hooked in hooks.iter().filter(|hooked| hooked.output == edge.output) {
        apply_hook(&hooked.hook, &edge.node.outputs[edge.output], grad)?;
    }
    Ok(())
}

pub(super) fn apply_hook(hook: &Hook, shape: &Shape, slot: &mut Option<Tensor>) -> Result<()> {
    if let Some(grad) = slot
        && let Some(replaced) = hook(grad)?
    {
        require_like("register_hook", grad.as_ref(), &replaced)?;
        *slot = Some(shape.formatted(replaced)?);
    }
    Ok(())
}

/// Checks that a gradient of the user has the shape, dtype and device of the gradient or tensor that it is for.
pub(crate) fn require_like(op: &str, expected: &TensorRef, grad: &Tensor) -> Result<()> {
    let got = grad.as_ref();
    if got.sizes() != expected.sizes() {
        let [expected, got] = [expected, got].map(|tensor| tensor.sizes().to_vec());
        return Err(AutogradError::GradientShape { op: op.to_string(), expected, got }.into());
    }
    let place = |expected: String, got: String, call| {
        Err(AutogradError::GradientPlace { op: op.to_string(), expected, got, call }.into())
    };
    if got.dtype() != expected.dtype() {
        let [expected, got] = [expected, got].map(|tensor| format!("of dtype {}", tensor.dtype()));
        return place(expected, got, "to_dtype");
    }
    if got.device() != expected.device() {
        let [expected, got] = [expected, got].map(|tensor| format!("on {}", tensor.device()));
        return place(expected, got, "to_device");
    }
    Ok(())
}

/// Fails if one of the gradients that a node computed contains NaN.
pub(super) fn check_for_nan(node: &Node, grads: &[Option<Tensor>]) -> Result<()> {
    if !anomaly::is_on() {
        return Ok(());
    }
    for (index, grad) in grads.iter().enumerate() {
        let Some(grad) = grad else { continue };
        let parts = if grad.dtype().is_complex() { grad.view_as_real()? } else { grad.clone() };
        if parts.dtype().is_float() && parts.to_vec_f64()?.iter().any(|v| v.is_nan()) {
            let trace = node.trace.as_deref().unwrap_or("(recorded before anomaly detection was on)");
            return Err(
                AutogradError::Anomaly { op: node.name().into(), index, trace: trace.to_string() }.into()
            );
        }
    }
    Ok(())
}
