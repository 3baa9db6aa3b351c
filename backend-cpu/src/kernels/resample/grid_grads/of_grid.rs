//! The gradient of the grid.

use super::super::grid_taps::{CHUNK, Grid, GridTaps, gathered};
use super::super::packed::{GROUP, block, elements, is_sparse, packed_steps, side_by_side};
use super::super::side::Mode;
use super::{FEW, GRAIN, Gradients};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Lanes as Elements, Vector, load_some, read_some, sum};
use keyway_sdk::author::{Error, Lanes, Real, Scratch};

/// The maximum number of coordinates of a location.
const AXES: usize = 3;

/// The gradient of the grid, computed coordinate by coordinate, and its output.
pub(super) struct OfGrid<'a, 'b, T: Elements> {
    pub(super) of: &'b Gradients<'a, T>,
    pub(super) out: Grid<'a, T>,
}

impl<T: Elements> OfGrid<'_, '_, T> {
    /// # Safety
    /// The grid must have a location for each pixel, gradient and images their elements, and the result must be
    /// uniquely owned.
    pub(super) unsafe fn run(&self) -> Result<(), Error> {
        let of = self.of;
        let ([samples, channels, ..], all) = (of.grad.sizes, of.pixels());
        if of.sides[2].mode == Mode::Nearest || channels == 0 {
            let zeros = [T::Acc::ZERO; AXES];
            for (sample, p) in (0..samples).flat_map(|sample| (0..all).map(move |p| (sample, p))) {
                // SAFETY: as the caller guarantees.
                unsafe { self.write(sample, p, &zeros[..of.grid.rank]) };
            }
            return Ok(());
        }
        let is_dense = of.grad.strides[1] == 1 && of.image.strides[1] == 1;
        let block = block(&of.image).filter(|_| !is_dense && !is_sparse(&of.image, all));
        // SAFETY: as the caller guarantees.
        unsafe {
            match block {
                _ if channels < 2 * FEW => self.by_planes(),
                Some(block) => self.packed(block),
                None => self.strided(),
            }
        }
    }

    /// # Safety
    /// The grid must have the location, uniquely owned.
    unsafe fn write(&self, sample: usize, pixel: usize, numbers: &[T::Acc]) {
        let [.., height, width] = self.of.grad.sizes;
        let [by_layer, by_row, by_column] = self.out.of_position;
        let [z, y, x] = [pixel / (height * width), pixel / width % height, pixel % width];
        let at = sample * self.out.of_sample + z * by_layer + y * by_row + x * by_column;
        for (axis, number) in numbers.iter().enumerate() {
            // SAFETY: as the caller guarantees.
            unsafe {
                *self.out.data.as_ptr().wrapping_add(at + axis * self.out.of_axis) = T::from_acc(*number)
            };
        }
    }

    /// Computes pixels one by one, from the channels in place.
    ///
    /// # Safety
    /// As for [`OfGrid::run`].
    pub(super) unsafe fn strided(&self) -> Result<(), Error> {
        let of = self.of;
        let ([samples, channels, _, height, width], all) = (of.grad.sizes, of.pixels());
        let [by_sample, plane, by_layer, by_row, by_column] = of.grad.strides;
        let chunks = all.div_ceil(CHUNK);
        let work = CHUNK.min(all) * of.taps() * channels;
        parallel_try(samples * chunks, GRAIN / work.max(1), |range| {
            let mut grid_taps = of.grid_taps(true)?;
            for i in range {
                let (sample, first) = (i / chunks, i % chunks * CHUNK);
                let pixels = first..(first + CHUNK).min(all);
                let [image_sample, image_plane, steps @ ..] = of.image.strides;
                let image = of.image.data.as_ptr().cast_const().wrapping_add(sample * image_sample);
                let grad = of.grad.data.as_ptr().cast_const().wrapping_add(sample * by_sample);
                // SAFETY: as the caller guarantees; each pixel belongs to one work item.
                unsafe { of.find((sample, &pixels), (steps, -1), &mut grid_taps) };
                for (p, pixel) in pixels.enumerate() {
                    let [z, y, x] = [pixel / (height * width), pixel / width % height, pixel % width];
                    let grad = grad.wrapping_add(z * by_layer + y * by_row + x * by_column);
                    let numbers = slopes(&grid_taps, p, of.grid.rank, |at| {
                        let image = image.wrapping_add(at);
                        // SAFETY: as the caller guarantees.
                        let read = |from: *const T, step, c, n| unsafe {
                            read_some(from.wrapping_add(c * step), step, n)
                        };
                        products::<T::Vector>(
                            channels,
                            |c, n| read(image, image_plane, c, n),
                            |c, n| read(grad, plane, c, n),
                        )
                    });
                    // SAFETY: as above.
                    unsafe { self.write(sample, pixel, &numbers[..of.grid.rank]) };
                }
            }
            Ok(())
        })
    }

