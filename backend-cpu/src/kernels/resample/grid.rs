//! `grid_sample`

use super::GRAIN;
use super::side::{Mode, Padding, Side};
use keyway_cpu_loops::images::{Volume, three};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Lanes as Elements, Vector, read_some, sum, widen, write_some};
use keyway_sdk::author::{Call, Element, Error, Lanes, Real, Scratch};
use keyway_sdk::half::{bf16, f16};
use std::any::TypeId;
use std::ops::Range;

/// Pixels that are gone through at once; the most where channels are copied, and pieces of work beyond which they are fewer.
const CHUNK: usize = 256;
const COPIED: usize = 4096;
const ENOUGH: usize = 8;
/// Elements of a channel for each pixel up to which it is copied.
const FEW: usize = 4;
/// Elements that a pixel is made of, at most: four each way, or two in each of three. No vector has more lanes.
const MOST: usize = 16;

/// The meaning of the text in argument `i`.
fn meant<M: Copy>(
    call: &Call<'_>,
    i: usize,
    argument: &'static str,
    names: [(&str, M); 3],
) -> Result<M, Error> {
    let text = call.str(i)?;
    names.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode).ok_or_else(|| {
        let [a, b, c] = names.map(|(name, _)| name);
        Error::InvalidArgument {
            argument,
            expected: format!("`{a}`, `{b}` or `{c}`"),
            got: format!("`{text}`"),
        }
    })
}

/// The elements that neighbouring pixels of one sample are made of, and how much each counts: `[taps][wide]`.
struct Chunk<T: Elements> {
    /// Where they lie, from the sample's first element on.
    at: Scratch<i32>,
    weight: Scratch<T::Acc>,
    /// How many each pixel has; the others count nothing, and its first element stands for them.
    counts: Scratch<u8>,
    /// A channel that is not summed as it is, widened.
    plane: Scratch<T::Acc>,
}

/// What is computed.
struct Sampling<'a, T: Elements> {
    image: Volume<'a, T>,
    out: Volume<'a, T>,
    sides: [Side; 3],
    /// Spatial dimensions.
    rank: usize,
    grid: Lanes<'a, T>,
    /// Elements of the grid from sample to sample, along each spatial dimension, and from axis to axis.
    of_sample: usize,
    of_place: [usize; 3],
    of_axis: usize,
    /// Elements that a pixel is made of, at most.
    most: usize,
    /// Pixels that are gone through at once: whole vectors of them.
    wide: usize,
}

