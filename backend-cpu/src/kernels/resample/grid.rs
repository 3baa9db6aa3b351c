//! `grid_sample`

use super::GRAIN;
use super::grid_taps::{CHUNK, Grid, GridTaps, check_near, gathered};
use super::packed::{GROUP, block, elements, is_sparse, packed_steps, side_by_side};
use super::side::{Side, sides};
use super::sums::{Made, pixel};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::vectors::{Lanes as Elements, Vector, sum, write_some};
use keyway_cpu_loops::{parallel_try, transpose};
use keyway_sdk::author::{Call, Error, Real, Scratch};
use keyway_sdk::half::{bf16, f16};
use std::any::TypeId;
use std::ops::Range;

/// The minimum number of pixels that are transposed to planes by vectors.
const FEWEST: usize = 8;
/// The minimum number of channels that are copied to be contiguous, if elements can be gathered in place.
const GATHERED: usize = 4;

/// The operands of `grid_sample`.
struct Sampling<'a, T: Elements> {
    image: Volume<'a, T>,
    out: Volume<'a, T>,
    sides: [Side; 3],
    grid: Grid<'a, T>,
}

/// The loop order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Blocks of this number of channels, contiguous in a packed copy of the image.
    Turned(usize),
    /// Channels one by one, vectorised over pixels with this stride.
    Planes(usize),
    /// Pixels one by one, vectorised over channels.
    Pixels,
}