    /// Computes channels one by one, vectorised over pixels.
    ///
    /// # Safety
    /// As for [`OfGrid::run`].
    pub(super) unsafe fn by_planes(&self) -> Result<(), Error> {
        let (of, rank, lanes) = (self.of, self.of.grid.rank, T::Vector::LANES);
        let ([samples, channels, ..], all) = (of.grad.sizes, of.pixels());
        let [image_sample, image_plane, steps @ ..] = of.image.strides;
        let chunks = all.div_ceil(CHUNK);
        let wide = CHUNK.min(all).next_multiple_of(lanes);
        let work = CHUNK.min(all) * of.taps() * channels;
        parallel_try(samples * chunks, GRAIN / work.max(1), |range| {
            let zero = T::Vector::splat(T::Acc::ZERO);
            let mut grid_taps = of.grid_taps(true)?;
            let (mut partly, mut at) = (Vec::new(), Scratch::<i32>::zeroed(grid_taps.taps * wide)?);
            let mut sums = Scratch::<T::Acc>::zeroed(rank * wide)?;
            let mut grad = Scratch::<T::Acc>::zeroed(wide * channels)?;
            let mut planes = Scratch::<T::Acc>::zeroed(wide * channels)?;
            for i in range {
                let (sample, first) = (i / chunks, i % chunks * CHUNK);
                let pixels = first..(first + CHUNK).min(all);
                let image = of.image.data.as_ptr().cast_const().wrapping_add(sample * image_sample);
                sums.fill(T::Acc::ZERO);
                // SAFETY: as the caller guarantees; lists and copies have whole vectors of pixels.
                unsafe {
                    of.find((sample, &pixels), (steps, -1), &mut grid_taps);
                    grid_taps.list_partly(pixels.len(), &mut partly, &mut at);
                    of.turn_grad((sample, &(0..channels)), pixels.clone(), channels, grad.as_mut_ptr());
                    for (c, plane) in planes.chunks_exact_mut(wide).enumerate() {
                        let pixels = grad[c..].iter().step_by(channels).take(pixels.len());
                        plane.iter_mut().zip(pixels).for_each(|(to, number)| *to = *number);
                    }
                    for (c, p) in
                        (0..channels).flat_map(|c| (0..pixels.len()).step_by(lanes).map(move |p| (c, p)))
                    {
                        let grad = T::Vector::load(planes[c * wide + p..].as_ptr());
                        let from = image.wrapping_add(c * image_plane);
                        for k in 0..grid_taps.taps {
                            let products = gathered(from, at[grid_taps.index(k, p)..].as_ptr());
                            let products = products.mul_add(grad, zero);
                            for axis in 0..rank {
                                let to = sums[axis * wide + p..].as_mut_ptr();
                                let slopes = T::Vector::load(grid_taps.slopes(axis, k, p));
                                products.mul_add(slopes, T::Vector::load(to)).store(to);
                            }
                        }
                    }
                }
                // Elements of slope 0 were read too, and infinity times 0 is NaN.
                for &p in &partly {
                    let p = p as usize;
                    let numbers = (0..rank).map(|axis| sums[axis * wide + p]);
                    if numbers.clone().all(|number| number * T::Acc::ZERO == T::Acc::ZERO) {
                        continue;
                    }
                    let numbers = slopes(&grid_taps, p, rank, |at| {
                        // SAFETY: as the caller guarantees.
                        let read = |from: *const T, step, c, n| unsafe {
                            read_some(from.wrapping_add(c * step), step, n)
                        };
                        let packed = grad[p * channels..].as_ptr();
                        products::<T::Vector>(
                            channels,
                            |c, n| read(image.wrapping_add(at), image_plane, c, n),
                            // SAFETY: a pixel has these `n` channels.
                            |c, n| unsafe { load_some(packed.add(c), n) },
                        )
                    });
                    (0..rank).for_each(|axis| sums[axis * wide + p] = numbers[axis]);
                }
                let [.., height, width] = of.grad.sizes;
                for axis in 0..rank {
                    let sums = &sums[axis * wide..];
                    // SAFETY: as the caller guarantees; each pixel belongs to one work item.
                    unsafe { self.out.write((sample, axis), &pixels, [height, width], sums) };
                }
            }
            Ok(())
        })
    }

