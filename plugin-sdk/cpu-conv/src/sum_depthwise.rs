//! `conv_weight_grad` of depthwise convolutions, with one kernel per channel: vectors of channels, whose accumulators for
//! some kernel taps stay in registers over several rows of output positions. channels_last operands are read in place;
//! others are transposed first.

use super::block::WORK;
use super::chunks::{Chunk, chunks};
use super::depthwise::{ZEROS, vector};
use crate::image::{Band, Numbers, Pixel, has_dense_channels, unsupported};
use keyway_cpu_loops::images::{Axis, Moves, Volume};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Vector, read_some, write_some};
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::ops::Range;

const LANES: usize = Numbers::LANES;
/// The number of kernel rows, and of taps per row, whose accumulators stay in registers.
const TAPS: usize = 3;
/// The number of neighbouring positions processed together, so that accumulators and operands fit the registers.
const PLACES: usize = if LANES == 16 { 4 } else { 2 };
/// The approximate number of positions of the rows over which accumulators stay in registers.
const TOGETHER: usize = 32;
/// The number of channels whose sums are contiguous: their operands are contiguous in memory, and a transposed chunk fits
/// L2.
const WIDE: usize = 8 * LANES;
/// The number of work items that occupies all threads.
const ENOUGH: usize = 32;

/// Computes the gradient of the weight, which is not empty.
///
/// # Safety
/// As for [`super::summed::run`], with a group for each channel.
pub unsafe fn run<T: Pixel>(
    grad: &Volume<'_, T>,
    input: &Volume<'_, T>,
    out: &Volume<'_, T>,
    moves: &Moves,
) -> Result<(), Error> {
    let dense = [grad, input].map(has_dense_channels);
    if dense == [false; 2] && moves.groups < LANES {
        return Err(unsupported("a depthwise convolution of few planes"));
    }
    let ([_, _, places @ ..], [_, _, kernel @ ..]) = (grad.sizes, out.sizes);
    let [_, height, width] = moves.axes(input, places, kernel)?;
    let own = [1, 2].map(|d| Axis::of(grad, d, places[d], 1, vec![0]));
    let of = Sum { grad, input, axes: [height, width], own };
    // Refuses taps with too large a distance, also for images read in place.
    Band::of(&of.axes, 1)?;
    let (channels, taps) = (moves.groups, kernel.iter().product::<usize>());
    let chunks = chunks(grad.sizes[0], places[1], places[2]);
    let columns = channels.div_ceil(WIDE);
    let parts = ENOUGH.div_ceil(columns).min(chunks.len());
    let size = taps * WIDE;
    let mut sums = Scratch::<f32>::zeroed(parts * columns * size)?;
    // SAFETY: the address is used within this call, and each task has the sums of its part and columns.
    let to = unsafe { Lanes::new(sums.as_mut_ptr()) };
    let work = grad.sizes[0].saturating_mul(places[1] * places[2]) / parts.max(1);
    parallel_try(parts * columns, WORK / work.saturating_mul(size).max(1), |range| {
        let mut own = Scratch::<f32>::zeroed(size)?;
        for task in range {
            let (part, column) = (task / columns, task % columns);
            let vectors = column * WIDE / LANES..((column + 1) * WIDE / LANES).min(channels.div_ceil(LANES));
            let starts: Vec<usize> = vectors.map(|v| vector(v, channels)).collect();
            // SAFETY: each task has its own sums.
            let to = unsafe { std::slice::from_raw_parts_mut(to.as_ptr().wrapping_add(task * size), size) };
            for chunk in &chunks[part * chunks.len() / parts..(part + 1) * chunks.len() / parts] {
                own.fill(0.0);
                // SAFETY: as the caller guarantees.
                unsafe {
                    match dense {
                        [true, true] => of.add(chunk, &starts, &mut own),
                        _ => of.add_turned(chunk, &starts, &mut own)?,
                    }
                }
                crate::image::add(to, &own);
            }
        }
        Ok(())
    })?;
    let taps = out.places(kernel.map(|size| 0..size))?;
    // SAFETY: as the caller guarantees.
    unsafe { put(out, &sums, columns * size, &taps) };
    Ok(())
}

