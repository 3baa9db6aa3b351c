//! Runs a kernel by a plan: on converted arguments, into new tensors or those of the caller.

use super::arguments::{Replaced, converted, needs_conversion, own_copies};
use super::integers;
use super::invoke;
use super::ledger::{self, Served};
use super::outputs::{check_apart, check_device, check_target, deliver, may_overwrite_all, targets, unalias};
use super::strides::choose_strides;
use super::target::Target;
use crate::base::error::{Error, Result};
use crate::memory::InUse;
use crate::op::{Args, Call, Out, Outputs, Plan};
use crate::registry::KernelEntry;
use crate::tensor::TensorImpl;
use keyway_sdk::abi::codes::{kernel_flag, status};

/// A call as passed to its candidates.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) plan: &'a Plan,
    /// Whether each kernel allocates its outputs itself, since their sizes depend on the data.
    pub(super) allocates: bool,
    pub(super) target: Target,
}

/// The reason why a kernel has not served a call.
pub(super) enum NotServed {
    /// The kernel has refused the arguments, with this reason. It has written nothing, and the call is unchanged.
    Refused(String),
    /// The call fails.
    Failed(Error),
}

impl From<Error> for NotServed {
    fn from(error: Error) -> NotServed {
        NotServed::Failed(error)
    }
}

/// The results of a kernel.
type Answer = Result<Outputs, NotServed>;

/// Tries a kernel for a call.
///
/// # Errors
/// Errors of the conversions, of targets that cannot hold the results, of the devices and of the kernel.
#[inline(always)]
pub(super) fn run(kernel: &'static KernelEntry, request: &Request<'_>) -> Answer {
    let args = &request.call.args;
    if needs_conversion(args, request.plan) {
        return run_converted(kernel, request);
    }
    run_on(kernel, request, args)
}

/// [`run`] after the arguments that need it are converted.
#[inline(never)]
fn run_converted(kernel: &'static KernelEntry, request: &Request<'_>) -> Answer {
    let args = &request.call.args;
    let replaced = converted(args, request.plan)?;
    let lists = replaced.lists();
    run_on(kernel, request, &Args { op: args.op, values: &replaced.values(args, &lists) })
}

/// [`run`] on arguments in the dtypes and order of the plan.
#[inline(always)]
fn run_on(kernel: &'static KernelEntry, request: &Request<'_>, args: &Args<'_>) -> Answer {
    let in_use = integers::enter(request.call, args)?;
    if in_use.as_ref().is_some_and(|in_use| in_use.may_be_written_as_floats) {
        drop(in_use);
        return run_on_copies(kernel, request, args, &own_copies(args)?);
    }
    into_outputs(kernel, request, args, in_use)
}

/// [`run_on`] copies of the integers, which no other thread writes.
#[cold]
fn run_on_copies(
    kernel: &'static KernelEntry,
    request: &Request<'_>,
    args: &Args<'_>,
    copies: &Replaced,
) -> Answer {
    let lists = copies.lists();
    let args = Args { op: args.op, values: &copies.values(args, &lists) };
    let in_use = integers::enter(request.call, &args)?;
    into_outputs(kernel, request, &args, in_use)
}

/// Runs a kernel on converted arguments.
#[inline(always)]
fn into_outputs(
    kernel: &'static KernelEntry,
    request: &Request<'_>,
    args: &Args<'_>,
    in_use: Option<Box<InUse>>,
) -> Answer {
    if request.allocates || kernel.flags & kernel_flag::ALLOCATES != 0 {
        into_made(kernel, request, args, in_use)
    } else if matches!(request.call.out, Out::New) {
        into_new(kernel, request, args, in_use)
    } else {
        into_given(kernel, request, args, in_use)
    }
}

