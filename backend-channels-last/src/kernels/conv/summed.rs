//! `conv_weight_grad`: for each element of the kernel the products of the output's gradient with what that element read,
//! summed over all places.

use super::block::{Operands, Run, Sums, TALL, WIDE, block};
use super::gathered::{runs, tiles};
use super::{LEAST, WORK, by_tiles, sum_by_tiles};
use crate::kernels::image::{Band, Pixel, add, unsupported};
use keyway_cpu_loops::images::{Axis, Moves, Volume};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::widen;
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::ops::Range;

/// Numbers of the copied rows of both operands, about, and the most rows: the sums of a band begin at zero and are added to
/// those so far, so that no sum has too many terms.
const BAND: usize = 1 << 17;
const TALLEST: usize = 8;
/// The bands are cut into so many parts at most, each with sums of its own, of so many numbers in all.
const PARTS: usize = 16;
const SUMS: usize = 1 << 23;

/// The gradient of the weight.
///
/// # Safety
/// The volumes must hold the elements that they name, `grad` and `input` be dense in channels_last order, and nobody else may
/// use those of `out`.
pub unsafe fn run<T: Pixel>(
    grad: &Volume<'_, T>,
    input: &Volume<'_, T>,
    out: &Volume<'_, T>,
    moves: &Moves,
) -> Result<(), Error> {
    let (rows, channels) = (out.sizes[0] / moves.groups, out.sizes[1]);
    if rows == 0 || channels == 0 {
        return Ok(());
    }
    if moves.groups > 1 && rows.min(channels) < LEAST {
        return Err(unsupported("groups of so few channels"));
    }
    let taps = out.sizes[2..].iter().product::<usize>();
    if let Some(unit) = by_tiles::unit::<T>().filter(|_| taps > 0) {
        // SAFETY: as the caller guarantees; the unit multiplies elements of this type.
        return unsafe { sum_by_tiles::run(unit, grad, input, out, moves) };
    }
    let axes = [1, 2]
        .map(|d| Axis::of(input, d, grad.sizes[d + 2], moves.stride[d], moves.taps(d, out.sizes[d + 2])));
    let band = Band::of(&axes, channels);
    let wide = rows.next_multiple_of(WIDE);
    let (samples, height, width) = (grad.sizes[0], axes[0].count, axes[1].count);
    let tall = (BAND / (band.row * band.step[0] + width * wide)).clamp(1, height.min(TALLEST));
    let bands = height.div_ceil(tall);
    let taps = axes[0].taps.len() * axes[1].taps.len();
    let size = taps * channels * wide;
    let parts = (samples * bands).min(PARTS).min(SUMS / size).max(1);
    let of =
        Sum { grad, input, strips: runs(&axes, band.row, band.channels, channels), rows, wide, width, band };
    for g in 0..moves.groups {
        let mut sums = Scratch::<f32>::zeroed(parts * size)?;
        // SAFETY: the address is used within this call, by parts that have sums of their own.
        let to = unsafe { Lanes::new(sums.as_mut_ptr()) };
        let each = (samples * bands).div_ceil(parts);
        let work = size.saturating_mul(each * tall * width);
        parallel_try(parts, WORK / work.max(1), |range| {
            // SAFETY: both are filled before they are read.
            let (mut left, mut right) = unsafe {
                let rows = of.band.rows(tall) * of.band.row;
                (Scratch::<f32>::unwritten(rows)?, Scratch::<f32>::unwritten(tall * width * wide)?)
            };
            for part in range {
                for i in part * each..((part + 1) * each).min(samples * bands) {
                    let first = i % bands * tall;
                    let places = first..(first + tall).min(height);
                    let memory = [left.as_mut_ptr(), right.as_mut_ptr()];
                    // SAFETY: the caller guarantees the elements; the memory has room for a band.
                    unsafe {
                        let sums = std::slice::from_raw_parts_mut(to.as_ptr().add(part * size), size);
                        of.add(sums, memory, (g, i / bands), &places);
                    }
                }
            }
            Ok(())
        })?;
        let (total, others) = sums.split_at_mut(size);
        others.chunks_exact(size).for_each(|part| add(total, part));
        // SAFETY: as the caller guarantees.
        unsafe { of.lay(out, g, channels, total) };
    }
    Ok(())
}

