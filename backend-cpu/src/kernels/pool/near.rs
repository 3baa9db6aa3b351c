//! Gradients scattered to the indices of the pooled elements, for contiguous channels with a wider accumulation type.
//!
//! The sums of a whole image would exceed the caches, and consecutive gradients have nearby indices. So a sliding window of
//! sums is accumulated, and each sum is rounded to the result once the window has passed. If an index is before the window,
//! the computation restarts with a window of all indices.
//! index is before the window, the computation restarts with a window of all indices.

use super::largest::outside;
use super::lines::{GRAIN, Lines, by_channels, unwidened};
use super::spread::even;
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Lanes, narrow};
use keyway_sdk::author::{Error, Real, Scratch};

/// The number of channels whose sums are computed together, whole cache lines: with enough samples for all threads, and
/// with fewer.
const BLOCK: [usize; 2] = [64, 32];
const ENOUGH: usize = 8;
/// The size of the window of sums in bytes: half of L2.
const BYTES: usize = 1 << 19;
/// The number of gradient positions that are processed together.
const SOME: usize = 32;

/// Gradients, their indices, and the result, each with its stride between positions.
pub struct Back<'a, T> {
    grad: (&'a Volume<'a, T>, usize),
    indices: (&'a Volume<'a, i64>, usize),
    out: (&'a Volume<'a, T>, usize),
}

/// The sliding window of sums for a block of channels of a sample.
struct Kept<T: Lanes> {
    /// The sums, contiguous for each index; unused ones are 0.
    sums: Scratch<T::Acc>,
    /// The number of rows of sums minus 1, a bit mask: the row of an index is `index & mask`.
    mask: usize,
    /// The indices in the window: sums before it are written, sums after it are not started.
    begin: usize,
    end: usize,
    channels: usize,
    /// The address of the first element of the result, and the stride.
    to: *mut T,
    step: usize,
    /// The number of positions of the result.
    count: usize,
}

impl<'a, T: Lanes> Back<'a, T> {
    /// The problem; `None` if channels are not contiguous, strides are not constant, the result is empty, or the gradient
    /// has the accumulation type.
    pub fn of(grad: &'a Volume<'a, T>, indices: &'a Volume<'a, i64>, out: &'a Volume<'a, T>) -> Option<Self> {
        let dense = [grad.strides[1], indices.strides[1]] == [1; 2] && by_channels(out);
        if unwidened::<T>() || !dense || out.sizes.contains(&0) {
            return None;
        }
        Some(Back {
            grad: (grad, even(grad, 0)?),
            indices: (indices, even(indices, 0)?),
            out: (out, even(out, 0)?),
        })
    }

    /// Computes the result.
    ///
    /// # Safety
    /// All must contain the elements that the sizes describe, and those of the result must be uniquely owned.
    pub unsafe fn run(&self) -> Result<(), Error> {
        let (out, step) = self.out;
        let [samples, channels, spatial @ ..] = out.sizes;
        let count: usize = spatial.iter().product();
        let block = BLOCK[usize::from(samples < ENOUGH)].min(channels);
        let blocks = channels.div_ceil(block);
        parallel_try(samples * blocks, GRAIN / (count * block).max(1), |range| {
            let rows = (BYTES / size_of::<T::Acc>() / block).max(1);
            let mut kept = Kept::<T>::of(1 << rows.ilog2(), block, count)?;
            for task in range {
                let (sample, first) = (task / blocks, task % blocks * block);
                let to = out.data.as_ptr().wrapping_add(sample * out.strides[0] + first * out.strides[1]);
                (kept.to, kept.step, kept.channels) = (to, step, block.min(channels - first));
                // SAFETY: as the caller guarantees; the channels belong to this task.
                unsafe {
                    if !self.add(sample, first, &mut kept)? {
                        let all =
                            Kept { to, step, channels: kept.channels, ..Kept::of(count, block, count)? };
                        kept = all;
                        self.add(sample, first, &mut kept)?;
                    }
                    kept.write(count);
                }
                (kept.begin, kept.end) = (0, 0);
            }
            Ok(())
        })
    }

