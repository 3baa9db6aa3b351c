//! `grid_sample`

use super::GRAIN;
use super::tables::cubic;
use keyway_cpu_loops::images::{Volume, three};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Lanes as Elements, Vector, read_some, write_some};
use keyway_sdk::author::{Call, Element, Error, Lanes, Real, Scratch};
use keyway_sdk::half::{bf16, f16};
use std::ops::Range;

/// Pixels that are gone through at once.
const CHUNK: usize = 256;
/// Elements that a pixel is made of, at most: four each way, or two in each of three. No vector has more lanes.
const MOST: usize = 16;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Bilinear,
    Nearest,
    Bicubic,
}

#[derive(Clone, Copy, PartialEq)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

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

/// A spatial dimension of the images, what lies outside, and how pixels are made.
struct Side {
    size: usize,
    mode: Mode,
    padding: Padding,
    align_corners: bool,
}

impl Side {
    fn last(&self) -> f64 {
        self.size as f64 - 1.0
    }

    /// A place that was outside moved inside, unless zeros lie there.
    fn moved(&self, at: f64) -> f64 {
        let (low, span) = if self.align_corners { (0.0, self.last()) } else { (-0.5, self.size as f64) };
        match self.padding {
            Padding::Zeros => at,
            Padding::Border => at.clamp(0.0, self.last()),
            Padding::Reflection if span == 0.0 => at * 0.0,
            Padding::Reflection => {
                let away = (at - low).abs();
                let rest = away % span;
                let odd = (away / span).floor() % 2.0 == 1.0;
                (low + if odd { span - rest } else { rest }).clamp(0.0, self.last())
            }
        }
    }

    /// Gives `add` the elements that a place in -1..1 is made of, and their weights; none outside, or where it is no number.
    fn taps(&self, place: f64, mut add: impl FnMut(usize, f64)) {
        let at = if self.align_corners {
            (place + 1.0) * (self.last() / 2.0)
        } else {
            (place + 1.0) * (self.size as f64 / 2.0) - 0.5
        };
        let mut tap = |at: f64, weight: f64| {
            if (0.0..=self.last()).contains(&at) {
                add(at as usize, weight);
            }
        };
        match self.mode {
            Mode::Nearest => tap(self.moved(at).round_ties_even(), 1.0),
            Mode::Bilinear => {
                let at = self.moved(at);
                let (first, share) = (at.floor(), at - at.floor());
                tap(first, 1.0 - share);
                tap(first + 1.0, share);
            }
            Mode::Bicubic => {
                let first = at.floor();
                for (k, weight) in cubic(at - first).into_iter().enumerate() {
                    tap(self.moved(first + k as f64 - 1.0), weight);
                }
            }
        }
    }
}

/// The elements that neighbouring pixels of one sample are made of, and how much each counts: `[taps][CHUNK]`.
struct Chunk<T: Elements> {
    /// Where they lie in the first channel.
    at: Scratch<u64>,
    weight: Scratch<T::Acc>,
    /// How many each pixel has; the others count nothing, and any element stands for them.
    counts: [usize; CHUNK],
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
}

