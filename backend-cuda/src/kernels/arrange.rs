//! Ops that move elements by position: `cat`, `constant_pad`, `flip`, `roll`, `repeat` and `one_hot`.

use super::elements::{Bits, Taken, typed};
use super::indices::checked;
use super::launch::{Dims, Operand, POSITIONS, launch, pieces};
use super::map::{Side, strided};
use super::scratch::{COPY, On, copy};
use super::space::{Laid, each, in_order, wrapped};
use super::{Kernel, device_of};
use crate::checks::Bounds;
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};

family!("arrange");

/// `OneHot` in arrange.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct OneHotArgument {
    out: u64,
    index: Operand,
    first: i64,
    count: u64,
    dims: Dims<3>,
}
// SAFETY: `OneHot` has these fields.
unsafe impl Argument for OneHotArgument {}

fn on(call: &Call<'_>) -> Result<On, Error> {
    Ok((device_of(call)?, call.stream()))
}

/// `operand` shifted by `elements` elements.
fn moved(laid: &Laid, elements: i64) -> Operand {
    laid.operand.shifted(elements as usize, laid.bytes)
}

fn cat(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (on, out) = (on(call)?, Laid::output(call, 0)?);
    let dim = wrapped(call.int(1)?, out.sizes.len());
    let mut at = 0;
    for part in call.tensors(0)?.iter() {
        let part = Laid::new(&part, Taken::Raw)?;
        copy(on, out.bytes, &part.sizes, (moved(&out, at), &out.strides), (part.operand, &part.strides))?;
        at += part.sizes[dim] * out.strides[dim];
    }
    Ok(())
}

/// Fills the result, then copies the part of the source inside it; a negative width crops.
fn constant_pad(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let value = typed!(kernel.dtype, T => Ok(call.scalar::<T>(2)?.raw()))?;
    let (on, widths) = (on(call)?, call.ints(1)?);
    let (from, out) = (Laid::argument(call, 0, Taken::Raw)?, Laid::output(call, 0)?);
    if widths.iter().any(|&w| w > 0) {
        let value = Operand { value, ..Operand::default() };
        copy(on, out.bytes, &out.sizes, (out.operand, &out.strides), (value, &out.strides))?;
    }
    let (mut sizes, mut to, mut start) = (from.sizes.clone(), 0, 0);
    for (k, pair) in widths.chunks_exact(2).enumerate() {
        let d = sizes.len() - 1 - k;
        sizes[d] = (sizes[d] + pair[0].min(0) + pair[1].min(0)).max(0);
        to += pair[0].max(0) * out.strides[d];
        start += (-pair[0]).max(0) * from.strides[d];
    }
    copy(on, out.bytes, &sizes, (moved(&out, to), &out.strides), (moved(&from, start), &from.strides))
}

fn flip(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (on, from, out) = (on(call)?, Laid::argument(call, 0, Taken::Raw)?, Laid::output(call, 0)?);
    let (mut strides, mut start) = (from.strides.clone(), 0);
    for &dim in call.ints(1)? {
        let d = wrapped(dim, from.sizes.len());
        if let Some(&size) = from.sizes.get(d) {
            start += (size - 1) * from.strides[d];
            strides[d] = -from.strides[d];
        }
    }
    let side = |operand| Side { operand, bytes: out.bytes, strides: &[] };
    let sides = [side(out.operand), side(moved(&from, start))];
    let name = format_args!("copy_b{}", out.bytes * 8);
    strided(on, COPY, name, &in_order(&out.sizes, [&out.strides, &strides]), sides, [0; 3])
}

/// Each rolled dimension is split into two parts that are exchanged; each combination of parts is copied as a block.
fn roll(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (on, from, out) = (on(call)?, Laid::argument(call, 0, Taken::Raw)?, Laid::output(call, 0)?);
    let ndim = out.sizes.len();
    let mut shifts = vec![0; ndim];
    for (&shift, &dim) in call.ints(1)?.iter().zip(call.ints(2)?) {
        let d = wrapped(dim, ndim);
        if let Some(&size) = out.sizes.get(d).filter(|size| **size > 0) {
            shifts[d] = (shifts[d] + shift.rem_euclid(size)) % size;
        }
    }
    let rolled: Vec<usize> = (0..ndim).filter(|&d| shifts[d] > 0).collect();
    for parts in 0u64..1 << rolled.len() {
        let (mut sizes, mut to, mut start) = (out.sizes.clone(), 0, 0);
        for (bit, &d) in rolled.iter().enumerate() {
            let kept = out.sizes[d] - shifts[d];
            if parts >> bit & 1 == 0 {
                sizes[d] = kept;
                to += shifts[d] * out.strides[d];
            } else {
                sizes[d] = shifts[d];
                start += kept * from.strides[d];
            }
        }
        copy(on, out.bytes, &sizes, (moved(&out, to), &out.strides), (moved(&from, start), &from.strides))?;
    }
    Ok(())
}

/// Each dimension of the result is split in two: the repetitions, with stride 0 in the source, and the source's own
/// dimension.
fn repeat(call: &Call<'_>, _kernel: Kernel) -> Result<(), Error> {
    let (on, from, out) = (on(call)?, Laid::argument(call, 0, Taken::Raw)?, Laid::output(call, 0)?);
    let repeats = call.ints(1)?;
    let lead = repeats.len() - from.sizes.len();
    let (mut sizes, mut to, mut source) = (Vec::new(), Vec::new(), Vec::new());
    for (d, &repeat) in repeats.iter().enumerate() {
        let (size, stride) = if d < lead { (1, 0) } else { (from.sizes[d - lead], from.strides[d - lead]) };
        sizes.extend([repeat, size]);
        to.extend([size * out.strides[d], out.strides[d]]);
        source.extend([0, stride]);
    }
    copy(on, out.bytes, &sizes, (out.operand, &to), (from.operand, &source))
}

fn one_hot(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (on, classes) = (on(call)?, call.int(1)?);
    let (index, out) = (Laid::argument(call, 0, Taken::Raw)?, Laid::output(call, 0)?);
    let last = index.sizes.len();
    let checked = checked(on, index, Bounds::of_dim(kernel.name, "self", last, classes))?;
    let index = &checked.laid;
    let mut along = index.strides.clone();
    along.push(0);
    let class: Vec<i64> = (0..=last).map(|d| i64::from(d == last)).collect();
    for piece in pieces(&in_order(&out.sizes, [&out.strides, &along, &class]), POSITIONS) {
        let argument = OneHotArgument {
            out: out.operand.shifted(piece.offsets[0], 8).data,
            index: index.operand.shifted(piece.offsets[1], 8),
            first: piece.offsets[2] as i64,
            count: piece.count as u64,
            dims: Dims::new(&piece.dims),
        };
        launch(on.0, kernel, format_args!("one_hot_i64"), each(piece.count), &argument, on.1)?;
    }
    Ok(())
}