/// What is summed. Sums lie as `[taps][channels][wide]`.
struct Sum<'a, T> {
    grad: &'a Volume<'a, T>,
    input: &'a Volume<'a, T>,
    /// Elements of the kernel whose numbers lie one behind the other in the copied rows.
    strips: Vec<Run>,
    rows: usize,
    wide: usize,
    width: usize,
    band: Band,
}

impl<T: Pixel> Sum<'_, T> {
    /// Adds the products of some rows of places.
    ///
    /// # Safety
    /// As for [`run`]; nobody else may use the memory, which has room for these rows.
    unsafe fn add(
        &self,
        sums: &mut [f32],
        [left, right]: [*mut f32; 2],
        (g, sample): (usize, usize),
        places: &Range<usize>,
    ) {
        let (band, wide) = (&self.band, self.wide);
        // SAFETY: as the caller guarantees.
        unsafe {
            band.copy(left, self.input, sample, places, g * band.channels);
            self.copy_grad(right, sample, places, g);
        }
        let by_row =
            |y: usize| Run { a: y * band.step[0] * band.row, b: y * self.width * wide, depth: self.width };
        let runs: Vec<Run> = (0..places.len()).map(by_row).collect();
        let mut block_of: Sums = [[0.0; WIDE]; TALL];
        for strip in &self.strips {
            for tile in tiles(strip.depth) {
                let a = left.cast_const().wrapping_add(strip.a + tile.start);
                let first = (strip.b / WIDE + tile.start) * wide;
                for column in (0..wide).step_by(WIDE) {
                    let b = right.cast_const().wrapping_add(column);
                    let (row, step) = (1, band.step[1] * band.channels);
                    let of = Operands { a, row, step, b, next: wide, runs: &runs };
                    // SAFETY: the copied rows have these numbers.
                    unsafe { block(&of, (tile.len(), self.rows - column), &mut block_of) };
                    for (r, block) in block_of.iter().enumerate().take(tile.len()) {
                        add(&mut sums[first + r * wide + column..][..WIDE], block);
                    }
                }
            }
        }
    }

    /// Copies a group's gradients of some rows, with zeros behind those of each place.
    ///
    /// # Safety
    /// As for [`Sum::add`].
    unsafe fn copy_grad(&self, to: *mut f32, sample: usize, places: &Range<usize>, g: usize) {
        let [step, _, _, down, across] = self.grad.strides;
        for (y, place) in places.clone().enumerate() {
            for x in 0..self.width {
                let from = sample * step + place * down + x * across + g * self.rows;
                // SAFETY: as the caller guarantees.
                unsafe {
                    let to = to.add((y * self.width + x) * self.wide);
                    widen(to, self.grad.data.as_ptr().cast_const().add(from), self.rows);
                    to.add(self.rows).write_bytes(0, self.wide - self.rows);
                }
            }
        }
    }

    /// Writes the sums to where they belong.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn lay(&self, out: &Volume<'_, T>, g: usize, channels: usize, sums: &[f32]) {
        let width = out.sizes[4];
        let [row, channel, _, down, across] = out.strides;
        for (i, sums) in sums.chunks_exact(self.wide).enumerate() {
            let (t, c) = (i / channels, i % channels);
            let at = g * self.rows * row + c * channel + t / width * down + t % width * across;
            for (k, &sum) in sums[..self.rows].iter().enumerate() {
                // SAFETY: the element lies within the sizes of the output, which the caller guarantees.
                unsafe { out.data.as_ptr().add(at + k * row).write(T::from_acc(sum)) };
            }
        }
    }
}
