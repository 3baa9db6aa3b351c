//! `nonzero` and `masked_select`: selected elements are counted first, in parts that depend on sizes alone. At most the
//! counted number is written, since another thread may write floats concurrently.

use super::cells::{Cells, cell_kernel, copy_block, row_major};
use keyway_sdk::author::{
    Call, Element, Error, Lanes, Plain, Scratch, host, parallel_chunks_mut, parallel_for,
};
use keyway_sdk::half::{bf16, f16};

/// The number of elements of a part.
pub(super) const PART: usize = 1 << 15;

/// For each part of `n` elements, the number of selected elements before it (exclusive prefix sum); the last value is the
/// total.
pub(super) fn starts(n: usize, chosen: impl Fn(usize) -> bool + Sync) -> Result<Vec<usize>, Error> {
    let mut counts = Vec::new();
    let parts = n.div_ceil(PART);
    let failed = |_| Error::OutOfMemory { requested: (parts * size_of::<usize>()) as u64, available: 0 };
    counts.try_reserve_exact(parts + 1).map_err(failed)?;
    counts.resize(parts, 0usize);
    parallel_chunks_mut(&mut counts, 1, |part, count| {
        let range = part * PART..n.min((part + 1) * PART);
        count[0] = range.filter(|&i| chosen(i)).count();
    })?;
    let mut before = 0;
    for count in &mut counts {
        (*count, before) = (before, before + *count);
    }
    counts.push(before);
    Ok(counts)
}

/// Calls `body` with the index of each selected element, and its index among the selected ones.
fn for_each_chosen(
    n: usize,
    starts: &[usize],
    chosen: impl Fn(usize) -> bool + Sync,
    body: impl Fn(usize, usize) + Sync,
) -> Result<(), Error> {
    parallel_for(starts.len() - 1, 1, |parts| {
        for part in parts {
            let range = part * PART..n.min((part + 1) * PART);
            for (k, i) in (starts[part]..starts[part + 1]).zip(range.filter(|&i| chosen(i))) {
                body(k, i);
            }
        }
    })
}

/// Writes the coordinates of each selected element of a tensor of `D` dimensions.
fn places<const D: usize>(
    sizes: &[usize],
    starts: &[usize],
    chosen: impl Fn(usize) -> bool + Sync,
    to: Lanes<'_, i64>,
) -> Result<(), Error> {
    let (n, inner) = (sizes.iter().product::<usize>(), sizes[D - 1]);
    parallel_for(n.div_ceil(PART), 1, |parts| {
        for part in parts {
            let (mut i, end) = (part * PART, n.min((part + 1) * PART));
            let (mut k, last) = (starts[part], starts[part + 1]);
            let mut place = [0i64; D];
            let mut rest = i;
            for d in (0..D).rev() {
                place[d] = (rest % sizes[d]) as i64;
                rest /= sizes[d];
            }
            while k < last && i < end {
                let row = (inner - place[D - 1] as usize).min(end - i);
                // Branchless: each coordinate is written, and overwritten by the next if the element was not selected.
                for l in i..i + row {
                    if k == last {
                        break;
                    }
                    for (d, x) in place.iter().enumerate() {
                        // SAFETY: rows `k..last` of the result belong to this part.
                        unsafe { to.write(k * D + d, *x) };
                    }
                    k += usize::from(chosen(l));
                    place[D - 1] += 1;
                }
                i += row;
                for d in (1..D).rev() {
                    if place[d] == sizes[d] as i64 {
                        place[d] = 0;
                        place[d - 1] += 1;
                    }
                }
            }
            // SAFETY: as above.
            (k * D..last * D).for_each(|word| unsafe { to.write(word, 0) });
        }
    })
}

