//! `conv_weight_grad` of bf16 by the processor's matrix unit.
//!
//! The reduction dimension is the output positions, so both operands are transposed: the flat copy of the input is one line
//! of pixels for each channel, in which the pixels that a tap reads start at a constant distance, and the gradients are at
//! the same flat positions, with zeros at padding positions. The unit flushes subnormal values to 0. An infinite or NaN
//! pixel times these zeros would be NaN: then the caller reduces over the valid positions alone.

use super::by_tiles::{Cut, pack_right};
use super::planes::{Part, Planes};
use crate::image::{Pixel, add, has_dense_channels, unsupported};
use keyway_cpu_loops::images::{Moves, Volume};
use keyway_cpu_loops::tiles::{Block, Operand, Rows, SIDE, STEP, Source, Unit, pack};
use keyway_cpu_loops::{parallel_try, transpose};
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::sync::atomic::{AtomicBool, Ordering};

/// The approximate number of copied elements.
const BAND: usize = 1 << 17;
/// The number of steps of 32 positions after which accumulators are stored, so that the lines of a block stay in L1.
const DEPTH: usize = 12;
/// The minimum number of parts of the samples, if there are that many samples.
const ENOUGH: usize = 4;
/// The maximum number of parts of the bands, each with its own partial sums, and the maximum number of elements of all
/// partial sums.
const PARTS: usize = 8;
const SUMS: usize = 1 << 23;
/// The bits of infinity in bf16; larger magnitudes are NaN.
const INFINITY: u16 = 0x7f80;
/// The number of multiplications that justifies another thread.
const WORK: usize = 1 << 24;

/// Computes the gradient of the weight; all sizes are nonzero. Returns `false`, with partially written results, if a pixel
/// is not finite.
///
/// # Safety
/// The volumes must contain the elements of bf16 that their sizes describe, `grad` and `input` must be
/// [images](crate::image::image), and the elements of `out` must be uniquely owned.
pub unsafe fn run<U: Unit, T: Pixel>(
    unit: U,
    grad: &Volume<'_, T>,
    input: &Volume<'_, T>,
    out: &Volume<'_, T>,
    moves: &Moves,
) -> Result<bool, Error> {
    let (rows, channels) = (out.sizes[0] / moves.groups, out.sizes[1]);
    let ([_, _, places @ ..], [_, _, kernel @ ..]) = (grad.sizes, out.sizes);
    let [_, height, width] = moves.axes(input, places, kernel)?;
    let axes = [height, width];
    let planes = Planes::of(&axes, channels, false);
    if planes.mostly_zeros(&axes) {
        return Err(unsupported("taps so far apart"));
    }
    let cut = Cut::of(&planes, [grad.sizes[0], grad.sizes[3]], BAND, ENOUGH);
    let plane = planes.plane(cut.samples * (cut.rows + planes.reach));
    // The length of a line is an odd number of cache lines, so that the lines of a tile do not conflict in L1.
    let line = plane + if (plane / SIDE).is_multiple_of(2) { SIDE } else { 0 };
    let wide = rows.next_multiple_of(SIDE);
    let size = planes.taps * planes.pixel * wide;
    let parts = cut.count.min(PARTS).min(SUMS / size).max(1);
    let (of, finite) = (Sum { grad, input, planes, plane, line, rows, wide }, AtomicBool::new(true));
    for g in 0..moves.groups {
        let mut sums = Scratch::<f32>::zeroed(parts * size)?;
        // SAFETY: the address is used within this call, and each part has its own sums.
        let to = unsafe { Lanes::new(sums.as_mut_ptr()) };
        let each = cut.count.div_ceil(parts);
        let work = size.saturating_mul(each * cut.samples * cut.rows * of.planes.width);
        parallel_try(parts, WORK / unit.slowness() / work.max(1), |range| {
            // SAFETY: each is filled before it is read.
            let (mut copied, mut lines, mut panels) = unsafe {
                let count = of.planes.count() * of.planes.pixel;
                (
                    Scratch::<u16>::unwritten(plane * count.max(wide))?,
                    Scratch::<u16>::unwritten(line * count)?,
                    Scratch::<u16>::unwritten(plane * wide)?,
                )
            };
            let memory = [copied.as_mut_ptr(), lines.as_mut_ptr(), panels.as_mut_ptr()];
            unit.with_tiles(|| {
                for part in range {
                    for i in part * each..((part + 1) * each).min(cut.count) {
                        let band = cut.part(i, g * channels);
                        // SAFETY: the caller guarantees the elements; the memory has capacity for a band.
                        let is_finite =
                            unsafe { of.add(unit, to.as_ptr().add(part * size), memory, g, &band) };
                        if !is_finite {
                            finite.store(false, Ordering::Relaxed);
                        }
                    }
                }
            });
            Ok(())
        })?;
        if !finite.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let (total, others) = sums.split_at_mut(size);
        others.chunks_exact(size).for_each(|part| add(total, part));
        // SAFETY: as the caller guarantees.
        unsafe { of.lay(out, g, total) };
    }
    Ok(true)
}

