//! Depthwise convolutions, with one kernel per channel: vectors of channels, at several neighbouring output positions in
//! one pass. channels_last images are read in place, and taps outside them are skipped; others are first transposed to rows
//! with zero padding.

use super::block::WORK;
use super::epilogue::Epilogue;
use super::product::Product;
use crate::image::{Band, Numbers, Pixel, has_dense_channels};
use crate::turn::Staged;
use keyway_cpu_loops::images::Axis;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Vector, read_some, write_some};
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::ops::Range;

/// The approximate number of elements that the positions of a work item read.
const BAND: usize = 1 << 15;
const LANES: usize = Numbers::LANES;
/// The number of neighbouring positions computed together, so that accumulators and operands fit the registers; and the
/// number for a short tail.
const PLACES: usize = if LANES == 16 { 8 } else { 4 };
const FEW: usize = 4;
/// Zero padding, read as a vector of any type.
pub(super) static ZEROS: [f32; LANES] = [0.0; LANES];

/// The maximum number of pixels of a row that such positions read.
const READ: usize = PLACES + 6;

/// The first channel of vector `v`: the last vector may overlap the previous one, so that it is whole. With fewer channels
/// than lanes there is one partial vector.
pub fn vector(v: usize, channels: usize) -> usize {
    (v * LANES).min(channels.saturating_sub(LANES))
}

/// Whether results are in row-major order with fewer channels than lanes: these are vectorised over positions.
pub fn are_few<T: Pixel>(of: &Product<'_, T>) -> bool {
    of.is_staged() && of.groups < LANES
}

/// Computes the convolution.
///
/// # Safety
/// As for [`Product::run`].
pub unsafe fn run<T: Pixel>(of: &Product<'_, T>) -> Result<(), Error> {
    let (height, width) = (of.axes[0].count, of.axes[1].count);
    // SAFETY: as the caller guarantees.
    let (weight, bias) = unsafe { packed(of) }?;
    let pixels = Band::of(&of.axes, 1)?;
    let is_turned = !has_dense_channels(&of.input) || of.is_staged();
    // Long rows are transposed for a block of channels at a time.
    let fit = BAND / (pixels.rows(1) * pixels.row).max(1);
    let blocks = if is_turned { of.groups.div_ceil(fit.max(LANES)) } else { 1 };
    let block = of.groups.div_ceil(blocks).next_multiple_of(LANES).min(of.groups);
    let blocks = of.groups.div_ceil(block);
    let tall = (BAND / (pixels.row * block * pixels.step[0]).max(1)).clamp(1, height);
    let bands = height.div_ceil(tall);
    let work = (tall * width * block).saturating_mul(of.weight.taps.len());
    parallel_try(of.out.sizes[0] * bands * blocks, WORK / work.max(1), |range| {
        for task in range {
            let (nth, task) = (task % blocks * block, task / blocks);
            let (sample, first) = (task / bands, task % bands * tall);
            let channels = nth..(nth + block).min(of.groups);
            let part = Part { of, channels, weight: &weight, bias: &bias };
            // SAFETY: as the caller guarantees.
            unsafe { part.write(sample, first..(first + tall).min(height))? };
        }
        Ok(())
    })
}

/// The computation of a block of channels.
struct Part<'a, T> {
    of: &'a Product<'a, T>,
    channels: Range<usize>,
    /// The weight of all channels as `[taps][channels]`, in whole vectors.
    weight: &'a [f32],
    bias: &'a [f32],
}

