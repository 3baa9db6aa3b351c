//! Weighted sums of image elements for each output position: vectorised over channels if these are contiguous, otherwise
//! row by row, where the weighted rows are added first and the elements of their sum are then combined.

use super::GRAIN;
use super::tables::Table;
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::vectors::{Lanes, MOST, Vector, load_some, narrow, read_some, store_some, write_some};
use keyway_cpu_loops::{copy_dense, parallel_try, reserve};
use keyway_sdk::author::{Error, Real, Scratch};
use std::ops::Range;

/// The number of vectors of channels whose accumulators stay in registers over all taps of a position.
const VECTORS: usize = 4;

/// The minimum ratio of a row's elements to the elements read for which unread ones are skipped.
const SPARSE: usize = 64;

/// The operands of the weighted sums.
struct Sums<'a, T: Lanes> {
    image: &'a Volume<'a, T>,
    out: &'a Volume<'a, T>,
    tables: &'a [Table<T::Acc>; 3],
}

/// Computes each output position from the elements in the tables.
///
/// # Safety
/// The volumes must contain the elements that sizes and strides describe, the indices in the tables must be within the image
/// for each output position, and the output must be uniquely owned.
pub unsafe fn weighted<T: Lanes>(
    image: &Volume<'_, T>,
    out: &Volume<'_, T>,
    tables: &[Table<T::Acc>; 3],
) -> Result<(), Error> {
    let of = Sums { image, out, tables };
    // SAFETY: as the caller guarantees.
    unsafe {
        if image.strides[1] == 1 && image.sizes[1] > 1 {
            of.by_channels()
        } else if image.sizes[4] / SPARSE > of.taps().saturating_mul(out.sizes[4])
            || u32::try_from(image.sizes[4]).is_err()
        {
            of.by_positions()
        } else {
            of.by_rows()
        }
    }
}