impl<T: Elements> Sampling<'_, T> {
    /// Pixels of a sample's result.
    fn pixels(&self) -> usize {
        self.out.sizes[2..].iter().product()
    }

    /// The constant stride between pixels of the result, if there is one.
    fn step(&self) -> Option<usize> {
        let ([_, _, depth, height, width], [_, _, layer, row, column]) = (self.out.sizes, self.out.strides);
        let follows = |count, step, all: usize| count == 1 || step == all * column;
        (follows(height, row, width) && follows(depth, layer, height * width)).then_some(column)
    }

    fn way(&self) -> Way {
        let channels = self.out.sizes[1];
        // Vectors are along contiguous channels, otherwise along pixels.
        let Some(step) = self.step().filter(|_| channels == 1 || self.image.strides[1] != 1) else {
            return Way::Pixels;
        };
        let is_same = TypeId::of::<T>() == TypeId::of::<T::Acc>();
        if step != 1 || is_same && channels < GATHERED || is_sparse(&self.image, self.pixels()) {
            return Way::Planes(step);
        }
        block(&self.image).map_or(Way::Planes(step), Way::Turned)
    }

    /// Computes all pixels of a range of channels of a sample from packed blocks.
    ///
    /// # Safety
    /// The grid must have a location for each pixel, the image its elements, and these results must be uniquely owned.
    unsafe fn packed(&self, sample: usize, channels: Range<usize>, block: usize, buffers: &mut Buffers<T>) {
        let (all, [_, _, _, height, width]) = (self.pixels(), self.out.sizes);
        let outside = elements(&self.image) * block;
        // SAFETY: as the caller guarantees.
        unsafe { side_by_side(&self.image, sample, &channels, block, &mut buffers.image[..outside]) };
        let plane = self.out.strides[1];
        let at = sample * self.out.strides[0] + channels.start * plane;
        let to = self.out.data.as_ptr().wrapping_add(at);
        for first in (0..all).step_by(CHUNK) {
            let pixels = first..(first + CHUNK).min(all);
            let steps = (packed_steps(&self.image, block), outside as i32);
            // SAFETY: as the caller guarantees; offsets are those of elements of the copy, or of the zeros after them; the
            // block is whole vectors, and `staged` has capacity for a group of pixels.
            unsafe {
                buffers.grid_taps.find(&self.grid, &self.sides, (sample, &pixels), [height, width], steps);
                for begin in (0..pixels.len()).step_by(GROUP) {
                    // The last few pixels are recomputed together with some previous ones, so that they fill a vector.
                    let begin = begin.min(pixels.len().saturating_sub(FEWEST));
                    let n = GROUP.min(pixels.len() - begin);
                    for p in 0..n {
                        let to = buffers.staged.as_mut_ptr().add(p * block);
                        buffers.grid_taps.sum(begin + p, buffers.image.as_ptr(), block, to);
                    }
                    let to = to.wrapping_add(first + begin);
                    transpose(to, plane, buffers.staged.as_ptr(), block, n, channels.len());
                }
            }
        }
    }

    /// Computes pixels one by one, vectorised over channels.
    ///
    /// # Safety
    /// As for [`Sampling::packed`].
    unsafe fn by_pixels(&self, sample: usize, pixels: &Range<usize>, buffers: &mut Buffers<T>) {
        let [_, channels, _, height, width] = self.out.sizes;
        let [_, by_channel, by_layer, by_row, by_column] = self.out.strides;
        let from = self.image.data.as_ptr().cast_const().wrapping_add(sample * self.image.strides[0]);
        let to = self.out.data.as_ptr().wrapping_add(sample * self.out.strides[0]);
        // Strided channels are processed one by one.
        let (some, step) =
            if self.image.strides[1] == 1 { (channels, 0) } else { (1, self.image.strides[1]) };
        for (p, i) in pixels.clone().enumerate() {
            let [z, y, x] = [i / (height * width), i / width % height, i % width];
            let to = to.wrapping_add(z * by_layer + y * by_row + x * by_column);
            buffers.grid_taps.of_pixel(p, &mut buffers.elements);
            for c in (0..channels).step_by(some.max(1)) {
                // SAFETY: as the caller guarantees.
                unsafe {
                    let (from, to) = (from.wrapping_add(c * step), to.wrapping_add(c * by_channel));
                    pixel(from, buffers.made(), to, (by_channel, some));
                }
            }
        }
    }

    /// Computes channels one by one, vectorised over pixels with stride `step`.
    ///
    /// # Safety
    /// As for [`Sampling::packed`].
    unsafe fn by_planes(&self, sample: usize, pixels: &Range<usize>, step: usize, buffers: &mut Buffers<T>) {
        buffers.grid_taps.list_partly(pixels.len(), &mut buffers.partly, &mut buffers.at);
        for c in 0..self.out.sizes[1] {
            let at = sample * self.image.strides[0] + c * self.image.strides[1];
            let from = self.image.data.as_ptr().cast_const().wrapping_add(at);
            let at = sample * self.out.strides[0] + c * self.out.strides[1] + pixels.start * step;
            let to = self.out.data.as_ptr().wrapping_add(at);
            // SAFETY: elements of the channel, as the caller guarantees; the offsets after the last pixel are valid offsets
            // of other pixels.
            let finite = unsafe { self.of_plane(buffers, from, (to, step), pixels.len()) };
            // Elements of weight 0 were read too, and infinity times 0 is NaN.
            for &p in buffers.partly.iter().filter(|_| !finite) {
                // SAFETY: a result that was written above, uniquely owned.
                unsafe {
                    let to = to.wrapping_add(p as usize * step);
                    if (*to).to_acc().is_nan() {
                        buffers.grid_taps.of_pixel(p as usize, &mut buffers.elements);
                        pixel(from, buffers.made(), to, (1, 1));
                    }
                }
            }
        }
    }

    /// Computes the pixels of a channel. Returns whether all are finite.
    ///
    /// # Safety
    /// As for [`Sampling::packed`].
    unsafe fn of_plane(
        &self,
        buffers: &Buffers<T>,
        from: *const T,
        (to, step): (*mut T, usize),
        pixels: usize,
    ) -> bool {
        let (lanes, zero) = (T::Vector::LANES, T::Vector::splat(T::Acc::ZERO));
        // 0 while all elements are finite, otherwise NaN.
        let mut zeros = zero;
        for p in (0..pixels).step_by(lanes) {
            let mut total = zero;
            for k in 0..buffers.grid_taps.taps {
                let at = buffers.at.as_ptr().wrapping_add(buffers.grid_taps.index(k, p));
                // SAFETY: the caller guarantees the elements; there are whole vectors of offsets and weights.
                total = unsafe {
                    gathered(from, at).mul_add(T::Vector::load(buffers.grid_taps.weights(k, p)), total)
                };
            }
            zeros = total.mul_add(zero, zeros);
            // SAFETY: as the caller guarantees.
            unsafe { write_some(to.wrapping_add(p * step), step, lanes.min(pixels - p), total) };
        }
        sum(zeros, zero) == T::Acc::ZERO
    }

    /// Computes all outputs in this loop order.
    ///
    /// # Safety
    /// The grid must have a location for each pixel, the image its elements, and the results must be uniquely owned.
    unsafe fn run(&self, way: Way) -> Result<(), Error> {
        let ([samples, channels, _, height, width], all) = (self.out.sizes, self.pixels());
        let taps: usize = (3 - self.grid.rank..3).map(|d| self.sides[d].taps()).product();
        if let Way::Turned(block) = way {
            let blocks = channels.div_ceil(block);
            return parallel_try(samples * blocks, GRAIN / (all * taps * block), |range| {
                let mut buffers = Buffers::new(self, way)?;
                for i in range {
                    let (sample, first) = (i / blocks, i % blocks * block);
                    // SAFETY: as the caller guarantees; each channel belongs to one work item.
                    unsafe { self.packed(sample, first..(first + block).min(channels), block, &mut buffers) };
                }
                Ok(())
            });
        }
        let chunks = all.div_ceil(CHUNK);
        parallel_try(samples * chunks, GRAIN / (CHUNK.min(all) * taps * channels.max(1)), |range| {
            let mut buffers = Buffers::new(self, way)?;
            for i in range {
                let (sample, first) = (i / chunks, i % chunks * CHUNK);
                let pixels = first..(first + CHUNK).min(all);
                let [_, _, steps @ ..] = self.image.strides;
                // SAFETY: as the caller guarantees; each pixel belongs to one work item.
                unsafe {
                    buffers.grid_taps.find(
                        &self.grid,
                        &self.sides,
                        (sample, &pixels),
                        [height, width],
                        (steps, -1),
                    );
                    match way {
                        Way::Planes(step) => self.by_planes(sample, &pixels, step, &mut buffers),
                        _ => self.by_pixels(sample, &pixels, &mut buffers),
                    }
                }
            }
            Ok(())
        })
    }
}

