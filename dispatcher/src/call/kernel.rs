//! Runs a kernel by a plan: on converted arguments, into new tensors or those of the caller.

use super::convert::{cast, contiguous};
use super::integers;
use super::invoke;
use super::others::{Asked, Next, after_failure, as_of};
use super::outputs::{check_apart, check_device, check_target, deliver, may_overwrite_all, targets, unalias};
use super::strides::choose_strides;
use crate::base::error::Result;
use crate::call::ledger::{self, Served};
use crate::memory::InUse;
use crate::op::{Arg, Args, Call, Out, Outputs, Plan};
use crate::registry::KernelEntry;
use crate::tensor::{TensorImpl, TensorRef};
use keyway_sdk::abi::codes::kernel_flag;
use smallvec::SmallVec;

#[inline(always)]
pub(super) fn with_kernel(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    asked: Asked<'_>,
    next: Next<'_>,
) -> Result<Outputs> {
    if needs_conversion(&call.args, asked.plan) {
        return with_converted(kernel, call, asked, next);
    }
    run(kernel, call, &call.args, asked, next)
}

/// Runs a kernel after the arguments that need it are converted.
#[inline(never)]
fn with_converted(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    asked: Asked<'_>,
    next: Next<'_>,
) -> Result<Outputs> {
    let owned = prepare(&call.args, asked.plan)?;
    run_with(kernel, call, &call.args, &owned, asked, next)
}

/// Tensor arguments, or lists of them, that replace others.
pub(super) type Owned = SmallVec<[(usize, Vec<TensorRef>); 2]>;

/// Runs a kernel on arguments, some of which are replaced.
fn run_with(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    args: &Args<'_>,
    owned: &Owned,
    asked: Asked<'_>,
    next: Next<'_>,
) -> Result<Outputs> {
    let lists: Vec<Vec<&TensorRef>> = owned.iter().map(|(_, list)| list.iter().collect()).collect();
    let mut values: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(args.values);
    for ((i, list), references) in owned.iter().zip(&lists) {
        values[*i] = match values[*i] {
            Arg::Tensors(_) => Arg::Tensors(references),
            _ => Arg::Tensor(&list[0]),
        };
    }
    run(kernel, call, &Args { op: args.op, values: &values }, asked, next)
}

/// Whether some argument is not yet as the kernel wants it.
#[inline(always)]
fn needs_conversion(args: &Args<'_>, plan: &Plan) -> bool {
    plan.cast | plan.cast_index | plan.contiguous != 0 && differs_from(args, plan)
}

fn differs_from(args: &Args<'_>, plan: &Plan) -> bool {
    let differs = |i: usize, t: &TensorRef| {
        let bit = 1 << i;
        (plan.cast & bit != 0 && t.dtype() != plan.compute)
            || (plan.cast_index & bit != 0 && t.dtype() != crate::base::dtype::DType::I64)
            || (plan.contiguous & bit != 0 && t.is_strided() && !t.is_contiguous())
    };
    args.values.iter().enumerate().any(|(i, arg)| match arg {
        Arg::Tensor(t) => differs(i, t),
        Arg::Tensors(list) => list.iter().any(|t| differs(i, t)),
        _ => false,
    })
}

/// Converts the arguments that the kernel wants in another dtype or without gaps.
fn prepare(args: &Args<'_>, plan: &Plan) -> Result<Owned> {
    let mut owned = Owned::new();
    for (i, arg) in args.values.iter().enumerate() {
        let bit = 1 << i;
        let dtype = if plan.cast & bit != 0 {
            Some(plan.compute)
        } else if plan.cast_index & bit != 0 {
            Some(crate::base::dtype::DType::I64)
        } else {
            None
        };
        let dense = plan.contiguous & bit != 0;
        // A composite tensor is cast by an op of its layout, and has no gaps.
        let gaps = |t: &TensorRef| dense && t.is_strided() && !t.is_contiguous();
        let wants = |t: &TensorRef| dtype.is_some_and(|d| d != t.dtype()) || gaps(t);
        let convert = |t: &TensorRef| -> Result<TensorRef> {
            let mut t = t.clone();
            if let Some(dtype) = dtype.filter(|d| *d != t.dtype()) {
                t = cast(&t, dtype)?;
            }
            if gaps(&t) {
                t = contiguous(&t)?;
            }
            Ok(t)
        };
        match arg {
            Arg::Tensor(t) if wants(t) => owned.push((i, vec![convert(t)?])),
            Arg::Tensors(list) if list.iter().any(|t| wants(t)) => {
                owned.push((i, list.iter().map(|t| convert(t)).collect::<Result<_>>()?));
            }
            _ => {}
        }
    }
    Ok(owned)
}

