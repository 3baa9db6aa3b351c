//! The handler of the autograd key: runs the call below itself, and records it if an argument requires grad.

use super::derivative::{Derivative, OpInfo, info};
use super::meta;
use super::modes::no_grad;
use super::node::{Body, Edge, Node, OpCall, OwnedArg, SavedTensors, Shape, by_entry};
use super::run::backward_op;
use super::saved::Saved;
use super::watch;
use crate::Tensor;
use crate::arguments::replacing;
use crate::error::Result;
use crate::error::autograd::AutogradError;
use crate::op::flags::OpFlags;
use keyway_dispatcher::call::{decompose_or_leave, redispatch, unalias};
use keyway_dispatcher::error::{Error, Result as DispatchResult};
use keyway_dispatcher::key::{DispatchKey, KeySet};
use keyway_dispatcher::memory::Shared;
use keyway_dispatcher::op::{Arg, Args, Call, OpEntry, Out, Outputs, Rule};
use keyway_dispatcher::registry::{KeyHandler, register_key_handler};
use keyway_dispatcher::tensor::{TensorRef, ViewOrigin};
use smallvec::SmallVec;
use std::sync::Mutex;

/// Registers the autograd key.
pub(crate) fn install() -> DispatchResult<()> {
    register_key_handler(KeyHandler {
        key: DispatchKey::AUTOGRAD,
        name: "autograd".to_string(),
        applies,
        handler: Box::new(handle),
        plugin: None,
        interposer: None,
    })
}

/// Whether the key acts on an op: on all except composite ones of the host.
fn applies(op: &OpEntry) -> bool {
    let by_the_host = matches!(op.spec.rule, Rule::Host(_));
    !(by_the_host && matches!(info(op).map(|info| &info.derivative), Some(Derivative::Composite)))
}

/// Whether a call is unary, element-wise, and maps 0 to 0.
fn keeps_zero(flags: OpFlags, args: &Args<'_>) -> bool {
    let number = |i: usize| match args.get(i) {
        Arg::Int(number) => Some(number as f64),
        Arg::Float(number) => Some(number),
        _ => None,
    };
    let is_bound = |i: usize, holds: fn(f64) -> bool| match args.get(i) {
        Arg::None => true,
        _ => number(i).is_some_and(holds),
    };
    flags.has(OpFlags::ZERO_PRESERVING)
        || flags.has(OpFlags::ZERO_PRESERVING_IF_POSITIVE) && number(1).is_some_and(|number| number > 0.0)
        || flags.has(OpFlags::ZERO_PRESERVING_IF_IN_BOUNDS)
            && is_bound(1, |min| min <= 0.0)
            && is_bound(2, |max| max >= 0.0)
        || flags.has(OpFlags::ZERO_PRESERVING_IF_NONZERO)
            && number(1).is_some_and(|number| number != 0.0 && !number.is_nan())
}

