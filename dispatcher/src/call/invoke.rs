//! Calls of kernels and of shape rules.

use super::integers;
use super::marshal::{CallContext, Marshalling, call_straight, is_straight, with_call};
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::base::message::failure;
use crate::op::{Arg, Args, Outputs, Plan};
use crate::registry::KernelEntry;
use crate::tensor::TensorRef;
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::layout::AcceptsFn;
use keyway_sdk::abi::tensor::KernelFn;
use smallvec::SmallVec;

/// Runs a kernel into outputs that the host allocated. The arguments are `plain` if every tensor is passed unchanged,
/// is strided and on `device`, and no scalar replaces a tensor.
#[inline(always)]
pub(crate) fn fill(
    kernel: &'static KernelEntry,
    args: &Args<'_>,
    plan: &Plan,
    outputs: &[TensorRef],
    device: Device,
    plain: bool,
) -> Result<()> {
    if plain && is_straight(args, plan, outputs.len()) {
        return call_straight(kernel, args, outputs, device);
    }
    let marshalling = Marshalling::planned(plan, args.op.number_slots);
    let code = general(args.values, marshalling, outputs, outputs.len(), device, None, kernel.run);
    if code == status::OK { Ok(()) } else { Err(failure(args.name(), kernel.plugin.name, device, code)) }
}

/// Runs a kernel on arguments of any kind.
#[inline(never)]
pub(super) fn general(
    args: &[Arg<'_>],
    marshalling: Marshalling<'_>,
    outputs: &[TensorRef],
    n_outputs: usize,
    device: Device,
    context: Option<&mut CallContext>,
    run: KernelFn,
) -> i32 {
    with_call(args, marshalling, outputs, n_outputs, device, context, |call| {
        // SAFETY: `call` is valid for the time of this call, and the plugin's library is never unmapped.
        unsafe { run(call) }
    })
    .unwrap_or_else(|status| status)
}

/// Runs a kernel that allocates its own outputs.
pub(crate) fn make(
    run: KernelFn,
    plugin: &'static str,
    args: &Args<'_>,
    plan: &Plan,
    n_outputs: usize,
    device: Device,
) -> Result<Outputs> {
    // Arguments of such a kernel are not broadcast: there is no output yet that determines the shape.
    let marshalling = Marshalling::planned(plan, args.op.number_slots).without_broadcast();
    let mut context = CallContext::default();
    let code = general(args.values, marshalling, &[], n_outputs, device, Some(&mut context), run);
    if code != status::OK {
        return Err(failure(args.name(), plugin, device, code));
    }
    let made: Option<Outputs> =
        (0..n_outputs).map(|i| context.made.get(i).cloned().flatten()).collect::<Option<_>>();
    made.ok_or_else(|| Error::Backend {
        op: args.name(),
        plugin,
        status: status::FAILED,
        message: format!("the kernel did not set all of its {n_outputs} outputs"),
    })
}

/// Runs a plugin's function on tensors of one device outside any op: a function of a layout.
pub(crate) fn on_tensors(
    run: KernelFn,
    what: &'static str,
    plugin: &'static str,
    tensors: &[&TensorRef],
    output: Option<&TensorRef>,
    makes: bool,
) -> Result<Option<TensorRef>> {
    on_arguments(run, what, plugin, tensors, &[], output, makes)
}

/// As [`on_tensors`], with arguments after the tensors.
pub(crate) fn on_arguments(
    run: KernelFn,
    what: &'static str,
    plugin: &'static str,
    tensors: &[&TensorRef],
    behind: &[Arg<'_>],
    output: Option<&TensorRef>,
    makes: bool,
) -> Result<Option<TensorRef>> {
    let tensor_args = tensors.iter().map(|&t| Arg::Tensor(t));
    let values: SmallVec<[Arg<'_>; 2]> = tensor_args.chain(behind.iter().copied()).collect();
    let outputs: SmallVec<[TensorRef; 1]> = output.cloned().into_iter().collect();
    let n_outputs = outputs.len() + usize::from(makes);
    let device = tensors.first().map_or(Device::CPU, |t| t.device());
    let mut context = CallContext::default();
    let _in_use = integers::enter_read(what, tensors)?;
    let code = general(&values, Marshalling::AS_IS, &outputs, n_outputs, device, Some(&mut context), run);
    if code != status::OK {
        return Err(failure(what, plugin, device, code));
    }
    Ok(context.made.into_iter().next().flatten())
}

/// Asks a plugin whether its layout accepts these sizes, whose product does not overflow; returns the status.
pub(crate) fn accepts(accepts: AcceptsFn, sizes: &[usize]) -> i32 {
    // SAFETY: a size is at most isize::MAX, since the product was counted or one of them is 0; usize and i64 have one
    // layout where the host runs. The sizes live until the function returns, and the library is never unmapped.
    unsafe { accepts(sizes.len() as u32, sizes.as_ptr().cast()) }
}
