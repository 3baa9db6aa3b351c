//! `adaptive_avg_pool`, its gradient, and `adaptive_max_pool`.
//!
//! A row of outputs is reduced in two steps: over the rows of the window, for several columns in parallel, then over the
//! columns of each window. The gradient is constant over the elements covered by the same windows: it is computed once per
//! run of rows and of columns, and copied.

use super::average::Sum;
use super::largest::Largest;
use super::lines::{GRAIN, Line, Lines, Memory, Reduce, by_channels, each_first, read, take_all};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::vectors::{Lanes, narrow};
use keyway_cpu_loops::{parallel_try, reserve, transpose};
use keyway_sdk::author::{Call, Element, Error, Real, Scratch};
use keyway_sdk::half::{bf16, f16};
use std::ops::Range;

/// The range of input elements in each of `count` windows over a dimension of `size` elements.
fn windows(size: usize, count: usize) -> Result<Vec<Range<usize>>, Error> {
    let mut windows = reserve(count)?;
    let (wide, of) = (size as u128, count as u128);
    windows.extend((0..of).map(|i| (i * wide / of) as usize..((i + 1) * wide).div_ceil(of.max(1)) as usize));
    Ok(windows)
}

/// [`windows`] of each spatial dimension.
pub fn all_windows<T>(
    image: &Volume<'_, T>,
    results: &Volume<'_, T>,
) -> Result<[Vec<Range<usize>>; 3], Error> {
    let of = |d: usize| windows(image.sizes[d], results.sizes[d]);
    Ok([of(2)?, of(3)?, of(4)?])
}

/// A reduction that is associative and commutative.
trait Merge<A>: Reduce<A> {
    /// Combines two partial reductions.
    fn merge(a: (A, Self::Place), b: (A, Self::Place)) -> (A, Self::Place);
}

impl<A: Real> Merge<A> for Sum {
    #[inline(always)]
    fn merge((a, ()): (A, ()), (b, ()): (A, ())) -> (A, ()) {
        (a + b, ())
    }
}

impl<A: Real, P: PartialOrd> Merge<A> for Largest<P>
where
    Largest<P>: Reduce<A, Place = P>,
{
    #[inline(always)]
    fn merge((a, at): (A, P), (b, place): (A, P)) -> (A, P) {
        // The last NaN, or the first of the largest elements.
        let second = if b.is_nan() { !a.is_nan() || place > at } else { b > a || (b == a && place < at) };
        if second { (b, place) } else { (a, at) }
    }
}

/// An image and its windows.
struct Adaptive<'a, T: Lanes> {
    input: &'a Volume<'a, T>,
    windows: [Vec<Range<usize>>; 3],
}

