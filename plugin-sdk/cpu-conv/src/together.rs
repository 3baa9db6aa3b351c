//! Merging of groups with few channels.
//!
//! A register tile has vectors of channels, which a group of two or four does not fill. So neighbouring groups are merged
//! into one with a block-diagonal kernel, 0 where row and channel belong to different groups: more products, but fewer
//! instructions. An infinite or NaN pixel times these zeros would be NaN: then each group is computed separately.

use crate::block::WORK;
use crate::by_tiles;
use crate::image::{Numbers, Pixel, has_dense_channels, unsupported};
use crate::product::Weight;
use keyway_cpu_loops::images::{Moves, Volume};
use keyway_cpu_loops::tiles::SIDE;
use keyway_cpu_loops::vectors::{Vector, read_some};
use keyway_sdk::author::{Error, Lanes, Scratch, parallel_for};
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum number of channels of merged groups: a vector of the widest processors, or a block of others.
const MOST: usize = 16;

/// The number of groups with this number of rows and channels that are merged. Groups of single channels are refused: other
/// kernels compute them plane by plane.
pub fn count<T: Pixel>(groups: usize, rows: usize, channels: usize) -> Result<usize, Error> {
    if groups > 1 && rows.min(channels) < 2 {
        return Err(unsupported("groups of single channels"));
    }
    let most = if by_tiles::unit::<T>().is_some() { SIDE } else { MOST };
    let mut counts = (1..=most / rows.max(channels).max(1)).rev();
    Ok(counts.find(|count| groups.is_multiple_of(*count)).unwrap_or(1))
}

/// The block-diagonal weight of `count` groups each: its memory, and the weight that reads from it.
///
/// # Safety
/// The elements that the weight describes must exist, and the memory must outlive the weight.
pub unsafe fn weight<'a, T: Pixel>(
    of: &Weight<'a, T>,
    [groups, count, rows, channels]: [usize; 4],
) -> Result<(Scratch<T>, Weight<'a, T>), Error> {
    let (taps, wide) = (of.taps.len(), count * channels);
    let row = taps * wide;
    let mut made = Scratch::<T>::zeroed(groups * rows * row)?;
    for (i, line) in made.chunks_exact_mut(row).enumerate() {
        let (g, r) = (i / rows, i % rows);
        let from = of.data.as_ptr().cast_const().wrapping_add(g * of.group + r * of.row);
        for (tap, line) in of.taps.iter().zip(line.chunks_exact_mut(wide)) {
            for (c, to) in line[g % count * channels..][..channels].iter_mut().enumerate() {
                // SAFETY: the caller guarantees the element.
                *to = unsafe { *from.wrapping_add(tap + c * of.channel) };
            }
        }
    }
    // SAFETY: the memory is returned with the weight, and only the weight reads it.
    let data = unsafe { Lanes::new(made.as_mut_ptr()) };
    let taps = (0..taps).map(|t| t * wide).collect();
    Ok((made, Weight { data, group: count * rows * row, row, channel: 1, taps }))
}

/// Whether all elements of an [`image`](crate::image::image) are finite.
///
/// # Safety
/// The elements must exist.
pub unsafe fn is_finite<T: Pixel>(image: &Volume<'_, T>) -> Result<bool, Error> {
    let ([n, c, _, h, w], [sample, channel, _, down, _]) = (image.sizes, image.strides);
    let (planes, row) = if has_dense_channels(image) { (1, w * c) } else { (c, w) };
    let finite = AtomicBool::new(true);
    parallel_for(n * planes * h, WORK / row.max(1), |range| {
        let mut sums = [Numbers::splat(0.0); 4];
        for i in range {
            let at = i / h / planes * sample + i / h % planes * channel + i % h * down;
            let from = image.data.as_ptr().cast_const().wrapping_add(at);
            for (v, first) in (0..row).step_by(Numbers::LANES).enumerate() {
                let count = (row - first).min(Numbers::LANES);
                // SAFETY: the caller guarantees the elements of a row.
                let numbers = unsafe {
                    if count == Numbers::LANES {
                        T::read(from.wrapping_add(first))
                    } else {
                        read_some(from.wrapping_add(first), 1, count)
                    }
                };
                // Infinity times 0 is NaN, and NaN propagates.
                sums[v % 4] = numbers.mul_add(Numbers::splat(0.0), sums[v % 4]);
            }
        }
        let mut lanes = [0.0; Numbers::LANES];
        for sum in sums {
            // SAFETY: the array has the lanes of a vector.
            unsafe { sum.store(lanes.as_mut_ptr()) };
            if lanes.iter().any(|lane| lane.is_nan()) {
                finite.store(false, Ordering::Relaxed);
            }
        }
    })?;
    Ok(finite.into_inner())
}

/// Computes the gradient of the weight with `run`, which computes `count` groups as one, and extracts the diagonal blocks.
///
/// # Safety
/// The elements of `out` must exist and be uniquely owned; if `run` succeeds, it must have written all elements of its
/// output.
pub unsafe fn weight_grad<T: Pixel>(
    out: &Volume<'_, T>,
    (moves, count): (&Moves, usize),
    run: impl FnOnce(&Volume<'_, T>, &Moves) -> Result<(), Error>,
) -> Result<(), Error> {
    let [rows, channels, depth, height, width] = out.sizes;
    let (wide, each, taps) = (count * channels, rows / moves.groups, height * width);
    // SAFETY: all of it is written by the call below.
    let mut made = unsafe { Scratch::<T>::unwritten(rows * taps * wide) }?;
    // SAFETY: the memory is used within this call.
    let data = unsafe { Lanes::new(made.as_mut_ptr()) };
    let sizes = [rows, wide, depth, height, width];
    let whole = Volume { data, sizes, strides: [taps * wide, 1, taps * wide, width * wide, wide] };
    let Moves { stride, padding, dilation, groups } = *moves;
    let moves = Moves { stride, padding, dilation, groups: groups / count };
    run(&whole, &moves)?;
    let [step, channel, _, down, across] = out.strides;
    for (r, line) in made.chunks_exact(taps * wide).enumerate() {
        for (tap, elements) in line.chunks_exact(wide).enumerate() {
            let to = out.data.as_ptr().wrapping_add(r * step + tap / width * down + tap % width * across);
            for (c, element) in elements[r / each % count * channels..][..channels].iter().enumerate() {
                // SAFETY: the caller guarantees the results.
                unsafe { to.wrapping_add(c * channel).write(*element) };
            }
        }
    }
    Ok(())
}
