//! The candidates after the first kernel of a key: the other kernels, the op's decomposition, the host for casts of a
//! plugin's dtype, the device's fallback.

use super::kernel::with_kernel;
use super::ledger::{self, Served};
use super::outputs::deliver;
use super::{Place, convert, explain, fallback, host_cast, plan};
use crate::base::error::{Error, Result};
use crate::base::key::KeySet;
use crate::base::progress::Nested;
use crate::device::is_there;
use crate::op::{Arg, Args, Call, Out, Outputs, Plan, Rule};
use crate::registry::serving::leaves_whole;
use crate::registry::table::{Generation, current};
use crate::registry::{FallbackPolicy, KernelEntry};
use crate::tensor::TensorRef;
use keyway_sdk::abi::codes::status;
use std::cell::Cell;

thread_local! {
    /// Whether a refusal ends a call of this thread.
    static FIRST_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `run`, in which a kernel of this thread that refuses a call has no successor: the call fails with
/// `MissingKernel`, as if there were no other candidate. Tests use it to inspect the state after a refusal.
pub fn without_successors<R>(run: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            FIRST_ONLY.set(self.0);
        }
    }
    let _restore = Restore(FIRST_ONLY.replace(true));
    run()
}

/// A call as its candidates are asked for it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) plan: &'a Plan,
    pub(super) allocates: bool,
    pub(super) place: Place,
}

/// The candidates after a kernel that refuses.
#[derive(Clone, Copy)]
pub(super) struct Next<'a> {
    pub(super) generation: &'static Generation,
    /// The kernels of the key that are asked then.
    pub(super) rest: &'a [&'static KernelEntry],
    /// The reasons of the kernels that refused before.
    pub(super) refused: &'a [String],
}

/// Whether a kernel has refused these arguments.
#[inline]
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Backend { status: status::UNSUPPORTED, .. })
}

/// Goes on after a kernel has failed: where it has refused, it wrote nothing, the call is as it was, and the next candidate
/// is asked.
#[cold]
#[inline(never)]
pub(super) fn after_failure(
    error: Error,
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    asked: Asked<'_>,
    next: Next<'_>,
) -> Result<Outputs> {
    let Error::Backend { status: status::UNSUPPORTED, message, .. } = error else { return Err(error) };
    let mut refused = next.refused.to_vec();
    refused.push(format!("`{}`: {message}", kernel.plugin.name));
    if FIRST_ONLY.get() {
        let Place { device, layout, .. } = asked.place;
        return Err(explain::missing(&call.args, device, layout, asked.plan.compute, refused));
    }
    ask(call, asked, Next { refused: &refused, ..next })
}

/// Tries the kernels in order, then the other candidates.
pub(super) fn ask(call: &Call<'_>, asked: Asked<'_>, next: Next<'_>) -> Result<Outputs> {
    match next.rest.split_first() {
        Some((kernel, rest)) => with_kernel(kernel, call, asked, Next { rest, ..next }),
        None => without_kernel(next.generation, call, asked.plan, asked.place, next.refused),
    }
}

/// Dispatches a call that no kernel serves.
#[inline(never)]
pub(super) fn without_kernel(
    generation: &'static Generation,
    call: &Call<'_>,
    plan: &Plan,
    place: Place,
    refused: &[String],
) -> Result<Outputs> {
    let Place { device, layout, .. } = place;
    let op = call.args.op;
    if op.spec.decomposition.is_some() && !leaves_whole(generation, op, device, layout, plan.compute) {
        return parts_of(call);
    }
    if let Some(made) = host_cast::run(call, plan)? {
        return Ok(made);
    }
    let missing = || explain::missing(&call.args, device, layout, plan.compute, refused.to_vec());
    match generation.fallback(device.kind) {
        FallbackPolicy::Error => Err(missing()),
        FallbackPolicy::Warn(to) | FallbackPolicy::Allow(to) if !is_there(to) => {
            Err(fallback::to_nobody(missing(), device, to))
        }
        FallbackPolicy::Warn(to) => fallback::run(call, device, (to, true), KeySet::EMPTY),
        FallbackPolicy::Allow(to) => fallback::run(call, device, (to, false), KeySet::EMPTY),
    }
}

/// Runs an op as its decomposition into others, passing over its kernels; for a layer that must see the parts.
///
/// # Errors
/// `UnknownOp` for an op that has none; errors of the op's rule and the parts.
pub fn decompose(call: &Call<'_>) -> Result<Outputs> {
    let args = &call.args;
    // The decomposition relies on arguments that the rule has seen.
    plan::of(args)?;
    super::place(args)?;
    parts_of(call)
}

/// As [`decompose`], for a layer that records the parts of a call. If a part is not served on the device, and the
/// fallback device serves the op, the whole call runs there instead: the copies there and back are ops that the layer
/// sees, and `keys` act on the call there.
///
/// # Errors
/// As [`decompose`]; errors of the devices.
pub fn decompose_or_leave(call: &Call<'_>, keys: KeySet) -> Result<Outputs> {
    let args = &call.args;
    let planned = plan::of(args)?;
    let Place { device, layout, .. } = super::place(args)?;
    let generation = current();
    // In-place results are written as bytes, which bypasses all handlers.
    if let (Out::New, Some((plan, _))) = (call.out, planned)
        && leaves_whole(generation, args.op, device, layout, plan.compute)
        && let Some(to) = generation.fallback(device.kind).target()
    {
        let warn = matches!(generation.fallback(device.kind), FallbackPolicy::Warn(_));
        return fallback::run(call, device, (to, warn), keys);
    }
    parts_of(call)
}

/// Runs the decomposition of a call that the op's rule has seen.
fn parts_of(call: &Call<'_>) -> Result<Outputs> {
    let Some(decomposition) = call.args.op.spec.decomposition else {
        return Err(Error::UnknownOp { name: call.args.name().to_string() });
    };
    let _nested = Nested::enter();
    let result = (decomposition.run)(&call.args).and_then(|made| deliver(call, in_own_memory(call, made)?));
    ledger::set_served(Served::Decomposition);
    result.map_err(|error| as_of(&call.args, error))
}

/// The results of a decomposition, each in its own memory, as the results of a kernel are. Without this copy, a
/// decomposition with nothing to do (a padding of 0) or one that only reshapes may return an argument or a view of one.
fn in_own_memory(call: &Call<'_>, mut made: Outputs) -> Result<Outputs> {
    // Without an op that copies, nothing is copied.
    let copies = convert::known().is_some();
    if !(copies && matches!((call.out, &call.args.op.spec.rule), (Out::New, Rule::Structured(_)))) {
        return Ok(made);
    }
    for result in made.iter_mut().filter(|result| result.is_strided()) {
        let shares =
            |t: &TensorRef| matches!((t.storage(), result.storage()), (Some(a), Some(b)) if a.same_as(b));
        let shared = call.args.values.iter().any(|arg| match arg {
            Arg::Tensor(t) => shares(t),
            Arg::Tensors(list) => list.iter().any(|t| shares(t)),
            _ => false,
        });
        if shared {
            *result = convert::copied(result)?;
        }
    }
    Ok(made)
}

/// The error of a part of an op, as an error of the op.
#[cold]
pub(super) fn as_of(args: &Args<'_>, error: Error) -> Error {
    let params: Vec<&str> = (0..args.op.schema.params.len()).map(|i| args.op.schema.param_name(i)).collect();
    error.within(args.name(), &params)
}
