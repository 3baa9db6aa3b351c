//! Depthwise convolutions and their weight gradients: channel by channel, from rows that are copied once with zero padding.

use crate::kernels::product::TILE_WORK;
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{
    Lanes as Elements, Vector, load_some, read_some, store_some, sum, write_some,
};
use keyway_sdk::author::{Error, Lanes, Real, Scratch};
use std::ops::Range;

/// The approximate number of copied elements, so that the rows stay in L1.
const BAND: usize = 1 << 12;
/// The number of output channels per input channel above which matrix products are faster.
const ROWS: usize = 4;
/// The number of taps of a kernel row whose accumulators stay in registers.
const TAPS: usize = 8;

/// Planes of images, one for each channel of each sample.
pub struct Planes<'a, T> {
    pub data: Lanes<'a, T>,
    pub sample: usize,
    pub channel: usize,
    /// The row stride and the column stride, in elements.
    pub steps: [usize; 2],
}

impl<'a, T> Planes<'a, T> {
    /// The planes of a tensor of depth 1.
    pub fn of(t: &Volume<'a, T>) -> Self {
        let [sample, channel, _, row, column] = t.strides;
        Planes { data: t.data, sample, channel, steps: [row, column] }
    }

    fn at(&self, sample: usize, channel: usize, row: usize) -> *mut T {
        self.data.as_ptr().wrapping_add(sample * self.sample + channel * self.channel + row * self.steps[0])
    }
}

/// Rows of one channel, de-interleaved by stride phase, so that neighbouring output positions read neighbouring elements,
/// with zero padding.
struct Band<'a> {
    axes: &'a [Axis; 2],
    /// The first row and column that a position's taps read, relative to the first position, and the extent of the taps.
    first: [isize; 2],
    reach: [usize; 2],
    /// The number of elements of a phase and of a row.
    part: usize,
    row: usize,
    /// The number of rows of positions in a band.
    tall: usize,
}

