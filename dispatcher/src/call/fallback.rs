//! Calls that run on another device than that of their tensors, because of the device's fallback policy.
//!
//! This module must not call an op on the device that has no kernel: it would fall back again, in an endless recursion. So
//! `out=` and in-place results are written as bytes.

use super::convert::{copy_into, to_device};
use super::outputs::{check_apart, check_device, check_target, deliver, targets};
use crate::base::dims;
use crate::base::error::{Error, Result};
use crate::base::intern::DEVICES;
use crate::base::key::{Device, KeySet};
use crate::base::progress::Nested;
use crate::call::ledger::{self, Served};
use crate::call::route;
use crate::device::capture::is_captured;
use crate::memory::{Shared, copy_bytes};
use crate::op::{Arg, Args, Call, Out, Outputs};
use crate::registry::CHANGED_BY;
use crate::tensor::{TensorRef, empty_twin, span, twin};
use smallvec::SmallVec;
use std::cell::Cell;
use std::marker::PhantomData;

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

/// Adds the reason for the device to an error about a missing kernel, unless the error already contains it.
#[cold]
fn noted(mut error: Error, line: impl FnOnce() -> String) -> Error {
    if let Error::MissingKernel(missing) = &mut error {
        missing.fallback.get_or_insert_with(line);
    }
    error
}

/// The behaviour of a thread's calls that would run on another device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Allowed,
    /// Such calls fail.
    Refused,
    /// A call failed that would have run on this device type.
    Wanted(u16),
}

thread_local! {
    static LEAVING: Cell<Leaving> = const { Cell::new(Leaving::Allowed) };
}

/// A guard: while it lives, a call of this thread that would run on another device fails immediately with
/// [`Error::LeavesDevice`], and [`Staying::wanted`] returns that device. For a layer that moves a computation of several
/// ops as a whole instead.
#[derive(Debug)]
pub struct Staying {
    before: Leaving,
    _thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Leaving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Leaving::Allowed => "Allowed",
            Leaving::Refused => "Refused",
            Leaving::Wanted(_) => "Wanted",
        })
    }
}

impl Staying {
    /// Starts to refuse such calls.
    #[must_use = "calls may leave their device again when it is dropped"]
    pub fn enter() -> Staying {
        Staying { before: LEAVING.replace(Leaving::Refused), _thread: PhantomData }
    }

    /// The device on which the first refused call would have run.
    #[must_use]
    pub fn wanted(&self) -> Option<Device> {
        match LEAVING.get() {
            Leaving::Wanted(kind) => Some(Device { kind, index: 0 }),
            Leaving::Allowed | Leaving::Refused => None,
        }
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        LEAVING.set(self.before);
    }
}

/// Whether a call of this thread has failed because of [`Staying`], so that the enclosing operation was a trial without
/// effect.
pub fn is_refused() -> bool {
    matches!(LEAVING.get(), Leaving::Wanted(_))
}

/// Whether any device has a fallback.
#[inline]
pub fn is_set() -> bool {
    crate::registry::any_fallback()
}

/// Runs a call on another device type, `(kind, whether to log it)`, and copies the results back. `keys` apply to the call
/// there.
pub(crate) fn run(call: &Call<'_>, device: Device, to: (u16, bool), keys: KeySet) -> Result<Outputs> {
    if LEAVING.get() != Leaving::Allowed {
        if LEAVING.get() == Leaving::Refused {
            LEAVING.set(Leaving::Wanted(to.0));
        }
        let to = Device { kind: to.0, index: 0 };
        return Err(Error::LeavesDevice { op: call.args.name(), device, to });
    }
    if is_captured(device) {
        return Err(Error::Value {
            op: call.args.name(),
            argument: "self",
            expected: format!("a tensor that a kernel on {device} serves, whose work is being captured"),
            got: format!(
                "a call that falls back to `{}`, which a replay would not do again",
                DEVICES.name(to.0)
            ),
        });
    }
    let there = || {
        let (from, to) = (device.name(), DEVICES.name(to.0));
        format!("the policy of `{from}` has sent the call to `{to}`; {CHANGED_BY}")
    };
    run_there(call, device, to, keys).map_err(|error| noted(error, there))
}

/// The arguments of a call on another device: each tensor is moved once, for any number of occurrences.
struct Moved {
    there: Device,
    /// The copy, the original, and the original's version at that time.
    all: Vec<(TensorRef, TensorRef, u32)>,
}

impl Moved {
    fn of(&mut self, t: &TensorRef) -> Result<TensorRef> {
        if t.device() == self.there {
            return Ok(t.clone());
        }
        if let Some((_, moved, _)) = self.all.iter().find(|(own, ..)| Shared::ptr_eq(own, t)) {
            return Ok(moved.clone());
        }
        let moved = to_device(t, self.there)?;
        self.all.push((t.clone(), moved.clone(), moved.version()));
        Ok(moved)
    }