/// Runs a kernel into new tensors.
#[inline(always)]
fn into_new(
    kernel: &'static KernelEntry,
    request: &Request<'_>,
    args: &Args<'_>,
    in_use: Option<Box<InUse>>,
) -> Answer {
    let Request { plan, target: Target { device, plain, .. }, .. } = *request;
    let mut outputs = Outputs::new();
    for spec in &plan.outputs {
        let output = match choose_strides(args, plan, spec) {
            None => TensorImpl::empty(&spec.sizes, spec.dtype, device),
            Some(strides) => TensorImpl::empty_strided(spec.sizes.clone(), strides, spec.dtype, device),
        };
        match output {
            Ok(output) => outputs.push(output),
            Err(error) => return Err(args.error_of_part(error).into()),
        }
    }
    let filled = invoke::fill(kernel, args, plan, &outputs, device, plain);
    drop(in_use);
    ledger::set_served(Served::Kernel(kernel));
    match filled {
        Ok(()) => Ok(outputs),
        Err(error) => Err(not_served(kernel, error)),
    }
}

/// Runs a kernel that allocates its outputs itself.
#[inline(never)]
fn into_made(
    kernel: &'static KernelEntry,
    request: &Request<'_>,
    args: &Args<'_>,
    in_use: Option<Box<InUse>>,
) -> Answer {
    let Request { call, plan, target: Target { device, .. }, .. } = *request;
    let count = args.op.schema.outputs.unwrap_or(plan.outputs.len());
    // A tensor that cannot be written is refused before the work is done.
    let given = targets(call)?;
    check_apart(args.name(), given.iter())?;
    for (nth, target) in given.iter().enumerate() {
        let dtype = match plan.outputs.get(nth) {
            Some(spec) if !target.is_strided() => spec.dtype,
            _ => target.dtype(),
        };
        check_target(call.out, args, target, target.sizes(), dtype)?;
        check_device(call, target, device)?;
    }
    let made = invoke::make(kernel.run, kernel.plugin.name, args, plan, count, device);
    drop(in_use);
    let served = Served::Kernel(kernel);
    ledger::set_served(served);
    match made {
        Ok(mut made) => {
            unalias(args, &mut made);
            let delivered = deliver(call, made);
            // Copies of arguments were part of this call.
            ledger::set_served(served);
            Ok(delivered?)
        }
        Err(error) => Err(not_served(kernel, error)),
    }
}

/// Runs a kernel directly into the caller's tensors if that is safe, otherwise through new ones.
#[inline(never)]
fn into_given(
    kernel: &'static KernelEntry,
    request: &Request<'_>,
    args: &Args<'_>,
    in_use: Option<Box<InUse>>,
) -> Answer {
    let Request { call, plan, target: Target { device, plain, .. }, .. } = *request;
    let targets = targets(call)?;
    let mut direct = targets.len() == plan.outputs.len();
    for (target, spec) in targets.iter().zip(&plan.outputs) {
        check_target(call.out, args, target, &spec.sizes, spec.dtype)?;
        let is_here = target.device() == device;
        if !is_here {
            check_device(call, target, device)?;
        }
        direct &= target.dtype() == spec.dtype && is_here && target.is_strided();
    }
    check_apart(args.name(), targets.iter())?;
    direct = direct && may_overwrite_all(args, &targets, plan.alias);
    if !direct {
        // Locks are released before the results are written, which may have to wait.
        let made = into_new(kernel, request, args, in_use)?;
        let delivered = deliver(call, made);
        ledger::set_served(Served::Kernel(kernel));
        return Ok(delivered?);
    }
    let filled = invoke::fill(kernel, args, plan, &targets, device, plain);
    drop(in_use);
    ledger::set_served(Served::Kernel(kernel));
    match filled {
        Ok(()) => {
            targets.iter().for_each(|t| t.bump_version());
            Ok(targets)
        }
        Err(error) => Err(not_served(kernel, error)),
    }
}

/// The error of a kernel: a refusal for the status `UNSUPPORTED`.
#[cold]
#[inline(never)]
fn not_served(kernel: &'static KernelEntry, error: Error) -> NotServed {
    match error {
        Error::Backend { status: status::UNSUPPORTED, message, .. } => {
            NotServed::Refused(format!("`{}`: {message}", kernel.plugin.name))
        }
        error => NotServed::Failed(error),
    }
}