/// The operands of the reduction. Sums are stored as `[taps][pixel][wide]`.
struct Sum<'a, T> {
    grad: &'a Volume<'a, T>,
    input: &'a Volume<'a, T>,
    planes: Planes,
    /// The number of pixels of a plane, and of elements of a line; each plane has one line for each element of a pixel.
    plane: usize,
    line: usize,
    rows: usize,
    wide: usize,
}

impl<T: Pixel> Sum<'_, T> {
    /// Adds the products of some rows of positions, if all of their pixels are finite, and returns whether they are.
    ///
    /// # Safety
    /// As for [`run`]; the sums and the memory, which must have capacity for these rows, must be uniquely owned, and this
    /// thread must be within [`Unit::with_tiles`].
    unsafe fn add<U: Unit>(
        &self,
        unit: U,
        sums: *mut f32,
        [copied, lines, panels]: [*mut u16; 3],
        g: usize,
        part: &Part,
    ) -> bool {
        let Sum { planes, line, wide, .. } = self;
        let steps = planes.flat(part).div_ceil(SIDE);
        // SAFETY: as the caller guarantees.
        unsafe {
            planes.copy(copied, self.plane, self.input, part);
            if !self.turn::<U>(lines, copied, part) {
                return false;
            }
            self.copy_grad(copied, steps * SIDE, part, g);
            let source = Source { data: copied, row: 1, column: *wide };
            pack_right::<U>(panels, source, (*wide, steps * SIDE));
        }
        for begin in (0..steps).step_by(DEPTH) {
            let some = DEPTH.min(steps - begin);
            for block in 0..planes.pixel / SIDE {
                for column in 0..wide / SIDE {
                    let right = panels.cast_const().wrapping_add((column * steps + begin) * STEP);
                    for (t, (number, distance)) in planes.distances().enumerate() {
                        let first = (number * planes.pixel + block * SIDE) * line + begin * SIDE + distance;
                        let left = Rows::dense(lines.cast_const().wrapping_add(first), *line);
                        let at = (t * planes.pixel + block * SIDE) * wide + column * SIDE;
                        let (sums, row) = (sums.wrapping_add(at), *wide);
                        // SAFETY: lines, panels and sums have these elements.
                        unsafe {
                            unit.block(&Block {
                                steps: some,
                                left,
                                right,
                                sums,
                                row,
                                add: true,
                                soon: right,
                            });
                        }
                    }
                }
            }
        }
        true
    }

    /// Transposes the copied pixels into lines, and returns whether all are finite.
    ///
    /// # Safety
    /// As for [`Sum::add`].
    unsafe fn turn<U: Unit>(&self, to: *mut u16, copied: *const u16, part: &Part) -> bool {
        let pixel = self.planes.pixel;
        // The last block of positions reads this far.
        let pixels = self.planes.plane(part.samples.len() * self.planes.tall(part));
        let (mut tile, mut largest) = ([0u16; STEP], 0);
        for plane in 0..self.planes.count() {
            for (first, block) in
                (0..pixels).step_by(SIDE).flat_map(|first| (0..pixel).step_by(SIDE).map(move |b| (first, b)))
            {
                let data = copied.wrapping_add((plane * self.plane + first) * pixel + block);
                let source = Source { data, row: 1, column: pixel };
                // SAFETY: as the caller guarantees; a unit with `VECTORS` exists only on processors with the features.
                unsafe {
                    match U::VECTORS {
                        true => pack::<true>(tile.as_mut_ptr(), source, (SIDE, SIDE), Operand::Left),
                        false => pack::<false>(tile.as_mut_ptr(), source, (SIDE, SIDE), Operand::Left),
                    }
                    // Without their sign bit, floats have the order of their bits.
                    largest = tile.iter().fold(largest, |most, bits| (bits & 0x7fff).max(most));
                    for (r, row) in tile.chunks_exact(SIDE).enumerate() {
                        let to = to.add((plane * pixel + block + r) * self.line + first);
                        to.copy_from_nonoverlapping(row.as_ptr(), SIDE);
                    }
                }
            }
        }
        largest < INFINITY
    }

    /// Copies a group's gradients to their flat positions, with zeros after each position's gradients and at padding
    /// positions.
    ///
    /// # Safety
    /// As for [`Sum::add`], with capacity for `flat` positions.
    unsafe fn copy_grad(&self, to: *mut u16, flat: usize, part: &Part, g: usize) {
        let [step, channel, _, down, across] = self.grad.strides;
        let Sum { planes, wide, .. } = self;
        let tall = planes.tall(part);
        let from = self.grad.data.as_ptr().cast_const().cast::<u16>();
        let from = from.wrapping_add(g * self.rows * channel);
        let mut done = 0;
        for (s, sample) in part.samples.clone().enumerate() {
            for (y, place) in part.rows.clone().enumerate() {
                let first = (s * tall + y) * planes.pitch;
                let from = from.wrapping_add(sample * step + place * down);
                // SAFETY: as the caller guarantees; flat positions end with those of the last row.
                unsafe {
                    to.add(done * wide).write_bytes(0, (first - done) * wide);
                    if !has_dense_channels(self.grad) {
                        if self.rows < *wide {
                            to.add(first * wide).write_bytes(0, planes.width * wide);
                        }
                        transpose(to.add(first * wide), *wide, from, channel, self.rows, planes.width);
                    } else if *wide == across && *wide == self.rows {
                        to.add(first * wide).copy_from_nonoverlapping(from, planes.width * wide);
                    } else {
                        for x in 0..planes.width {
                            let to = to.add((first + x) * wide);
                            to.copy_from_nonoverlapping(from.wrapping_add(x * across), self.rows);
                            to.add(self.rows).write_bytes(0, wide - self.rows);
                        }
                    }
                }
                done = first + planes.width;
            }
        }
        // SAFETY: as the caller guarantees.
        unsafe { to.add(done * wide).write_bytes(0, (flat - done) * wide) };
    }

    /// Writes the sums to the output.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn lay(&self, out: &Volume<'_, T>, g: usize, sums: &[f32]) {
        let width = out.sizes[4];
        let [row, channel, _, down, across] = out.strides;
        for (i, sums) in sums.chunks_exact(self.wide).enumerate() {
            let Some((t, c)) = self.planes.meaning(i / self.planes.pixel, i % self.planes.pixel) else {
                continue;
            };
            let at = g * self.rows * row + c * channel + t / width * down + t % width * across;
            for (k, &sum) in sums[..self.rows].iter().enumerate() {
                // SAFETY: the element is within the sizes of the output, which the caller guarantees.
                unsafe { out.data.as_ptr().add(at + k * row).write(T::from_acc(sum)) };
            }
        }
    }
}