    /// Adds all gradients of a block of channels; returns false if an index is before the window.
    ///
    /// # Safety
    /// As for [`Back::run`].
    unsafe fn add(&self, sample: usize, first: usize, kept: &mut Kept<T>) -> Result<bool, Error> {
        let ((grad, by_grad), (indices, by_index)) = (self.grad, self.indices);
        let begin = |strides: &[usize; 5]| sample * strides[0] + first * strides[1];
        let grads = grad.data.as_ptr().cast_const().wrapping_add(begin(&grad.strides));
        let places = indices.data.as_ptr().cast_const().wrapping_add(begin(&indices.strides));
        let all: usize = grad.sizes[2..].iter().product();
        let (channels, mut copy) = (kept.channels, [T::Acc::ZERO; BLOCK[0]]);
        for i in (0..all).step_by(SOME) {
            let pixels = i..all.min(i + SOME);
            // SAFETY: the caller guarantees the elements.
            let of =
                |i: usize| unsafe { std::slice::from_raw_parts(places.wrapping_add(i * by_index), channels) };
            let (mut least, mut most) = (u64::MAX, 0);
            for places in pixels.clone().map(of) {
                for place in places.iter().map(|place| place.cast_unsigned()) {
                    (least, most) = (least.min(place), most.max(place));
                }
            }
            // A negative index is out of range as an unsigned integer.
            if most >= kept.count as u64 {
                return Err(outside(most.cast_signed(), kept.count));
            }
            // SAFETY: as the caller guarantees.
            if !unsafe { kept.reach(least as usize, most as usize) } {
                return Ok(false);
            }
            for i in pixels {
                // SAFETY: as the caller guarantees.
                let (places, grads) =
                    unsafe { (of(i), Lines::read(grads.wrapping_add(i * by_grad), 1, channels, &mut copy)) };
                kept.add(places, grads);
            }
        }
        Ok(true)
    }
}

impl<T: Lanes> Kept<T> {
    /// Allocates the sums of `rows` indices, a power of 2 or all `count` of them.
    fn of(rows: usize, channels: usize, count: usize) -> Result<Self, Error> {
        let rows = rows.min(count);
        let sums = Scratch::zeroed(rows * channels)?;
        let mask = rows.next_power_of_two() - 1;
        Ok(Kept { sums, mask, begin: 0, end: 0, channels, to: std::ptr::null_mut(), step: 0, count })
    }

    /// The offset of the sums of an index.
    #[inline(always)]
    fn row(&self, place: usize) -> usize {
        (place & self.mask) * self.channels
    }

    /// Moves the window to include these indices; false if they do not fit in it.
    ///
    /// # Safety
    /// As for [`Kept::write`].
    unsafe fn reach(&mut self, least: usize, most: usize) -> bool {
        if most.wrapping_sub(self.begin) > self.mask {
            // SAFETY: as the caller guarantees.
            unsafe { self.write(least) };
        }
        self.end = self.end.max(most + 1);
        least >= self.begin && most - self.begin <= self.mask
    }

    /// Adds a value to the sum of an index for each channel; the index is in the window.
    #[inline(always)]
    fn add(&mut self, places: &[i64], numbers: &[T::Acc]) {
        for (c, (&place, &number)) in places.iter().zip(numbers).enumerate() {
            let row = self.row(place as usize);
            self.sums[row + c] += number;
        }
    }

