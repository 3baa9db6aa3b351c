//! The contiguous fast path of element-wise kernels.
//!
//! Dense operands with equal strides, and inputs of one element, need no strided iteration: the inner loop is called with
//! their addresses. All other calls use [`crate::blocks`].

use crate::blocks::by_blocks;
use crate::cost::Cost;
use crate::inner_loop::{Chunk, InnerLoop, Repeated};
use crate::operand::{OPERANDS, Operand, Operands, repeat, same};
use crate::stream;
use keyway_sdk::author::{Error, parallel_for};
use std::ops::Range;

/// Applies `inner` to all operands; the first is the output. An input of one element is broadcast to any shape.
pub(crate) fn apply(cost: Cost, operands: &[Operand<'_>], inner: InnerLoop<'_>) -> Result<(), Error> {
    let Some((out, ins)) = operands.split_first() else { return Ok(()) };
    let n = out.numel();
    if n > cost.grain() || !flat(out, ins, inner) {
        return by_strides(cost, operands, inner);
    }
    if n > 0 {
        let data = |k: usize| operands.get(k).map_or(std::ptr::null_mut(), |o| o.tensor.data.cast());
        // SAFETY: contiguous operands have `numel` contiguous elements, and `flat` guarantees that no input overlaps the
        // output except as an inner loop with chunks allows.
        unsafe { inner.run([data(0), data(1), data(2), data(3)], 0, n) };
    }
    Ok(())
}

/// Whether all operands are contiguous with the same shape, and no input overlaps the output except as `inner` allows: the
/// frequent small call, detected from cached fields. Shapes of single elements are not compared.
#[inline(always)]
fn flat(out: &Operand<'_>, ins: &[Operand<'_>], inner: InnerLoop<'_>) -> bool {
    let (n, begin) = (out.numel(), out.tensor.data as usize);
    out.is_contiguous()
        && ins.iter().all(|input| {
            let at = input.tensor.data as usize;
            let apart = begin + n * out.bytes <= at || at + n * input.bytes <= begin;
            input.is_contiguous()
                && input.numel() == n
                && (n == 1 || same(input.sizes(), out.sizes()))
                && (apart || inner.lanes() > 0 && input.coincides(out))
        })
}

/// As [`apply`], for operands of any strides and any number of elements.
// Not inlined, so that `apply` needs few registers and little stack.
#[inline(never)]
fn by_strides(cost: Cost, operands: &[Operand<'_>], inner: InnerLoop<'_>) -> Result<(), Error> {
    let Some((out, ins)) = operands.split_first() else { return Ok(()) };
    let range = out.range();
    let Some(repeated) = dense(out, range, ins, inner) else {
        return by_blocks(cost, operands, range, inner);
    };
    let addresses = &Operands::new(operands);
    let streams = stream::pays(out, ins);
    parallel_for(out.numel(), cost.grain(), |part| {
        // SAFETY: `dense` guarantees that each operand has `numel` contiguous elements, or repeats one, and that no input
        // overlaps the output except as an inner loop with chunks allows; if it is streamed, no input overlaps it.
        unsafe {
            if repeated == 0 && !streams {
                inner.run(addresses.at([part.start; OPERANDS]), 0, part.len());
            } else {
                run_part(addresses, part, repeated, streams, inner);
            }
        }
    })
}

/// The mask of inputs that repeat one element, if all other operands are dense in the output's order. An output has no
/// element twice, so it is dense if its span is its number of elements.
#[inline(always)]
fn dense(
    out: &Operand<'_>,
    range: (usize, usize),
    ins: &[Operand<'_>],
    inner: InnerLoop<'_>,
) -> Option<Repeated> {
    let n = out.numel();
    if range.1 - range.0 != n * out.bytes {
        return None;
    }
    let (row_major, chunks) = (out.is_contiguous(), inner.lanes() > 0);
    let mut repeated = 0;
    for (k, input) in ins.iter().enumerate() {
        let aligned = same(input.sizes(), out.sizes())
            && ((row_major && input.is_contiguous()) || same(input.strides(), out.strides()));
        let begin = input.tensor.data as usize;
        if aligned {
            let apart = range.1 <= begin || begin + n * input.bytes <= range.0;
            if !(apart || chunks && input.coincides(out)) {
                return None;
            }
        } else if chunks && input.is_single() && (input.numel() == 1 || same(input.sizes(), out.sizes())) {
            if input.overlaps(range) {
                return None;
            }
            repeated |= if n > 1 { 2 << k } else { 0 };
        } else {
            return None;
        }
    }
    Some(repeated)
}

/// Applies `inner` to a range of elements, for operands that repeat one element or an output that is streamed.
///
/// # Safety
/// As for [`InnerLoop::run`], with one element at the address of each repeated operand; as for [`stream::run`] if it
/// `streams`.
#[inline(never)]
unsafe fn run_part(
    on: &Operands,
    part: Range<usize>,
    repeated: Repeated,
    streams: bool,
    inner: InnerLoop<'_>,
) {
    let mut chunks = [const { Chunk::uninit() }; OPERANDS];
    let mut at = on.at([part.start; OPERANDS]);
    for (k, chunk) in chunks.iter_mut().enumerate().filter(|(k, _)| repeated >> k & 1 == 1) {
        at[k] = chunk.as_mut_ptr().cast();
        // SAFETY: the caller guarantees the element; a chunk has capacity for the elements of `lanes`.
        unsafe { repeat(on.bytes[k], at[k], on.data[k], inner.lanes().min(part.len())) };
    }
    // SAFETY: as the caller guarantees, and the chunks were filled.
    unsafe {
        if streams {
            stream::run(at, on.bytes, repeated, part.len(), inner);
        } else {
            inner.run(at, repeated, part.len());
        }
    }
}
