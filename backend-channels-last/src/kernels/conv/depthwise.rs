//! Convolutions with one kernel for each channel.

use super::WORK;
use super::gathered::Product;
use crate::kernels::image::{Band, Numbers, Pixel};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Vector, load_some, write_some};
use keyway_sdk::author::{Error, Lanes, Scratch};

/// Numbers of the copied rows, about.
const BAND: usize = 1 << 15;
/// Places and vectors of channels that are computed together.
const PLACES: usize = 4;
const LANES: usize = Numbers::LANES;

/// Computes it.
///
/// # Safety
/// As for [`Product::run`].
pub unsafe fn run<T: Pixel>(of: &Product<'_, T>) -> Result<(), Error> {
    let channels = of.groups;
    let band = Band::of(&of.axes, channels);
    let (height, width) = (of.axes[0].count, of.axes[1].count);
    // SAFETY: as the caller guarantees.
    let (weight, bias) = unsafe { packed(of) }?;
    let (weight, bias) = (&weight, &bias);
    let first = [0, 1].map(|d| of.axes[d].taps.first().copied().unwrap_or(0));
    let offsets: Vec<usize> = of.axes[0]
        .taps
        .iter()
        .flat_map(|y| of.axes[1].taps.iter().map(move |x| (y - first[0], x - first[1])))
        .map(|(y, x)| y.cast_unsigned() * band.row + x.cast_unsigned() * channels)
        .collect();
    let offsets = &offsets;
    let tall = (BAND / (band.row * band.step[0]).max(1)).clamp(1, height);
    let bands = height.div_ceil(tall);
    let work = (tall * width * channels).saturating_mul(offsets.len());
    parallel_try(of.out.sizes[0] * bands, WORK / work.max(1), |range| {
        // SAFETY: the rows are copied before they are read.
        let mut copied = unsafe { Scratch::<f32>::unwritten(band.rows(tall) * band.row) }?;
        for task in range {
            let (sample, first) = (task / bands, task % bands * tall);
            let places = first..(first + tall).min(height);
            // SAFETY: the caller guarantees the elements; the copy has room for the rows of a band.
            unsafe { band.copy(copied.as_mut_ptr(), &of.input, sample, &places, 0) };
            for (y, place) in places.enumerate() {
                let to = sample * of.out.strides[0] + place * of.out.strides[3];
                for c in (0..channels).step_by(LANES) {
                    let mut x = 0;
                    while x < width {
                        let from = copied
                            .as_ptr()
                            .wrapping_add(y * band.step[0] * band.row + x * band.step[1] * channels + c);
                        let line = Line {
                            from,
                            step: band.step[1] * channels,
                            offsets,
                            weight: weight.as_ptr().wrapping_add(c),
                            next: channels.next_multiple_of(LANES),
                            bias: bias.as_ptr().wrapping_add(c),
                            n: LANES.min(channels - c),
                        };
                        let at = to + x * of.out.strides[4] + c;
                        // SAFETY: as above.
                        unsafe {
                            if x + PLACES <= width {
                                line.write::<T, PLACES>(of, at);
                                x += PLACES;
                            } else {
                                line.write::<T, 1>(of, at);
                                x += 1;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    })
}

/// Neighbouring places of a vector of channels.
struct Line<'a> {
    from: *const f32,
    /// Numbers from place to place.
    step: usize,
    /// Where each tap lies from the first.
    offsets: &'a [usize],
    weight: *const f32,
    /// Numbers of the weight from tap to tap.
    next: usize,
    bias: *const f32,
    /// Channels.
    n: usize,
}

impl Line<'_> {
    /// # Safety
    /// As for [`run`]: what the line names must exist, and nobody else may use the `P` places of the result at `at`.
    #[inline(always)]
    unsafe fn write<T: Pixel, const P: usize>(&self, of: &Product<'_, T>, at: usize) {
        // SAFETY: as the caller guarantees; weight and bias have whole vectors.
        unsafe {
            let mut sums = [Numbers::load(self.bias); P];
            for (t, &offset) in self.offsets.iter().enumerate() {
                let weight = Numbers::load(self.weight.add(t * self.next));
                for (p, sum) in sums.iter_mut().enumerate() {
                    let x: Numbers = load_some(self.from.add(offset + p * self.step), self.n);
                    *sum = x.mul_add(weight, *sum);
                }
            }
            for (p, sum) in sums.into_iter().enumerate() {
                let at = at + p * of.out.strides[4];
                let result = of.epilogue.apply(of.epilogue.place(at), self.n, sum);
                write_some(of.out.data.as_ptr().wrapping_add(at), 1, self.n, result);
            }
        }
    }
}

/// The weight as `[taps][channels]` and the bias, in whole vectors.
///
/// # Safety
/// As for [`run`].
unsafe fn packed<T: Pixel>(of: &Product<'_, T>) -> Result<(Scratch<f32>, Scratch<f32>), Error> {
    let next = of.groups.next_multiple_of(LANES);
    let (mut weight, mut bias) =
        (Scratch::<f32>::zeroed(of.weight.taps.len() * next)?, Scratch::<f32>::zeroed(next)?);
    for (t, tap) in of.weight.taps.iter().enumerate() {
        for g in 0..of.groups {
            let from: Lanes<'_, T> = of.weight.data;
            // SAFETY: the caller guarantees the elements.
            weight[t * next + g] = unsafe { *from.as_ptr().wrapping_add(g * of.weight.group + tap) }.to_acc();
        }
    }
    if let Some(numbers) = &of.bias {
        bias.iter_mut().zip(numbers).for_each(|(to, from)| *to = from.to_acc());
    }
    Ok((weight, bias))
}