impl<'a> Band<'a> {
    fn of<V: Vector>(axes: &'a [Axis; 2]) -> Band<'a> {
        let ends = |taps: &[isize]| {
            let first = taps.iter().copied().min().unwrap_or(0);
            let last = taps.iter().copied().max().unwrap_or(0);
            (first, (last - first + 1).cast_unsigned())
        };
        let [(top, rows), (left, columns)] = [ends(&axes[0].taps), ends(&axes[1].taps)];
        let [tall, wide] = [&axes[0], &axes[1]];
        // Vector loads may start at the last position.
        let part = wide.count + columns.div_ceil(wide.step) + V::LANES;
        let row = part * wide.step;
        let fit = (BAND / row).saturating_sub(rows) / tall.step;
        Band {
            axes,
            first: [top, left],
            reach: [rows, columns],
            part,
            row,
            tall: fit.clamp(1, tall.count.max(1)),
        }
    }

    fn len(&self) -> usize {
        ((self.tall - 1) * self.axes[0].step + self.reach[0]) * self.row
    }

    /// The positions of band `i`.
    fn places(&self, i: usize) -> Range<usize> {
        i * self.tall..((i + 1) * self.tall).min(self.axes[0].count)
    }

    fn bands(&self) -> usize {
        self.axes[0].count.div_ceil(self.tall)
    }

    /// The offset of a tap from the first element that its position reads.
    fn offset(&self, y: usize, x: usize) -> usize {
        let step = self.axes[1].step;
        let [y, x] =
            [(0, y), (1, x)].map(|(d, tap)| (self.axes[d].taps[tap] - self.first[d]).cast_unsigned());
        y * self.row + x % step * self.part + x / step
    }

    /// Copies the elements that the positions of these rows read into a zero-padded buffer.
    ///
    /// # Safety
    /// The plane must have the elements that the axes describe.
    unsafe fn copy<T: Elements>(
        &self,
        to: &mut [T::Acc],
        plane: *const T,
        steps: [usize; 2],
        places: &Range<usize>,
    ) {
        let [tall, wide] = self.axes;
        let rows = (places.len() - 1) * tall.step + self.reach[0];
        let top = (places.start * tall.step).cast_signed() + self.first[0];
        for (r, row) in to.chunks_exact_mut(self.row).enumerate().take(rows) {
            let y = top + r.cast_signed();
            if y < 0 || y.cast_unsigned() >= tall.size {
                row.fill(T::Acc::ZERO);
                continue;
            }
            let from = plane.wrapping_add(y.cast_unsigned() * steps[0]);
            for (remainder, part) in row.chunks_exact_mut(self.part).enumerate() {
                // The elements of the phase inside the image.
                let left = self.first[1] + remainder.cast_signed();
                let step = wide.step.cast_signed();
                let begin = (-left).max(0).cast_unsigned().div_ceil(wide.step).min(self.part);
                let beyond = (wide.size.cast_signed() - left).max(0).cast_unsigned().div_ceil(wide.step);
                let x = (left + begin.cast_signed() * step) * steps[1].cast_signed();
                let from = from.wrapping_offset(x);
                let part = part.get_mut(begin..beyond.min(self.part)).unwrap_or_default();
                let step = wide.step * steps[1];
                for i in (0..part.len()).step_by(T::Vector::LANES) {
                    let n = T::Vector::LANES.min(part.len() - i);
                    // SAFETY: the elements are in the row, which the caller guarantees, and the phase has capacity for
                    // them.
                    unsafe {
                        let x = read_some(from.wrapping_add(i * step), step, n);
                        store_some(part.as_mut_ptr().add(i), n, x);
                    }
                }
            }
        }
    }
}

/// The axes of a depthwise convolution of images: each output has one input channel, few outputs share it, and the copied
/// rows are not mostly zero padding.
pub fn axes(axes: &[Axis; 3], channels: usize, rows: usize) -> Option<[Axis; 2]> {
    let [depth, height, width] = axes;
    let flat = depth.size == 1 && depth.count == 1 && depth.taps == [0];
    let sparse = || height.is_sparse() || width.is_sparse();
    (channels == 1 && rows <= ROWS && flat && !sparse()).then(|| [height.clone(), width.clone()])
}

/// A convolution with one input channel for each `rows` results.
pub struct Convolution<'a, T> {
    pub samples: usize,
    pub groups: usize,
    pub rows: usize,
    pub input: Planes<'a, T>,
    pub axes: [Axis; 2],
    pub out: Planes<'a, T>,
    /// The kernel elements, by output channel and tap.
    pub weight: &'a (dyn Fn(usize, usize) -> T + Sync),
    pub bias: &'a (dyn Fn(usize) -> Option<T> + Sync),
}

/// The epilogue of neighbouring outputs: called with their address, their number and their accumulators.
pub trait Finish<T: Elements>: Fn(*const T, usize, T::Vector) -> T::Vector + Sync {}

impl<T: Elements, F: Fn(*const T, usize, T::Vector) -> T::Vector + Sync> Finish<T> for F {}