    /// Rounds and writes the sums before an index, and frees their rows.
    ///
    /// # Safety
    /// The result must have these positions, uniquely owned.
    unsafe fn write(&mut self, until: usize) {
        let (begin, summed) = (self.begin, self.end.clamp(self.begin, until.max(self.begin)));
        for place in begin..summed {
            let row = self.row(place);
            let sums = &mut self.sums[row..row + self.channels];
            // SAFETY: as the caller guarantees.
            unsafe { narrow(self.to.wrapping_add(place * self.step), 1, sums) };
            sums.fill(T::Acc::ZERO);
        }
        let (pieces, length) = match self.step == self.channels {
            true => (summed..until.min(summed + 1), until.saturating_sub(summed) * self.channels),
            false => (summed..until, self.channels),
        };
        for place in pieces {
            // SAFETY: as the caller guarantees; zero bytes are the value 0.
            unsafe { self.to.wrapping_add(place * self.step).write_bytes(0, length) };
        }
        self.begin = begin.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::author::Lanes as Memory;
    use keyway_sdk::half::{bf16, f16};

    fn volume<'a, T>(data: &mut [T], sizes: [usize; 5]) -> Volume<'a, T> {
        let [_, c, d, h, w] = sizes;
        // SAFETY: the vector outlives the volume in each test.
        let data = unsafe { Memory::new(data.as_mut_ptr()) };
        Volume { data, sizes, strides: [c * d * h * w, 1, h * w * c, w * c, c] }
    }

    /// Tests gradients at the indices that `place` returns for a gradient's position and channel.
    fn check<T: Lanes<Acc = f32>>(
        [channels, height, width]: [usize; 3],
        grads: usize,
        place: impl Fn(usize, usize) -> usize,
    ) {
        const SAMPLES: usize = 2;
        let count = height * width;
        let each = grads * channels;
        let mut grad: Vec<T> =
            (0..SAMPLES * each).map(|i| T::from_f64((i * 37 % 255) as f64 / 64.0)).collect();
        let mut indices: Vec<i64> =
            (0..SAMPLES * each).map(|i| place(i % each / channels, i % channels) as i64).collect();
        let mut out = vec![T::from_f64(9.0); SAMPLES * count * channels];
        let expected = |grad: &[T], indices: &[i64]| {
            let mut sums = vec![0f32; SAMPLES * count * channels];
            for (i, (g, at)) in grad.iter().zip(indices).enumerate() {
                sums[(i / each * count + *at as usize) * channels + i % channels] += g.to_acc();
            }
            sums.into_iter().map(|sum| T::from_acc(sum).to_acc()).collect::<Vec<f32>>()
        };
        let expected = expected(&grad, &indices);
        let of_grad = volume(&mut grad, [SAMPLES, channels, 1, 1, grads]);
        let of_indices = volume(&mut indices, of_grad.sizes);
        let of_out = volume(&mut out, [SAMPLES, channels, 1, height, width]);
        let back = Back::of(&of_grad, &of_indices, &of_out).expect("channels side by side");
        // SAFETY: the vectors have the elements.
        unsafe { back.run() }.expect("places");
        let made: Vec<f32> = out.iter().map(|x| x.to_acc()).collect();
        assert!(made == expected, "{} {channels} channels, {height} x {width}, {grads}", T::NAME);
        // An index out of range is refused, wherever it occurs.
        for wrong in [-1, count as i64, i64::MIN] {
            indices[each - 1] = wrong;
            let of_indices = volume(&mut indices, [SAMPLES, channels, 1, 1, grads]);
            let back = Back::of(&of_grad, &of_indices, &of_out).expect("channels side by side");
            // SAFETY: as above.
            assert!(unsafe { back.run() }.is_err(), "{wrong}");
        }
    }

    #[test]
    fn gradients_go_to_their_places_near_or_far() {
        // Images larger than the window, and small ones.
        for (sizes, grads) in [([64, 80, 100], 2000), ([72, 70, 60], 1100), ([8, 3, 5], 33), ([33, 1, 1], 1)]
        {
            let count = sizes[1] * sizes[2];
            let on = |i: usize, c: usize| (i * count / grads + c % 3).min(count - 1);
            check::<f16>(sizes, grads, on);
            check::<bf16>(sizes, grads, |i, _| i % 7 % count);
            // Indices that alternate between distant parts, and indices that return to the start at the end.
            check::<f16>(sizes, grads, |i, c| (i * 7919 + c * 31) % count);
            check::<bf16>(sizes, grads, |i, c| if i + 1 == grads { 0 } else { on(i, c) });
            check::<f16>(sizes, grads, |i, c| if i % 40 == 39 { count - 1 } else { on(i, c) });
        }
    }
}