impl<T: Lanes> Adaptive<'_, T> {
    /// Calls `write` with each line of the output and its indices, if any.
    ///
    /// # Safety
    /// The input must contain the elements that the sizes describe.
    unsafe fn each<R: Merge<T::Acc>, O>(
        &self,
        out: &Volume<'_, O>,
        write: impl Fn(Line, &mut [T::Acc], &[R::Place]) + Sync,
    ) -> Result<(), Error> {
        let along = if by_channels(self.input) { 1 } else { 4 };
        let (length, size) = (out.sizes[along], self.input.sizes[along]);
        let mut counts = out.sizes;
        counts[along] = 1;
        let lines = counts.iter().product();
        let most = |windows: &Vec<Range<usize>>| windows.iter().map(Range::len).max().unwrap_or(0);
        let work = self.windows.iter().map(most).fold(length, usize::saturating_mul);
        parallel_try(lines, GRAIN / work.max(1), |range| {
            // Each column of a row has an accumulator, from which the results are computed.
            let mut memory = Memory::new(R::FIRST, size, size, 0)?;
            let mut results = Memory::new(R::FIRST, if along == 4 { length } else { 0 }, 0, 0)?;
            each_first(counts, range, |first| {
                memory.begin(R::FIRST);
                let line = Line { first, along };
                // SAFETY: as the caller guarantees.
                unsafe {
                    if along == 1 {
                        self.of_channels::<R>(line, &mut memory);
                        write(line, &mut memory.values, &memory.places);
                    } else {
                        self.of_columns::<R>(line, &mut memory);
                        self.join::<R>(&memory, &mut results);
                        write(line, &mut results.values, &results.places);
                    }
                }
            });
            Ok(())
        })
    }

    /// The rows in the window of a line: their offsets, and the indices of their first elements.
    fn rows(&self, line: Line) -> impl Iterator<Item = (usize, usize)> {
        let [sample, channel, d, h, _] = line.first;
        let ([by_n, by_c, by_d, by_h, _], [_, _, _, height, width]) = (self.input.strides, self.input.sizes);
        let begin = sample * by_n + channel * by_c;
        let row = move |z: usize, y: usize| (begin + z * by_d + y * by_h, (z * height + y) * width);
        let rows = self.windows[1][h].clone();
        self.windows[0][d].clone().flat_map(move |z| rows.clone().map(move |y| row(z, y)))
    }

    /// # Safety
    /// As for [`Adaptive::each`].
    unsafe fn of_channels<R: Reduce<T::Acc>>(&self, line: Line, memory: &mut Memory<T::Acc, R::Place>) {
        let (columns, step) = (&self.windows[2][line.first[4]], self.input.strides[4]);
        memory.window.clear();
        for (at, place) in self.rows(line) {
            memory.window.extend(columns.clone().map(|x| (at + x * step, R::place(place + x))));
        }
        // SAFETY: the window's elements are within the image, whose channels the caller guarantees.
        unsafe { Lines::under::<R>(self.input.data.as_ptr(), memory) };
    }

    /// # Safety
    /// As for [`Adaptive::each`].
    unsafe fn of_columns<R: Reduce<T::Acc>>(&self, line: Line, memory: &mut Memory<T::Acc, R::Place>) {
        let (width, step) = (self.input.sizes[4], self.input.strides[4]);
        for (at, place) in self.rows(line) {
            let from = self.input.data.as_ptr().wrapping_add(at);
            // SAFETY: the row is in the image, whose elements the caller guarantees.
            let read = unsafe { Lines::read(from, step, width, &mut memory.read) };
            take_all::<_, R>(&mut memory.values, &mut memory.places, read, place, 1);
        }
    }

    /// Reduces the columns of each window of a row.
    fn join<R: Merge<T::Acc>>(
        &self,
        columns: &Memory<T::Acc, R::Place>,
        results: &mut Memory<T::Acc, R::Place>,
    ) {
        for (i, window) in self.windows[2].iter().enumerate() {
            let columns = columns.values[window.clone()].iter().zip(&columns.places[window.clone()]);
            let all = columns.map(|(&value, &place)| (value, place)).reduce(R::merge);
            (results.values[i], results.places[i]) = all.unwrap_or(R::FIRST);
        }
    }
}

fn adaptive_avg_pool<T: Lanes>(call: &Call) -> Result<(), Error> {
    let (input, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let adaptive = Adaptive { input: &input, windows: all_windows(&input, &out)? };
    let count = |d: usize, place: usize| adaptive.windows[d][place].len();
    // SAFETY: as in `largest`.
    unsafe {
        adaptive.each::<Sum, _>(&out, |line, sums, _| {
            let [d, h, w] = line.place();
            let rows = count(0, d) * count(1, h);
            let divisor = |w: usize| T::Acc::from_f64((rows * count(2, w)) as f64);
            if line.has_channels() {
                let divisor = divisor(w);
                sums.iter_mut().for_each(|sum| *sum = *sum / divisor);
            } else {
                sums.iter_mut().enumerate().for_each(|(w, sum)| *sum = *sum / divisor(w));
            }
            line.write(&out, sums);
        })
    }
}

fn adaptive_max_pool<T: Lanes>(call: &Call) -> Result<(), Error> {
    let count: usize = Volume::<T>::argument(call, 0)?.sizes[2..].iter().product();
    // 4-byte indices are as fast as the elements.
    if i32::try_from(count).is_ok() { largest::<T, i32>(call) } else { largest::<T, i64>(call) }
}

fn largest<T: Lanes, P: Copy + PartialOrd + Into<i64> + Sync>(call: &Call) -> Result<(), Error>
where
    Largest<P>: Reduce<T::Acc, Place = P>,
{
    let input = Volume::<T>::argument(call, 0)?;
    let (values, places) = (Volume::<T>::output(call, 0)?, Volume::<i64>::output(call, 1)?);
    if values.sizes.contains(&0) {
        return Ok(());
    }
    let adaptive = Adaptive { input: &input, windows: all_windows(&input, &values)? };
    // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has checked against each other and
    // whose elements the host guarantees; each line writes its own results.
    unsafe {
        adaptive.each::<Largest<P>, _>(&values, |line, largest, at| {
            line.write(&values, largest);
            line.write_places(&places, at);
        })
    }
}

/// Consecutive elements of a dimension covered by the same windows.
struct Run {
    elements: Range<usize>,
    windows: Range<usize>,
}

/// All elements of a dimension as runs.
fn runs(size: usize, windows: &[Range<usize>]) -> Result<Vec<Run>, Error> {
    let mut runs: Vec<Run> = reserve(size.min(2 * windows.len()))?;
    let mut over = 0..0;
    for element in 0..size {
        over.end += windows[over.end..].iter().take_while(|window| window.start <= element).count();
        over.start += windows[over.clone()].iter().take_while(|window| window.end <= element).count();
        match runs.last_mut() {
            Some(run) if run.windows == over => run.elements.end += 1,
            _ => runs.push(Run { elements: element..element + 1, windows: over.clone() }),
        }
    }
    Ok(runs)
}

/// The output gradient and the windows through which it is propagated.
struct Gradient<'a, T: Lanes> {
    grad: &'a Volume<'a, T>,
    out: &'a Volume<'a, T>,
    /// The weight of each element of a window in its mean, for each dimension.
    weights: [Vec<T::Acc>; 3],
    runs: [Vec<Run>; 3],
    /// The run that contains each column.
    columns: Vec<usize>,
    /// The number of channels that are processed together.
    channels: usize,
    /// Whether these channels are contiguous planes, to which results are transposed.
    transposed: bool,
}