impl<T: Elements> Sampling<'_, T> {
    /// The layer, row and column of each of some pixels.
    fn places(&self, pixels: &Range<usize>) -> impl Iterator<Item = [usize; 3]> {
        let [_, _, _, height, width] = self.out.sizes;
        let first = pixels.start;
        let mut next = [first / (height * width), first / width % height, first % width];
        pixels.clone().map(move |_| {
            let place = next;
            next[2] += 1;
            if next[2] == width {
                (next[1], next[2]) = (next[1] + 1, 0);
            }
            if next[1] == height {
                (next[0], next[1]) = (next[0] + 1, 0);
            }
            place
        })
    }

    /// Elements from the first to the last of a channel.
    fn span(&self) -> usize {
        (2..5).fold(1, |span, d| {
            (self.image.sizes[d] - 1).saturating_mul(self.image.strides[d]).saturating_add(span)
        })
    }

    /// Whether a channel's elements lie one behind the other.
    fn has_dense_planes(&self) -> bool {
        self.image.sizes[2..].iter().product::<usize>() == self.span()
    }

    fn chunk(&self) -> Result<Chunk<T>, Error> {
        // A copy is worth its time where it is read often enough.
        let is_other = TypeId::of::<T>() != TypeId::of::<T::Acc>();
        let copied = is_other && self.has_dense_planes() && self.span() <= FEW * self.wide;
        Ok(Chunk {
            at: Scratch::zeroed(self.most * self.wide)?,
            weight: Scratch::zeroed(self.most * self.wide)?,
            counts: Scratch::zeroed(self.wide)?,
            plane: Scratch::zeroed(if copied { self.span() } else { 0 })?,
        })
    }

    /// Finds what some pixels of a sample are made of.
    ///
    /// # Safety
    /// The grid must have a place for each.
    unsafe fn find(&self, chunk: &mut Chunk<T>, sample: usize, pixels: &Range<usize>) {
        for (p, place) in self.places(pixels).enumerate() {
            let from: usize = place.iter().zip(&self.of_place).map(|(i, stride)| i * stride).sum();
            // What each dimension reads; those that are not there have one element.
            let (mut along, mut found) = ([[(0, 1.0); 4]; 3], [1; 3]);
            for d in 3 - self.rank..3 {
                let at = sample * self.of_sample + from + (2 - d) * self.of_axis;
                // SAFETY: a coordinate of a place, as the caller guarantees.
                let value = unsafe { *self.grid.as_ptr().add(at) };
                found[d] = 0;
                self.sides[d].taps(value.to_f64(), |at, weight| {
                    along[d][found[d]] = (at * self.image.strides[d + 2], weight);
                    found[d] += 1;
                });
            }
            let mut count = 0;
            let mut put = |k: usize, at: usize, weight: f64| {
                chunk.at[k * self.wide + p] = at as i32;
                chunk.weight[k * self.wide + p] = T::Acc::from_f64(weight);
            };
            let [layers, rows, columns] = [0, 1, 2].map(|d| &along[d][..found[d]]);
            for (layer, by_layer) in layers {
                for (row, by_row) in rows {
                    for (column, by_column) in columns {
                        put(count, layer + row + column, by_layer * by_row * by_column);
                        count += 1;
                    }
                }
            }
            let first = if count > 0 { layers[0].0 + rows[0].0 + columns[0].0 } else { 0 };
            (count..self.most).for_each(|k| put(k, first, 0.0));
            chunk.counts[p] = count as u8;
        }
    }

    /// Writes `n` channels of a pixel from channel `c` on.
    ///
    /// # Safety
    /// The chunk must be of this sample, and nobody else may use the results.
    #[inline(always)]
    unsafe fn write(
        &self,
        chunk: &Chunk<T>,
        (sample, p): (usize, usize),
        (c, n): (usize, usize),
        to: *mut T,
    ) {
        let (from, to_step) = (self.image.strides[1], self.out.strides[1]);
        let data =
            self.image.data.as_ptr().cast_const().wrapping_add(sample * self.image.strides[0] + c * from);
        let mut sum = T::Vector::splat(T::Acc::ZERO);
        for k in (0..usize::from(chunk.counts[p])).map(|k| k * self.wide + p) {
            // SAFETY: channels of an element of the image.
            let elements: T::Vector = unsafe { read_some(data.wrapping_add(chunk.at[k] as usize), from, n) };
            sum = elements.mul_add(T::Vector::splat(chunk.weight[k]), sum);
        }
        // SAFETY: as the caller guarantees.
        unsafe { write_some(to.wrapping_add(c * to_step), to_step, n, sum) };
    }

    /// Computes pixels one by one, by vectors of channels.
    ///
    /// # Safety
    /// As for [`Sampling::write`].
    unsafe fn by_pixels(&self, chunk: &Chunk<T>, sample: usize, pixels: &Range<usize>) {
        for (p, [z, y, x]) in self.places(pixels).enumerate() {
            let index = [sample, 0, z, y, x];
            let at: usize = index.iter().zip(&self.out.strides).map(|(i, stride)| i * stride).sum();
            let (to, channels) = (self.out.data.as_ptr().wrapping_add(at), self.out.sizes[1]);
            for c in (0..channels).step_by(T::Vector::LANES) {
                // SAFETY: as the caller guarantees.
                unsafe { self.write(chunk, (sample, p), (c, T::Vector::LANES.min(channels - c)), to) };
            }
        }
    }

    /// Elements from pixel to pixel of the result, if they lie at one step.
    fn step(&self) -> Option<usize> {
        let ([_, _, depth, height, width], [_, _, layer, row, column]) = (self.out.sizes, self.out.strides);
        let follows = |count, step, all: usize| count == 1 || step == all * column;
        (follows(height, row, width) && follows(depth, layer, height * width)).then_some(column)
    }

    /// Computes channels one by one, by vectors of pixels, which lie `step` apart.
    ///
    /// # Safety
    /// As for [`Sampling::write`].
    unsafe fn by_planes(&self, chunk: &mut Chunk<T>, sample: usize, pixels: &Range<usize>, step: usize) {
        let partly = (0..pixels.len()).filter(|p| usize::from(chunk.counts[*p]) < self.most);
        let partly: Vec<usize> = partly.collect();
        for c in 0..self.out.sizes[1] {
            let at = sample * self.image.strides[0] + c * self.image.strides[1];
            let from = self.image.data.as_ptr().cast_const().wrapping_add(at);
            let at = sample * self.out.strides[0] + c * self.out.strides[1] + pixels.start * step;
            let to = self.out.data.as_ptr().wrapping_add(at);
            // SAFETY: elements of the channel, as the caller guarantees; places that are of no pixel are those of others.
            let finite = unsafe {
                if TypeId::of::<T>() == TypeId::of::<T::Acc>() {
                    let gather = |at: *const i32| T::Vector::gather(from.cast(), at);
                    self.of_plane(chunk, gather, (to, step), pixels.len())
                } else if chunk.plane.is_empty() {
                    let gather = |at: *const i32| {
                        let mut elements = [T::from_acc(T::Acc::ZERO); MOST];
                        for (i, element) in elements.iter_mut().enumerate().take(T::Vector::LANES) {
                            *element = *from.offset(*at.add(i) as isize);
                        }
                        T::read(elements.as_ptr())
                    };
                    self.of_plane(chunk, gather, (to, step), pixels.len())
                } else {
                    let count = chunk.plane.len();
                    widen(chunk.plane.as_mut_ptr(), from, count);
                    let gather = |at: *const i32| T::Vector::gather(chunk.plane.as_ptr(), at);
                    self.of_plane(chunk, gather, (to, step), pixels.len())
                }
            };
            // What counts nothing was read too, and infinity times 0 is no number.
            for &p in partly.iter().filter(|_| !finite) {
                // SAFETY: a result that was written above; nobody else uses them.
                unsafe {
                    let to = to.wrapping_add(p * step);
                    if (*to).to_acc().is_nan() {
                        self.write(chunk, (sample, p), (c, 1), to.wrapping_sub(c * self.out.strides[1]));
                    }
                }
            }
        }
    }

    /// Computes the pixels of a channel, whose elements `gather` reads. Returns whether all are finite.
    ///
    /// # Safety
    /// As for [`Sampling::write`].
    #[inline(always)]
    unsafe fn of_plane(
        &self,
        chunk: &Chunk<T>,
        gather: impl Fn(*const i32) -> T::Vector,
        (to, step): (*mut T, usize),
        pixels: usize,
    ) -> bool {
        let (lanes, zero) = (T::Vector::LANES, T::Vector::splat(T::Acc::ZERO));
        // 0 as long as all are, else no number.
        let mut zeros = zero;
        for p in (0..pixels).step_by(lanes) {
            let mut total = zero;
            for k in (0..self.most).map(|k| k * self.wide + p) {
                // SAFETY: the chunk has whole vectors of places and weights.
                let weight = unsafe { T::Vector::load(chunk.weight.as_ptr().add(k)) };
                total = gather(chunk.at.as_ptr().wrapping_add(k)).mul_add(weight, total);
            }
            zeros = total.mul_add(zero, zeros);
            // SAFETY: as the caller guarantees.
            unsafe { write_some(to.wrapping_add(p * step), step, lanes.min(pixels - p), total) };
        }
        sum(zeros, zero) == T::Acc::ZERO
    }
}