/// Adds the partial sums, `size` values each, in order, and writes the totals to the weight's gradient.
///
/// # Safety
/// The weight must have these elements for each channel, uniquely owned.
unsafe fn put<T: Pixel>(out: &Volume<'_, T>, sums: &[f32], size: usize, taps: &[usize]) {
    let channels = out.sizes[0];
    for v in 0..channels.div_ceil(LANES) {
        let (column, v, first) = (v * LANES / WIDE, v * LANES % WIDE, vector(v, channels));
        for (t, tap) in taps.iter().enumerate() {
            let at = (column * taps.len() + t) * WIDE + v;
            let mut total = [0.0; LANES];
            sums.chunks_exact(size).for_each(|part| crate::image::add(&mut total, &part[at..at + LANES]));
            let to = out.data.as_ptr().wrapping_add(first * out.strides[0] + tap);
            let n = LANES.min(channels - first);
            // SAFETY: an array has a vector; the caller guarantees the elements.
            unsafe { write_some(to, out.strides[0], n, Numbers::load(total.as_ptr())) };
        }
    }
}

/// The operands of the reduction.
struct Sum<'a, T> {
    grad: &'a Volume<'a, T>,
    input: &'a Volume<'a, T>,
    /// The axes of the image under the kernel, and those of the gradients, with one tap each.
    axes: [Axis; 2],
    own: [Axis; 2],
}

impl<T: Pixel> Sum<'_, T> {
    /// Adds the products of a chunk to the sums of some vectors of channels, from operands with dense channels.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn add(&self, chunk: &Chunk, starts: &[usize], to: &mut [f32]) {
        let [image, grad] = [self.input, self.grad];
        let (channels, pixel, place) = (image.sizes[1], image.strides[4], grad.strides[4]);
        let line = Line { axis: &self.axes[1], channels, pixel, place };
        for sample in chunk.samples.clone() {
            let row = |of: &Volume<'_, T>, y: usize| {
                of.data.as_ptr().cast_const().wrapping_add(sample * of.strides[0] + y * of.strides[3])
            };
            let read = |y, tap| self.axes[0].element(y, tap).map(|y| row(image, y));
            // SAFETY: as the caller guarantees.
            unsafe {
                line.add(&chunk.rows, self.axes[0].taps.len(), read, |y| row(grad, y), starts, to);
            }
        }
    }

    /// [`Sum::add`] for operands that are copied, and transposed if their channels are not dense.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn add_turned(&self, chunk: &Chunk, starts: &[usize], to: &mut [f32]) -> Result<(), Error> {
        let first = starts.first().copied().unwrap_or(0);
        let channels = (starts.last().map_or(0, |last| last + LANES)).min(self.input.sizes[1]) - first;
        let bands = [Band::of(&self.axes, channels)?, Band::of(&self.own, channels)?];
        let starts: Vec<usize> = starts.iter().map(|start| start - first).collect();
        let room = bands.each_ref().map(|band| band.rows(chunk.rows.len()) * band.row);
        // SAFETY: both are written before they are read.
        let mut copies =
            unsafe { [Scratch::<f32>::unwritten(room[0])?, Scratch::<f32>::unwritten(room[1])?] };
        let axis = bands[0].across(&self.axes[1]);
        let line = Line { axis: &axis, channels, pixel: channels, place: channels };
        for sample in chunk.samples.clone() {
            for ((copy, band), image) in copies.iter_mut().zip(&bands).zip([self.input, self.grad]) {
                // SAFETY: the caller guarantees the elements; the copy has capacity for these rows.
                unsafe { band.copy(copy.as_mut_ptr(), image, sample, &chunk.rows, first) };
            }
            let row = |i: usize, y: usize| copies[i].as_ptr().wrapping_add(y * bands[i].row);
            let nth = |y: usize| y - chunk.rows.start;
            let read = |y: usize, tap: usize| {
                // Rows outside the image are skipped, so that sums do not depend on the memory format.
                let first = self.axes[0].element(y, tap).map(|_| nth(y) * bands[0].step[0]);
                first.map(|first| row(0, first + bands[0].down(self.axes[0].taps[tap])))
            };
            // SAFETY: the copies contain the pixels that the rows read.
            unsafe {
                line.add(&chunk.rows, self.axes[0].taps.len(), read, |y| row(1, nth(y)), &starts, to);
            }
        }
        Ok(())
    }
}