/// Records a zero-preserving op of one sparse tensor as the op on the coalesced stored values: its derivative is that of
/// the strided op, restricted to stored entries.
fn of_stored(call: &Call<'_>) -> Result<Outputs> {
    let whole =
        Tensor::from_ref(call.args.tensor(0).map_err(crate::Error::from)?.clone()).without_duplicates()?;
    let apply = |part: Tensor| -> Result<Tensor> {
        if !part.dtype().is_differentiable() {
            return Ok(part);
        }
        let mut values: SmallVec<[Arg<'_>; 4]> = SmallVec::from_slice(call.args.values);
        values[0] = (&part).into();
        let made = keyway_dispatcher::call::call(Args { op: call.args.op, values: &values }, Out::New)?;
        Ok(made.into_iter().next().map_or_else(|| part.clone(), Tensor::from_ref))
    };
    let parts = whole.components()?.into_iter().map(apply).collect::<Result<Vec<_>>>()?;
    Ok(Outputs::from_iter([whole.with_components(&parts)?.into_ref()]))
}

/// The call with coalesced sparse arguments, if some may have duplicate coordinates and the op is element-wise: its derivative is
/// then element-wise too.
fn by_element(call: &Call<'_>) -> Result<Option<DispatchResult<Outputs>>> {
    let any = call.args.values.iter().any(|arg| match arg {
        Arg::Tensor(t) => by_entry(t),
        Arg::Tensors(list) => list.iter().any(|t| by_entry(t)),
        _ => false,
    });
    if !any || info(call.args.op).is_some_and(|info| info.flags.has(OpFlags::UNCOALESCED)) {
        return Ok(None);
    }
    let once = |t: &TensorRef| {
        if !by_entry(t) {
            return Ok(None);
        }
        let made = Tensor::from_ref(t.clone()).coalesce()?;
        if by_entry(made.as_ref()) {
            let reason = "is not coalesced by the kernel that its backend brings for `coalesce`";
            return Err(Error::Layout { op: call.args.name(), layout: t.layout(), reason }.into());
        }
        Ok(Some(made))
    };
    replacing(&call.args, once, |args| keyway_dispatcher::call::call(args, call.out)).map(Some)
}

/// Handles a call with a tensor of a composite layout that is not recorded as others are.
#[cold]
fn of_composite(call: &Call<'_>) -> Option<DispatchResult<Outputs>> {
    let is_composite = matches!(call.args.get(0), Arg::Tensor(t) if !t.is_strided());
    if matches!(call.out, Out::InPlace) && is_composite {
        return Some(
            Err(crate::Error::from(AutogradError::CompositeInPlace { op: call.args.name() }).into()),
        );
    }
    match by_element(call) {
        Ok(None) => {}
        Ok(Some(made)) => return Some(made),
        Err(error) => return Some(Err(error.into())),
    }
    let kept = info(call.args.op).is_some_and(|info| keeps_zero(info.flags, &call.args));
    (matches!(call.out, Out::New) && is_composite && kept).then(|| Ok(of_stored(call)?))
}

/// The recorded derivative of an op.
enum Plan {
    Formula {
        info: Option<&'static OpInfo>,
        saves: u32,
        saves_outputs: u32,
    },
    /// The ops of the decomposition are recorded: a kernel of the whole would leave no graph.
    Parts,
    Nothing,
}

fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    let any = call.args.values.iter().any(|arg| match arg {
        Arg::Tensor(t) => meta::requires_grad(t),
        Arg::Tensors(list) => list.iter().any(|t| meta::requires_grad(t)),
        _ => false,
    });
    if watch::is_on() {
        if any {
            watch::note();
        }
        let _off = no_grad();
        return redispatch(call, below);
    }
    if let Out::Given(list) = call.out
        && (any || list.iter().any(|t| meta::requires_grad(t)))
    {
        return Err(crate::Error::from(AutogradError::OutRequiresGrad { op: call.args.name() }).into());
    }
    if !any {
        // A view that was created while recording was off has no history, but its base may have one.
        if let (Out::InPlace, Some(Arg::Tensor(target))) = (call.out, call.args.values.first())
            && target.base().is_some_and(meta::requires_grad)
        {
            check_in_place(call)?;
        }
        return redispatch(call, below);
    }
    let is_composite = |arg: &Arg<'_>| match arg {
        Arg::Tensor(t) => !t.is_strided(),
        Arg::Tensors(list) => list.iter().any(|t| !t.is_strided()),
        _ => false,
    };
    if call.args.values.iter().any(is_composite)
        && let Some(made) = of_composite(call)
    {
        return made;
    }
    match plan(call)? {
        Plan::Formula { info, saves, saves_outputs } => record(call, below, info, [saves, saves_outputs]),
        Plan::Parts => decompose_or_leave(call, KeySet::of(DispatchKey::AUTOGRAD)),
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
    let info = info(op);
    match info.map(|info| &info.derivative) {
        Some(&Derivative::Formula { saves, saves_outputs, .. }) => {
            Ok(Plan::Formula { info, saves, saves_outputs })
        }
        Some(Derivative::Composite) => Ok(Plan::Parts),
        Some(Derivative::NotDifferentiable) => Ok(Plan::Nothing),
        Some(Derivative::Missing(why)) => missing(why.to_string()),
        None => match op.spec.foreign.and_then(|foreign| foreign.backward) {
            Some(backward) if backward_op(op).is_none() => missing(format!(
                "its backward op `{}`, which the plugin `{}` names, does not exist",
                backward.op, op.spec.owner
            )),
            Some(backward) => {
                Ok(Plan::Formula { info: None, saves: backward.saves, saves_outputs: backward.saves_outputs })
            }
            None if op.spec.decomposition.is_some() => Ok(Plan::Parts),
            None => missing(format!(
                "the plugin `{}` that brought the op gives neither a backward op nor a decomposition",
                op.spec.owner
            )),
        },
    }
}

/// Refuses an in-place change that cannot be recorded.
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
        _ if meta::is_aliased(target) => {
            "is a result of a function with its own derivative and shares memory with an input or another result of it"
        }
        _ => return Ok(()),
    };
    Err(AutogradError::ViewInPlace { op, reason }.into())
}