    /// Computes sums over blocks of contiguous channels, which are then added.
    ///
    /// # Safety
    /// As for [`OfGrid::run`].
    pub(super) unsafe fn packed(&self, block: usize) -> Result<(), Error> {
        let (of, rank) = (self.of, self.of.grid.rank);
        let ([samples, channels, ..], all) = (of.grad.sizes, of.pixels());
        let (blocks, outside) = (channels.div_ceil(block), elements(&of.image) * block);
        // SAFETY: each element is written before it is read.
        let mut parts = unsafe { Scratch::<T::Acc>::unwritten(samples * blocks * all * rank)? };
        // SAFETY: they are used within this call.
        let parts = unsafe { Lanes::new(parts.as_mut_ptr()) };
        let work = (all * of.taps() + elements(&of.image)).saturating_mul(block);
        parallel_try(samples * blocks, GRAIN / work.max(1), |range| {
            let mut grid_taps = of.grid_taps(true)?;
            let mut image = Scratch::<T::Acc>::zeroed(outside)?;
            let mut staged = Scratch::<T::Acc>::zeroed(GROUP * block)?;
            for i in range {
                let (sample, first) = (i / blocks, i % blocks * block);
                let channels = first..(first + block).min(channels);
                // The last block may have fewer channels, padded with zeros.
                image.fill(T::Acc::ZERO);
                staged.fill(T::Acc::ZERO);
                // SAFETY: as the caller guarantees; copies have capacity for a block; the values of a block belong to one work
                // item.
                unsafe {
                    side_by_side(&of.image, sample, &channels, block, &mut image);
                    for pixels in of.chunks() {
                        let steps = (packed_steps(&of.image, block), -1);
                        of.find((sample, &pixels), steps, &mut grid_taps);
                        for p in 0..pixels.len() {
                            let in_group = p % GROUP;
                            if in_group == 0 {
                                let begin = pixels.start + p;
                                let group = begin..(begin + GROUP).min(pixels.end);
                                of.turn_grad((sample, &channels), group, block, staged.as_mut_ptr());
                            }
                            let grad = staged[in_group * block..].as_ptr();
                            let numbers = slopes(&grid_taps, p, rank, |at| {
                                let image = image.as_ptr().add(at);
                                let load = |from: *const T::Acc, c| T::Vector::load(from.add(c));
                                products::<T::Vector>(block, |c, _| load(image, c), |c, _| load(grad, c))
                            });
                            let to = parts.as_ptr().add((i * all + pixels.start + p) * rank);
                            to.copy_from_nonoverlapping(numbers.as_ptr(), rank);
                        }
                    }
                }
            }
            Ok(())
        })?;
        parallel_try(samples * all, GRAIN / (blocks * rank), |range| {
            for i in range {
                let (sample, p) = (i / all, i % all);
                let mut numbers = [T::Acc::ZERO; AXES];
                for block in 0..blocks {
                    for (axis, number) in numbers.iter_mut().enumerate().take(rank) {
                        let at = ((sample * blocks + block) * all + p) * rank + axis;
                        // SAFETY: the element was written above.
                        *number += unsafe { *parts.as_ptr().add(at) };
                    }
                }
                // SAFETY: as the caller guarantees; each location is written once.
                unsafe { self.write(sample, p, &numbers[..rank]) };
            }
            Ok(())
        })
    }
}

/// The sum over the valid elements of pixel `p` of their slopes with respect to each coordinate; `product` returns an
/// element times the pixel's gradient.
#[inline(always)]
fn slopes<T: Elements>(
    grid_taps: &GridTaps<T>,
    p: usize,
    rank: usize,
    product: impl Fn(usize) -> T::Vector,
) -> [T::Acc; AXES] {
    let zero = T::Vector::splat(T::Acc::ZERO);
    let mut sums = [zero; AXES];
    for k in 0..grid_taps.taps {
        let (at, _) = grid_taps.tap(k, p);
        // Taps outside are not read: infinity times their slope, 0, is NaN.
        if at >= 0 {
            let products = product(at as usize);
            for (axis, sum) in sums.iter_mut().enumerate().take(rank) {
                *sum = products.mul_add(T::Vector::splat(grid_taps.slope(axis, k, p)), *sum);
            }
        }
    }
    let mut numbers = [T::Acc::ZERO; AXES];
    numbers.iter_mut().zip(sums).take(rank).for_each(|(number, lanes)| *number = sum(lanes, zero));
    numbers
}

/// The dot product of two lists, accumulated in lanes.
#[inline(always)]
fn products<V: Vector>(n: usize, left: impl Fn(usize, usize) -> V, right: impl Fn(usize, usize) -> V) -> V {
    let mut sums = V::splat(V::Number::ZERO);
    let whole = n - n % V::LANES;
    for c in (0..whole).step_by(V::LANES) {
        sums = left(c, V::LANES).mul_add(right(c, V::LANES), sums);
    }
    if whole < n {
        sums = left(whole, n - whole).mul_add(right(whole, n - whole), sums);
    }
    sums
}