fn grid_sample<T: Elements>(call: &Call) -> Result<(), Error> {
    let (image, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    let modes = [("bilinear", Mode::Bilinear), ("nearest", Mode::Nearest), ("bicubic", Mode::Bicubic)];
    let paddings =
        [("zeros", Padding::Zeros), ("border", Padding::Border), ("reflection", Padding::Reflection)];
    let mode = meant(call, 2, "mode", modes)?;
    let padding = meant(call, 3, "padding_mode", paddings)?;
    let align_corners = call.bool(4)?;
    let sides = [2, 3, 4].map(|d| Side { size: image.sizes[d], mode, padding, align_corners });
    let grid = call.view::<T>(1)?;
    let (&[of_sample, ref places @ .., of_axis], 4..=5) = (grid.strides(), grid.sizes().len()) else {
        return Err(Error::InvalidArgument {
            argument: "grid",
            expected: "a tensor of 4 or 5 dimensions".into(),
            got: format!("sizes {:?}", grid.sizes()),
        });
    };
    let [of_sample, of_axis] = [of_sample, of_axis].map(|stride| stride.max(0) as usize);
    let (rank, of_place) = (places.len(), three(places, 0));
    let most = match mode {
        Mode::Nearest => 1,
        Mode::Bilinear => 1 << rank,
        Mode::Bicubic => MOST,
    };
    // SAFETY: the host guarantees the elements of a call's tensors; they are only read.
    let grid = unsafe { Lanes::new(grid.as_ptr().cast_mut()) };
    let [samples, channels, depth, height, width] = out.sizes;
    let pixels = depth * height * width;
    if samples * pixels == 0 {
        return Ok(());
    }
    let wide = if TypeId::of::<T>() == TypeId::of::<T::Acc>() {
        CHUNK
    } else {
        (samples * pixels).div_ceil(ENOUGH).clamp(CHUNK, COPIED)
    };
    let wide = wide.min(pixels).next_multiple_of(T::Vector::LANES);
    let sampling = Sampling { image, out, sides, rank, grid, of_sample, of_place, of_axis, most, wide };
    if sampling.span() > i32::MAX as usize {
        return Err(Error::Unsupported { what: "images of so many pixels".into() });
    }
    let chunks = pixels.div_ceil(wide);
    // Channels side by side are read together, else pixels.
    let step = sampling.step().filter(|_| channels == 1 || sampling.image.strides[1] != 1);
    parallel_try(samples * chunks, GRAIN / (wide * most * channels.max(1)), |range| {
        let mut chunk = sampling.chunk()?;
        for i in range {
            let (sample, first) = (i / chunks, i % chunks * wide);
            let pixels = first..(first + wide).min(pixels);
            // SAFETY: the op's rule has matched the grid's sizes with the output's, which is this call's alone; each pixel is
            // one piece's. The host guarantees the image's elements.
            unsafe {
                sampling.find(&mut chunk, sample, &pixels);
                match step {
                    Some(step) => sampling.by_planes(&mut chunk, sample, &pixels, step),
                    None => sampling.by_pixels(&chunk, sample, &pixels),
                }
            }
        }
        Ok(())
    })
}

kernel!("grid_sample", "TTSSb>T", grid_sample, [f32, f64, f16, bf16]);
