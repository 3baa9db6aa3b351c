//! Checks of the indices of kernels before anything is written.

use super::buffer::Buffer;
use super::cells::Cells;
use super::nest::{Dim, Nest};
use keyway_sdk::author::Error;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether any of `len` indices with these strides is out of range.
///
/// # Safety
/// The indices must exist, without concurrent writes; the caller upholds this.
#[inline(always)]
pub unsafe fn any_outside(at: *const i64, len: usize, step: isize, range: Range<i64>) -> bool {
    // One unsigned comparison checks both bounds.
    let outside = |i: i64| i.wrapping_sub(range.start) as u64 >= (range.end - range.start) as u64;
    // SAFETY: as the caller guarantees.
    unsafe {
        match step {
            1 => (0..len).fold(false, |any, l| any | outside(*at.add(l))),
            _ => (0..len as isize).fold(false, |any, l| any | outside(*at.offset(l * step))),
        }
    }
}

/// Refuses indices outside `low..size` of dimension `dim`; `low` is `-size` where an index may count from
/// the end, else 0.
pub fn check_indices(
    index: &Cells<'_, i64>,
    argument: &'static str,
    dim: usize,
    size: usize,
    low: i64,
) -> Result<(), Error> {
    // Expanded dimensions (stride 0) are checked once.
    let dims: Vec<Dim<1>> = index
        .sizes
        .iter()
        .zip(&index.strides)
        .map(|(&n, &s)| (if s == 0 { n.min(1) } else { n }, [s]))
        .collect();
    let nest = Nest::sorted(dims);
    let range = low..size as i64;
    let at = |offset: isize, l: usize, step: isize| {
        // SAFETY: the offset is that of an element of the index tensor, which is not written concurrently.
        unsafe { index.lanes.as_ptr().offset(offset + l as isize * step).read() }
    };
    let wrong = AtomicBool::new(false);
    nest.for_each_row(1, |[o], len, [step]| {
        // SAFETY: as above.
        if unsafe { any_outside(index.lanes.as_ptr().cast_const().offset(o), len, step, range.clone()) } {
            wrong.store(true, Ordering::Relaxed);
        }
    })?;
    if !wrong.into_inner() {
        return Ok(());
    }
    let mut first = None;
    nest.for_each_row_here(|[o], len, [step]| {
        first = first.or_else(|| (0..len).map(|l| at(o, l, step)).find(|i| !range.contains(i)));
    });
    Err(Error::InvalidArgument {
        argument,
        expected: format!("indices in {low}..{size} for dimension {dim} of size {size}"),
        got: format!("index {}", first.unwrap_or_default()),
    })
}

/// Indices of several dimensions, broadcast together, as offsets in elements of the indexed tensor.
pub struct Offsets {
    /// The shape that the indices broadcast to.
    pub sizes: Vec<usize>,
    /// Row-major.
    pub values: Buffer<i64>,
}

/// Converts one index tensor for each of `dims` to offsets with `strides`. Negative indices count from the end.
pub fn offsets(
    indices: &[Cells<'_, i64>],
    dims: &[i64],
    sizes: &[usize],
    strides: &[isize],
) -> Result<Offsets, Error> {
    let ndim = indices.iter().map(|i| i.sizes.len()).max().unwrap_or(0);
    let mut shape = vec![1; ndim];
    for index in indices {
        let lead = ndim - index.sizes.len();
        index.sizes.iter().enumerate().filter(|(_, n)| **n != 1).for_each(|(d, &n)| shape[lead + d] = n);
    }
    for (index, &d) in indices.iter().zip(dims) {
        let size = sizes[d as usize];
        check_indices(index, "indices", d as usize, size, -(size as i64))?;
    }
    let mut values = Buffer::<i64>::zeroed(shape.iter().product())?;
    let own = super::cells::row_major(&shape);
    for (index, &d) in indices.iter().zip(dims) {
        let (size, stride) = (sizes[d as usize] as i64, strides[d as usize] as i64);
        let from = index.expanded_strides(&shape);
        Nest::in_order(super::nest::dims(&shape, [&own, &from])).for_each_row_here(
            |[o, i], len, [so, si]| {
                for l in 0..len as isize {
                    // SAFETY: the offset is that of an element of the index tensor.
                    let k = unsafe { index.lanes.as_ptr().offset(i + l * si).read() };
                    values[(o + l * so) as usize] += if k < 0 { k + size } else { k } * stride;
                }
            },
        );
    }
    Ok(Offsets { sizes: shape, values })
}
