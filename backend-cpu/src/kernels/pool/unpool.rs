//! `max_unpool`

use super::largest::outside;
use super::lines::{GRAIN, by_channels};
use super::spread::even;
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::parallel_try;
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

/// The number of contiguous channels that are processed together.
const BLOCK: usize = 64;

/// Elements and their indices, each with a constant stride.
struct Line<T> {
    from: *const T,
    places: *const i64,
    /// The strides of elements and of indices.
    steps: (usize, usize),
    length: usize,
}

impl<T: Float> Line<T> {
    /// Writes each element to the address that `to` returns for the element's number and its index.
    ///
    /// # Safety
    /// The elements must exist, and for each index below `count` a writable element, uniquely owned.
    #[inline(always)]
    unsafe fn put(&self, count: usize, to: impl Fn(usize, usize) -> *mut T) -> Result<(), Error> {
        for i in 0..self.length {
            // SAFETY: as the caller guarantees.
            unsafe {
                let place = *self.places.add(i * self.steps.1);
                // A negative index is out of range as an unsigned integer.
                if place.cast_unsigned() >= count as u64 {
                    return Err(outside(place, count));
                }
                *to(i, place as usize) = *self.from.add(i * self.steps.0);
            }
        }
        Ok(())
    }
}

/// A block of channels of a sample.
struct Block<'a, T> {
    out: &'a Volume<'a, T>,
    sample: usize,
    first: usize,
    channels: usize,
    /// The constant stride between positions, if there is one.
    step: Option<usize>,
}

impl<T: Float> Block<'_, T> {
    /// The address of element `index` of the block's first channel.
    fn at<U>(&self, t: &Volume<'_, U>, [d, h, w]: [usize; 3]) -> *mut U {
        let index = [self.sample, self.first, d, h, w];
        let at: usize = index.iter().zip(&t.strides).map(|(i, step)| i * step).sum();
        t.data.as_ptr().wrapping_add(at)
    }

    /// # Safety
    /// The output must contain the elements that the sizes describe, and those of the block must be uniquely owned.
    unsafe fn clear(&self) {
        let [_, _, depth, height, width] = self.out.sizes;
        let count = depth * height * width;
        // SAFETY: as the caller guarantees; zero bytes are the value 0.
        unsafe {
            if self.step == Some(self.channels) {
                return self.at(self.out, [0; 3]).write_bytes(0, count * self.channels);
            }
            for i in 0..count {
                let index = [i / width / height, i / width % height, i % width];
                self.at(self.out, index).write_bytes(0, self.channels);
            }
        }
    }

    /// # Safety
    /// All must contain the elements that the sizes describe, and the block's elements of the output must be uniquely
    /// owned.
    unsafe fn put(&self, input: &Volume<'_, T>, indices: &Volume<'_, i64>) -> Result<(), Error> {
        let [_, _, depth, height, width] = input.sizes;
        let [_, _, planes, rows, columns] = self.out.sizes;
        let (count, begin) = (planes * rows * columns, self.at(self.out, [0; 3]));
        let line = |index, d: usize, length| Line {
            from: self.at(input, index),
            places: self.at(indices, index),
            steps: (input.strides[d], indices.strides[d]),
            length,
        };
        // SAFETY: as the caller guarantees.
        unsafe {
            if let (1, Some(step), Some(own), Some(of_indices)) =
                (self.channels, self.step, even(input, 1), even(indices, 1))
            {
                let line = Line { steps: (own, of_indices), ..line([0; 3], 4, depth * height * width) };
                return line.put(count, |_, place| begin.wrapping_add(place * step));
            }
            for i in 0..depth * height * width {
                let index = [i / width / height, i / width % height, i % width];
                let line = line(index, 1, self.channels);
                match self.step {
                    Some(step) => line.put(count, |c, place| begin.wrapping_add(place * step + c))?,
                    None => line.put(count, |c, place| {
                        let index = [place / columns / rows, place / columns % rows, place % columns];
                        self.at(self.out, index).wrapping_add(c)
                    })?,
                }
            }
        }
        Ok(())
    }
}

/// Writes zeros, then the elements of each channel in order, so that the last of several elements with the same index is
/// stored.
fn max_unpool<T: Float>(call: &Call) -> Result<(), Error> {
    let (input, indices) = (Volume::<T>::argument(call, 0)?, Volume::<i64>::argument(call, 1)?);
    let out = Volume::<T>::output(call, 0)?;
    let [samples, channels, spatial @ ..] = out.sizes;
    let count: usize = spatial.iter().product();
    let block = if by_channels(&out) { BLOCK.min(channels) } else { 1 };
    let blocks = channels.div_ceil(block);
    let step = even(&out, block);
    parallel_try(samples * blocks, GRAIN / (count * block).max(1), |range| {
        for (sample, first) in range.map(|task| (task / blocks, task % blocks * block)) {
            let block = Block { out: &out, sample, first, channels: block.min(channels - first), step };
            // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has checked against each other
            // and whose elements the host guarantees; the output is uniquely owned, and each channel belongs to one work
            // item.
            unsafe {
                block.clear();
                block.put(&input, &indices)?;
            }
        }
        Ok(())
    })
}

kernel!("max_unpool", "TTI>T", max_unpool, [f32, f64, f16, bf16]);
