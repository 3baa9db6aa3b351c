//! Derivatives on a device with a fallback device: a formula with an op that the device cannot run is computed on the fallback
//! device as a whole, so that gradients and saved tensors are moved once, not once per op.

use super::context::{Backward, Grads};
use super::node::SavedTensors;
use super::saved::Saved;
use crate::error::Result;
use crate::{Device, Tensor};
use keyway_dispatcher::fallback::Staying;
use keyway_dispatcher::ledger;
use once_cell::unsync::OnceCell;
use smallvec::SmallVec;

/// A derivative, see [`Derivative::Formula`](crate::ops::def::Derivative::Formula).
type Formula = fn(&Backward<'_>, &mut Grads<'_>) -> Result<()>;

/// Runs a formula on the tensors' device, otherwise as a whole on the device that an op of it falls back to, otherwise op
/// by op.
#[cold]
#[inline(never)]
pub(super) fn run(formula: Formula, backward: &Backward<'_>, made: &mut Grads<'_>) -> Result<()> {
    let wanted = {
        let staying = Staying::enter();
        let result = formula(backward, made);
        match staying.wanted() {
            Some(device) if result.is_err() => device,
            _ => return result,
        }
    };
    made.slots.iter_mut().for_each(|slot| *slot = None);
    if let Some(slots) = elsewhere(formula, backward, made, wanted) {
        made.slots = slots;
        return Ok(());
    }
    formula(backward, made)
}

/// Computes the gradients on the fallback device and moves them back. `None` if that is not possible: the other device does not
/// run an op of the formula, or a tensor is sparse, whose gradient is projected on its own device.
fn elsewhere(
    formula: Formula,
    backward: &Backward<'_>,
    made: &Grads<'_>,
    there: Device,
) -> Option<SmallVec<[Option<Tensor>; 4]>> {
    let Backward { node, call, saved, .. } = *backward;
    if !call.inputs.iter().chain(&node.outputs).all(|shape| shape.strided) {
        return None;
    }
    let home = node.outputs.iter().map(|shape| shape.device).find(|device| *device != there)?;
    let moved = |saved: &Option<Saved>| match saved {
        Some(saved) => saved.unpack(node, "a saved tensor").map(|t| Some(Saved::moving(t, there))),
        None => Ok(None),
    };
    let away = SavedTensors {
        inputs: saved.inputs.iter().map(moved).collect::<Result<_>>().ok()?,
        outputs: saved.outputs.iter().map(moved).collect::<Result<_>>().ok()?,
    };
    let mut moves = 0;
    let grads: SmallVec<[OnceCell<Tensor>; 2]> = backward
        .grads
        .iter()
        .zip(backward.came)
        .map(|(grad, came)| match grad.get() {
            Some(grad) if *came => {
                moves += u64::from(grad.device() != there);
                grad.to_device(there).map(OnceCell::with_value)
            }
            _ => Ok(OnceCell::new()),
        })
        .collect::<Result<_>>()
        .ok()?;
    let context = Backward { saved: &away, grads: &grads, away: Some(there), ..*backward };
    let none = made.slots.iter().map(|_| None).collect();
    let mut computed =
        Grads { call, edges: &[], wanted: made.wanted, conjugate: made.conjugate, slots: none };
    formula(&context, &mut computed).ok()?;
    let slots = computed.slots.into_iter().zip(&call.inputs).map(|(grad, shape)| match grad {
        Some(grad) if grad.device() != shape.device => {
            moves += 1;
            grad.to_device(shape.device).map(Some)
        }
        grad => Ok(grad),
    });
    let slots = slots.collect::<Result<_>>().ok()?;
    moves +=
        away.inputs.iter().chain(&away.outputs).flatten().filter(|saved| saved.has_moved()).count() as u64;
    ledger::record_derivative(call.op, home, there, moves);
    Some(slots)
}
