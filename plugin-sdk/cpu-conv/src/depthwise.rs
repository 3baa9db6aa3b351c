//! Convolutions with one kernel for each channel.

use super::WORK;
use super::gathered::Product;
use crate::image::{Band, Numbers, Pixel};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Vector, load_some, write_some};
use keyway_sdk::author::{Error, Lanes, Scratch};

/// Numbers of the copied rows, about.
const BAND: usize = 1 << 15;
const LANES: usize = Numbers::LANES;
/// Neighbouring places that are computed together: with their sums, what they read finds registers.
const PLACES: usize = if LANES == 16 { 8 } else { 4 };
/// Pixels of a row that such places read, at most.
const READ: usize = PLACES + 4;

/// Computes it.
///
/// # Safety
/// As for [`Product::run`].
pub unsafe fn run<T: Pixel>(of: &Product<'_, T>) -> Result<(), Error> {
    let channels = of.groups;
    let band = Band::of(&of.axes, channels)?;
    let (height, width) = (of.axes[0].count, of.axes[1].count);
    // SAFETY: as the caller guarantees.
    let (weight, bias) = unsafe { packed(of) }?;
    let (weight, bias) = (&weight, &bias);
    let first = [0, 1].map(|d| of.axes[d].taps.first().copied().unwrap_or(0));
    let offset = |tap: isize, d: usize, step: usize| (tap - first[d]).cast_unsigned() * step;
    let rows: Vec<usize> = of.axes[0].taps.iter().map(|y| offset(*y, 0, band.row)).collect();
    let across: Vec<usize> = of.axes[1].taps.iter().map(|x| offset(*x, 1, channels)).collect();
    // Whether a tap reads at a place what the one before it reads at the next place.
    let step = band.step[1] * channels;
    let slides = across.windows(2).all(|pair| pair[1] == pair[0] + step);
    let (rows, across) = (&rows, &across);
    let tall = (BAND / (band.row * band.step[0]).max(1)).clamp(1, height);
    let bands = height.div_ceil(tall);
    let work = (tall * width * channels).saturating_mul(rows.len() * across.len());
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
                let mut x = 0;
                while x < width {
                    let some = [PLACES, 4].into_iter().find(|some| *some <= width - x).unwrap_or(1);
                    for c in (0..channels).step_by(LANES) {
                        let line = Line {
                            from: copied.as_ptr().wrapping_add(y * band.step[0] * band.row + x * step + c),
                            step,
                            rows,
                            across,
                            slides,
                            weight: weight.as_ptr().wrapping_add(c),
                            next: channels.next_multiple_of(LANES),
                            bias: bias.as_ptr().wrapping_add(c),
                            n: LANES.min(channels - c),
                        };
                        let at = to + x * of.out.strides[4] + c;
                        // SAFETY: as above.
                        unsafe { line.write_places(of, some, at) };
                    }
                    x += some;
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
    /// Where the rows of taps lie, and the taps of a row.
    rows: &'a [usize],
    across: &'a [usize],
    slides: bool,
    weight: *const f32,
    /// Numbers of the weight from tap to tap.
    next: usize,
    bias: *const f32,
    /// Channels.
    n: usize,
}

impl Line<'_> {
    /// Writes so many places, [`PLACES`], 4 or 1, whose results begin at `at`.
    ///
    /// # Safety
    /// As for [`run`]: what the line names must exist, and nobody else may use the results.
    #[inline(always)]
    unsafe fn write_places<T: Pixel>(&self, of: &Product<'_, T>, places: usize, at: usize) {
        // SAFETY: as the caller guarantees.
        unsafe {
            if self.n < LANES {
                (0..places).for_each(|p| self.write_few(of, p, at + p * of.out.strides[4]));
            } else if places == PLACES {
                self.write::<T, PLACES>(of, at);
            } else if places == 4 {
                self.write::<T, 4>(of, at);
            } else {
                self.write::<T, 1>(of, at);
            }
        }
    }

    /// # Safety
    /// As for [`Line::write_places`], for `P` places of a whole vector.
    #[inline(always)]
    unsafe fn write<T: Pixel, const P: usize>(&self, of: &Product<'_, T>, at: usize) {
        // SAFETY: as the caller guarantees.
        let sums: [Numbers; P] = unsafe {
            match self.across.len() {
                3 if self.slides => self.slid::<P, 3>(),
                5 if self.slides => self.slid::<P, 5>(),
                _ => self.sums(0, LANES),
            }
        };
        for (p, sum) in sums.into_iter().enumerate() {
            let at = at + p * of.out.strides[4];
            // SAFETY: as the caller guarantees.
            unsafe {
                let result = of.epilogue.apply(of.epilogue.place(at), LANES, sum);
                write_some(of.out.data.as_ptr().wrapping_add(at), 1, LANES, result);
            }
        }
    }

    /// Writes place `p` of the last channels.
    ///
    /// # Safety
    /// As for [`Line::write_places`].
    #[inline(never)]
    unsafe fn write_few<T: Pixel>(&self, of: &Product<'_, T>, p: usize, at: usize) {
        // SAFETY: as the caller guarantees.
        unsafe {
            let [sum] = self.sums(p, self.n);
            let result = of.epilogue.apply(of.epilogue.place(at), self.n, sum);
            write_some(of.out.data.as_ptr().wrapping_add(at), 1, self.n, result);
        }
    }

    /// The sums of `n` channels at `P` places from place `first` on.
    ///
    /// # Safety
    /// As for [`Line::write_places`].
    #[inline(always)]
    unsafe fn sums<const P: usize>(&self, first: usize, n: usize) -> [Numbers; P] {
        let taps = self.rows.iter().flat_map(|row| self.across.iter().map(move |tap| row + tap));
        // SAFETY: as the caller guarantees; weight and bias have whole vectors.
        unsafe {
            let mut sums = [Numbers::load(self.bias); P];
            for (t, offset) in taps.enumerate() {
                let weight = Numbers::load(self.weight.add(t * self.next));
                for (p, sum) in sums.iter_mut().enumerate() {
                    let x: Numbers = load_some(self.from.add(offset + (first + p) * self.step), n);
                    *sum = x.mul_add(weight, *sum);
                }
            }
            sums
        }
    }

    /// The same of whole vectors, where each row of taps reads neighbouring pixels, which are loaded once.
    ///
    /// # Safety
    /// As for [`Line::write_places`]; there are `K` taps in a row, which slide.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "the numbers stay in registers only where each index is a constant"
    )]
    unsafe fn slid<const P: usize, const K: usize>(&self) -> [Numbers; P] {
        const { assert!(P + K - 1 <= READ) };
        // SAFETY: as the caller guarantees; weight and bias have whole vectors.
        unsafe {
            let mut sums = [Numbers::load(self.bias); P];
            for (t, row) in self.rows.iter().enumerate() {
                let mut pixels = [Numbers::splat(0.0); READ];
                for i in 0..P + K - 1 {
                    pixels[i] = Numbers::load(self.from.add(row + i * self.step));
                }
                for k in 0..K {
                    let weight = Numbers::load(self.weight.add((t * K + k) * self.next));
                    for p in 0..P {
                        sums[p] = pixels[p + k].mul_add(weight, sums[p]);
                    }
                }
            }
            sums
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