impl<T: Elements> Convolution<'_, T> {
    /// Computes the convolution.
    ///
    /// # Safety
    /// All described elements must exist, and those of the output must be uniquely owned.
    pub unsafe fn run(&self, finish: impl Finish<T>) -> Result<(), Error> {
        let band = Band::of::<T::Vector>(&self.axes);
        let taps = self.axes[0].taps.len() * self.axes[1].taps.len();
        let bands = band.bands();
        let three = self.axes.iter().all(|axis| axis.taps.len() == 3)
            && self.axes[0].step == 1
            && (1..3).all(|y| band.offset(y, 0) == y * band.row);
        let work = (band.tall * self.axes[1].count).saturating_mul(taps * self.rows);
        parallel_try(self.samples * self.groups * bands, TILE_WORK / work.max(1), |range| {
            let mut copy = Scratch::<T::Acc>::zeroed(band.len())?;
            let mut weight = vec![(0, T::Vector::splat(T::Acc::ZERO)); taps];
            for task in range {
                let (plane, places) = (task / bands, band.places(task % bands));
                let (sample, g) = (plane / self.groups, plane % self.groups);
                // SAFETY: the caller guarantees the elements.
                unsafe { band.copy(&mut copy, self.input.at(sample, g, 0), self.input.steps, &places) };
                for r in g * self.rows..(g + 1) * self.rows {
                    let width = self.axes[1].taps.len();
                    for (t, tap) in weight.iter_mut().enumerate() {
                        let number = (self.weight)(r, t).to_acc();
                        *tap = (band.offset(t / width, t % width), T::Vector::splat(number));
                    }
                    let bias = (self.bias)(r).map_or(T::Acc::ZERO, |bias| bias.to_acc());
                    let results = Results {
                        from: copy.as_ptr(),
                        row: self.axes[0].step * band.row,
                        weight: &weight,
                        three: three
                            .then(|| std::array::from_fn(|y| std::array::from_fn(|x| weight[y * 3 + x].1))),
                        bias: T::Vector::splat(bias),
                        to: self.out.at(sample, r, places.start),
                        steps: self.out.steps,
                        rows: places.len(),
                        finish: &finish,
                    };
                    let (width, lanes) = (self.axes[1].count, T::Vector::LANES);
                    let mut x = 0;
                    while x < width {
                        // SAFETY: the band has the elements that these positions read, and one vector beyond.
                        x += unsafe {
                            match (width - x).div_ceil(lanes) {
                                1 => results.columns::<4, 1>(x, width),
                                2 => results.columns::<2, 2>(x, width),
                                _ => results.columns::<1, 3>(x, width),
                            }
                        };
                    }
                }
            }
            Ok(())
        })
    }
}

/// The outputs of some rows of a plane.
struct Results<'a, T: Elements, F> {
    from: *const T::Acc,
    /// The row stride of the band, in elements.
    row: usize,
    /// The kernel elements, each with the offset of its operand from the position's first element.
    weight: &'a [(usize, T::Vector)],
    /// The elements of a 3x3 kernel with vertical stride and dilation 1.
    three: Option<[[T::Vector; 3]; 3]>,
    bias: T::Vector,
    to: *mut T,
    steps: [usize; 2],
    rows: usize,
    finish: &'a F,
}