/// Runs a kernel on arguments that are as it wants them; `call` is as the next candidate is asked for it.
#[inline(always)]
fn run(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    args: &Args<'_>,
    asked: Asked<'_>,
    next: Next<'_>,
) -> Result<Outputs> {
    let Asked { plan, allocates, place } = asked;
    let in_use = integers::enter(call, args)?;
    if in_use.as_ref().is_some_and(|in_use| in_use.may_be_written_as_floats) {
        drop(in_use);
        return run_with(kernel, call, args, &integers::own_copies(args)?, asked, next);
    }
    if allocates || kernel.flags & kernel_flag::ALLOCATES != 0 {
        return into_made(kernel, call, args, in_use, asked, next);
    }
    if !matches!(call.out, Out::New) {
        return into_given(kernel, call, args, in_use, asked, next);
    }
    let mut outputs = Outputs::new();
    for spec in &plan.outputs {
        let output = match choose_strides(args, plan, spec) {
            None => TensorImpl::empty(&spec.sizes, spec.dtype, place.device),
            Some(strides) => TensorImpl::empty_strided(spec.sizes.clone(), strides, spec.dtype, place.device),
        };
        match output {
            Ok(output) => outputs.push(output),
            Err(error) => return Err(as_of(args, error)),
        }
    }
    let filled = invoke::fill(kernel, args, plan, &outputs, place.device, place.plain);
    drop(in_use);
    ledger::set_served(Served::Kernel(kernel));
    match filled {
        Ok(()) => Ok(outputs),
        Err(error) => {
            drop(outputs);
            after_failure(error, kernel, call, asked, next)
        }
    }
}

/// Runs a kernel that makes its outputs itself.
#[inline(never)]
fn into_made(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    args: &Args<'_>,
    in_use: Option<Box<InUse>>,
    asked: Asked<'_>,
    next: Next<'_>,
) -> Result<Outputs> {
    let Asked { plan, place, .. } = asked;
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
        check_device(call, target, place.device)?;
    }
    let made = invoke::make(kernel.run, kernel.plugin.name, args, plan, count, place.device);
    drop(in_use);
    let served = Served::Kernel(kernel);
    ledger::set_served(served);
    match made {
        Ok(mut made) => {
            unalias(args, &mut made);
            let delivered = deliver(call, made);
            // Copies of arguments were part of this call.
            ledger::set_served(served);
            delivered
        }
        Err(error) => after_failure(error, kernel, call, asked, next),
    }
}

/// Runs a kernel straight into the caller's tensors where that is right, else through new ones.
#[inline(never)]
fn into_given(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    args: &Args<'_>,
    in_use: Option<Box<InUse>>,
    asked: Asked<'_>,
    next: Next<'_>,
) -> Result<Outputs> {
    let Asked { plan, place, .. } = asked;
    let targets = targets(call)?;
    let mut direct = targets.len() == plan.outputs.len();
    for (target, spec) in targets.iter().zip(&plan.outputs) {
        check_target(call.out, args, target, &spec.sizes, spec.dtype)?;
        let is_here = target.device() == place.device;
        if !is_here {
            check_device(call, target, place.device)?;
        }
        direct &= target.dtype() == spec.dtype && is_here && target.is_strided();
    }
    check_apart(args.name(), targets.iter())?;
    direct = direct && may_overwrite_all(args, &targets, plan.alias);
    if !direct {
        // Nothing is in use while the results are written, which may have to wait.
        drop(in_use);
        let fresh = Call { args: call.args, out: Out::New };
        let made = run(kernel, &fresh, args, Asked { allocates: false, ..asked }, next)?;
        let served = ledger::last_served();
        let delivered = deliver(call, made);
        ledger::set_served(served);
        return delivered;
    }
    let filled = invoke::fill(kernel, args, plan, &targets, place.device, place.plain);
    drop(in_use);
    ledger::set_served(Served::Kernel(kernel));
    match filled {
        Ok(()) => {
            targets.iter().for_each(|t| t.bump_version());
            Ok(targets)
        }
        Err(error) => after_failure(error, kernel, call, asked, next),
    }
}
