//! The direct convolution by implicit GEMM: the dot product of a kernel with its window at each output position. `conv` is
//! one such convolution, `conv_input_grad` one per stride phase.

use super::block::{Chains, Operands, Sums, TALL, VECTORS, WIDE, WORK, block};
use super::product::{Product, runs, tiles};
use super::winograd::Algorithm;
use super::{by_tiles, depthwise, pointwise, together};
use crate::image::{Band, Numbers, Pixel, has_dense_channels, unsupported};
use crate::turn::Staged;
use keyway_cpu_loops::images::Axis;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Vector, write_some};
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::any::TypeId;
use std::ops::Range;

/// The approximate number of copied elements, so that they stay in L2 together with a block of the weight.
const BAND: usize = 1 << 16;
/// The approximate number of positions whose results are staged together, so that they stay in L1.
const STAGED: usize = 192;
/// The number of work items that occupies all threads, and the number of rows below which a band mostly copies rows that
/// its neighbour also copies.
const ENOUGH: usize = 32;
const SHORT: usize = 4;
/// The number of positions of an image below which its positions are merged into one row, for 1x1 kernels.
const SMALL: usize = 1024;

impl<T: Pixel> Product<'_, T> {
    /// Returns the errors of [`Product::run`] for unsupported cases, for a caller that computes several products and must
    /// detect them before the first one writes.
    pub fn check(&self) -> Result<(), Error> {
        let depthwise = self.groups > 1 && self.channels == 1 && self.rows == 1;
        if self.is_empty() || self.weight.taps.is_empty() {
            return Ok(());
        }
        if depthwise && depthwise::are_few(self) {
            return Err(unsupported("a depthwise convolution of few planes"));
        }
        let together = if depthwise { 1 } else { self.together()? };
        // Each group alone, and merged groups.
        for count in [1, together] {
            let channels = count * self.channels;
            if !depthwise && by_tiles::unit::<T>().is_some() {
                by_tiles::planes(&self.input, &self.axes, self.groups / count, channels)?;
            } else if depthwise || !self.in_place() {
                Band::of(&self.axes, channels)?;
            }
        }
        Ok(())
    }

    /// The number of groups that are merged into one.
    fn together(&self) -> Result<usize, Error> {
        together::count::<T>(self.groups, self.rows, self.channels)
    }

    fn is_empty(&self) -> bool {
        self.out.sizes[0] * self.axes[0].count * self.axes[1].count * self.rows * self.channels == 0
    }

    /// Computes the convolution.
    ///
    /// # Safety
    /// All elements that sizes, strides and taps describe must exist, the input must be an [`image`](crate::image::image),
    /// and the elements of the results must be uniquely owned.
    pub unsafe fn run(mut self) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        if self.weight.taps.is_empty() {
            // SAFETY: as the caller guarantees.
            unsafe { self.write_zeros() };
            return Ok(());
        }
        if self.groups > 1 && self.channels == 1 && self.rows == 1 {
            if depthwise::are_few(&self) {
                return Err(unsupported("a depthwise convolution of few planes"));
            }
            // SAFETY: as the caller guarantees.
            return unsafe { depthwise::run(&self) };
        }
        let together = self.together()?;
        // The owner of the memory of the merged weight.
        let _kernels;
        // SAFETY: as the caller guarantees.
        if together > 1 && unsafe { together::is_finite(&self.input) }? {
            let sizes = [self.groups, together, self.rows, self.channels];
            // SAFETY: as above; the memory lives as long as this call.
            (_kernels, self.weight) = unsafe { together::weight(&self.weight, sizes) }?;
            self.groups /= together;
            (self.rows, self.channels) = (together * self.rows, together * self.channels);
        }
        if let Some(unit) = by_tiles::unit::<T>() {
            // SAFETY: as the caller guarantees; the unit supports elements of this type.
            return unsafe { by_tiles::run(unit, &self) };
        }
        if let Some(algorithm) = Algorithm::fastest(&self) {
            // SAFETY: as the caller guarantees.
            if unsafe { algorithm.run(&self) }? {
                return Ok(());
            }
        }
        if pointwise::is_one(&self) {
            // SAFETY: as the caller guarantees.
            return unsafe { pointwise::run(&self) };
        }
        self.flatten();
        // SAFETY: as the caller guarantees.
        unsafe { self.in_blocks() }
    }

    /// Writes the results of an empty reduction: elements of an input between those that a stride reads.
    ///
    /// # Safety
    /// As for [`Product::run`].
    unsafe fn write_zeros(&self) {
        let [n, _, _, height, width] = self.out.sizes;
        let [sample, channel, _, down, across] = self.out.strides;
        for i in 0..n * height * width {
            let at = i / width / height * sample + i / width % height * down + i % width * across;
            for c in 0..self.groups * self.rows {
                // SAFETY: the element is within the sizes of the output, which the caller guarantees.
                unsafe { self.out.data.as_ptr().add(at + c * channel).write(T::from_acc(0.0)) };
            }
        }
    }

    /// Merges the positions of a small image into one row, if each reads only its own pixel.
    fn flatten(&mut self) {
        let [_, _, _, height, width] = self.input.sizes;
        let single = |axis: &Axis| axis.taps == [0] && axis.step == 1 && axis.count == axis.size;
        let one_row = [&self.input, &self.out].iter().all(|of| of.strides[3] == width * of.strides[4]);
        if self.axes.iter().all(single) && one_row && height * width <= SMALL {
            let pixels = height * width;
            (self.input.sizes[3], self.input.sizes[4]) = (1, pixels);
            self.axes[0] = Axis { size: 1, count: 1, ..self.axes[0].clone() };
            self.axes[1] = Axis { size: pixels, count: pixels, ..self.axes[1].clone() };
        }
    }

    /// Whether the image can be read in place: its elements need no conversion, and every tap is inside it.
    fn in_place(&self) -> bool {
        TypeId::of::<T>() == TypeId::of::<f32>()
            && has_dense_channels(&self.input)
            && self.axes.iter().all(Axis::stays_inside)
    }

    /// # Safety
    /// As for [`Product::run`].
    pub unsafe fn in_blocks(&self) -> Result<(), Error> {
        // Without a band the image is read in place.
        let band = match self.in_place() {
            true => None,
            false => Some(Band::of(&self.axes, self.channels)?),
        };
        let (row, pixel) = match &band {
            None => (self.input.strides[3], self.input.strides[4]),
            Some(band) => (band.row, band.channels),
        };
        let step = [0, 1].map(|d| self.axes[d].step);
        let chains = Chains::of(&runs(&self.axes, row, pixel, self.channels), 1, WIDE);
        let blocks = self.rows.div_ceil(WIDE);
        let (samples, height) = (self.out.sizes[0], self.axes[0].count);
        let tall = (BAND / (row * step[0]).max(1)).clamp(1, height);
        let few = height.div_ceil(ENOUGH.div_ceil(samples)).max(SHORT.min(height));
        // A small image uses each block of the weight once, and packs it right before its use, so that it stays in the
        // cache.
        let once = samples == 1 && tall == height && blocks >= ENOUGH / 2;
        let tall = if once { tall } else { tall.min(few) };
        let bands = height.div_ceil(tall);
        let parts = if once { blocks } else { ENOUGH.div_ceil(samples * bands * self.groups).min(blocks) };
        let size = self.weight.taps.len() * self.channels * WIDE;
        // SAFETY: as the caller guarantees.
        let mut weight = unsafe { self.packed(if once { 0 } else { blocks }) }?;
        // SAFETY: the address is read within this call.
        let weight = unsafe { Lanes::new(weight.as_mut_ptr()) };

        let tasks = samples * self.groups * bands * parts;
        let work = size.saturating_mul(tall * self.axes[1].count).saturating_mul(blocks.div_ceil(parts));
        parallel_try(tasks, WORK / work.max(1), |range| {
            let room = band.as_ref().map_or(0, |band| band.rows(tall) * band.row);
            // SAFETY: the rows, the block of the weight and staged results are written before they are read.
            let (mut copied, mut own, mut stage) = unsafe {
                let own = if once { size } else { 0 };
                let stage = if self.is_staged() { self.staged_rows() * self.axes[1].count * WIDE } else { 0 };
                (
                    Scratch::<f32>::unwritten(room)?,
                    Scratch::<f32>::unwritten(own)?,
                    Scratch::<T>::unwritten(stage)?,
                )
            };
            let mut copied_for = None;
            for task in range {
                let (part, task) = (task % parts, task / parts);
                let is_copied = copied_for.replace(task) == Some(task);
                let (first, task) = (task % bands * tall, task / bands);
                let (g, sample) = (task % self.groups, task / self.groups);
                let places = first..(first + tall).min(height);
                let channel = g * self.channels;
                // SAFETY: the caller guarantees the elements; the copy has capacity for the rows of a band.
                let from = unsafe {
                    match &band {
                        None => self.first_read(sample, places.start, channel),
                        Some(band) => {
                            if !is_copied {
                                band.copy(copied.as_mut_ptr(), &self.input, sample, &places, channel);
                            }
                            copied.as_ptr()
                        }
                    }
                };
                for block in part * blocks / parts..(part + 1) * blocks / parts {
                    let b = if once {
                        // SAFETY: the caller guarantees the elements; the memory has capacity for a block.
                        unsafe { self.pack((g, block), own.as_mut_ptr()) };
                        own.as_ptr()
                    } else {
                        weight.as_ptr().cast_const().wrapping_add((g * blocks + block) * size)
                    };
                    let of =
                        Operands { a: from, row: step[1] * pixel, step: 1, b, next: WIDE, chains: &chains };
                    let (at, down) = ((sample, g, block * WIDE), row * step[0]);
                    // SAFETY: as above; each block has its own results.
                    unsafe { self.rows_of(&of, at, &places, down, stage.as_mut_ptr()) };
                }
            }
            Ok(())
        })
    }

    /// The address that the first tap reads at the first position of a row, in an image that is read in place.
    fn first_read(&self, sample: usize, place: usize, channel: usize) -> *const f32 {
        let [y, x] = [0, 1].map(|d| self.axes[d].taps.first().copied().unwrap_or(0).cast_unsigned());
        let [step, _, _, down, across] = self.input.strides;
        let at = sample * step + (place * self.axes[0].step + y) * down + x * across + channel;
        self.input.data.as_ptr().cast_const().wrapping_add(at).cast()
    }

    /// The number of rows of positions that are staged together.
    fn staged_rows(&self) -> usize {
        (STAGED / self.axes[1].count).clamp(1, self.axes[0].count)
    }

    /// Computes a block of [`WIDE`] output channels for some rows of positions; `down` is the operand's stride between
    /// rows.
    ///
    /// # Safety
    /// As for [`Product::run`]; the operands must contain the elements of these positions, and if results [are
    /// staged](Product::is_staged) the memory must have capacity for [this number of rows](Product::staged_rows).
    unsafe fn rows_of(
        &self,
        of: &Operands<'_>,
        (sample, g, first): (usize, usize, usize),
        places: &Range<usize>,
        down: usize,
        stage: *mut T,
    ) {
        let channels = WIDE.min(self.rows - first);
        let channel = g * self.rows + first;
        let mut bias = [0.0; WIDE];
        if let Some(numbers) = &self.bias {
            bias.iter_mut()
                .zip(&numbers[channel..channel + channels])
                .for_each(|(to, from)| *to = from.to_acc());
        }
        let mut sums: Sums = [[0.0; WIDE]; TALL];
        let width = self.axes[1].count;
        let staged = if self.is_staged() { self.staged_rows() } else { 0 };
        for (y, place) in places.clone().enumerate() {
            let at = sample * self.out.strides[0] + place * self.out.strides[3] + channel;
            let area = |rows: Range<usize>| {
                (Staged { from: stage.cast_const(), across: WIDE, down: width * WIDE }, [rows, 0..width])
            };
            if staged > 0 && y % staged == 0 {
                let (to, area) = area(place..(place + staged).min(places.end));
                // SAFETY: as the caller guarantees; the memory has capacity for these rows.
                unsafe { self.epilogue.stage(&to, &self.out, sample, channel..channel + channels, area) };
            }
            // The addend of staged results was copied to the staging buffer.
            let (to, add, across) = match staged {
                0 => (self.out.data.as_ptr().wrapping_add(at), self.epilogue.place(at), self.out.strides[4]),
                _ => {
                    let to = stage.wrapping_add(y % staged * width * WIDE);
                    (to, to.cast_const(), WIDE)
                }
            };
            for tile in tiles(self.axes[1].count) {
                let a = of.a.wrapping_add(y * down + tile.start * of.row);
                // SAFETY: as the caller guarantees.
                unsafe { block(&Operands { a, ..*of }, (tile.len(), channels), &mut sums) };
                for (sums, x) in sums.iter().zip(tile) {
                    let (to, add) = (to.wrapping_add(x * across), add.wrapping_add(x * across));
                    for v in 0..VECTORS {
                        let at = v * Numbers::LANES;
                        let n = channels.saturating_sub(at).min(Numbers::LANES);
                        // SAFETY: the result has these channels, and both arrays have at least as many lanes.
                        unsafe {
                            let sum = Numbers::load(sums.as_ptr().add(at));
                            let one = Numbers::splat(1.0);
                            let result = if self.bias.is_some() {
                                one.mul_add(Numbers::load(bias.as_ptr().add(at)), sum)
                            } else {
                                sum
                            };
                            let result = self.epilogue.apply(add.wrapping_add(at), n, result);
                            write_some(to.wrapping_add(at), 1, n, result);
                        }
                    }
                }
            }
            if staged > 0 && ((y + 1) % staged == 0 || place + 1 == places.end) {
                let (of, area) = area(place - y % staged..place + 1);
                // SAFETY: as the caller guarantees; these rows were staged.
                unsafe { of.put(&self.out, sample, channel..channel + channels, area) };
            }
        }
    }
}