impl<T: Lanes> Sums<'_, T> {
    /// The maximum number of taps of an output position.
    fn taps(&self) -> usize {
        self.tables.iter().map(Table::most).product()
    }

    /// The sample, and the position in depth and height, of an output row.
    fn row(&self, i: usize) -> [usize; 3] {
        let [_, _, depth, height, _] = self.out.sizes;
        [i / height / depth, i / height % depth, i % height]
    }

    /// # Safety
    /// As for [`weighted`], for an image whose channels are contiguous.
    unsafe fn by_channels(&self) -> Result<(), Error> {
        let [samples, channels, depth, height, width] = self.out.sizes;
        let rows = if channels * width == 0 { 0 } else { samples * depth * height };
        let ([by_n, step, by_d, by_h, by_w], columns) = (self.out.strides, &self.tables[2]);
        let (of_sample, across) = (self.image.strides[0], self.image.strides[4]);
        let is_dense = step == 1 && by_w == channels;
        let work = width.saturating_mul(channels).saturating_mul(self.taps());
        parallel_try(rows, GRAIN / work.max(1), |range| {
            let (mut lines, mut before) = (Vec::new(), Vec::new());
            let mut last: Option<(usize, *mut T)> = None;
            for i in range {
                let [n, d, h] = self.row(i);
                self.lines([d, h], &mut lines);
                let from = self.image.data.as_ptr().cast_const().wrapping_add(n * of_sample);
                let to = self.out.data.as_ptr().wrapping_add(n * by_n + d * by_d + h * by_h);
                // SAFETY: as the caller guarantees; each row is written by one task.
                unsafe {
                    match last {
                        // Rows with equal taps are copies of the first of them.
                        Some((of, row)) if is_dense && of == n && before == lines => {
                            to.copy_from_nonoverlapping(row, width * channels);
                        }
                        _ => (0..width).for_each(|w| {
                            let to = to.wrapping_add(w * by_w);
                            let made = Made { lines: &lines, columns: columns.at(w), across };
                            pixel(from, made, to, (step, channels));
                        }),
                    }
                }
                last = Some((n, to));
                std::mem::swap(&mut lines, &mut before);
            }
            Ok(())
        })
    }

    /// The offsets in a sample and the weights of the rows that contribute to an output row.
    fn lines(&self, [d, h]: [usize; 2], to: &mut Vec<(usize, T::Acc)>) {
        let ([_, _, by_d, by_h, _], [depths, rows, _]) = (self.image.strides, self.tables);
        to.clear();
        for &(z, front) in depths.at(d) {
            to.extend(rows.at(h).iter().map(|&(y, share)| (z * by_d + y * by_h, front * share)));
        }
    }

    /// The offsets in a sample and the weights of the taps of a position.
    fn elements(&self, [d, h, w]: [usize; 3], to: &mut Vec<(usize, T::Acc)>) {
        let [_, _, by_d, by_h, by_w] = self.image.strides;
        let [depths, rows, columns] = self.tables;
        to.clear();
        for &(z, front) in depths.at(d) {
            for &(y, share) in rows.at(h) {
                let (begin, share) = (z * by_d + y * by_h, front * share);
                to.extend(columns.at(w).iter().map(|&(x, weight)| (begin + x * by_w, share * weight)));
            }
        }
    }

    /// Computes position by position, for rows that are mostly unread.
    ///
    /// # Safety
    /// As for [`weighted`].
    unsafe fn by_positions(&self) -> Result<(), Error> {
        let [samples, channels, depth, height, width] = self.out.sizes;
        let work = width.saturating_mul(self.taps());
        parallel_try(samples * channels * depth * height, GRAIN / work.max(1), |range| {
            let mut elements = reserve(self.taps())?;
            for i in range {
                let [nc, d, h] = self.row(i);
                let at = |strides: [usize; 5]| nc / channels * strides[0] + nc % channels * strides[1];
                let from = self.image.data.as_ptr().cast_const().wrapping_add(at(self.image.strides));
                let [_, _, by_d, by_h, by_w] = self.out.strides;
                let to = at(self.out.strides) + d * by_d + h * by_h;
                for w in 0..width {
                    self.elements([d, h, w], &mut elements);
                    let add = |sum: T::Acc, &(at, weight): &(usize, T::Acc)| {
                        // SAFETY: the caller guarantees the elements in the tables.
                        sum + unsafe { *from.wrapping_add(at) }.to_acc() * weight
                    };
                    let sum = T::from_acc(elements.iter().fold(T::Acc::ZERO, add));
                    // SAFETY: as above; each row is written by one task.
                    unsafe { self.out.data.as_ptr().wrapping_add(to + w * by_w).write(sum) };
                }
            }
            Ok(())
        })
    }

    /// # Safety
    /// As for [`weighted`].
    unsafe fn by_rows(&self) -> Result<(), Error> {
        let [samples, channels, depth, height, width] = self.out.sizes;
        let rows = if width == 0 { 0 } else { samples * channels * depth * height };
        let columns = Columns::of(&self.tables[2], width)?;
        let work = width.saturating_mul(self.taps());
        parallel_try(rows, GRAIN / work.max(1), |range| {
            let mut mixed = Scratch::<T::Acc>::zeroed(self.image.sizes[4])?;
            let mut sums = Scratch::<T::Acc>::zeroed(width)?;
            let ([mut nc, mut d, mut h], mut plane) = (self.row(range.start), None);
            for _ in range {
                let (from, to) = *plane.get_or_insert_with(|| {
                    let at = |strides: [usize; 5]| nc / channels * strides[0] + nc % channels * strides[1];
                    let from = self.image.data.as_ptr().cast_const().wrapping_add(at(self.image.strides));
                    (from, self.out.data.as_ptr().wrapping_add(at(self.out.strides)))
                });
                let [_, _, by_d, by_h, by_w] = self.out.strides;
                // SAFETY: as the caller guarantees; each row is written by one task.
                unsafe {
                    self.mix(from, [d, h], &mut mixed);
                    columns.take::<T::Vector>(&mixed, &mut sums);
                    narrow(to.wrapping_add(d * by_d + h * by_h), by_w, &sums);
                }
                h += 1;
                if h == height {
                    (d, h) = (d + 1, 0);
                }
                if d == depth {
                    (nc, d, plane) = (nc + 1, 0, None);
                }
            }
            Ok(())
        })
    }

    /// Adds the weighted rows of a channel that contribute to an output row.
    ///
    /// # Safety
    /// `from` must be the address of the channel's first element.
    unsafe fn mix(&self, from: *const T, [d, h]: [usize; 2], to: &mut [T::Acc]) {
        let [_, _, by_d, by_h, by_w] = self.image.strides;
        let [depths, rows, _] = self.tables;
        let lanes = T::Vector::LANES;
        let mut is_first = true;
        for &(z, front) in depths.at(d) {
            for &(y, share) in rows.at(h) {
                let (row, share) = (from.wrapping_add(z * by_d + y * by_h), T::Vector::splat(front * share));
                for x in (0..to.len()).step_by(lanes) {
                    let n = lanes.min(to.len() - x);
                    // SAFETY: the caller guarantees the row, which has the length of the sums.
                    unsafe {
                        let sums = to.as_mut_ptr().add(x);
                        let before = match is_first {
                            true => T::Vector::splat(T::Acc::ZERO),
                            false => load_some::<T::Vector>(sums, n),
                        };
                        let sum = read_some(row.wrapping_add(x * by_w), by_w, n).mul_add(share, before);
                        store_some(sums, n, sum);
                    }
                }
                is_first = false;
            }
        }
        if is_first {
            to.fill(T::Acc::ZERO);
        }
    }
}

