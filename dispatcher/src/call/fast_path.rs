//! The dense fast path of element-wise calls: tensors of one shape, dtype and device that are dense with equal strides,
//! mostly contiguous.
//!
//! It does the work of the general path, in the same order and with the same results.

use super::candidates::resolved;
use super::integers;
use super::ledger::{self, Served};
use super::marshal::{INLINE_ARGS, call_straight};
use super::outputs::may_overwrite;
use super::strides::strides_like;
use crate::base::dims;
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::key::Layout;
use crate::device::{streams_in_use, streams_in_use_on};
use crate::memory::may_choose;
use crate::op::{Arg, Args, Call, Out, Outputs, Plan, Typing};
use crate::registry::KernelEntry;
use crate::registry::table::{Generation, OpRows};
use crate::tensor::{TensorImpl, TensorRef};
use keyway_sdk::abi::codes::kernel_flag;

/// The operands of a call on the fast path.
struct Alike<'a> {
    kernel: &'static KernelEntry,
    /// An input, representative of all of them.
    like: &'a TensorRef,
    /// The target of the result, if it is not a new tensor.
    target: Option<&'a TensorRef>,
}

/// Runs an element-wise call: its first kernel directly on the operands if the fast path applies, otherwise by a plan.
///
/// # Errors
/// Errors of the devices and of the candidates.
#[inline(always)]
pub(super) fn run(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'_>,
    inputs: u32,
    typing: Typing,
) -> Result<Outputs> {
    let args = &call.args;
    let Some(Alike { kernel, like, target }) = find(generation, rows, call, inputs, typing) else {
        return by_plan(generation, rows, call, inputs, typing);
    };
    let mut outputs = Outputs::new();
    outputs.push(match target {
        None if like.is_row_major() => TensorImpl::empty_like(like, typing.result)?,
        None => empty_in_order_of(like, typing.result)?,
        Some(target) => target.clone(),
    });
    let filled = match target {
        Some(target) if may_choose(target.dtype()) => fill_integers(kernel, args, target, &outputs),
        _ => call_straight(kernel, args, &outputs, like.device()),
    };
    ledger::set_served(Served::Kernel(kernel));
    match filled {
        Ok(()) => {
            if let Some(target) = target {
                target.bump_version();
            }
            Ok(outputs)
        }
        Err(error) if error.is_refusal() => by_plan(generation, rows, call, inputs, typing),
        Err(error) => Err(error),
    }
}

/// Runs a call to which the fast path does not apply, or whose kernel has refused there.
#[inline(never)]
fn by_plan(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'_>,
    inputs: u32,
    typing: Typing,
) -> Result<Outputs> {
    resolved(generation, rows, call, &Plan::elementwise(&call.args, inputs, typing)?, false)
}

/// The operands of a call, if the fast path applies.
#[inline(always)]
fn find<'a>(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'a>,
    inputs: u32,
    typing: Typing,
) -> Option<Alike<'a>> {
    let args = &call.args;
    // A scalar may replace a tensor argument that is not an input.
    if args.op.number_slots & !inputs != 0 {
        return None;
    }
    let (like, layout) = match row_major(args, inputs) {
        Some(like) => (like, Layout::STRIDED),
        None => dense(args, inputs)?,
    };
    if like.dtype() != typing.compute {
        return None;
    }
    let kernel = generation.cell(rows, like.device(), layout, typing.compute).kernel?;
    if kernel.flags & kernel_flag::ALLOCATES != 0
        || args.values.len() > INLINE_ARGS
        || (streams_in_use() && streams_in_use_on(like.device()))
    {
        return None;
    }
    let target = match call.out {
        Out::New => None,
        Out::InPlace => Some(args.tensor(0).ok()?),
        Out::Given(&[target]) => Some(target),
        Out::Given(_) => return None,
    };
    if target.is_some_and(|target| !fits(args, like, target, typing)) {
        return None;
    }
    Some(Alike { kernel, like, target })
}

/// Runs the kernel of a call that writes to integers of the caller.
#[inline(never)]
fn fill_integers(
    kernel: &'static KernelEntry,
    args: &Args<'_>,
    target: &TensorRef,
    outputs: &[TensorRef],
) -> Result<()> {
    let _in_use = integers::enter_target(args, target)?;
    call_straight(kernel, args, outputs, target.device())
}

/// A new tensor with the strides of `like`.
#[cold]
#[inline(never)]
fn empty_in_order_of(like: &TensorRef, dtype: DType) -> Result<TensorRef> {
    match strides_like(like) {
        None => TensorImpl::empty(like.sizes(), dtype, like.device()),
        Some(strides) => TensorImpl::empty_strided(like.sizes().into(), strides, dtype, like.device()),
    }
}

/// The first input, if all inputs are row-major tensors of one shape and dtype and there are no other tensors.
#[inline(always)]
fn row_major<'a>(args: &Args<'a>, inputs: u32) -> Option<&'a TensorRef> {
    let (mut first, mut rest): (Option<&TensorRef>, _) = (None, inputs);
    for arg in args.values {
        match (arg, rest & 1) {
            (Arg::Tensor(t), 1) => match first {
                None if t.is_row_major() => first = Some(t),
                Some(like) if t.is_row_major() && t.is_like(like) && t.dtype() == like.dtype() => {}
                _ => return None,
            },
            (Arg::Tensor(_) | Arg::Tensors(_), _) | (_, 1) => return None,
            _ => {}
        }
        rest >>= 1;
    }
    first
}

/// The first input and the dispatch layout, if all inputs are dense tensors of the same sizes and strides and there are no
/// other tensors.
#[inline(never)]
fn dense<'a>(args: &Args<'a>, inputs: u32) -> Option<(&'a TensorRef, Layout)> {
    let mut first: Option<&TensorRef> = None;
    for (i, arg) in args.values.iter().enumerate() {
        match (arg, inputs & (1 << i) != 0) {
            (Arg::Tensor(t), true) => match first {
                // Contiguous inputs reach this arm only if they differ.
                None if !t.is_row_major() && t.is_strided() && dims::is_dense(t.sizes(), t.strides()) => {
                    first = Some(t);
                }
                Some(like)
                    if t.is_like(like)
                        && t.dtype() == like.dtype()
                        && dims::same(t.strides(), like.strides()) => {}
                _ => return None,
            },
            (Arg::Tensor(_) | Arg::Tensors(_), _) | (_, true) => return None,
            _ => {}
        }
    }
    first.map(|like| (like, like.dispatch_layout()))
}

/// Whether a result of these inputs may be written straight into a tensor that is like them.
fn fits(args: &Args<'_>, like: &TensorRef, target: &TensorRef, typing: Typing) -> bool {
    let alike = match like.is_row_major() {
        true => target.is_row_major(),
        false => dims::same(target.strides(), like.strides()),
    };
    alike
        && target.is_like(like)
        && target.dtype() == typing.result
        && !target.is_strided_read_only()
        && may_overwrite(args, target, true)
}