    /// Copies back the arguments that the op has changed, such as running statistics; returns their number.
    fn bring_changes(&self) -> Result<u64> {
        let changed = self.all.iter().filter(|(_, moved, version)| moved.version() != *version);
        let mut count = 0;
        for (own, moved, _) in changed {
            match (own.storage(), moved.storage()) {
                (Some(to), Some(from)) if is_twin(own, moved) => {
                    let ((to_at, bytes), (from_at, _)) = (span(own), span(moved));
                    copy_bytes(to, to_at, from, from_at, bytes)?;
                    own.bump_version();
                }
                _ => copy_into(own, moved)?,
            }
            count += 1;
        }
        Ok(count)
    }
}

/// Whether two tensors have the same dense strides.
fn is_twin(a: &TensorRef, b: &TensorRef) -> bool {
    a.is_strided() && b.is_strided() && a.strides() == b.strides() && dims::is_dense(a.sizes(), a.strides())
}

fn run_there(call: &Call<'_>, device: Device, (to, warn): (u16, bool), keys: KeySet) -> Result<Outputs> {
    let _nested = Nested::enter();
    let there = Device { kind: to, index: 0 };
    let (op, name) = (call.args.op, call.args.name());
    let first = ledger::record_fallback(op, device, there);
    if warn && first {
        crate::base::log::warn(&format!(
            "{name}: no kernel for {device}, running on {there}; `keyway explain {name}` says why"
        ));
    }
    let mut targets = targets(call)?;
    for target in &targets {
        check_target(call.out, &call.args, target, target.sizes(), target.dtype())?;
        check_device(call, target, device)?;
    }
    check_apart(name, targets.iter())?;
    // A composite tensor has no bytes of its own: an in-place result is delivered like a result that was computed here.
    let is_delivered = targets.iter().any(|target| !target.is_strided());
    if is_delivered {
        targets.clear();
    }
    let mut moved = Moved { there, all: Vec::new() };
    let mut moves = 0;
    let mut twins = Outputs::new();
    for target in &targets {
        // A dense target that is fully overwritten need not be copied first.
        let is_read = !dims::is_dense(target.sizes(), target.strides()) || is_argument(&call.args, target);
        moves += u64::from(is_read);
        twins.push(if is_read { twin(target, there)? } else { empty_twin(target, there)? });
    }
    // An argument that is also a target must be the same tensor on the other device.
    let mut move_one = |t: &TensorRef| match targets.iter().position(|o| Shared::ptr_eq(o, t)) {
        Some(i) => Ok(twins[i].clone()),
        None => moved.of(t),
    };
    let lists: Vec<Vec<TensorRef>> = call
        .args
        .values
        .iter()
        .map(|arg| match arg {
            Arg::Tensor(t) => Ok(vec![move_one(t)?]),
            Arg::Tensors(list) => list.iter().map(|t| move_one(t)).collect(),
            _ => Ok(Vec::new()),
        })
        .collect::<Result<_>>()?;
    let references: Vec<Vec<&TensorRef>> = lists.iter().map(|list| list.iter().collect()).collect();
    let values: SmallVec<[Arg<'_>; 8]> = call
        .args
        .values
        .iter()
        .enumerate()
        .map(|(i, arg)| match arg {
            Arg::Tensor(_) => Arg::Tensor(&lists[i][0]),
            Arg::Tensors(_) => Arg::Tensors(&references[i]),
            other => *other,
        })
        .collect();
    let args = Args { op, values: &values };
    moves += moved.all.len() as u64;
    let made = if targets.is_empty() {
        let made = route(&Call { args, out: Out::New }, keys)?;
        moves += made.iter().filter(|t| t.device() != device).count() as u64;
        let back = made.iter().map(|t| to_device(t, device)).collect::<Result<Outputs>>()?;
        if is_delivered { deliver(call, back)? } else { back }
    } else {
        let given: SmallVec<[&TensorRef; 2]> = twins.iter().collect();
        route(&Call { args, out: Out::Given(&given) }, keys)?;
        for (target, twin) in targets.iter().zip(&twins) {
            if let (Some(to), Some(from)) = (target.storage(), twin.storage()) {
                let (at, bytes) = span(target);
                copy_bytes(to, at, from, 0, bytes)?;
            }
            target.bump_version();
            moves += 1;
        }
        targets
    };
    moves += moved.bring_changes()?;
    ledger::record_moves(op, device, there, moves);
    ledger::set_served(Served::Fallback);
    Ok(made)
}

fn is_argument(args: &Args<'_>, target: &TensorRef) -> bool {
    args.values.iter().any(|arg| match arg {
        Arg::Tensor(t) => Shared::ptr_eq(t, target),
        Arg::Tensors(list) => list.iter().any(|t| Shared::ptr_eq(t, target)),
        _ => false,
    })
}
