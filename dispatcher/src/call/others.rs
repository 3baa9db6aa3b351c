//! What comes after the first kernel of a key: the other kernels, the op's decomposition, the host for casts of a plugin's
//! dtype, the device's fallback.

use super::kernel::with_kernel;
use super::ledger::{self, Served};
use super::outputs::deliver;
use super::{Place, explain, fallback, host_cast, plan};
use crate::base::error::{Error, Result};
use crate::base::progress::Nested;
use crate::op::{Call, Outputs, Plan};
use crate::registry::table::Generation;
use crate::registry::{FallbackPolicy, KernelEntry};
use keyway_sdk::abi::codes::status;

/// A call as its candidates are asked for it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) plan: &'a Plan,
    pub(super) allocates: bool,
    pub(super) place: Place,
}

/// Whether a kernel has answered that it does not serve these arguments. Whatever else asked a kernel on the way, such as
/// a cast, has dealt with its refusal already.
#[inline(always)]
pub(super) fn is_refused(result: &Result<Outputs>) -> bool {
    matches!(result, Err(Error::Backend { status: status::UNSUPPORTED, .. }))
}

fn refusal(kernel: &KernelEntry, result: Result<Outputs>) -> Option<String> {
    match result {
        Err(Error::Backend { message, .. }) => Some(format!("`{}`: {message}", kernel.plugin.name)),
        _ => None,
    }
}

/// Goes on after a kernel has refused: it wrote nothing, so the call is as it was.
#[cold]
#[inline(never)]
pub(super) fn after_refusal(
    generation: &'static Generation,
    call: &Call<'_>,
    asked: Asked<'_>,
    first: &'static KernelEntry,
    result: Result<Outputs>,
    rest: &[&'static KernelEntry],
) -> Result<Outputs> {
    ask(generation, call, asked, rest, refusal(first, result).into_iter().collect())
}

/// Asks these kernels in turn, then goes on without.
pub(super) fn ask_all(
    generation: &'static Generation,
    call: &Call<'_>,
    asked: Asked<'_>,
    kernels: &[&'static KernelEntry],
) -> Result<Outputs> {
    ask(generation, call, asked, kernels, Vec::new())
}

fn ask(
    generation: &'static Generation,
    call: &Call<'_>,
    asked: Asked<'_>,
    kernels: &[&'static KernelEntry],
    mut refused: Vec<String>,
) -> Result<Outputs> {
    let Asked { plan, allocates, place } = asked;
    for &kernel in kernels {
        let result = with_kernel(kernel, call, plan, allocates, place);
        if !is_refused(&result) {
            return result;
        }
        refused.extend(refusal(kernel, result));
    }
    without_kernel(generation, call, plan, place, refused)
}

/// Serves a call that no kernel serves.
#[inline(never)]
pub(super) fn without_kernel(
    generation: &'static Generation,
    call: &Call<'_>,
    plan: &Plan,
    place: Place,
    refused: Vec<String>,
) -> Result<Outputs> {
    let Place { device, layout, .. } = place;
    if call.args.op.spec.decomposition.is_some() {
        return parts_of(call);
    }
    if let Some(made) = host_cast::run(call, plan)? {
        return Ok(made);
    }
    match generation.fallback(device.kind) {
        FallbackPolicy::Warn(to) => fallback::run(call, device, to, true),
        FallbackPolicy::Allow(to) => fallback::run(call, device, to, false),
        FallbackPolicy::Error => Err(explain::missing(&call.args, device, layout, plan.compute, refused)),
    }
}

/// Runs an op as its decomposition into others, passing over its kernels; for a layer that must see the parts.
///
/// # Errors
/// `UnknownOp` for an op that has none; as the op's rule and the parts.
pub fn decompose(call: &Call<'_>) -> Result<Outputs> {
    let args = &call.args;
    // The decomposition relies on arguments that the rule has seen.
    plan::of(args)?;
    super::place(args)?;
    parts_of(call)
}

/// Runs the decomposition of a call that the op's rule has seen.
fn parts_of(call: &Call<'_>) -> Result<Outputs> {
    let Some(decomposition) = call.args.op.spec.decomposition else {
        return Err(Error::UnknownOp { name: call.args.name().to_string() });
    };
    let _nested = Nested::enter();
    let result = (decomposition.run)(&call.args).and_then(|made| deliver(call, made));
    ledger::set_served(Served::Decomposition);
    match result {
        Err(Error::MissingKernel(mut missing)) => {
            missing.within.push(call.args.name());
            Err(Error::MissingKernel(missing))
        }
        result => result,
    }
}
