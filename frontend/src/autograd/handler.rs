//! What the autograd key does with a call: run it below itself, and record it if a gradient is wanted.

use super::error::AutogradError;
use super::meta;
use super::modes::no_grad;
use super::node::{Body, Edge, Node, OpCall, OwnedArg, SavedTensors, Shape};
use super::saved::Saved;
use crate::error::Result;
use crate::ops::def::{Derivative, definition};
use keyway_dispatcher::call::{part_from_arguments, redispatch};
use keyway_dispatcher::error::Result as DispatchResult;
use keyway_dispatcher::key::{DispatchKey, KeySet};
use keyway_dispatcher::op::{Arg, OpEntry, Out, Outputs, Rule};
use keyway_dispatcher::registry::{Call, FunctionalEntry, register_functional};
use keyway_dispatcher::tensor::{TensorRef, ViewOrigin};
use smallvec::SmallVec;
use std::sync::Mutex;

/// Registers the autograd key.
pub(crate) fn install() -> DispatchResult<()> {
    register_functional(FunctionalEntry {
        key: DispatchKey::AUTOGRAD,
        name: "autograd".to_string(),
        applies,
        handler: Box::new(handle),
        plugin: None,
    })
}

/// An op that is differentiated through the ops it is composed of needs nothing here.
fn applies(op: &OpEntry) -> bool {
    !matches!(definition(op).map(|d| &d.derivative), Some(Derivative::Composed))
}

/// What is to be recorded of an op.
enum Plan {
    Formula { saves: u32, saves_outputs: u32 },
    Nothing,
}

fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    let mut any = false;
    for arg in call.args.values {
        match arg {
            Arg::Tensor(t) => any |= meta::requires_grad(t),
            Arg::Tensors(list) => any |= list.iter().any(|t| meta::requires_grad(t)),
            _ => {}
        }
    }
    if let Out::Given(list) = call.out {
        if any || list.iter().any(|t| meta::requires_grad(t)) {
            return Err(crate::Error::from(AutogradError::OutRequiresGrad { op: call.args.name() }).into());
        }
    }
    if !any {
        // A view that was made while the graph was off has no history, but its base may have one.
        if let (Out::InPlace, Some(Arg::Tensor(target))) = (call.out, call.args.values.first()) {
            if target.base().is_some_and(meta::requires_grad) {
                check_in_place(call)?;
            }
        }
        return redispatch(call, below);
    }
    match plan(call)? {
        Plan::Formula { saves, saves_outputs } => Ok(record(call, below, saves, saves_outputs)?),
        Plan::Nothing => {
            if matches!(call.out, Out::InPlace) {
                check_in_place(call)?;
            }
            let _off = no_grad();
            redispatch(call, below)
        }
    }
}

fn plan(call: &Call<'_>) -> Result<Plan> {
    let op = call.args.op;
    let missing = |reason: String| Err(AutogradError::Missing { op: op.name.to_string(), reason }.into());
    match definition(op).map(|d| d.derivative) {
        Some(Derivative::Formula { saves, saves_outputs, .. }) => Ok(Plan::Formula { saves, saves_outputs }),
        Some(Derivative::NotDifferentiable | Derivative::Composed) => Ok(Plan::Nothing),
        Some(Derivative::Missing(why)) => missing(why.to_string()),
        None if op.spec.backward.is_some() => Ok(Plan::Formula { saves: u32::MAX, saves_outputs: u32::MAX }),
        None => missing(format!("the plugin `{}` that brought the op gives no backward op", op.spec.owner)),
    }
}

/// Refuses an in-place change that no graph could follow.
fn check_in_place(call: &Call<'_>) -> Result<()> {
    let op = call.args.name();
    let target = call.args.tensor(0).map_err(crate::Error::from)?;
    if meta::is_collecting_leaf(target) {
        return Err(AutogradError::LeafInPlace { op }.into());
    }
    let reason = match (target.base(), target.view_origin()) {
        (Some(base), _) if meta::is_collecting_leaf(base) => "is a view of a leaf that requires grad",
        (_, Some(ViewOrigin::OneOfMany)) => "is one of several outputs of one op",
        (_, Some(ViewOrigin::Unrecorded)) => "was made while the graph was off",
        _ => return Ok(()),
    };
    Err(AutogradError::ViewInPlace { op, reason }.into())
}