/// The number of planes that are processed together, and the maximum number of elements of their rows for which they are.
const PLANES: usize = 32;
const SHORT: usize = 64;

impl<T: Lanes> Gradient<'_, T> {
    /// The address of the element at this index.
    fn at(of: &Volume<'_, T>, index: [usize; 5]) -> *mut T {
        let at: usize = index.iter().zip(&of.strides).map(|(i, step)| i * step).sum();
        of.data.as_ptr().wrapping_add(at)
    }

    /// Sums the gradient over the windows that cover a run of planes and a run of rows, for each window of the columns and
    /// each channel.
    ///
    /// # Safety
    /// The gradient must contain the elements that the sizes describe.
    unsafe fn sum(
        &self,
        [n, c, d, h, _]: [usize; 5],
        channels: usize,
        copy: &mut [T::Acc],
        sums: &mut [T::Acc],
    ) {
        let (planes, rows) = (&self.runs[0][d].windows, &self.runs[1][h].windows);
        let [depths, heights, widths] = &self.weights;
        sums.fill(T::Acc::ZERO);
        for (d, h) in planes.clone().flat_map(|d| rows.clone().map(move |h| (d, h))) {
            let weight = depths[d] * heights[h];
            // SAFETY: as the caller guarantees.
            unsafe {
                if self.channels == 1 {
                    read(Self::at(self.grad, [n, c, d, h, 0]), self.grad.strides[4], copy);
                    let shares = copy.iter().zip(widths).map(|(&g, &width)| g * (weight * width));
                    sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
                    continue;
                }
                let copy = &mut copy[..channels];
                for (w, sums) in sums.chunks_exact_mut(self.channels).enumerate() {
                    let weight = weight * widths[w];
                    read(Self::at(self.grad, [n, c, d, h, w]), self.grad.strides[1], copy);
                    sums.iter_mut().zip(&*copy).for_each(|(sum, &g)| *sum += g * weight);
                }
            }
        }
    }

    /// Computes a row of the result from the sums of each window of the columns. `made` has capacity for one element for
    /// each run and channel.
    fn row(&self, sums: &[T::Acc], total: &mut [T::Acc], made: &mut [T], row: &mut [T]) {
        let channels = self.channels;
        for (run, made) in self.runs[2].iter().zip(made.chunks_exact_mut(channels)) {
            let sums = &sums[run.windows.start * channels..run.windows.end * channels];
            if channels == 1 {
                made[0] = T::from_acc(sums.iter().fold(T::Acc::ZERO, |total, &sum| total + sum));
                continue;
            }
            total.fill(T::Acc::ZERO);
            for sums in sums.chunks_exact(channels) {
                total.iter_mut().zip(sums).for_each(|(total, &sum)| *total += sum);
            }
            // SAFETY: there is an element for each channel.
            unsafe { narrow(made.as_mut_ptr(), 1, total) };
        }
        if channels == 1 {
            return row.iter_mut().zip(&self.columns).for_each(|(to, &run)| *to = made[run]);
        }
        for (to, &run) in row.chunks_exact_mut(channels).zip(&self.columns) {
            to.copy_from_slice(&made[run * channels..(run + 1) * channels]);
        }
    }

    /// Copies the row to each row of a run of planes and a run of rows.
    ///
    /// # Safety
    /// The output must contain the elements that the sizes describe, and these must be uniquely owned.
    unsafe fn write(&self, [n, c, d, h, _]: [usize; 5], channels: usize, row: &[T]) {
        let (planes, rows) = (&self.runs[0][d].elements, &self.runs[1][h].elements);
        let [_, _, by_d, by_h, step] = self.out.strides;
        let begin = Self::at(self.out, [n, c, 0, 0, 0]);
        for (z, y) in planes.clone().flat_map(|z| rows.clone().map(move |y| (z, y))) {
            let to = begin.wrapping_add(z * by_d + y * by_h);
            // SAFETY: as the caller guarantees.
            unsafe {
                if self.transposed {
                    let width = self.out.sizes[4];
                    transpose(to, self.out.strides[1], row.as_ptr(), self.channels, width, channels);
                    continue;
                }
                if step == self.channels {
                    to.copy_from_nonoverlapping(row.as_ptr(), row.len());
                    continue;
                }
                for (x, elements) in row.chunks_exact(self.channels).enumerate() {
                    to.wrapping_add(x * step).copy_from_nonoverlapping(elements.as_ptr(), self.channels);
                }
            }
        }
    }
}