/// The scratch memory of a work item.
struct Buffers<T: Elements> {
    grid_taps: GridTaps<T>,
    /// Contiguous channels, followed by a pixel of zeros.
    image: Scratch<T::Acc>,
    /// Results before they are transposed.
    staged: Scratch<T>,
    /// The gather offsets, and the pixels that are partly outside.
    at: Scratch<i32>,
    partly: Vec<u32>,
    /// The offsets and weights of a pixel's taps.
    elements: Vec<(usize, T::Acc)>,
    /// A single column of offset 0 and weight 1, since the offsets are of elements.
    single: [(usize, T::Acc); 1],
}

impl<T: Elements> Buffers<T> {
    fn new(of: &Sampling<'_, T>, way: Way) -> Result<Self, Error> {
        let wide = CHUNK.min(of.pixels()).next_multiple_of(T::Vector::LANES);
        let grid_taps = GridTaps::new(&of.sides, of.grid.rank, wide, false)?;
        let (image, staged) = match way {
            Way::Turned(block) => ((elements(&of.image) + 1) * block, GROUP * block),
            _ => (0, 0),
        };
        let at = if matches!(way, Way::Planes(_)) { grid_taps.taps * wide } else { 0 };
        Ok(Buffers {
            grid_taps,
            image: Scratch::zeroed(image)?,
            staged: Scratch::zeroed(staged)?,
            at: Scratch::zeroed(at)?,
            partly: Vec::new(),
            elements: Vec::new(),
            single: [(0, T::Acc::ONE)],
        })
    }

    /// The taps in `elements`.
    fn made(&self) -> Made<'_, T::Acc> {
        Made { lines: &self.elements, columns: &self.single, across: 0 }
    }
}

fn grid_sample<T: Elements>(call: &Call) -> Result<(), Error> {
    let (image, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    let sides = sides(call, 2, &image)?;
    let grid = Grid::argument(call, 1)?;
    if out.sizes.contains(&0) {
        return Ok(());
    }
    check_near(&image)?;
    let sampling = Sampling { image, out, sides, grid };
    // SAFETY: the op's shape rule checked the sizes of grid and output against each other and refused empty images; the
    // output is uniquely owned, and the host guarantees the elements.
    unsafe { sampling.run(sampling.way()) }
}

kernel!("grid_sample", "TTSSb>T", grid_sample, [f32, f64, f16, bf16]);

#[cfg(test)]
pub(super) mod tests;
