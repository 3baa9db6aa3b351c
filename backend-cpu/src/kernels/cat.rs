//! `cat`

use super::cells::{Cells, cell_kernel, copy_block, row_major, shifted};
use super::dims::dim;
use keyway_cpu_loops::copy_dense;
use keyway_sdk::author::{Call, Element, Error, parallel_for};

/// The minimum number of elements per work item.
const GRAIN: usize = 1 << 15;
/// The minimum number of bytes of a row for a copy row by row.
const LONG: usize = 16;
/// Bytes of the result's rows that are written input by input, within L1.
const TOGETHER: usize = 8 * 1024;

/// The sizes in the memory order of the result, if these elements are dense in that order.
fn dense_in<C: Element>(cells: &Cells<'_, C>, order: &[usize]) -> Option<Vec<usize>> {
    let sizes: Vec<usize> = order.iter().map(|d| cells.sizes[*d]).collect();
    let dense = row_major(&sizes);
    let fits = |(k, d): (usize, &usize)| sizes[k] == 1 || cells.strides[*d] == dense[k];
    order.iter().enumerate().all(fits).then_some(sizes)
}

/// Copies inputs that are dense in the memory order of the result row by row, so that the result is written sequentially.
/// Returns whether it applied.
fn by_rows<C: Element>(out: &Cells<'_, C>, parts: &[Cells<'_, C>], dim: usize) -> Result<bool, Error> {
    let mut order: Vec<usize> = (0..out.sizes.len()).collect();
    order.sort_by_key(|d| std::cmp::Reverse(out.strides[*d]));
    let at = order.iter().position(|d| *d == dim).unwrap_or(0);
    let Some(sizes) = dense_in(out, &order) else { return Ok(false) };
    let lengths = parts.iter().map(|part| Some(dense_in(part, &order)?[at..].iter().product()));
    let Some(lengths) = lengths.collect::<Option<Vec<usize>>>() else { return Ok(false) };
    let rows: usize = sizes[..at].iter().product();
    if rows < 2 || !lengths.iter().all(|n| n * size_of::<C>() >= LONG) {
        return Ok(false);
    }
    let whole: usize = lengths.iter().sum();
    parallel_for(rows, GRAIN.div_ceil(whole.max(1)), |rows| {
        let together = (TOGETHER / (whole * size_of::<C>()).max(1)).max(1);
        for first in rows.clone().step_by(together) {
            let count = together.min(rows.end - first);
            let mut to = out.lanes.as_ptr().wrapping_add(first * whole);
            for (part, &n) in parts.iter().zip(&lengths) {
                let from = part.lanes.as_ptr().cast_const().wrapping_add(first * n);
                // SAFETY: the op's rule sets the result's size along `dim` to the sum of the inputs' sizes along `dim`, and
                // their common sizes elsewhere; the result overlaps no input.
                unsafe { copy_rows((to, whole), from, n, count) };
                to = to.wrapping_add(n);
            }
        }
    })?;
    Ok(true)
}

/// Copies `count` rows of `n` elements; the source is dense, the target has row stride `step`.
///
/// # Safety
/// The elements must be valid at both addresses, and those of the target must be uniquely owned.
unsafe fn copy_rows<C: Element>((to, step): (*mut C, usize), from: *const C, n: usize, count: usize) {
    /// # Safety
    /// As for [`copy_rows`], with rows of `BYTES` bytes.
    unsafe fn of<const BYTES: usize>(to: *mut u8, step: usize, from: *const u8, count: usize) {
        for r in 0..count {
            // SAFETY: as the caller guarantees.
            unsafe {
                let row = from.add(r * BYTES).cast::<[u8; BYTES]>().read_unaligned();
                to.add(r * step).cast::<[u8; BYTES]>().write_unaligned(row);
            }
        }
    }
    let (bytes, step_bytes) = (n * size_of::<C>(), step * size_of::<C>());
    let (to_bytes, from_bytes) = (to.cast::<u8>(), from.cast::<u8>());
    // SAFETY: as the caller guarantees.
    unsafe {
        match bytes {
            16 => of::<16>(to_bytes, step_bytes, from_bytes, count),
            32 => of::<32>(to_bytes, step_bytes, from_bytes, count),
            64 => of::<64>(to_bytes, step_bytes, from_bytes, count),
            128 => of::<128>(to_bytes, step_bytes, from_bytes, count),
            256 => of::<256>(to_bytes, step_bytes, from_bytes, count),
            _ => (0..count).for_each(|r| copy_dense(to.add(r * step), from.add(r * n), n)),
        }
    }
}

fn cat<C: Element>(call: &Call) -> Result<(), Error> {
    let out = Cells::<C>::output(call, 0)?;
    let dim = dim(call, 1, out.sizes.len())?;
    let parts = Cells::<C>::list(call, 0)?;
    if by_rows(&out, &parts, dim)? {
        return Ok(());
    }
    let mut at = 0;
    for part in parts {
        copy_block(shifted(out.lanes, at), &out.strides, part.lanes, &part.strides, &part.sizes)?;
        at += part.sizes[dim] as isize * out.strides[dim];
    }
    Ok(())
}

cell_kernel!("cat", "Li>T", cat);
