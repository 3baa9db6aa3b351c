//! Convolutions by kernels of one element, of planes to planes: products of matrices whose columns are places, which need not
//! be turned.

use crate::WORK;
use crate::block::{Operands, Run, Sums, TALL, WIDE, block};
use crate::gathered::{Product, tiles};
use crate::image::{Numbers, Pixel, has_dense_channels};
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Vector, load_some, widen, write_some};
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::ops::Range;

/// Numbers of the copied places, about: with a part of the weight they stay in the second cache.
const COPIED: usize = 1 << 16;
/// Numbers of the weight above which it is read from afar for each piece, and groups of places that are then worth it.
const FAR: usize = 1 << 18;
const MANY: usize = 4;
/// Pieces of work beyond which more would not help.
const ENOUGH: usize = 32;

/// Whether it is one.
pub fn is_one<T: Pixel>(of: &Product<'_, T>) -> bool {
    let single = |axis: &Axis| axis.taps == [0] && axis.step == 1 && axis.count == axis.size;
    let planes =
        |of: &Volume<'_, T>| !has_dense_channels(of) && of.strides[4] == 1 && of.strides[3] == of.sizes[4];
    of.axes.iter().all(single) && planes(&of.input) && planes(&of.out)
}

/// Computes it: the places of all samples in order, in groups of [`WIDE`].
///
/// # Safety
/// As for [`Product::run`].
pub unsafe fn run<T: Pixel>(of: &Product<'_, T>) -> Result<(), Error> {
    let plane = of.axes[0].count * of.axes[1].count;
    let places = of.out.sizes[0] * plane;
    let blocks = of.rows.div_ceil(WIDE);
    let size = of.channels * WIDE;
    // SAFETY: as the caller guarantees.
    let mut weight = unsafe { of.packed(blocks) }?;
    // SAFETY: the address is read within this call.
    let weight = unsafe { Lanes::new(weight.as_mut_ptr()) };
    let groups = places.div_ceil(WIDE);
    let many = if blocks * size > FAR { MANY } else { 1 };
    let few = groups.div_ceil(ENOUGH.div_ceil(of.groups)).max(many);
    let most = (COPIED / size).max(many).min(few);
    let pieces = groups.div_ceil(most);
    let parts = ENOUGH.div_ceil(pieces * of.groups).min(blocks);
    let work = (most * WIDE * of.channels).saturating_mul(of.rows / parts);
    parallel_try(of.groups * pieces * parts, WORK / work.max(1), |range| {
        // SAFETY: the places are written before they are read.
        let mut copied = unsafe { Scratch::<f32>::unwritten(most * size) }?;
        let mut copied_for = None;
        for task in range {
            let (part, task) = (task % parts, task / parts);
            let (piece, g) = (task % pieces, task / pieces);
            let here = piece * groups / pieces * WIDE..((piece + 1) * groups / pieces * WIDE).min(places);
            if copied_for.replace(task) != Some(task) {
                // SAFETY: the caller guarantees the elements; there is room for the places of a piece.
                unsafe { copy(of, g, plane, &here, copied.as_mut_ptr()) };
            }
            for block in part * blocks / parts..(part + 1) * blocks / parts {
                let weight = weight.as_ptr().cast_const().wrapping_add((g * blocks + block) * size);
                // SAFETY: as above; pieces and blocks have results of their own.
                unsafe { multiply(of, (g, block * WIDE), plane, &here, copied.as_ptr(), weight) };
            }
        }
        Ok(())
    })
}

/// Some places as runs that lie in one plane and one group: the sample, its first place, how many, and the first one's number
/// among all.
fn runs(plane: usize, places: &Range<usize>) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let (first, end, mut next) = (places.start, places.end, places.start);
    std::iter::from_fn(move || {
        let (at, sample, place) = (next - first, next / plane, next % plane);
        let count = (end - next).min(plane - place).min(WIDE - at % WIDE);
        next += count;
        (count > 0).then_some((sample, place, count, at))
    })
}

/// Copies places of a group's channels as `[places / WIDE][channels][WIDE]`, with zeros behind the last.
///
/// # Safety
/// As for [`Product::run`]; there must be room, which nobody else may use.
unsafe fn copy<T: Pixel>(of: &Product<'_, T>, g: usize, plane: usize, places: &Range<usize>, to: *mut f32) {
    let [step, channel, ..] = of.input.strides;
    let behind = places.len().next_multiple_of(WIDE) - places.len();
    for c in 0..of.channels {
        let from = of.input.data.as_ptr().cast_const().wrapping_add((g * of.channels + c) * channel);
        let number = |at: usize| to.wrapping_add((at / WIDE * of.channels + c) * WIDE + at % WIDE);
        // SAFETY: as the caller guarantees.
        unsafe {
            for (sample, place, count, at) in runs(plane, places) {
                widen(number(at), from.wrapping_add(sample * step + place), count);
            }
            if behind > 0 {
                number(places.len()).write_bytes(0, behind);
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
    (g, first): (usize, usize),
    plane: usize,
    places: &Range<usize>,
    copied: *const f32,
    weight: *const f32,
) {
    let [step, channel, ..] = of.out.strides;
    let depth = [Run { a: 0, b: 0, depth: of.channels }];
    let mut sums: Sums = [[0.0; WIDE]; TALL];
    for tile in tiles(WIDE.min(of.rows - first)) {
        let row = g * of.rows + first + tile.start;
        let to = of.out.data.as_ptr().wrapping_add(row * channel);
        for (sample, place, count, at) in runs(plane, places) {
            if at % WIDE == 0 {
                let a = weight.wrapping_add(tile.start);
                let b = copied.wrapping_add(at * of.channels);
                let operands = Operands { a, row: 1, step: WIDE, b, next: WIDE, runs: &depth };
                // SAFETY: as the caller guarantees.
                unsafe { block(&operands, (tile.len(), places.len() - at), &mut sums) };
            }
            let to = to.wrapping_add(sample * step + place);
            for (r, sums) in sums.iter().enumerate().take(tile.len()) {
                let bias = of.bias.as_ref().map(|bias| Numbers::splat(bias[row + r].to_acc()));
                let sums = &sums[at % WIDE..at % WIDE + count];
                for (v, sums) in sums.chunks(Numbers::LANES).enumerate() {
                    // SAFETY: the plane has these places.
                    unsafe {
                        let sum: Numbers = load_some(sums.as_ptr(), sums.len());
                        let result = bias.map_or(sum, |bias| Numbers::splat(1.0).mul_add(bias, sum));
                        let to = to.wrapping_add(r * channel + v * Numbers::LANES);
                        write_some(to, 1, sums.len(), result);
                    }
                }
            }
        }
    }
}