/// Records a call of an op with the data of its definition, if it has one; the masks are those of saved arguments and outputs.
fn record(
    call: &Call<'_>,
    below: KeySet,
    info: Option<&'static OpInfo>,
    [saves, saves_outputs]: [u32; 2],
) -> DispatchResult<Outputs> {
    let in_place = matches!(call.out, Out::InPlace);
    if in_place {
        check_in_place(call)?;
    }
    let op = call.args.op;
    // The node's lists are constructed in place.
    let mut node = Node::unnumbered(|| {
        let saved = Mutex::new(Some(SavedTensors::default()));
        Body::Op(OpCall { op, info, args: SmallVec::new(), inputs: SmallVec::new(), saved })
    });
    let Some(Node { body: Body::Op(recorded), edges, .. }) = Shared::get_mut(&mut node) else {
        return redispatch(call, below);
    };
    let saved = recorded.saved.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
    let inputs = &mut recorded.inputs;
    // The list of an op that saves nothing remains empty.
    let mut saved = saved.as_mut().filter(|_| saves != 0 || call.args.values.len() > 32);
    let mut visit = |i: usize, t: &TensorRef| -> Result<()> {
        if t.changed_since_made() && meta::is_result(t) {
            let argument = op.schema.param_name(i);
            return Err(AutogradError::ComponentChanged { op: op.name, argument }.into());
        }
        if t.dtype().is_complex() && info.is_some_and(|info| !info.flags.is_of_complex()) {
            return Err(meta::no_complex_formula(op.name, t.dtype()));
        }
        let wanted = i >= 32 || saves & (1 << i) != 0;
        if let Some(saved) = &mut saved {
            saved.inputs.push(match wanted {
                false => None,
                true if in_place && i == 0 => Some(Saved::before_overwriting(t)?),
                true => Some(Saved::input(op.name, t)?),
            });
        }
        inputs.push(Shape::of(t));
        edges.push(if t.dtype().is_differentiable() { meta::edge(t) } else { None });
        Ok(())
    };
    let mut slot = 0;
    for (i, arg) in call.args.values.iter().enumerate() {
        recorded.args.push(match arg {
            Arg::Tensor(t) => {
                visit(i, t)?;
                slot += 1;
                OwnedArg::Tensor { slot: slot - 1 }
            }
            Arg::Tensors(list) => {
                list.iter().try_for_each(|t| visit(i, t))?;
                slot += list.len();
                OwnedArg::Tensors { first: slot - list.len(), count: list.len() }
            }
            Arg::None => OwnedArg::None,
            Arg::Int(v) => OwnedArg::Int(*v),
            Arg::Float(v) => OwnedArg::Float(*v),
            Arg::Bool(v) => OwnedArg::Bool(*v),
            Arg::Ints(v) => OwnedArg::Ints((*v).into()),
            Arg::Floats(v) => OwnedArg::Floats((*v).into()),
            Arg::Str(v) => OwnedArg::Str((*v).into()),
            Arg::DType(v) => OwnedArg::DType(*v),
        });
    }

    let mut result = {
        // Only the host creates a view of a strided tensor, and records whether the graph was on.
        let _off = (!is_host_view(call)).then(no_grad);
        redispatch(call, below)
    };
    // Worked on where it was returned to: a list that was just written is slow to move.
    let Ok(made) = &mut result else { return result };
    if !in_place {
        unalias(&call.args, made);
        // Intermediate results of the op's parts have no other handle: a view of one is a result like any other.
        if matches!(op.spec.rule, Rule::Structured(_)) {
            made.iter_mut().filter(|made| made.base().is_some()).for_each(|made| *made = made.shallow_copy());
        }
    }
    if let Some(Node { number, body: Body::Op(recorded), edges, outputs, .. }) = Shared::get_mut(&mut node) {
        // Numbered only now: the nodes that it leads to are older.
        *number = Node::next_number();
        let of_values = recorded.info.is_some_and(|info| info.flags.has(OpFlags::UNCOALESCED));
        for output in made.iter() {
            outputs.push(Shape::of_result(output, &recorded.inputs, edges, of_values)?);
        }
        if let (Ok(Some(saved)), true) = (recorded.saved.get_mut(), saves_outputs != 0 || made.len() > 32) {
            saved.outputs.extend(made.iter().enumerate().map(|(i, output)| {
                (i >= 32 || saves_outputs & (1 << i) != 0).then(|| Saved::output(output, i))
            }));
        }
    }
    if let ([tensor], false) = (&mut made[..], in_place) {
        if tensor.dtype().is_differentiable() {
            meta::set_first_edge(tensor, Edge { node, output: 0 });
        }
        return result;
    }
    for (output, tensor) in made.iter_mut().enumerate() {
        if !tensor.dtype().is_differentiable() {
            continue;
        }
        let edge = Edge { node: node.clone(), output };
        match tensor.base() {
            Some(base) if in_place => super::view::rewrite_base(tensor, &base.clone(), edge.node),
            None if in_place => meta::rebase_history(tensor, edge),
            _ => meta::set_first_edge(tensor, edge),
        }
    }
    result
}

/// Whether the call creates views without a kernel.
fn is_host_view(call: &Call<'_>) -> bool {
    call.args.op.spec.rule.is_view() && matches!(call.args.get(0), Arg::Tensor(t) if t.is_strided())
}
