//! What comes after the first kernel of a key: the other kernels, the op's decomposition, the host for casts of a plugin's
//! dtype, the device's fallback.

use super::kernel::with_kernel;
use super::ledger::{self, Served};
use super::outputs::deliver;
use super::{Place, explain, fallback, host_cast};
use crate::base::error::{Error, Result};
use crate::base::progress::Nested;
use crate::op::{Args, Call, Outputs, Plan, Rule};
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
#[inline]
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Backend { status: status::UNSUPPORTED, .. })
}

fn refusal(kernel: &KernelEntry, error: &Error) -> String {
    match error {
        Error::Backend { message, .. } => format!("`{}`: {message}", kernel.plugin.name),
        other => format!("`{}`: {other}", kernel.plugin.name),
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
    error: &Error,
    rest: &[&'static KernelEntry],
) -> Result<Outputs> {
    ask(generation, call, asked, rest, vec![refusal(first, error)])
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
        match with_kernel(kernel, call, plan, allocates, place) {
            Err(error) if is_refusal(&error) => refused.push(refusal(kernel, &error)),
            result => return result,
        }
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
    match args.op.spec.rule {
        Rule::Elementwise(inputs, typing) => {
            typing(args)?;
            args.broadcast(inputs)?;
        }
        Rule::Structured(rule) | Rule::Allocates(rule) => drop(rule(args)?),
        Rule::View(_) | Rule::Views(_) | Rule::Host(_) | Rule::Foreign(_) => {}
    }
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
        Err(error) => Err(as_of(&call.args, error)),
        made => made,
    }
}

/// What a part of an op reports, as an error of the op.
#[cold]
pub(super) fn as_of(args: &Args<'_>, error: Error) -> Error {
    let params: Vec<&str> = (0..args.op.schema.params.len()).map(|i| args.op.schema.param_name(i)).collect();
    error.within(args.name(), &params)
}
