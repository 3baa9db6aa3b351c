//! The short way of the usual element-wise call: tensors of one shape, dtype and device, all row-major.
//!
//! It does what the long way does, in the order that the long way does it; nothing is decided here that could come out
//! otherwise there.

use super::invoke;
use super::marshal::fits_straight;
use super::outputs::may_overwrite;
use crate::base::error::Result;
use crate::base::key::Layout;
use crate::call::ledger::{self, Served};
use crate::device::streams_in_use;
use crate::op::{Arg, Args, Call, Out, Outputs, Typing};
use crate::registry::KernelEntry;
use crate::registry::table::{Cell, Generation, OpRows};
use crate::tensor::{TensorImpl, TensorRef};
use keyway_sdk::abi::codes::kernel_flag;

/// What a call that goes the short way was found to be.
pub(super) struct Alike<'a> {
    kernel: &'static KernelEntry,
    /// An input, for what all of them have in common.
    like: &'a TensorRef,
    /// Where the result goes, if not to a new tensor.
    target: Option<&'a TensorRef>,
}

/// What a call is to go by, if it may go the short way.
#[inline(always)]
pub(super) fn find<'a>(
    generation: &'static Generation,
    rows: &OpRows,
    call: &Call<'a>,
    inputs: u32,
    typing: Typing,
) -> Option<Alike<'a>> {
    let args = &call.args;
    // A number may stand for a tensor that is no input.
    if args.op.number_slots & !inputs != 0 {
        return None;
    }
    let like = common(args, inputs).filter(|like| like.dtype() == typing.compute)?;
    let Cell::Kernel(kernel) = generation.cell(rows, like.device(), Layout::STRIDED, typing.compute) else {
        return None;
    };
    if kernel.flags & kernel_flag::ALLOCATES != 0 || !fits_straight(args, 1) || streams_in_use() {
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

/// Runs the kernel of such a call.
#[inline(always)]
pub(super) fn run(found: Alike<'_>, args: &Args<'_>, typing: Typing) -> Result<Outputs> {
    let Alike { kernel, like, target } = found;
    let mut outputs = Outputs::new();
    outputs.push(match target {
        None => TensorImpl::empty_like(like, typing.result)?,
        Some(target) => target.clone(),
    });
    let filled = invoke::fill_straight(kernel, args, &outputs, like.device());
    ledger::set_served(Served::Plugin(kernel.plugin));
    filled?;
    if let Some(target) = target {
        target.bump_version();
    }
    Ok(outputs)
}

/// The first input, if all of them are tensors that are alike and nothing else is a tensor.
#[inline(always)]
fn common<'a>(args: &Args<'a>, inputs: u32) -> Option<&'a TensorRef> {
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

/// Whether a result of these inputs may be written straight into a tensor that is like them.
fn fits(args: &Args<'_>, like: &TensorRef, target: &TensorRef, typing: Typing) -> bool {
    target.is_row_major()
        && target.is_like(like)
        && target.dtype() == typing.result
        && may_overwrite(args, target, true)
}