impl<T: Pixel> Part<'_, T> {
    /// Writes some rows of results.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn write(&self, sample: usize, places: Range<usize>) -> Result<(), Error> {
        let (of, channels) = (self.of, &self.channels);
        let [down, across] = &of.axes;
        let wide = channels.len();
        let staged = of.is_staged();
        let room = if staged { places.len() * across.count * wide } else { 0 };
        // SAFETY: both are written before they are read. The addends have separate memory, since vectors overlap.
        let (mut stage, mut added) = unsafe {
            let added = if of.epilogue.adds() { room } else { 0 };
            (Scratch::<T>::unwritten(room)?, Scratch::<T>::unwritten(added)?)
        };
        let rows = |from| Staged { from, across: wide, down: across.count * wide };
        let area = [places.clone(), 0..across.count];
        if staged {
            let to = rows(added.as_mut_ptr().cast_const());
            // SAFETY: as the caller guarantees; the buffer has capacity for these rows.
            unsafe { of.epilogue.stage(&to, &of.out, sample, channels.clone(), area.clone()) };
        }
        let mut results = |place: usize| {
            if staged {
                let at = (place - places.start) * across.count * wide;
                let to = stage.as_mut_ptr().wrapping_add(at);
                return Results { to, add: added.as_ptr().wrapping_add(at), across: wide };
            }
            let at = sample * of.out.strides[0] + place * of.out.strides[3] + channels.start;
            let to = of.out.data.as_ptr().wrapping_add(at);
            Results { to, add: of.epilogue.place(at), across: of.out.strides[4] }
        };
        if has_dense_channels(&of.input) {
            let line = Line::of(self, across, of.input.strides[4]);
            let image = of.input.data.as_ptr().cast_const();
            let image = image.wrapping_add(sample * of.input.strides[0] + channels.start);
            for place in places.clone() {
                let row = |t| Some((t, image.wrapping_add(down.element(place, t)? * of.input.strides[3])));
                let rows: Vec<_> = (0..down.taps.len()).filter_map(row).collect();
                // SAFETY: as the caller guarantees.
                unsafe { line.write(&rows, results(place)) };
            }
        } else {
            let band = Band::of(&of.axes, wide)?;
            // SAFETY: the rows are copied before they are read.
            let mut copied = unsafe { Scratch::<f32>::unwritten(band.rows(places.len()) * band.row) }?;
            // SAFETY: the caller guarantees the elements; the copy has capacity for these rows.
            unsafe { band.copy(copied.as_mut_ptr(), &of.input, sample, &places, channels.start) };
            let line = Line::of(self, &band.across(across), wide);
            for place in places.clone() {
                let first = (place - places.start) * band.step[0];
                // Rows outside the image are skipped, so that sums do not depend on the memory format.
                let row = |t: usize| {
                    let at = down.element(place, t).map(|_| first + band.down(down.taps[t]))?;
                    Some((t, copied.as_ptr().wrapping_add(at * band.row)))
                };
                let rows: Vec<_> = (0..down.taps.len()).filter_map(row).collect();
                // SAFETY: as above.
                unsafe { line.write(&rows, results(place)) };
            }
        }
        if staged {
            // SAFETY: the caller guarantees the results; these rows were staged.
            unsafe { rows(stage.as_ptr()).put(&of.out, sample, channels.clone(), area) };
        }
        Ok(())
    }
}

/// The addresses of the results of some positions of a row, and of the tensor that is added to them.
#[derive(Clone, Copy)]
struct Results<T> {
    to: *mut T,
    add: *const T,
    /// The stride between positions, in elements.
    across: usize,
}

impl<T> Results<T> {
    /// The addresses starting at position `x`.
    #[inline(always)]
    fn from(self, x: usize) -> Self {
        let at = x * self.across;
        Results { to: self.to.wrapping_add(at), add: self.add.wrapping_add(at), ..self }
    }
}

/// The computation of a row of positions.
struct Line<'a, T> {
    epilogue: &'a Epilogue<'a, T>,
    /// The axis along an input row, with the stride between pixels, in elements.
    axis: Axis,
    pixel: usize,
    channels: usize,
    /// The positions at which every tap is inside the row.
    inner: Range<usize>,
    /// Whether each tap reads at a position the pixel that the previous tap reads at the next position (sliding window).
    slides: bool,
    /// The weight and the bias, starting at the first of these channels, and the stride of the weight between taps.
    weight: &'a [f32],
    bias: &'a [f32],
    next: usize,
}

/// Input rows, each with the index of its row of taps.
type Rows<S> = [(usize, *const S)];

