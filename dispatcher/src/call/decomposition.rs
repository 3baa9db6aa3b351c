//! Calls that run as the op's decomposition into other ops.

use super::convert;
use super::fallback;
use super::ledger::{self, Served};
use super::outputs::deliver;
use super::plan;
use super::target::Target;
use crate::base::error::{Error, Result};
use crate::base::key::KeySet;
use crate::base::progress::Nested;
use crate::op::{Arg, Call, Out, Outputs, Rule};
use crate::registry::FallbackPolicy;
use crate::registry::serving::leaves_whole;
use crate::registry::table::current;
use crate::tensor::TensorRef;

/// Runs the decomposition of an op and skips its kernels; for a layer that must see the parts.
///
/// # Errors
/// `UnknownOp` for an op without a decomposition; errors of the op's rule and of the parts.
pub fn decompose(call: &Call<'_>) -> Result<Outputs> {
    let args = &call.args;
    // The decomposition relies on arguments that the rule has checked.
    plan::of(args)?;
    Target::of(args)?;
    run(call)
}

/// As [`decompose`], for a layer that records the parts of a call. If a part is not served on the device, and the fallback
/// device serves the op, the whole call runs there instead: the copies to that device and back are ops that the layer sees,
/// and `keys` apply to the call there.
///
/// # Errors
/// As [`decompose`]; errors of the devices.
pub fn decompose_or_leave(call: &Call<'_>, keys: KeySet) -> Result<Outputs> {
    let args = &call.args;
    let planned = plan::of(args)?;
    let Target { device, layout, .. } = Target::of(args)?;
    let generation = current();
    // In-place results are written as bytes, which bypasses all handlers.
    if let (Out::New, Some((plan, _))) = (call.out, planned)
        && leaves_whole(generation, args.op, device, layout, plan.compute)
        && let Some(to) = generation.fallback(device.kind).target()
    {
        let warn = matches!(generation.fallback(device.kind), FallbackPolicy::Warn(_));
        return fallback::run(call, device, (to, warn), keys);
    }
    run(call)
}

/// Runs the decomposition of a call whose arguments the op's rule has checked.
pub(super) fn run(call: &Call<'_>) -> Result<Outputs> {
    let Some(decomposition) = call.args.op.spec.decomposition else {
        return Err(Error::UnknownOp { name: call.args.name().to_string() });
    };
    let _nested = Nested::enter();
    let result = (decomposition.run)(&call.args).and_then(|made| deliver(call, in_own_memory(call, made)?));
    ledger::set_served(Served::Decomposition);
    result.map_err(|error| call.args.error_of_part(error))
}

/// The results of a decomposition, each in its own memory, as the results of a kernel are. Without this copy, a
/// decomposition that does nothing (a padding of 0) or only reshapes may return an argument or a view of one.
fn in_own_memory(call: &Call<'_>, mut made: Outputs) -> Result<Outputs> {
    // Without a registered copy op, nothing is copied.
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
