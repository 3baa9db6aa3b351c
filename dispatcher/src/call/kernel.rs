//! Runs a kernel as a plan says: on arguments as it wants them, into new tensors or those of the caller.

use super::Place;
use super::convert::{cast, contiguous};
use super::invoke;
use super::outputs::{check_target, deliver, may_overwrite, targets, unalias};
use super::strides::choose_strides;
use crate::base::error::Result;
use crate::call::ledger::{self, Served};
use crate::op::{Arg, Args, Call, Out, Outputs, Plan};
use crate::registry::KernelEntry;
use crate::tensor::{TensorImpl, TensorRef};
use keyway_sdk::abi::codes::kernel_flag;
use smallvec::SmallVec;

#[inline(always)]
pub(super) fn with_kernel(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    plan: &Plan,
    allocates: bool,
    place: Place,
) -> Result<Outputs> {
    if needs_conversion(&call.args, plan) {
        return with_converted(kernel, call, plan, allocates, place);
    }
    run(kernel, call, &call.args, plan, allocates, place)
}

/// Runs a kernel on arguments of which some are not yet as it wants them.
#[inline(never)]
fn with_converted(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    plan: &Plan,
    allocates: bool,
    place: Place,
) -> Result<Outputs> {
    let mut owned: SmallVec<[(usize, Vec<TensorRef>); 2]> = SmallVec::new();
    prepare(&call.args, plan, &mut owned)?;
    let lists: Vec<Vec<&TensorRef>> = owned.iter().map(|(_, list)| list.iter().collect()).collect();
    let mut values: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(call.args.values);
    for ((i, list), references) in owned.iter().zip(&lists) {
        values[*i] = match values[*i] {
            Arg::Tensors(_) => Arg::Tensors(references),
            _ => Arg::Tensor(&list[0]),
        };
    }
    run(kernel, call, &Args { op: call.args.op, values: &values }, plan, allocates, place)
}

/// Whether some argument is not yet as the kernel wants it.
#[inline]
fn needs_conversion(args: &Args<'_>, plan: &Plan) -> bool {
    if plan.cast | plan.cast_index | plan.contiguous == 0 {
        return false;
    }
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
fn prepare(args: &Args<'_>, plan: &Plan, owned: &mut SmallVec<[(usize, Vec<TensorRef>); 2]>) -> Result<()> {
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
    Ok(())
}

/// Runs a kernel on arguments that are as it wants them.
#[inline(always)]
fn run(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    args: &Args<'_>,
    plan: &Plan,
    allocates: bool,
    place: Place,
) -> Result<Outputs> {
    let served = Served::Kernel(kernel);
    if allocates || kernel.flags & kernel_flag::ALLOCATES != 0 {
        let result = into_made(kernel, call, args, plan, place);
        ledger::set_served(served);
        return result;
    }
    if !matches!(call.out, Out::New) {
        let result = into_given(kernel, call, args, plan, place);
        ledger::set_served(served);
        return result;
    }
    let mut outputs = Outputs::new();
    for spec in &plan.outputs {
        outputs.push(match choose_strides(args, plan, spec) {
            None => TensorImpl::empty(&spec.sizes, spec.dtype, place.device)?,
            Some(strides) => {
                TensorImpl::empty_strided(spec.sizes.clone(), strides, spec.dtype, place.device)?
            }
        });
    }
    let filled = invoke::fill(kernel, args, plan, &outputs, place.device, place.plain);
    ledger::set_served(served);
    filled?;
    Ok(outputs)
}

/// Runs a kernel that makes its outputs itself.
#[inline(never)]
fn into_made(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    args: &Args<'_>,
    plan: &Plan,
    place: Place,
) -> Result<Outputs> {
    let count = args.op.schema.outputs.unwrap_or(plan.outputs.len());
    // A tensor that cannot be written is refused before the work is done.
    for target in targets(call)? {
        check_target(args, &target, target.sizes(), target.dtype())?;
    }
    let mut made = invoke::make(kernel.run, kernel.plugin.name, args, plan, count, place.device)?;
    unalias(args, &mut made);
    deliver(call, made)
}

/// Runs a kernel straight into the caller's tensors where that is right, else through new ones.
#[inline(never)]
fn into_given(
    kernel: &'static KernelEntry,
    call: &Call<'_>,
    args: &Args<'_>,
    plan: &Plan,
    place: Place,
) -> Result<Outputs> {
    let targets = targets(call)?;
    let mut direct = targets.len() == plan.outputs.len();
    for (target, spec) in targets.iter().zip(&plan.outputs) {
        check_target(args, target, &spec.sizes, spec.dtype)?;
        direct &= target.dtype() == spec.dtype && target.device() == place.device;
        direct &= may_overwrite(args, target, plan.alias);
    }
    if direct {
        invoke::fill(kernel, args, plan, &targets, place.device, place.plain)?;
        targets.iter().for_each(|t| t.bump_version());
        return Ok(targets);
    }
    let fresh = Call { args: *args, out: Out::New };
    let made = run(kernel, &fresh, args, plan, false, place)?;
    deliver(call, made)
}
