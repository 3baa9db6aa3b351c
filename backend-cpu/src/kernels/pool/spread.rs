//! Gradients scattered to the indices of the pooled elements.

use super::lines::{GRAIN, by_channels, unwidened};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Lanes, narrow};
use keyway_sdk::author::{Error, Real, Scratch};
use std::ops::Range;

/// The number of contiguous channels whose sums are computed together: two cache lines of f32.
const BLOCK: usize = 32;

/// The number of samples that occupies all threads, and the maximum number of sums that fit L2.
const ENOUGH: usize = 8;
const FEW: usize = 1 << 16;

/// The sums of a block of channels of a sample, contiguous for each index.
pub struct Sums<A> {
    pub sample: usize,
    pub channels: Range<usize>,
    data: *mut A,
    /// The stride between indices, in elements.
    step: usize,
    /// The number of positions.
    count: usize,
}

impl<A: Real> Sums<A> {
    /// The sums of all indices, if the block has one channel.
    pub fn plane(&mut self) -> Option<&mut [A]> {
        // SAFETY: as in `at`.
        (self.step == 1).then(|| unsafe { std::slice::from_raw_parts_mut(self.data, self.count) })
    }

    fn clear(&mut self) {
        let channels = self.channels.len();
        let (pieces, length) =
            if self.step == channels { (1, self.count * channels) } else { (self.count, channels) };
        for i in 0..pieces {
            // SAFETY: as in `at`; zero bytes are the value 0.
            unsafe { self.data.add(i * self.step).write_bytes(0, length) };
        }
    }

    /// Adds a value to the sum of channel `c` at an index; false if the index is out of range.
    #[inline(always)]
    pub fn add(&mut self, place: usize, c: usize, number: A) -> bool {
        let is_place = place < self.count && c < self.channels.len();
        if is_place {
            // SAFETY: as in `at`.
            unsafe { *self.data.add(place * self.step + c) += number };
        }
        is_place
    }

    /// The sums of all channels at an index; `None` if it is out of range.
    #[inline(always)]
    pub fn at(&mut self, place: usize) -> Option<&mut [A]> {
        // SAFETY: `spread` has the block's channels at each position, uniquely owned.
        (place < self.count).then(|| unsafe {
            std::slice::from_raw_parts_mut(self.data.add(place * self.step), self.channels.len())
        })
    }
}

impl<A: Real> Sums<A> {
    /// Rounds the sums and writes them to the channels that start at `begin`.
    ///
    /// # Safety
    /// The tensor must have the elements that its sizes describe, and those of the channels must be uniquely owned.
    unsafe fn write<T: Lanes<Acc = A>>(&mut self, out: &Volume<'_, T>, begin: usize) {
        let [_, channel_step, plane_step, row_step, step] = out.strides;
        let [_, _, depth, height, width] = out.sizes;
        if let (Some(plane), Some(step)) = (self.plane(), even(out, 1)) {
            // SAFETY: as the caller guarantees.
            return unsafe { narrow(out.data.as_ptr().wrapping_add(begin), step, plane) };
        }
        for (row, d, h) in (0..depth * height).map(|row| (row, row / height, row % height)) {
            let to = out.data.as_ptr().wrapping_add(begin + d * plane_step + h * row_step);
            if let Some(plane) = self.plane() {
                // SAFETY: as the caller guarantees.
                unsafe { narrow(to, step, &plane[row * width..(row + 1) * width]) };
                continue;
            }
            for w in 0..width {
                if let Some(sums) = self.at(row * width + w) {
                    // SAFETY: as the caller guarantees.
                    unsafe { narrow(to.wrapping_add(w * step), channel_step, sums) };
                }
            }
        }
    }
}

/// Calls `add` with zeroed sums for each block of channels of a sample, and writes the sums to `out`, which has their
/// sizes.
///
/// # Safety
/// `out` must contain the elements that the sizes describe, and they must be uniquely owned.
pub unsafe fn spread<T: Lanes>(
    out: &Volume<'_, T>,
    add: impl Fn(&mut Sums<T::Acc>) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let [samples, channels, depth, height, width] = out.sizes;
    let count = depth * height * width;
    let (sample_step, channel_step) = (out.strides[0], out.strides[1]);
    // All channels of a sample are cleared together if the output holds the sums, or if they are few.
    let together = samples >= ENOUGH && (unwidened::<T>() || count.saturating_mul(channels) <= FEW);
    let block = match by_channels(out) {
        true if together => channels,
        true => BLOCK.min(channels),
        false => 1,
    };
    // Elements with one constant stride can hold the sums themselves.
    let here = even(out, block).filter(|&step| unwidened::<T>() && (block > 1 || step == 1));
    let blocks = channels.div_ceil(block.max(1));
    parallel_try(samples * blocks, GRAIN / (count * block).max(1), |range| {
        let mut copy = Scratch::<T::Acc>::zeroed(if here.is_some() { 0 } else { count * block })?;
        for task in range {
            let (sample, first) = (task / blocks, task % blocks * block);
            let begin = sample * sample_step + first * channel_step;
            let (data, step) = match here {
                Some(step) => (out.data.as_ptr().wrapping_add(begin).cast::<T::Acc>(), step),
                None => (copy.as_mut_ptr(), block),
            };
            let mut sums = Sums { sample, channels: first..(first + block).min(channels), data, step, count };
            sums.clear();
            add(&mut sums)?;
            if here.is_some() {
                continue;
            }
            // SAFETY: the channels belong to this task.
            unsafe { sums.write(out, begin) };
        }
        Ok(())
    })
}

/// The constant stride between consecutive positions of a channel in row-major order, if there is one; `single` if there is
/// one position.
pub fn even<T>(t: &Volume<'_, T>, single: usize) -> Option<usize> {
    let (mut step, mut places) = (None, 1);
    for (&size, &stride) in t.sizes[2..].iter().zip(&t.strides[2..]).rev().filter(|(size, _)| **size != 1) {
        if stride != *step.get_or_insert(stride) * places {
            return None;
        }
        places *= size;
    }
    Some(step.unwrap_or(single))
}