/// The taps of a position: lines with offsets and weights, and in each line columns of stride `across` with weights.
#[derive(Clone, Copy)]
pub struct Made<'a, A> {
    pub lines: &'a [(usize, A)],
    pub columns: &'a [(usize, A)],
    pub across: usize,
}

/// Computes all channels of a position, which are written with stride `step`.
///
/// # Safety
/// Channels must be contiguous at each element, starting at `from`, and the output elements must be uniquely owned.
#[inline(always)]
pub unsafe fn pixel<T: Lanes>(
    from: *const T,
    of: Made<'_, T::Acc>,
    to: *mut T,
    (step, channels): (usize, usize),
) {
    let lanes = T::Vector::LANES;
    if let Made { lines: &[(line, share)], columns: &[(column, weight)], across } = of
        && share * weight == T::Acc::ONE
        && step == 1
    {
        // SAFETY: the caller guarantees channels and output elements, which are in two tensors.
        return unsafe { copy_dense(to, from.wrapping_add(line + column * across), channels) };
    }
    let whole = channels - channels % (VECTORS * lanes);
    // SAFETY: the caller guarantees channels and output elements.
    unsafe {
        for c in (0..whole).step_by(VECTORS * lanes) {
            let from = from.wrapping_add(c);
            let sums = sums::<T, VECTORS>(from, of, |at, v| T::read(at.wrapping_add(v * lanes)));
            for (v, sum) in sums.into_iter().enumerate() {
                write_some(to.wrapping_add((c + v * lanes) * step), step, lanes, sum);
            }
        }
        for c in (whole..channels).step_by(lanes) {
            let n = lanes.min(channels - c);
            let [sum] = sums::<T, 1>(from.wrapping_add(c), of, |at, _| read_some(at, 1, n));
            write_some(to.wrapping_add(c * step), step, n, sum);
        }
    }
}

/// Computes `VECTORS` vectors of weighted sums of the elements that `read` loads.
#[inline(always)]
fn sums<T: Lanes, const VECTORS: usize>(
    from: *const T,
    Made { lines, columns, across }: Made<'_, T::Acc>,
    read: impl Fn(*const T, usize) -> T::Vector,
) -> [T::Vector; VECTORS] {
    let mut sums = [T::Vector::splat(T::Acc::ZERO); VECTORS];
    for &(line, share) in lines {
        for &(column, weight) in columns {
            let (at, weight) = (from.wrapping_add(line + column * across), T::Vector::splat(share * weight));
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = read(at, v).mul_add(weight, *sum);
            }
        }
    }
    sums
}

/// The taps of a row's positions as lists: all first taps, then all second taps, and so on.
struct Columns<A> {
    /// Ranges of positions with the same number of taps, that number, and the offset of their lists.
    runs: Vec<(Range<usize>, usize, usize)>,
    at: Vec<u32>,
    weights: Vec<A>,
}