impl<T: Elements> Sampling<'_, T> {
    /// The layer, row and column of a pixel.
    fn place(&self, pixel: usize) -> [usize; 3] {
        let [_, _, _, height, width] = self.out.sizes;
        [pixel / (height * width), pixel / width % height, pixel % width]
    }

    /// Finds what some pixels of a sample are made of.
    ///
    /// # Safety
    /// The grid must have a place for each.
    unsafe fn find(&self, chunk: &mut Chunk<T>, sample: usize, pixels: &Range<usize>) {
        let [by_sample, _, by_spatial @ ..] = self.image.strides;
        for (p, pixel) in pixels.clone().enumerate() {
            let from: usize = self.place(pixel).iter().zip(&self.of_place).map(|(i, stride)| i * stride).sum();
            // A dimension is put in front of those that are done, from the last to the first.
            let mut taps = [(0, 0.0); MOST];
            let mut count = 1;
            taps[0] = (sample * by_sample, 1.0);
            for d in 3 - self.rank..3 {
                let at = sample * self.of_sample + from + (2 - d) * self.of_axis;
                // SAFETY: a coordinate of a place, as the caller guarantees.
                let value = unsafe { *self.grid.as_ptr().add(at) };
                let mut along = [(0, 0.0); 4];
                let mut found = 0;
                self.sides[d].taps(value.to_f64(), |at, weight| {
                    along[found] = (at * by_spatial[d], weight);
                    found += 1;
                });
                let outer = taps;
                for (i, &(base, share)) in outer[..count].iter().enumerate() {
                    for (k, &(at, weight)) in along[..found].iter().enumerate() {
                        taps[i * found + k] = (base + at, share * weight);
                    }
                }
                count *= found;
            }
            for k in 0..self.most {
                let (at, weight) = if k < count { taps[k] } else { (sample * by_sample, 0.0) };
                chunk.at[k * CHUNK + p] = at as u64;
                chunk.weight[k * CHUNK + p] = T::Acc::from_f64(weight);
            }
            chunk.counts[p] = count;
        }
    }

    /// Writes `n` channels of a pixel from channel `c` on.
    ///
    /// # Safety
    /// The chunk must be of this image, and nobody else may use the results.
    #[inline(always)]
    unsafe fn write(&self, chunk: &Chunk<T>, p: usize, (c, n): (usize, usize), to: *mut T) {
        let (from, to_step) = (self.image.strides[1], self.out.strides[1]);
        let mut sum = T::Vector::splat(T::Acc::ZERO);
        for k in (0..chunk.counts[p]).map(|k| k * CHUNK + p) {
            let data = self.image.data.as_ptr().cast_const().wrapping_add(chunk.at[k] as usize + c * from);
            // SAFETY: channels of an element of the image.
            sum = unsafe { read_some(data, from, n) }.mul_add(T::Vector::splat(chunk.weight[k]), sum);
        }
        // SAFETY: as the caller guarantees.
        unsafe { write_some(to.wrapping_add(c * to_step), to_step, n, sum) };
    }

    /// Computes pixels one by one, by vectors of channels.
    ///
    /// # Safety
    /// As for [`Sampling::write`].
    unsafe fn by_pixels(&self, chunk: &Chunk<T>, sample: usize, pixels: &Range<usize>) {
        for (p, pixel) in pixels.clone().enumerate() {
            let [z, y, x] = self.place(pixel);
            let index = [sample, 0, z, y, x];
            let at: usize = index.iter().zip(&self.out.strides).map(|(i, stride)| i * stride).sum();
            let (to, channels) = (self.out.data.as_ptr().wrapping_add(at), self.out.sizes[1]);
            for c in (0..channels).step_by(T::Vector::LANES) {
                // SAFETY: as the caller guarantees.
                unsafe { self.write(chunk, p, (c, T::Vector::LANES.min(channels - c)), to) };
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
    unsafe fn by_planes(&self, chunk: &Chunk<T>, sample: usize, pixels: &Range<usize>, step: usize) {
        let lanes = T::Vector::LANES;
        let partly: Vec<usize> = (0..pixels.len()).filter(|p| chunk.counts[*p] < self.most).collect();
        for c in 0..self.out.sizes[1] {
            let from = self.image.data.as_ptr().cast_const().wrapping_add(c * self.image.strides[1]);
            let at = sample * self.out.strides[0] + c * self.out.strides[1] + pixels.start * step;
            let to = self.out.data.as_ptr().wrapping_add(at);
            for p in (0..pixels.len()).step_by(lanes) {
                let mut sum = T::Vector::splat(T::Acc::ZERO);
                for k in 0..self.most {
                    let places = &chunk.at[k * CHUNK + p..][..lanes];
                    let mut elements = [T::from_acc(T::Acc::ZERO); MOST];
                    for (element, at) in elements.iter_mut().zip(places) {
                        // SAFETY: an element of the channel; the places of no pixel are those of others.
                        *element = unsafe { *from.add(*at as usize) };
                    }
                    // SAFETY: no vector has more lanes than there are elements, and the weights are as many as the places.
                    sum = unsafe {
                        T::read(elements.as_ptr())
                            .mul_add(T::Vector::load(chunk.weight[k * CHUNK + p..].as_ptr()), sum)
                    };
                }
                // SAFETY: as the caller guarantees.
                unsafe { write_some(to.wrapping_add(p * step), step, lanes.min(pixels.len() - p), sum) };
            }
        }
        // Those of fewer elements again: what counts nothing must not be read, for infinity times 0 is no number.
        for &p in &partly {
            let at = sample * self.out.strides[0] + (pixels.start + p) * step;
            let to = self.out.data.as_ptr().wrapping_add(at);
            let channels = self.out.sizes[1];
            for c in (0..channels).step_by(lanes) {
                // SAFETY: as the caller guarantees.
                unsafe { self.write(chunk, p, (c, lanes.min(channels - c)), to) };
            }
        }
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
    let sampling = Sampling { image, out, sides, rank, grid, of_sample, of_place, of_axis, most };
    let [samples, channels, depth, height, width] = sampling.out.sizes;
    let pixels = depth * height * width;
    let chunks = pixels.div_ceil(CHUNK);
    // Channels side by side are read together, else pixels.
    let step = sampling.step().filter(|_| channels == 1 || sampling.image.strides[1] != 1);
    parallel_try(samples * chunks, GRAIN / (CHUNK * most * channels.max(1)), |range| {
        let mut chunk = Chunk::<T> {
            at: Scratch::zeroed(most * CHUNK)?,
            weight: Scratch::zeroed(most * CHUNK)?,
            counts: [0; CHUNK],
        };
        for i in range {
            let (sample, first) = (i / chunks, i % chunks * CHUNK);
            let pixels = first..(first + CHUNK).min(pixels);
            // SAFETY: the op's rule has matched the grid's sizes with the output's, which is this call's alone; each pixel is
            // one piece's. The host guarantees the image's elements.
            unsafe {
                sampling.find(&mut chunk, sample, &pixels);
                match step {
                    Some(step) => sampling.by_planes(&chunk, sample, &pixels, step),
                    None => sampling.by_pixels(&chunk, sample, &pixels),
                }
            }
        }
        Ok(())
    })
}

kernel!("grid_sample", "TTSSb>T", grid_sample, [f32, f64, f16, bf16]);