impl<T: Elements, F: Finish<T>> Results<'_, T, F> {
    /// Writes `V` vectors of positions of each of `R` rows, at most `width` positions; returns the number of positions.
    ///
    /// # Safety
    /// The elements that the positions read must be valid, and one vector beyond; the outputs must be uniquely owned.
    unsafe fn columns<const R: usize, const V: usize>(&self, x: usize, width: usize) -> usize {
        let whole = self.rows / R * R;
        // SAFETY: as the caller guarantees.
        unsafe {
            (0..whole).step_by(R).for_each(|y| self.write::<R, V>([y, x], width));
            (whole..self.rows).for_each(|y| self.write::<1, V>([y, x], width));
        }
        (V * T::Vector::LANES).min(width - x)
    }

    /// # Safety
    /// As for [`Results::columns`].
    #[inline(always)]
    unsafe fn write<const R: usize, const V: usize>(&self, [y, x]: [usize; 2], width: usize) {
        let lanes = T::Vector::LANES;
        let from = self.from.wrapping_add(y * self.row + x);
        let mut sums = [[self.bias; V]; R];
        if let Some(weight) = &self.three {
            // SAFETY: as the caller guarantees.
            unsafe {
                self.three_by_three(from, weight, &mut sums);
                self.put([y, x], width, sums);
            }
            return;
        }
        for &(offset, weight) in self.weight {
            for (r, sums) in sums.iter_mut().enumerate() {
                for (v, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: as the caller guarantees.
                    let x = unsafe { T::Vector::load(from.add(offset + r * self.row + v * lanes)) };
                    *sum = x.mul_add(weight, *sum);
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.put([y, x], width, sums) };
    }

    /// Accumulates a 3x3 kernel over rows: each input row is loaded once and used by up to three output rows.
    ///
    /// # Safety
    /// As for [`Results::columns`].
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "the sums stay in registers only where each index is a constant"
    )]
    unsafe fn three_by_three<const R: usize, const V: usize>(
        &self,
        from: *const T::Acc,
        weight: &[[T::Vector; 3]; 3],
        sums: &mut [[T::Vector; V]; R],
    ) {
        for v in 0..V {
            for y in 0..R + 2 {
                for x in 0..3 {
                    let at = from.wrapping_add(y * self.row + self.weight[x].0 + v * T::Vector::LANES);
                    // SAFETY: as the caller guarantees.
                    let number = unsafe { T::Vector::load(at) };
                    for tap in 0..3 {
                        if let Some(r) = y.checked_sub(tap).filter(|r| *r < R) {
                            sums[r][v] = number.mul_add(weight[tap][x], sums[r][v]);
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`Results::columns`].
    #[inline(always)]
    unsafe fn put<const R: usize, const V: usize>(
        &self,
        [y, x]: [usize; 2],
        width: usize,
        sums: [[T::Vector; V]; R],
    ) {
        let lanes = T::Vector::LANES;
        for (r, sums) in sums.into_iter().enumerate() {
            for (v, sum) in sums.into_iter().enumerate() {
                let x = x + v * lanes;
                let to = self.to.wrapping_add((y + r) * self.steps[0] + x * self.steps[1]);
                let n = lanes.min(width - x);
                // SAFETY: as above.
                unsafe { write_some(to, self.steps[1], n, (self.finish)(to.cast_const(), n, sum)) };
            }
        }
    }
}

/// The weight gradient of such a convolution: the sums for each output channel and tap.
///
/// # Safety
/// All described elements must exist.
pub unsafe fn weight_grad<T: Elements>(
    (samples, groups, rows): (usize, usize, usize),
    input: &Planes<'_, T>,
    axes: &[Axis; 2],
    grad: &Planes<'_, T>,
    write: impl Fn(usize, usize, T) + Sync,
) -> Result<(), Error> {
    let band = Band::of::<T::Vector>(axes);
    let [height, width] = [0, 1].map(|d| axes[d].taps.len());
    let work = (samples * axes[0].count * axes[1].count).saturating_mul(height * width);
    parallel_try(groups * rows, TILE_WORK / work.max(1), |range| {
        let mut copy = Scratch::<T::Acc>::zeroed(band.len())?;
        for r in range {
            let mut sums = vec![T::Acc::ZERO; height * width];
            for (sample, i) in (0..samples).flat_map(|n| (0..band.bands()).map(move |i| (n, i))) {
                let places = band.places(i);
                // SAFETY: as the caller guarantees.
                unsafe { band.copy(&mut copy, input.at(sample, r / rows, 0), input.steps, &places) };
                for (y, first) in (0..height).flat_map(|y| (0..width).step_by(TAPS).map(move |x| (y, x))) {
                    let count = TAPS.min(width - first);
                    let mut offsets = [0; TAPS];
                    (0..count).for_each(|x| offsets[x] = band.offset(y, first + x));
                    let mut all = [T::Vector::splat(T::Acc::ZERO); TAPS];
                    for (j, place) in places.clone().enumerate() {
                        let from = copy[j * axes[0].step * band.row..].as_ptr();
                        let g = grad.at(sample, r, place).cast_const();
                        for x in (0..axes[1].count).step_by(T::Vector::LANES) {
                            let n = T::Vector::LANES.min(axes[1].count - x);
                            // SAFETY: as the caller guarantees; the band has the elements that the positions of the row read.
                            unsafe {
                                let g = read_some(g.wrapping_add(x * grad.steps[1]), grad.steps[1], n);
                                for (sum, offset) in all.iter_mut().zip(offsets).take(count) {
                                    *sum = load_some::<T::Vector>(from.add(offset + x), n).mul_add(g, *sum);
                                }
                            }
                        }
                    }
                    for (x, &all) in all.iter().enumerate().take(count) {
                        sums[y * width + first + x] += sum(all, T::Vector::splat(T::Acc::ZERO));
                    }
                }
            }
            sums.iter().enumerate().for_each(|(tap, &sum)| write(r, tap, T::from_acc(sum)));
        }
        Ok(())
    })
}