fn adaptive_avg_pool_backward<T: Lanes>(call: &Call) -> Result<(), Error> {
    let (grad, out) = (Volume::<T>::argument(call, 0)?, Volume::<T>::output(call, 0)?);
    if out.sizes.contains(&0) {
        return Ok(());
    }
    let windows = all_windows(&out, &grad)?;
    let weight = |_, window: &Range<usize>| T::Acc::ONE / T::Acc::from_f64(window.len() as f64);
    // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has checked against each other and
    // whose elements the host guarantees; the output is uniquely owned.
    unsafe { spread_back(&grad, &out, &windows, weight) }
}

/// Writes to each element of an image the weighted sum of the gradients of the windows that cover it; `weight` is the
/// weight of a window in one dimension. Windows are ordered: none begins or ends before the previous one.
///
/// # Safety
/// Both must contain the elements that the sizes describe, and the output must be uniquely owned.
pub unsafe fn spread_back<T: Lanes>(
    grad: &Volume<'_, T>,
    out: &Volume<'_, T>,
    windows: &[Vec<Range<usize>>; 3],
    weight: impl Fn(usize, &Range<usize>) -> T::Acc,
) -> Result<(), Error> {
    let of = |d: usize| runs(out.sizes[d + 2], &windows[d]);
    let runs = [of(0)?, of(1)?, of(2)?];
    let weights = |d: usize| {
        let mut weights = reserve(windows[d].len())?;
        weights.extend(windows[d].iter().map(|window| weight(d, window)));
        Ok(weights)
    };
    let mut columns = reserve(out.sizes[4])?;
    columns
        .extend(runs[2].iter().enumerate().flat_map(|(i, run)| std::iter::repeat_n(i, run.elements.len())));
    let ([_, all, depth, height, width], [planes, rows]) = (out.sizes, [0, 1].map(|d| runs[d].len()));
    let made = depth.div_ceil(planes) * height.div_ceil(rows) * width;
    // A transposition of several planes is faster than short rows of each.
    let transposed = !by_channels(out) && out.strides[4] == 1 && made <= SHORT && all > 1;
    let channels = match transposed {
        true => PLANES.min(all),
        false if by_channels(out) => all,
        false => 1,
    };
    let weights = [weights(0)?, weights(1)?, weights(2)?];
    let gradient = Gradient { grad, out, weights, runs, columns, channels, transposed };
    let counts = [out.sizes[0], all.div_ceil(channels), planes, rows, 1];
    let work = made * channels;
    parallel_try(counts.iter().product(), GRAIN / work, |range| {
        let mut sums = Scratch::zeroed(grad.sizes[4] * channels)?;
        let mut copy = Scratch::zeroed(if channels == 1 { grad.sizes[4] } else { channels })?;
        let mut total = Scratch::zeroed(channels)?;
        let (mut made, mut row) =
            (Scratch::zeroed(gradient.runs[2].len() * channels)?, Scratch::zeroed(width * channels)?);
        each_first(counts, range, |mut first| {
            first[1] *= channels;
            let some = channels.min(all - first[1]);
            // SAFETY: as the caller guarantees; each row belongs to one work item.
            unsafe {
                gradient.sum(first, some, &mut copy, &mut sums);
                gradient.row(&sums, &mut total, &mut made, &mut row);
                gradient.write(first, some, &row);
            }
        });
        Ok(())
    })
}

kernel!("adaptive_avg_pool", "TI>T", adaptive_avg_pool, [f32, f64, f16, bf16]);
kernel!("adaptive_avg_pool_backward", "TI>T", adaptive_avg_pool_backward, [f32, f64, f16, bf16]);
kernel!("adaptive_max_pool", "TI>TT", adaptive_max_pool, [f32, f64, f16, bf16]);

#[cfg(test)]
mod tests;
