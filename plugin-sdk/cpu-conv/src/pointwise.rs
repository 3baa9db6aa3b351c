//! Convolutions by kernels of one element, of planes to planes: products of matrices whose columns are places, which need not
//! be turned.

use crate::WORK;
use crate::block::{Operands, Run, Sums, TALL, VECTORS, WIDE, block};
use crate::gathered::{Product, tiles};
use crate::image::{Numbers, Pixel, has_dense_channels};
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Vector, widen, write_some};
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::ops::Range;

/// Numbers of the copied places, about: with a part of the weight they stay in the second cache.
const COPIED: usize = 1 << 16;
/// Pieces of work beyond which more would not help.
const ENOUGH: usize = 32;

/// Whether it is one.
pub fn is_one<T: Pixel>(of: &Product<'_, T>) -> bool {
    let single = |axis: &Axis| axis.taps == [0] && axis.step == 1 && axis.count == axis.size;
    let planes =
        |of: &Volume<'_, T>| !has_dense_channels(of) && of.strides[4] == 1 && of.strides[3] == of.sizes[4];
    of.axes.iter().all(single) && planes(&of.input) && planes(&of.out)
}

/// Computes it.
///
/// # Safety
/// As for [`Product::run`].
pub unsafe fn run<T: Pixel>(of: &Product<'_, T>) -> Result<(), Error> {
    let (samples, places) = (of.out.sizes[0], of.axes[0].count * of.axes[1].count);
    let blocks = of.rows.div_ceil(WIDE);
    let size = of.channels * WIDE;
    // SAFETY: as the caller guarantees.
    let mut weight = unsafe { of.packed(blocks) }?;
    // SAFETY: the address is read within this call.
    let weight = unsafe { Lanes::new(weight.as_mut_ptr()) };
    let groups = places.div_ceil(WIDE);
    let few = groups.div_ceil(ENOUGH.div_ceil(samples * of.groups));
    let most = (COPIED / size).clamp(1, few);
    let pieces = groups.div_ceil(most);
    let work = (most * WIDE * of.channels).saturating_mul(of.rows);
    parallel_try(samples * of.groups * pieces, WORK / work.max(1), |range| {
        // SAFETY: the places are written before they are read.
        let mut copied = unsafe { Scratch::<f32>::unwritten(most * size) }?;
        for task in range {
            let (piece, task) = (task % pieces, task / pieces);
            let (g, sample) = (task % of.groups, task / of.groups);
            let here = piece * groups / pieces * WIDE..((piece + 1) * groups / pieces * WIDE).min(places);
            // SAFETY: the caller guarantees the elements; there is room for the places of a piece.
            unsafe { copy(of, (sample, g), &here, copied.as_mut_ptr()) };
            for block in 0..blocks {
                let weight = weight.as_ptr().cast_const().wrapping_add((g * blocks + block) * size);
                // SAFETY: as above; pieces and blocks have results of their own.
                unsafe { multiply(of, (sample, g, block * WIDE), &here, copied.as_ptr(), weight) };
            }
        }
        Ok(())
    })
}

/// Copies places of a group's channels as `[places / WIDE][channels][WIDE]`.
///
/// # Safety
/// As for [`Product::run`]; there must be room, which nobody else may use.
unsafe fn copy<T: Pixel>(
    of: &Product<'_, T>,
    (sample, g): (usize, usize),
    places: &Range<usize>,
    to: *mut f32,
) {
    let [step, plane, ..] = of.input.strides;
    for c in 0..of.channels {
        let from = sample * step + (g * of.channels + c) * plane + places.start;
        let from = of.input.data.as_ptr().cast_const().wrapping_add(from);
        for (i, first) in (0..places.len()).step_by(WIDE).enumerate() {
            let to = to.wrapping_add((i * of.channels + c) * WIDE);
            let n = WIDE.min(places.len() - first);
            // SAFETY: as the caller guarantees.
            unsafe {
                widen(to, from.wrapping_add(first), n);
                if n < WIDE {
                    to.add(n).write_bytes(0, WIDE - n);
                }
            }
        }
    }
}

/// Computes the results of some places and up to [`WIDE`] rows of a group.
///
/// # Safety
/// As for [`Product::run`], with the copied places and the packed block of the weight; the results must be of nobody else.
unsafe fn multiply<T: Pixel>(
    of: &Product<'_, T>,
    (sample, g, first): (usize, usize, usize),
    places: &Range<usize>,
    copied: *const f32,
    weight: *const f32,
) {
    let [step, plane, ..] = of.out.strides;
    let runs = [Run { a: 0, b: 0, depth: of.channels }];
    let mut sums: Sums = [[0.0; WIDE]; TALL];
    for tile in tiles(WIDE.min(of.rows - first)) {
        let row = g * of.rows + first + tile.start;
        let to = of.out.data.as_ptr().wrapping_add(sample * step + row * plane + places.start);
        for (i, place) in (0..places.len()).step_by(WIDE).enumerate() {
            let (a, b) = (weight.wrapping_add(tile.start), copied.wrapping_add(i * of.channels * WIDE));
            let operands = Operands { a, row: 1, step: WIDE, b, next: WIDE, runs: &runs };
            let n = WIDE.min(places.len() - place);
            // SAFETY: as the caller guarantees.
            unsafe { block(&operands, (tile.len(), n), &mut sums) };
            for (r, sums) in sums.iter().enumerate().take(tile.len()) {
                let bias = of.bias.as_ref().map(|bias| Numbers::splat(bias[row + r].to_acc()));
                for v in 0..VECTORS {
                    let at = v * Numbers::LANES;
                    let n = n.saturating_sub(at).min(Numbers::LANES);
                    // SAFETY: the plane has these places, and the sums as many lanes.
                    unsafe {
                        let sum = Numbers::load(sums.as_ptr().add(at));
                        let result = bias.map_or(sum, |bias| Numbers::splat(1.0).mul_add(bias, sum));
                        write_some(to.wrapping_add(r * plane + place + at), 1, n, result);
                    }
                }
            }
        }
    }
}