/// The input rows that some rows of the kernel read for a row of positions, and the gradients of the positions.
#[derive(Clone, Copy)]
struct Row<S> {
    image: [*const S; TAPS],
    grad: *const S,
}

/// The access pattern of a row of positions.
struct Line<'a> {
    axis: &'a Axis,
    /// The number of channels of a pixel.
    channels: usize,
    /// The stride between pixels, and between gradients, in elements.
    pixel: usize,
    place: usize,
}

/// A block of kernel taps: in some rows the taps starting at `first`; `tap` is the index of the first tap.
#[derive(Clone, Copy)]
struct Taps {
    first: usize,
    tap: usize,
}

impl Line<'_> {
    /// Adds the products of some rows of positions to the sums of all kernel taps, which have stride [`WIDE`], for the
    /// vectors of channels that begin at `starts`.
    ///
    /// # Safety
    /// The rows that `read` returns for a row of positions and a row of taps must contain the pixels read there, if
    /// there are any, and the rows of `grad` a gradient for each position.
    unsafe fn add<S: Pixel>(
        &self,
        places: &Range<usize>,
        height: usize,
        read: impl Fn(usize, usize) -> Option<*const S>,
        grad: impl Fn(usize) -> *const S,
        starts: &[usize],
        to: &mut [f32],
    ) {
        let wide = self.axis.taps.len();
        let together = TOGETHER.div_ceil(self.axis.count);
        for some in (places.start..places.end).step_by(together) {
            let places = some..(some + together).min(places.end);
            for top in (0..height).step_by(TAPS) {
                let tall = top..(top + TAPS).min(height);
                // Neighbouring rows of positions that use the same rows of the kernel.
                let read_by = |y: usize| {
                    let inside = |t: &usize| read(y, *t).is_some();
                    let first = tall.clone().find(inside).unwrap_or(tall.end);
                    first..tall.clone().rfind(inside).map_or(first, |last| last + 1)
                };
                let mut y = places.start;
                while y < places.end {
                    let taps = read_by(y);
                    let end = (y..places.end).find(|next| read_by(*next) != taps).unwrap_or(places.end);
                    let row = |y: usize| {
                        let at = |i: usize| if i < taps.len() { read(y, taps.start + i) } else { None };
                        let image = std::array::from_fn(|i| at(i).unwrap_or(std::ptr::null()));
                        Row { image, grad: grad(y) }
                    };
                    let rows: Vec<Row<S>> = (y..end).map(row).collect();
                    for first in (0..wide).step_by(TAPS) {
                        let of = Taps { first, tap: taps.start * wide + first };
                        let size = [taps.len(), TAPS.min(wide - first)];
                        // SAFETY: as the caller guarantees; there is a vector of sums for each.
                        unsafe { self.tile(&rows, of, size, starts, to) };
                    }
                    y = end;
                }
            }
        }
    }

    /// # Safety
    /// As for [`Line::add`], for this number of rows of taps and of taps in each.
    unsafe fn tile<S: Pixel>(
        &self,
        rows: &[Row<S>],
        of: Taps,
        [tall, wide]: [usize; 2],
        starts: &[usize],
        to: &mut [f32],
    ) {
        if self.channels < LANES {
            // SAFETY: as the caller guarantees.
            return unsafe { self.few(rows, of, [tall, wide], to) };
        }
        let taps = &self.axis.taps[of.first..of.first + wide];
        let slides = taps.windows(2).all(|pair| pair[1] == pair[0] + self.axis.step.cast_signed());
        macro_rules! by_size {
            ($(($r:literal, $k:literal))*) => {
                match (tall, wide) {
                    // SAFETY: as the caller guarantees.
                    $(($r, $k) => unsafe {
                        match slides {
                            true => self.fixed::<S, $r, $k, true>(rows, of, starts, to),
                            false => self.fixed::<S, $r, $k, false>(rows, of, starts, to),
                        }
                    },)*
                    _ => debug_assert!(tall == 0, "{tall} rows of {wide} elements at once"),
                }
            };
        }
        const { assert!(TAPS == 3) };
        by_size!((1, 1)(1, 2)(1, 3)(2, 1)(2, 2)(2, 3)(3, 1)(3, 2)(3, 3));
    }

    /// A separate function with plain loops over constants, so that the compiler allocates registers for the accumulators.
    ///
    /// # Safety
    /// As for [`Line::tile`]; a row has vectors of channels.
    #[inline(never)]
    unsafe fn fixed<S: Pixel, const R: usize, const K: usize, const SLIDES: bool>(
        &self,
        rows: &[Row<S>],
        of: Taps,
        starts: &[usize],
        to: &mut [f32],
    ) {
        let taps: [isize; K] = std::array::from_fn(|k| self.axis.taps[of.first + k]);
        let (count, inner) = (self.axis.count, self.axis.all_inside(of.first..of.first + K));
        let next = self.axis.taps.len() * WIDE;
        for (v, &c) in starts.iter().enumerate() {
            let mut sums = [[Numbers::splat(0.0); K]; R];
            for row in rows {
                let mut x = 0;
                while x < count {
                    // SAFETY: as the caller guarantees.
                    unsafe {
                        if x >= inner.start && x + PLACES <= inner.end {
                            self.inner::<S, R, K, SLIDES>(row, &taps, x, c, &mut sums);
                            x += PLACES;
                        } else {
                            self.single::<S, R, K>(row, &taps, x, c, &mut sums);
                            x += 1;
                        }
                    }
                }
            }
            let to = to[of.tap * WIDE + v * LANES..].as_mut_ptr();
            let one = Numbers::splat(1.0);
            for (r, sums) in sums.iter().enumerate() {
                for (k, sum) in sums.iter().enumerate() {
                    let to = to.wrapping_add(r * next + k * WIDE);
                    // SAFETY: there is a vector of sums for each tap.
                    unsafe { sum.mul_add(one, Numbers::load(to)).store(to) };
                }
            }
        }
    }

    /// Adds the products of [`PLACES`] positions at which every tap is inside the row.
    ///
    /// # Safety
    /// As for [`Line::fixed`].
    #[inline(always)]
    unsafe fn inner<S: Pixel, const R: usize, const K: usize, const SLIDES: bool>(
        &self,
        row: &Row<S>,
        taps: &[isize; K],
        x: usize,
        c: usize,
        sums: &mut [[Numbers; K]; R],
    ) {
        let mut grads = [Numbers::splat(0.0); PLACES];
        let mut from = row.grad.wrapping_add(x * self.place + c);
        for grad in &mut grads {
            // SAFETY: as the caller guarantees.
            *grad = unsafe { S::read(from) };
            from = from.wrapping_add(self.place);
        }
        let (step, pixel) = (self.axis.step * self.pixel, self.pixel.cast_signed());
        let first = (x * self.axis.step).cast_signed();
        let add = |row: *const S, sums: &mut [Numbers; K]| {
            if SLIDES {
                let mut pixels = [Numbers::splat(0.0); PLACES + TAPS - 1];
                let mut from = row.wrapping_offset((first + taps[0]) * pixel).wrapping_add(c);
                for pixel in pixels.iter_mut().take(PLACES + K - 1) {
                    // SAFETY: as above.
                    *pixel = unsafe { S::read(from) };
                    from = from.wrapping_add(step);
                }
                for p in 0..PLACES {
                    for k in 0..K {
                        sums[k] = pixels[p + k].mul_add(grads[p], sums[k]);
                    }
                }
                return;
            }
            for k in 0..K {
                let mut from = row.wrapping_offset((first + taps[k]) * pixel).wrapping_add(c);
                for grad in grads {
                    // SAFETY: as above.
                    sums[k] = unsafe { S::read(from) }.mul_add(grad, sums[k]);
                    from = from.wrapping_add(step);
                }
            }
        };
        each_row(row, sums, add);
    }

    /// Adds the products of one position; pixels beyond the row are 0.
    ///
    /// # Safety
    /// As for [`Line::fixed`].
    #[inline(always)]
    unsafe fn single<S: Pixel, const R: usize, const K: usize>(
        &self,
        row: &Row<S>,
        taps: &[isize; K],
        x: usize,
        c: usize,
        sums: &mut [[Numbers; K]; R],
    ) {
        const { assert!(size_of::<S>() <= size_of::<f32>()) };
        let first = (x * self.axis.step).cast_signed();
        let (size, pixel) = (self.axis.size.cast_signed(), self.pixel.cast_signed());
        // SAFETY: as the caller guarantees.
        let grad = unsafe { S::read(row.grad.wrapping_add(x * self.place + c)) };
        each_row(row, sums, |row, sums| {
            for k in 0..K {
                let at = first + taps[k];
                let from = row.wrapping_offset(at * pixel).wrapping_add(c);
                let from = if at >= 0 && at < size { from } else { ZEROS.as_ptr().cast() };
                // SAFETY: the pixel is in the row, or a vector of zeros.
                sums[k] = unsafe { S::read(from) }.mul_add(grad, sums[k]);
            }
        });
    }

    /// [`Line::tile`] for fewer channels than lanes.
    ///
    /// # Safety
    /// As for [`Line::tile`].
    unsafe fn few<S: Pixel>(&self, rows: &[Row<S>], of: Taps, [tall, wide]: [usize; 2], to: &mut [f32]) {
        let n = self.channels.min(LANES);
        for (r, k) in (0..tall).flat_map(|r| (0..wide).map(move |k| (r, k))) {
            let inside = self.axis.inside(of.first + k, 0..self.axis.count);
            let mut sum = Numbers::splat(0.0);
            for (row, x) in rows.iter().flat_map(|row| inside.clone().map(move |x| (row, x))) {
                let pixel = (x * self.axis.step).wrapping_add_signed(self.axis.taps[of.first + k]);
                // SAFETY: as the caller guarantees.
                unsafe {
                    let grad = read_some(row.grad.wrapping_add(x * self.place), 1, n);
                    sum = read_some(row.image[r].wrapping_add(pixel * self.pixel), 1, n).mul_add(grad, sum);
                }
            }
            let at = (of.tap + r * self.axis.taps.len() + k) * WIDE;
            let to = &mut to[at..at + LANES];
            // SAFETY: the slice has a vector.
            unsafe { sum.mul_add(Numbers::splat(1.0), Numbers::load(to.as_ptr())).store(to.as_mut_ptr()) };
        }
    }
}

/// Calls the closure with each row and its sums, unrolled by recursion: the compiler does not unroll a loop of this length.
#[inline(always)]
fn each_row<S: Copy, const R: usize, const K: usize>(
    row: &Row<S>,
    sums: &mut [[Numbers; K]; R],
    add: impl Fn(*const S, &mut [Numbers; K]),
) {
    const { assert!(TAPS == 3 && R <= TAPS) };
    if R > 0 {
        add(row.image[0], &mut sums[0]);
    }
    if R > 1 {
        add(row.image[1], &mut sums[1]);
    }
    if R > 2 {
        add(row.image[2], &mut sums[2]);
    }
}
