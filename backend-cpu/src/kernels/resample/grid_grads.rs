//! The gradients of `grid_sample`, in blocks of contiguous channels.
//!
//! Many output pixels may read one element of an image: the sums of its gradient are added in f64 after each [`CHAIN`]
//! addends, see [`long_sums`](crate::kernels::long_sums). The gradient of a coordinate is a sum of one product per channel
//! and tap, with one partial sum of channels per vector lane.

use super::GRAIN;
use super::grid_taps::{CHUNK, Grid, GridTaps, check_near};
use super::packed::{GROUP, apart, block, elements, line_by_line, packed_steps};
use super::side::{Side, sides};
use keyway_cpu_loops::images::{Volume, three};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Lanes as Elements, Vector};
use keyway_sdk::author::{Call, Error, Lanes, Real, Scratch};
use keyway_sdk::half::{bf16, f16};
use long::LongSums;
use of_grid::OfGrid;
use std::ops::Range;

mod long;
mod of_grid;

/// The minimum number of channels that fill enough lanes of a vector.
const FEW: usize = 4;

/// The operands of both gradients.
struct Gradients<'a, T: Elements> {
    /// The gradient of the result.
    grad: Volume<'a, T>,
    /// The images, or their gradient.
    image: Volume<'a, T>,
    sides: [Side; 3],
    grid: Grid<'a, T>,
}

impl<T: Elements> Gradients<'_, T> {
    /// Pixels of a sample.
    fn pixels(&self) -> usize {
        self.grad.sizes[2..].iter().product()
    }

    /// The maximum number of elements that a pixel is interpolated from.
    fn taps(&self) -> usize {
        (3 - self.grid.rank..3).map(|d| self.sides[d].taps()).product()
    }

    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let all = self.pixels();
        (0..all).step_by(CHUNK).map(move |first| first..(first + CHUNK).min(all))
    }

    /// Allocates the taps of a chunk, with slopes if requested.
    fn grid_taps(&self, slopes: bool) -> Result<GridTaps<T>, Error> {
        let wide = CHUNK.min(self.pixels()).next_multiple_of(T::Vector::LANES);
        GridTaps::new(&self.sides, self.grid.rank, wide, slopes)
    }

    /// Computes the taps of a chunk in images with these strides.
    ///
    /// # Safety
    /// The grid must have a location for each pixel.
    unsafe fn find(
        &self,
        (sample, pixels): (usize, &Range<usize>),
        steps: ([usize; 3], i32),
        to: &mut GridTaps<T>,
    ) {
        let [.., height, width] = self.grad.sizes;
        // SAFETY: as the caller guarantees.
        unsafe { to.find(&self.grid, &self.sides, (sample, pixels), [height, width], steps) };
    }

    /// Copies the gradients of a range of pixels so that a block of channels is contiguous.
    ///
    /// # Safety
    /// The channels and pixels must exist, and `to` must have capacity for `block` elements per pixel.
    unsafe fn turn_grad(
        &self,
        (sample, channels): (usize, &Range<usize>),
        pixels: Range<usize>,
        block: usize,
        to: *mut T::Acc,
    ) {
        let ([_, _, _, height, width], [by_sample, plane, layer, row, column]) =
            (self.grad.sizes, self.grad.strides);
        let begin = sample * by_sample + channels.start * plane;
        // Pixels with a constant stride form one line.
        let dense = row == width * column && layer == height * row;
        let mut next = pixels.start;
        while next < pixels.end {
            let [z, y, x] = [next / (height * width), next / width % height, next % width];
            let n = if dense { pixels.end - next } else { (width - x).min(pixels.end - next) };
            let at = begin + z * layer + y * row + x * column;
            let from = self.grad.data.as_ptr().cast_const().wrapping_add(at);
            // SAFETY: as the caller guarantees.
            unsafe {
                let to = to.add((next - pixels.start) * block);
                line_by_line((to, block), (from, plane, column), (channels.len(), n));
            }
            next += n;
        }
    }

    /// Computes the gradient of the images.
    ///
    /// # Safety
    /// The grid must have a location for each pixel, the gradient its elements, and the result must be uniquely owned.
    unsafe fn of_images(&self) -> Result<(), Error> {
        let [samples, channels, ..] = self.image.sizes;
        let (block, by_vector) = match block(&self.image) {
            Some(block) if channels >= FEW => (block, true),
            Some(_) => (channels, false),
            // A single plane of sums suffices for images of that size.
            None => (1, false),
        };
        let blocks = channels.div_ceil(block);
        let work = (self.pixels() * self.taps() + elements(&self.image)).saturating_mul(block);
        parallel_try(samples * blocks, GRAIN / work.max(1), |range| {
            let mut grid_taps = self.grid_taps(false)?;
            // One extra element, for taps outside the image.
            let plane = elements(&self.image) + 1;
            let mut sums = Scratch::<T::Acc>::zeroed(plane * block)?;
            let mut staged = Scratch::<T::Acc>::zeroed(GROUP * block)?;
            let layout = if by_vector { (1, block, T::Vector::LANES) } else { (plane, block, 1) };
            let mut long = LongSums::new::<T::Acc>(self.pixels() * self.taps(), sums.len(), layout)?;
            for i in range {
                let (sample, first) = (i / blocks, i % blocks * block);
                let channels = first..(first + block).min(channels);
                sums.fill(T::Acc::ZERO);
                let (steps, outside) = match by_vector {
                    true => (packed_steps(&self.image, block), elements(&self.image) * block),
                    false => (packed_steps(&self.image, 1), elements(&self.image)),
                };
                for pixels in self.chunks() {
                    // SAFETY: as the caller guarantees; the buffers have capacity for each element of a block, and for a group.
                    unsafe {
                        self.find((sample, &pixels), (steps, outside as i32), &mut grid_taps);
                        for begin in (0..pixels.len()).step_by(GROUP) {
                            let some = begin..(begin + GROUP).min(pixels.len());
                            let group = pixels.start + some.start..pixels.start + some.end;
                            if let Some(long) = &mut long {
                                long.note(&grid_taps, &some, &mut sums)?;
                            }
                            if by_vector {
                                self.turn_grad((sample, &channels), group, block, staged.as_mut_ptr());
                                add_vectors(&grid_taps, some, block, &staged, &mut sums);
                                continue;
                            }
                            for (c, sums) in channels.clone().zip(sums.chunks_exact_mut(plane)) {
                                let channel = (sample, &(c..c + 1));
                                self.turn_grad(channel, group.clone(), 1, staged.as_mut_ptr());
                                add_plane(&grid_taps, &some, &staged, sums);
                            }
                        }
                    }
                }
                if let Some(long) = &mut long {
                    long.add_to(&mut sums);
                }
                // SAFETY: the channels belong to this work item.
                unsafe {
                    match by_vector {
                        true => apart(&self.image, sample, &channels, block, &sums),
                        false => {
                            for (c, sums) in channels.zip(sums.chunks_exact(plane)) {
                                apart(&self.image, sample, &(c..c + 1), 1, sums);
                            }
                        }
                    }
                }
            }
            Ok(())
        })
    }
}