impl<A: Real> Columns<A> {
    fn of(table: &Table<A>, width: usize) -> Result<Columns<A>, Error> {
        let count = (0..width).map(|place| table.at(place).len()).sum::<usize>();
        // Vector loads read beyond the end of each list.
        let count = count + MOST;
        let mut made = Columns { runs: Vec::new(), at: reserve(count)?, weights: reserve(count)? };
        let mut first = 0;
        while first < width {
            let taps = table.at(first).len();
            let same = (first..width).take_while(|&place| table.at(place).len() == taps).count();
            made.runs.push((first..first + same, taps, made.at.len()));
            for tap in 0..taps {
                for place in first..first + same {
                    let (at, weight) = table.at(place)[tap];
                    made.at.push(at as u32);
                    made.weights.push(weight);
                }
            }
            first += same;
        }
        made.at.resize(count, 0);
        made.weights.resize(count, A::ZERO);
        Ok(made)
    }

    /// Adds the weighted elements of each position.
    ///
    /// # Safety
    /// The row must have the length that the tables were computed for, and `sums` an element for each position.
    unsafe fn take<V: Vector<Number = A>>(&self, row: &[A], sums: &mut [A]) {
        if V::PICKS && row.len() <= 2 * V::LANES {
            // SAFETY: as the caller guarantees.
            return unsafe { self.pick::<V>(row, sums) };
        }
        for (positions, taps, begin) in &self.runs {
            let end = begin + taps * positions.len();
            let (at, weights) = (&self.at[*begin..end], &self.weights[*begin..end]);
            let sums = &mut sums[positions.clone()];
            // SAFETY: the caller guarantees the elements.
            unsafe {
                match taps {
                    1 => take::<A, 1>(row, at, weights, sums),
                    2 => take::<A, 2>(row, at, weights, sums),
                    3 => take::<A, 3>(row, at, weights, sums),
                    4 => take::<A, 4>(row, at, weights, sums),
                    _ => {
                        sums.fill(A::ZERO);
                        for (at, weights) in at.chunks_exact(sums.len()).zip(weights.chunks_exact(sums.len()))
                        {
                            for ((sum, &at), &weight) in sums.iter_mut().zip(at).zip(weights) {
                                *sum += *row.get_unchecked(at as usize) * weight;
                            }
                        }
                    }
                }
            }
        }
    }
}

impl<A: Real> Columns<A> {
    /// [`Columns::take`] for a row that fits two vectors.
    ///
    /// # Safety
    /// As for [`Columns::take`].
    #[inline]
    unsafe fn pick<V: Vector<Number = A>>(&self, row: &[A], sums: &mut [A]) {
        let low = V::LANES.min(row.len());
        // SAFETY: the row has the elements.
        let (low, high) = unsafe {
            (load_some::<V>(row.as_ptr(), low), load_some::<V>(row.as_ptr().add(low), row.len() - low))
        };
        for (positions, taps, begin) in &self.runs {
            let n = positions.len();
            let mut i = 0;
            while i < n {
                let mut sum = V::splat(A::ZERO);
                for tap in 0..*taps {
                    let at = begin + tap * n + i;
                    // SAFETY: the lists extend beyond each position by the lanes of a vector; each index is within the row.
                    unsafe {
                        let weights = V::load(self.weights.as_ptr().add(at));
                        sum = low.pick(high, self.at.as_ptr().add(at).cast()).mul_add(weights, sum);
                    }
                }
                // SAFETY: the caller guarantees a sum for each position.
                unsafe { store_some(sums.as_mut_ptr().add(positions.start + i), V::LANES.min(n - i), sum) };
                i += V::LANES;
            }
        }
    }
}

/// [`Columns::take`] for a constant number of taps.
///
/// # Safety
/// The row must have the elements, and both lists `TAPS` for each sum.
#[inline(always)]
unsafe fn take<A: Real, const TAPS: usize>(row: &[A], at: &[u32], weights: &[A], sums: &mut [A]) {
    let n = sums.len();
    for (i, sum) in sums.iter_mut().enumerate() {
        let mut all = A::ZERO;
        for tap in 0..TAPS {
            // SAFETY: as the caller guarantees.
            unsafe {
                let (at, weight) = (*at.get_unchecked(tap * n + i), *weights.get_unchecked(tap * n + i));
                all += *row.get_unchecked(at as usize) * weight;
            }
        }
        *sum = all;
    }
}

#[cfg(test)]
mod tests;