impl<'a, T: Pixel> Line<'a, T> {
    fn of(of: &Part<'a, T>, axis: &Axis, pixel: usize) -> Line<'a, T> {
        Line {
            epilogue: &of.of.epilogue,
            axis: axis.clone(),
            pixel,
            channels: of.channels.len(),
            inner: axis.all_inside(0..axis.taps.len()),
            slides: matches!(axis.taps.len(), 3 | 5 | 7)
                && axis.taps.windows(2).all(|pair| pair[1] == pair[0] + axis.step.cast_signed()),
            weight: &of.weight[of.channels.start..],
            bias: &of.bias[of.channels.start..],
            next: of.bias.len(),
        }
    }

    /// Writes a row of results.
    ///
    /// # Safety
    /// As for [`run`]: the rows must contain the pixels that their taps read, and the results must be uniquely owned.
    unsafe fn write<S: Pixel>(&self, rows: &Rows<S>, to: Results<T>) {
        let mut x = 0;
        while x < self.axis.count {
            let left = if self.slides { self.axis.count - x } else { self.inner.end.saturating_sub(x) };
            let some = match self.slides {
                true => [FEW, PLACES].into_iter().find(|some| left <= *some).unwrap_or(PLACES),
                false if self.inner.contains(&x) => {
                    [PLACES, FEW].into_iter().find(|some| left >= *some).unwrap_or(1)
                }
                false => 1,
            };
            let places = x..(x + some).min(self.axis.count);
            // SAFETY: as the caller guarantees; if taps do not slide, every tap is inside the row for blocks of several
            // positions.
            unsafe {
                if self.channels < LANES || some == 1 {
                    places.clone().for_each(|x| {
                        self.starts().for_each(|c| self.place(rows, x, to.from(x), c));
                    });
                } else if some == FEW {
                    self.places::<S, FEW>(rows, &places, to.from(x));
                } else {
                    self.places::<S, PLACES>(rows, &places, to.from(x));
                }
            }
            x = places.end;
        }
    }

    /// The address that a tap reads for a channel at a position; the tap must be inside the row.
    #[inline(always)]
    fn read<S>(&self, row: *const S, x: usize, tap: usize, c: usize) -> *const S {
        let pixel = (x * self.axis.step).wrapping_add_signed(self.axis.taps[tap]);
        row.wrapping_add(pixel * self.pixel + c)
    }

    /// Loads the weight of a vector of channels.
    ///
    /// # Safety
    /// The tap and the channels must exist.
    #[inline(always)]
    unsafe fn tap(&self, row: usize, tap: usize, c: usize) -> Numbers {
        // SAFETY: as the caller guarantees; a tap has whole vectors.
        unsafe { Numbers::load(self.weight.as_ptr().add((row * self.axis.taps.len() + tap) * self.next + c)) }
    }

    /// The first channel of each vector.
    #[inline(always)]
    fn starts(&self) -> impl Iterator<Item = usize> {
        let channels = self.channels;
        (0..channels.div_ceil(LANES)).map(move |v| vector(v, channels))
    }

    /// Writes up to `P` positions of whole vectors of channels.
    ///
    /// # Safety
    /// As for [`Line::write`]; at these positions every tap is inside the row, or taps slide.
    #[inline(always)]
    unsafe fn places<S: Pixel, const P: usize>(&self, rows: &Rows<S>, places: &Range<usize>, to: Results<T>) {
        let is_inner = |x: usize| self.inner.contains(&x);
        let is_whole = places.len() == P && is_inner(places.start) && is_inner(places.end - 1);
        let taps = self.axis.taps.len();
        // SAFETY: as the caller guarantees.
        unsafe {
            match (taps, is_whole) {
                (3, true) if self.slides => self.slide::<S, P, 3, false>(rows, places, to),
                (3, false) if self.slides => self.slide::<S, P, 3, true>(rows, places, to),
                (5, true) if self.slides => self.slide::<S, P, 5, false>(rows, places, to),
                (5, false) if self.slides => self.slide::<S, P, 5, true>(rows, places, to),
                (7, true) if self.slides => self.slide::<S, P, 7, false>(rows, places, to),
                (7, false) if self.slides => self.slide::<S, P, 7, true>(rows, places, to),
                _ => {
                    for c in self.starts() {
                        let sums = self.sums::<S, P>(rows, places.start, 0..taps, c, LANES);
                        self.put_all(sums, P, to, c);
                    }
                }
            }
        }
    }

    /// Writes the first `n` sums of a vector of channels.
    ///
    /// # Safety
    /// As for [`Line::put`].
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "the numbers stay in registers only where each index is a constant"
    )]
    unsafe fn put_all<const P: usize>(&self, sums: [Numbers; P], n: usize, to: Results<T>, c: usize) {
        for p in 0..P {
            if p < n {
                // SAFETY: as the caller guarantees.
                unsafe { self.put(to.from(p), c, LANES, sums[p]) };
            }
        }
    }

    /// Writes one position of a vector of channels, which may be partial.
    ///
    /// # Safety
    /// As for [`Line::write`].
    #[inline(never)]
    unsafe fn place<S: Pixel>(&self, rows: &Rows<S>, x: usize, to: Results<T>, c: usize) {
        let n = LANES.min(self.channels);
        let is_inside = |tap: &usize| self.axis.element(x, *tap).is_some();
        let taps = 0..self.axis.taps.len();
        let first = taps.clone().find(is_inside).unwrap_or(0);
        let end = taps.clone().rfind(is_inside).map_or(0, |last| last + 1);
        // SAFETY: as the caller guarantees; these taps are inside the row, since taps are in ascending order.
        unsafe {
            let [sum] = self.sums(rows, x, first..end, c, n);
            self.put(to, c, n, sum);
        }
    }

    /// # Safety
    /// The position must have `n` channels at these addresses, uniquely owned.
    #[inline(always)]
    unsafe fn put(&self, to: Results<T>, c: usize, n: usize, sum: Numbers) {
        // SAFETY: as the caller guarantees.
        unsafe {
            let result = self.epilogue.apply(to.add.wrapping_add(c), n, sum);
            write_some(to.to.wrapping_add(c), 1, n, result);
        }
    }

    /// The sums of `n` channels at `P` positions, over a range of taps of each row.
    ///
    /// # Safety
    /// As for [`Line::write`]; these taps must be inside the row.
    #[inline(always)]
    unsafe fn sums<S: Pixel, const P: usize>(
        &self,
        rows: &Rows<S>,
        x: usize,
        taps: Range<usize>,
        c: usize,
        n: usize,
    ) -> [Numbers; P] {
        // SAFETY: as the caller guarantees; weight and bias have whole vectors.
        unsafe {
            let mut sums = [Numbers::load(self.bias.as_ptr().add(c)); P];
            for &(t, row) in rows {
                for tap in taps.clone() {
                    let (from, weight) = (self.read(row, x, tap, c), self.tap(t, tap, c));
                    for (p, sum) in sums.iter_mut().enumerate() {
                        let pixel = read_some(from.wrapping_add(p * self.axis.step * self.pixel), 1, n);
                        *sum = pixel.mul_add(weight, *sum);
                    }
                }
            }
            sums
        }
    }

    /// [`Line::places`] for rows of taps that read neighbouring pixels, which are loaded once. If `EDGE`, pixels beyond the
    /// row are 0. A separate function, so that the compiler allocates registers for the operands.
    ///
    /// # Safety
    /// As for [`Line::places`]; a row has `K` taps, which slide, and are outside the row only if `EDGE`.
    #[inline(never)]
    #[expect(
        clippy::needless_range_loop,
        reason = "the numbers stay in registers only where each index is a constant"
    )]
    unsafe fn slide<S: Pixel, const P: usize, const K: usize, const EDGE: bool>(
        &self,
        rows: &Rows<S>,
        places: &Range<usize>,
        to: Results<T>,
    ) {
        const { assert!(P + K - 1 <= READ && size_of::<S>() <= size_of::<f32>()) };
        let (step, size) = (self.axis.step, self.axis.size.cast_signed());
        let first = (places.start * step).cast_signed() + self.axis.taps[0];
        let before = (-first).max(0).cast_unsigned().div_ceil(step);
        let until = (size - first).max(0).cast_unsigned().div_ceil(step);
        let (first, step) = (first * self.pixel.cast_signed(), step * self.pixel);
        let (next, n) = (self.next, places.len());
        for c in self.starts() {
            // SAFETY: as the caller guarantees; weight and bias have whole vectors.
            unsafe {
                let mut sums = [Numbers::load(self.bias.as_ptr().add(c)); P];
                for &(t, row) in rows {
                    let mut from = row.wrapping_offset(first).wrapping_add(c);
                    let mut pixels = [Numbers::splat(0.0); READ];
                    for i in 0..P + K - 1 {
                        let is_read = !EDGE || (before <= i && i < until);
                        pixels[i] = S::read(if is_read { from } else { ZEROS.as_ptr().cast() });
                        from = from.wrapping_add(step);
                    }
                    let mut weight = self.weight.as_ptr().add(t * K * next + c);
                    for k in 0..K {
                        let tap = Numbers::load(weight);
                        for p in 0..P {
                            sums[p] = pixels[p + k].mul_add(tap, sums[p]);
                        }
                        weight = weight.wrapping_add(next);
                    }
                }
                self.put_all(sums, n, to, c);
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
