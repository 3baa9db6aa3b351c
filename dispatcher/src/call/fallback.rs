//! A call that runs on another device than its tensors are on, because the device's policy says so.
//!
//! Nothing here may call an op on the device that has no kernel: it would fall back in turn, without end.
//! So results that were given to write to are written as bytes.

use super::convert::to_device;
use super::outputs::{check_apart, check_target};
use crate::base::error::{Error, Result};
use crate::base::intern::DEVICES;
use crate::base::key::{Device, KeySet};
use crate::base::progress::Nested;
use crate::call::ledger::{self, Served};
use crate::call::route;
use crate::memory::{Shared, Storage, copy_bytes};
use crate::op::{Arg, Args, Call, Out, Outputs};
use crate::tensor::{TensorImpl, TensorRef};
use smallvec::SmallVec;

/// The bytes that a tensor's elements lie in: the first one's place in the storage, and how many.
fn span(t: &TensorRef) -> (usize, usize) {
    let size = t.dtype().size();
    let reach: usize = t.sizes().iter().zip(t.strides()).map(|(&n, &s)| n.saturating_sub(1) * s).sum();
    (t.offset() * size, if t.numel() == 0 { 0 } else { (reach + 1) * size })
}

/// The same strides over a copy of the tensor's bytes on another device. Needs no kernel.
///
/// # Errors
/// What the devices report; a composite tensor is given back as it is.
pub fn twin(t: &TensorRef, device: Device) -> Result<TensorRef> {
    let Some(storage) = t.storage() else { return Ok(t.clone()) };
    let (from, bytes) = span(t);
    let copy = Storage::allocate(device, bytes)?;
    copy_bytes(&copy, 0, storage, from, bytes)?;
    TensorImpl::strided(copy, 0, t.sizes(), t.strides(), t.dtype())
}

/// How a policy is changed.
pub(super) const CHANGED_BY: &str =
    "change the policy with `--fallback`, KEYWAY_FALLBACK, `set_fallback` or `set_device_fallback`";

/// The error of a call that would go to a device that no plugin brings.
#[cold]
pub(super) fn to_nobody(error: Error, device: Device, to: u16) -> Error {
    let (from, to) = (device.name(), DEVICES.name(to));
    noted(error, || {
        format!(
            "the policy of `{from}` sends the call to `{to}`, but no backend for `{to}` is installed; {CHANGED_BY}"
        )
    })
}

/// Adds to an error about a missing kernel how the call came to the device, unless that stands there.
#[cold]
fn noted(mut error: Error, line: impl FnOnce() -> String) -> Error {
    if let Error::MissingKernel(missing) = &mut error {
        missing.fallback.get_or_insert_with(line);
    }
    error
}

/// Runs a call on another kind of device and brings the results back.
pub(crate) fn run(call: &Call<'_>, device: Device, to: u16, warn: bool) -> Result<Outputs> {
    let there = || {
        let (from, to) = (device.name(), DEVICES.name(to));
        format!("the policy of `{from}` has sent the call to `{to}`; {CHANGED_BY}")
    };
    run_there(call, device, to, warn).map_err(|error| noted(error, there))
}

fn run_there(call: &Call<'_>, device: Device, to: u16, warn: bool) -> Result<Outputs> {
    let _nested = Nested::enter();
    let there = Device { kind: to, index: 0 };
    let name = call.args.name();
    let first = ledger::record_fallback(call.args.op, device, there);
    if warn && first {
        crate::base::log::warn(&format!(
            "{name}: no kernel for {device}, running on {there}; `keyway explain {name}` says why"
        ));
    }
    let targets: SmallVec<[&TensorRef; 2]> = match call.out {
        Out::New => SmallVec::new(),
        Out::Given(list) => list.iter().copied().collect(),
        Out::InPlace => SmallVec::from_iter([call.args.tensor(0)?]),
    };
    for target in &targets {
        check_target(call.out, &call.args, target, target.sizes(), target.dtype())?;
    }
    check_apart(name, targets.iter().copied())?;
    let twins = targets.iter().map(|t| twin(t, there)).collect::<Result<Outputs>>()?;
    // An argument that is also written to must be the same tensor over there.
    let move_one = |t: &TensorRef| match targets.iter().position(|o| Shared::ptr_eq(o, t)) {
        Some(i) => Ok(twins[i].clone()),
        None => to_device(t, there),
    };
    let moved: Vec<Vec<TensorRef>> = call
        .args
        .values
        .iter()
        .map(|arg| match arg {
            Arg::Tensor(t) => Ok(vec![move_one(t)?]),
            Arg::Tensors(list) => list.iter().map(|t| move_one(t)).collect(),
            _ => Ok(Vec::new()),
        })
        .collect::<Result<_>>()?;
    let lists: Vec<Vec<&TensorRef>> = moved.iter().map(|list| list.iter().collect()).collect();
    let values: SmallVec<[Arg<'_>; 8]> = call
        .args
        .values
        .iter()
        .enumerate()
        .map(|(i, arg)| match arg {
            Arg::Tensor(_) => Arg::Tensor(&moved[i][0]),
            Arg::Tensors(_) => Arg::Tensors(&lists[i]),
            other => *other,
        })
        .collect();
    let args = Args { op: call.args.op, values: &values };
    if targets.is_empty() {
        let made = route(&Call { args, out: Out::New }, KeySet::EMPTY)?;
        let back = made.iter().map(|t| to_device(t, device)).collect();
        ledger::set_served(Served::Fallback);
        return back;
    }
    let given: SmallVec<[&TensorRef; 2]> = twins.iter().collect();
    route(&Call { args, out: Out::Given(&given) }, KeySet::EMPTY)?;
    for (target, twin) in targets.iter().zip(&twins) {
        if let (Some(to), Some(from)) = (target.storage(), twin.storage()) {
            let (at, bytes) = span(target);
            copy_bytes(to, at, from, 0, bytes)?;
        }
        target.bump_version();
    }
    ledger::set_served(Served::Fallback);
    Ok(targets.into_iter().cloned().collect())
}