fn nonzero<T: Element>(call: &Call) -> Result<(), Error> {
    let from = Cells::<T>::argument(call, 0)?;
    let (n, ndim) = (from.numel(), from.sizes.len());
    // SAFETY: the plan makes the argument contiguous, so that `n` elements are at this address.
    let chosen = |i: usize| unsafe { from.lanes.read(i) } != T::default();
    let starts = starts(n, chosen)?;
    let count = starts[starts.len() - 1];
    let mut made = call.new_tensor::<i64>(&[count as i64, ndim as i64])?;
    let mut out = made.view_mut::<i64>()?;
    let lanes = out.lanes();
    match ndim {
        1 => places::<1>(&from.sizes, &starts, chosen, lanes),
        2 => places::<2>(&from.sizes, &starts, chosen, lanes),
        3 => places::<3>(&from.sizes, &starts, chosen, lanes),
        4 => places::<4>(&from.sizes, &starts, chosen, lanes),
        _ => for_each_chosen(n, &starts, chosen, |k, i| {
            let mut rest = i;
            for d in (0..ndim).rev() {
                // SAFETY: row `k` of the result is written by the part that selected it.
                unsafe { lanes.write(k * ndim + d, (rest % from.sizes[d]) as i64) };
                rest /= from.sizes[d];
            }
        }),
    }?;
    call.set_output(0, made)
}

/// The tensor in row-major order, broadcast to `shape`; `copy` owns the copy if one is needed.
fn spread<'a, C: Plain>(
    cells: &Cells<'a, C>,
    shape: &[usize],
    copy: &'a mut Option<Scratch<C>>,
) -> Result<Lanes<'a, C>, Error> {
    let strides = row_major(shape);
    if cells.sizes == shape && (0..shape.len()).all(|d| shape[d] == 1 || cells.strides[d] == strides[d]) {
        return Ok(cells.lanes);
    }
    let scratch = copy.insert(Scratch::zeroed(shape.iter().product())?);
    // SAFETY: the scratch memory lives for `'a` and is used through this address alone.
    let lanes = unsafe { Lanes::new(scratch.as_mut_ptr()) };
    copy_block(lanes, &strides, cells.lanes, &cells.expanded_strides(shape), shape)?;
    Ok(lanes)
}

fn masked_select<C: Plain>(call: &Call) -> Result<(), Error> {
    let (from, mask) = (Cells::<C>::argument(call, 0)?, Cells::<u8>::argument(call, 1)?);
    let ndim = from.sizes.len().max(mask.sizes.len());
    let size = |sizes: &[usize], d: usize| (d + sizes.len()).checked_sub(ndim).map_or(1, |at| sizes[at]);
    let one = |d: usize| match (size(&from.sizes, d), size(&mask.sizes, d)) {
        (1, other) => other,
        (own, _) => own,
    };
    let shape: Vec<usize> = (0..ndim).map(one).collect();
    let n = shape.iter().product();
    let (mut own_copy, mut mask_copy) = (None, None);
    let values = spread(&from, &shape, &mut own_copy)?;
    let flags = spread(&mask, &shape, &mut mask_copy)?;
    // SAFETY: `spread` returns `n` elements in row-major order.
    let chosen = |i: usize| unsafe { flags.read(i) } != 0;
    let starts = starts(n, chosen)?;
    let first = call.tensor(0)?;
    let count = starts[starts.len() - 1];
    let mut made = host::new_tensor(first.dtype(), first.device(), first.device_index(), &[count as i64])?;
    let out = Cells::<C>::made(&mut made)?.lanes;
    // SAFETY: as above; element `k` of the result is written by the part that selected it.
    for_each_chosen(n, &starts, chosen, |k, i| unsafe { out.write(k, values.read(i)) })?;
    call.set_output(0, made)
}

super::register! {
    op: "nonzero", signature: "T>T", device: "cpu", layout: "strided",
    flags: allocates,
    f32 => nonzero::<f32>, f64 => nonzero::<f64>, f16 => nonzero::<f16>, bf16 => nonzero::<bf16>,
    i8 => nonzero::<i8>, i16 => nonzero::<i16>, i32 => nonzero::<i32>, i64 => nonzero::<i64>,
    u8 => nonzero::<u8>, u16 => nonzero::<u16>, u32 => nonzero::<u32>, u64 => nonzero::<u64>,
    bool => nonzero::<bool>
}
cell_kernel!("masked_select", "TT>T", masked_select, allocates);
