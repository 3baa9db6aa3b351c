//! `index_put`

use super::accumulate::{Sum, accumulate};
use super::cells::{Cells, copy_all, row_major};
use super::index::index_layout;
use super::indices::{Offsets, offsets};
use super::long_sums::{CHAIN, may_meet_in};
use super::nest::{Dim, Nest};
use super::number::Number;
use super::scatter::{Operands, Scatter, scatter_lines};
use super::scatter_add::add;
use keyway_sdk::author::{Call, Element, Error, Lanes, c64, c128};
use keyway_sdk::half::{bf16, f16};

/// The loops of [`scatter_lines`]: the dimensions that are not indexed become tasks, those of the indices become lines.
fn loops<C: keyway_sdk::author::Element>(
    target: &[usize],
    strides: &[isize],
    dims: &[i64],
    at: &Offsets,
    values: &Cells<'_, C>,
) -> (Nest<3>, Nest<2>) {
    let layout = index_layout(target.len(), dims, at.sizes.len());
    let size = |&(is_index, d): &(bool, usize)| if is_index { at.sizes[d] } else { target[d] };
    let shape: Vec<usize> = layout.iter().map(size).collect();
    let source = values.expanded_strides(&shape);
    let steps = row_major(&at.sizes);
    let (mut tasks, mut lines): (Vec<Dim<3>>, Vec<Dim<2>>) = (Vec::new(), Vec::new());
    for (place, &(is_index, d)) in layout.iter().enumerate() {
        match is_index {
            true => lines.push((shape[place], [steps[d], source[place]])),
            false => tasks.push((shape[place], [strides[d], 0, source[place]])),
        }
    }
    (Nest::sorted(tasks), Nest::in_order(lines))
}

fn index_put<T: Sum>(call: &Call) -> Result<(), Error> {
    let (target, out) = (Cells::<T::Cell>::argument(call, 0)?, Cells::<T::Cell>::output(call, 0)?);
    let dims = call.ints(2)?;
    // Offsets are a copy of the indices, so an index tensor that shares the output's memory is safe.
    let indices = Cells::<i64>::list(call, 1)?;
    let mut at = offsets(&indices, dims, &target.sizes, &out.strides)?;
    let values = Cells::<T::Cell>::argument(call, 3)?.apart_from(&out)?;
    if !call.bool(4)? {
        copy_all(&out, &target)?;
        let (tasks, lines) = loops(&target.sizes, &out.strides, dims, &at, &values);
        // SAFETY: the offsets outlive the loop below, which only reads them.
        let index = unsafe { Lanes::new(at.values.as_mut_ptr()) };
        let operands = Scatter { out: out.lanes, index, source: values.lanes, stride: 1 };
        // SAFETY: each offset is within the indexed dimensions; tasks are over the others; the values broadcast to the result
        // of indexing, as the op's shape rule checks, and do not overlap the output.
        return unsafe { scatter_lines(&tasks, &lines, &operands, |_, new: T::Cell| new) };
    }
    let (out, target, values) = (out.cast::<T>(), target.cast::<T>(), values.cast::<T>());
    if let ([index], &[dim]) = (&indices[..], dims)
        && index.sizes.len() == 1
    {
        // Slices at indices, as in `index_add`. With strides of 1 the offsets are the indices.
        let mut at = offsets(&indices, dims, &target.sizes, &vec![1; target.sizes.len()])?;
        let mut sizes = target.sizes.clone();
        sizes[dim as usize] = at.sizes[0];
        // SAFETY: the offsets outlive the call below, which only reads them.
        let lanes = unsafe { Lanes::new(at.values.as_mut_ptr()) };
        let index = Cells::at(lanes, at.sizes.clone(), vec![1]);
        let strides = values.expanded_strides(&sizes);
        let source = values.shown_as(sizes, strides);
        let one = T::Acc::from_i64(1);
        return add(Operands::new(target, out, index, source, dim as usize, true), true, one);
    }
    let many = indices.iter().map(Cells::numel).fold(1, usize::saturating_mul) > CHAIN;
    if T::LOSES_DIGITS && many {
        let mut at = offsets(&indices, dims, &target.sizes, &row_major(&target.sizes))?;
        // SAFETY: the offsets outlive the call, which only reads them.
        let lanes = unsafe { Lanes::new(at.values.as_mut_ptr()) };
        if may_meet_in(lanes, at.values.len()) {
            return sums::<T::Long>([out.cast(), target.cast(), values.cast()], &indices, dims);
        }
    }
    sums([out, target, values], &indices, dims)
}

/// Adds the values at the indices to the target.
fn sums<T: Sum>(
    [out, target, values]: [Cells<'_, T>; 3],
    indices: &[Cells<'_, i64>],
    dims: &[i64],
) -> Result<(), Error> {
    accumulate(&out, &target, |sums, strides| {
        let mut at = offsets(indices, dims, &target.sizes, strides)?;
        let (tasks, lines) = loops(&target.sizes, strides, dims, &at, &values);
        // SAFETY: the offsets outlive the loop below, which only reads them.
        let index = unsafe { Lanes::new(at.values.as_mut_ptr()) };
        let operands = Scatter { out: sums, index, source: values.lanes, stride: 1 };
        // SAFETY: each offset is within the indexed dimensions; tasks are over the others; the values broadcast to the result
        // of indexing, as the op's shape rule checks, and do not overlap the output.
        unsafe { scatter_lines(&tasks, &lines, &operands, |sum: T::Acc, x: T| sum.plus(x.widen())) }
    })
}

kernel!(
    "index_put",
    "TLITb>T",
    index_put,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);
