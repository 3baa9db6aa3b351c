//! `gather`, and the loop shared with the other ops that read at indices.

use super::cells::{Cells, cell_kernel, copy_run};
use super::dims::dim;
use super::indices::check_indices;
use super::nest::{Nest, dims};
use keyway_cpu_loops::copy_dense;
use keyway_sdk::author::{Call, Element, Error, Lanes};

/// The maximum number of elements of a row that one thread copies; longer rows are shared among threads.
const ROW: usize = 4096;

/// The prefetch distance in rows, and the maximum number of bytes prefetched of a row.
pub const AHEAD: usize = 12;
const FETCHED: usize = 1 << 10;

/// Prefetches a row that is read soon: the hardware prefetcher cannot predict the next index.
#[inline(always)]
pub fn fetch<C>(row: *const C, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..FETCHED.min(len * size_of::<C>())).step_by(64) {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and accepts any address; the instruction is part of the x86-64 baseline.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(row.cast::<i8>().wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, len);
}

/// The operands of [`gather_rows`]. The loops have the strides of the result, the index and the source.
pub struct Gather<'a, C> {
    /// The result.
    pub out: Lanes<'a, C>,
    /// The indices.
    pub index: Lanes<'a, i64>,
    /// The source.
    pub source: Lanes<'a, C>,
    /// The stride of an index in the source.
    pub stride: isize,
}

/// `out[i] = source[index[i] * stride]`, at the offsets of the loops. A row with a single index is copied as a run.
///
/// # Safety
/// The loops must stay within the three tensors for every index in `index`; each element of the result is written once, and the
/// result does not overlap the others. The kernel that created the loops upholds this.
pub unsafe fn gather_rows<C: Element>(nest: &Nest<3>, g: &Gather<'_, C>) -> Result<(), Error> {
    let stride = g.stride;
    let (width, steps) = nest.inner();
    if steps == [1, 0, 1] && width <= ROW {
        return nest.around().for_each_row(width, |[o, i, s], len, steps| {
            // SAFETY: as the caller guarantees.
            unsafe {
                let (out, index) = (g.out.as_ptr().offset(o), g.index.as_ptr().cast_const().offset(i));
                let at = (out, index, g.source.as_ptr().cast_const().offset(s));
                // Row sizes that are common for embeddings are constants, so that the copy is a few instructions.
                match width * size_of::<C>() {
                    64 => whole_rows(at, len, steps, stride, width, |to, from| copy_bytes::<C, 64>(to, from)),
                    128 => {
                        whole_rows(at, len, steps, stride, width, |to, from| copy_bytes::<C, 128>(to, from))
                    }
                    256 => {
                        whole_rows(at, len, steps, stride, width, |to, from| copy_bytes::<C, 256>(to, from))
                    }
                    _ => whole_rows(at, len, steps, stride, width, |to, from| copy_dense(to, from, width)),
                }
            }
        });
    }
    // SAFETY: as the caller guarantees.
    nest.for_each_row(1, |[o, i, s], len, steps| unsafe {
        let (out, index) = (g.out.as_ptr().offset(o), g.index.as_ptr().cast_const().offset(i));
        row((out, index, g.source.as_ptr().cast_const().offset(s)), len, steps, stride);
    })
}

/// Copies a row of `width` elements by `copy` for each of `len` indices.
///
/// # Safety
/// As for [`gather_rows`], for rows with one index each.
#[inline(always)]
unsafe fn whole_rows<C>(
    (out, index, source): (*mut C, *const i64, *const C),
    len: usize,
    [so, si, ss]: [isize; 3],
    stride: isize,
    width: usize,
    copy: impl Fn(*mut C, *const C),
) {
    // SAFETY: as the caller guarantees: there are `len` indices, each of a row.
    let from = |l: isize| source.wrapping_offset(l * ss + unsafe { *index.offset(l * si) } as isize * stride);
    for l in 0..len as isize {
        let soon = l + AHEAD as isize;
        if soon < len as isize {
            fetch(from(soon), width);
        }
        copy(out.wrapping_offset(l * so), from(l));
    }
}

/// Copies `BYTES` bytes.
///
/// # Safety
/// As for [`copy_dense`], of as many cells as `BYTES` bytes contain.
#[inline(always)]
unsafe fn copy_bytes<C, const BYTES: usize>(to: *mut C, from: *const C) {
    // SAFETY: as the caller guarantees.
    unsafe { to.cast::<[u8; BYTES]>().write_unaligned(from.cast::<[u8; BYTES]>().read_unaligned()) };
}

/// # Safety
/// As for [`gather_rows`], for one row.
#[inline(always)]
unsafe fn row<C: Element>(
    (out, index, source): (*mut C, *const i64, *const C),
    len: usize,
    steps: [isize; 3],
    stride: isize,
) {
    let [so, si, ss] = steps;
    // SAFETY: as the caller guarantees.
    unsafe {
        match (steps, stride) {
            ([_, 0, _], _) => copy_run(out, so, source.offset(*index as isize * stride), ss, len),
            ([1, 1, 0], 1) => {
                (0..len).for_each(|l| out.add(l).write(C::load(source.offset(*index.add(l) as isize))));
            }
            ([1, 1, 1], _) => {
                let from = |l: usize| source.add(l).offset(*index.add(l) as isize * stride);
                (0..len).for_each(|l| out.add(l).write(C::load(from(l))));
            }
            _ => {
                for l in 0..len as isize {
                    let k = *index.offset(l * si) as isize;
                    out.offset(l * so).write(C::load(source.offset(l * ss + k * stride)));
                }
            }
        }
    }
}

fn gather<C: Element>(call: &Call) -> Result<(), Error> {
    let (source, index) =
        (Cells::<C>::argument(call, 0)?.with_dim(), Cells::<i64>::argument(call, 2)?.with_dim());
    let out = Cells::<C>::output(call, 0)?.with_dim();
    let dim = dim(call, 1, source.sizes.len())?;
    let mut across = source.strides.clone();
    across[dim] = 0;
    let nest = Nest::sorted(dims(&out.sizes, [&out.strides, &index.strides, &across]));
    let (stride, size) = (source.strides[dim], source.sizes[dim]);
    // Before the first write: an `out=` tensor stays unchanged if an index is out of range.
    check_indices(&index, "index", dim, size, 0)?;
    // SAFETY: the op's rule makes the index no larger than the source except in `dim`, where every index was checked; the
    // result overlaps no argument.
    nest.for_each_row(1, |[o, i, s], len, steps| unsafe {
        let (out, index) = (out.lanes.as_ptr().offset(o), index.lanes.as_ptr().cast_const().offset(i));
        row((out, index, source.lanes.as_ptr().cast_const().offset(s)), len, steps, stride);
    })
}

cell_kernel!("gather", "TiT>T", gather);