/// Scatters the gradients of a range of pixels to the elements that they were interpolated from, vectorised over channels.
///
/// # Safety
/// The taps must be within the sums, `block` a multiple of the lanes, and there must be `block` values for each pixel.
unsafe fn add_vectors<T: Elements>(
    grid_taps: &GridTaps<T>,
    pixels: Range<usize>,
    block: usize,
    grad: &[T::Acc],
    sums: &mut [T::Acc],
) {
    let (lanes, sums) = (T::Vector::LANES, sums.as_mut_ptr());
    for (p, grad) in pixels.zip(grad.chunks_exact(block)) {
        for k in 0..grid_taps.taps {
            let (at, weight) = grid_taps.tap(k, p);
            let (to, weight) = (sums.wrapping_add(at as usize), T::Vector::splat(weight));
            for c in (0..block).step_by(lanes) {
                // SAFETY: as the caller guarantees.
                unsafe {
                    let to = to.add(c);
                    let term = T::Vector::load(grad.as_ptr().add(c));
                    term.mul_add(weight, T::Vector::load(to)).store(to);
                }
            }
        }
    }
}

/// [`add_vectors`] for one channel, whose sums have one more element for taps outside the image. Tap by tap: neighbouring
/// pixels add to the same elements with different taps, and would wait for each other's stores.
///
/// # Safety
/// The taps must be those of elements in `sums`.
unsafe fn add_plane<T: Elements>(
    grid_taps: &GridTaps<T>,
    pixels: &Range<usize>,
    grad: &[T::Acc],
    sums: &mut [T::Acc],
) {
    for k in 0..grid_taps.taps {
        for ((at, weight), grad) in grid_taps.of_tap(k, pixels).zip(grad) {
            // SAFETY: as the caller guarantees.
            unsafe { *sums.get_unchecked_mut(at as usize) += *grad * weight };
        }
    }
}

fn grid_sample_input_grad<T: Elements>(call: &Call) -> Result<(), Error> {
    let (grad, image) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    let (sides, grid) = (sides(call, 3, &image)?, Grid::argument(call, 1)?);
    if image.sizes.contains(&0) {
        return Ok(());
    }
    check_near(&image)?;
    // SAFETY: the op's shape rule checked the sizes of grid and gradient against each other; the host guarantees the
    // elements, and the output is uniquely owned.
    unsafe { Gradients { grad, image, sides, grid }.of_images() }
}

fn grid_sample_grid_grad<T: Elements>(call: &Call) -> Result<(), Error> {
    let (grad, image) = (Volume::<T>::argument(call, 0)?, Volume::<T>::argument(call, 1)?);
    let (sides, grid) = (sides(call, 3, &image)?, Grid::argument(call, 2)?);
    let mut out = call.out::<T>(0)?;
    let data = out.as_mut_ptr();
    let (&[of_sample, ref spatial @ .., of_axis], rank) = (out.strides(), grid.rank) else {
        return Err(Error::Unsupported { what: "a gradient of another rank than its grid's".into() });
    };
    if out.sizes().contains(&0) {
        return Ok(());
    }
    check_near(&image)?;
    let [of_sample, of_axis] = [of_sample, of_axis].map(|stride| stride.max(0) as usize);
    // SAFETY: the output is uniquely owned, and the host guarantees its elements.
    let data = unsafe { Lanes::new(data) };
    let out = Grid { data, rank, of_sample, of_position: three(spatial, 0), of_axis };
    // SAFETY: as in `grid_sample_input_grad`; the shape rule refused empty images.
    unsafe { OfGrid { of: &Gradients { grad, image, sides, grid }, out }.run() }
}

kernel!("grid_sample_input_grad", "TTISSb>T", grid_sample_input_grad, [f32, f64, f16, bf16]);
kernel!("grid_sample_grid_grad", "TTTSSb>T", grid_sample_grid_grad, [f32, f64, f16, bf16]);

#[cfg(test)]
mod tests;