fn record(call: &Call<'_>, below: KeySet, saves: u32, saves_outputs: u32) -> Result<Outputs> {
    let in_place = matches!(call.out, Out::InPlace);
    if in_place {
        check_in_place(call)?;
    }
    let op = call.args.op;
    let mut args: SmallVec<[OwnedArg; 4]> = SmallVec::new();
    let mut inputs: SmallVec<[Shape; 2]> = SmallVec::new();
    let mut edges: SmallVec<[Option<Edge>; 2]> = SmallVec::new();
    let mut saved = SavedTensors::default();
    let mut visit = |i: usize, t: &TensorRef| -> Result<()> {
        let wanted = i >= 32 || saves & (1 << i) != 0;
        saved.inputs.push(match wanted {
            false => None,
            true if in_place && i == 0 => Some(Saved::before_overwriting(t)?),
            true => Some(Saved::input(op.name, t)?),
        });
        inputs.push(Shape::of(t));
        edges.push(if t.dtype().is_differentiable() { meta::edge(t) } else { None });
        Ok(())
    };
    for (i, arg) in call.args.values.iter().enumerate() {
        args.push(match arg {
            Arg::Tensor(t) => {
                visit(i, t)?;
                OwnedArg::Tensor { slot: inputs_len(&args) }
            }
            Arg::Tensors(list) => {
                list.iter().try_for_each(|t| visit(i, t))?;
                OwnedArg::Tensors { first: inputs_len(&args), count: list.len() }
            }
            Arg::None => OwnedArg::None,
            Arg::Int(v) => OwnedArg::Int(*v),
            Arg::Float(v) => OwnedArg::Float(*v),
            Arg::Bool(v) => OwnedArg::Bool(*v),
            Arg::Ints(v) => OwnedArg::Ints(SmallVec::from_slice(v)),
            Arg::Floats(v) => OwnedArg::Floats(SmallVec::from_slice(v)),
            Arg::Str(v) => OwnedArg::Str((*v).into()),
            Arg::DType(v) => OwnedArg::DType(*v),
        });
    }

    let mut made = {
        // A view of a strided tensor is made by the host alone, and notes whether the graph was on.
        let _off = (!is_host_view(call)).then(no_grad);
        redispatch(call, below)?
    };
    if !in_place {
        part_from_arguments(&call.args, &mut made);
    }
    for (i, output) in made.iter().enumerate() {
        let wanted = i >= 32 || saves_outputs & (1 << i) != 0;
        saved.outputs.push(wanted.then(|| Saved::output(output, i)));
    }
    let shapes: SmallVec<[Shape; 1]> = made.iter().map(Shape::of).collect();
    let body = Body::Op(OpCall { op, def: definition(op), args, inputs, saved: Mutex::new(Some(saved)) });
    let node = Node::new(body, edges, shapes);
    for (output, tensor) in made.iter().enumerate() {
        if !tensor.dtype().is_differentiable() {
            continue;
        }
        let edge = Edge { node: node.clone(), output };
        match tensor.base() {
            Some(base) if in_place => super::view::rewrite_base(tensor, &base.clone(), edge.node),
            None if in_place => meta::rebase(tensor, edge),
            _ => meta::set_edge(tensor, edge),
        }
    }
    Ok(made)
}

/// Whether the call makes views without any kernel.
fn is_host_view(call: &Call<'_>) -> bool {
    matches!(call.args.op.spec.rule, Rule::View(_) | Rule::Views(_))
        && matches!(call.args.get(0), Arg::Tensor(t) if t.is_strided())
}

/// How many tensors the arguments so far have: the slot of the next one.
fn inputs_len(args: &[OwnedArg]) -> usize {
    args.iter()
        .map(|arg| match arg {
            OwnedArg::Tensor { .. } => 1,
            OwnedArg::Tensors { count, .. } => *count,
            _ => 0,
        })
        .sum()
}
