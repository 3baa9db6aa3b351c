//! Kernels of the ops that combine the source with the elements at indices: sums and extremes.

use super::accumulate::Sum;
use super::buffer::Buffer;
use super::cells::copy_all;
use super::gather::{AHEAD, fetch};
use super::nest::Nest;
use super::scatter::{Operands, Scatter, scatter_lines};
use keyway_cpu_loops::{copy_dense, transpose};
use keyway_sdk::author::{Error, Lanes};
use std::sync::OnceLock;

/// The number of elements of a line that are widened at a time.
const BLOCK: usize = 512;
/// Lines or columns in the accumulation type per block.
const LINES: usize = 16;
const COLUMNS: usize = 128;
/// The maximum size, in bytes, of a line, and of columns, that are combined in a block although the element type is the
/// accumulation type.
const LINE: usize = 1 << 16;
const PANEL: usize = 1 << 21;

/// Combines an accumulator with a source element.
pub trait Put<T: Sum>: Fn(T::Acc, T::Acc) -> T::Acc + Copy + Sync {}
impl<T: Sum, F: Fn(T::Acc, T::Acc) -> T::Acc + Copy + Sync> Put<T> for F {}

/// Combines each element of the source with the output element at its index, in the order of the source. The source does not
/// overlap the output, which is not empty.
pub fn combine<T: Sum>(o: Operands<'_, T>, put: impl Put<T>) -> Result<(), Error> {
    if T::WIDE || fits::<T, T::Acc>(&o) { by_panels(o, put) } else { by_lines(o, put) }
}

/// Whether parts of the output fit the caches as sums of type `A` while elements are added, and whether there are enough
/// addends to justify it.
pub fn fits<T: Sum, A>(o: &Operands<'_, T>) -> bool {
    let (sizes, index, _) = o.geometry();
    let (count, n) = (o.target.sizes[o.dim], sizes[o.dim]);
    let bytes = count.saturating_mul(size_of::<A>());
    if lines(o).2 {
        return bytes <= LINE;
    }
    // Whole slices need no lookup per element, and few elements move less data in place.
    let single = (0..index.len()).any(|d| d != o.dim && index[d] != 0);
    single && (n >= count || !o.target.is_at(&o.out)) && bytes.saturating_mul(COLUMNS) <= PANEL
}

/// Combines in place in the output, whose type is the accumulation type.
pub(super) fn by_lines<T: Sum>(o: Operands<'_, T>, put: impl Put<T>) -> Result<(), Error> {
    copy_all(&o.out, &o.target)?;
    let (tasks, lines) = o.loops(&o.out.strides);
    let (out, stride) = (o.out.lanes.as_ptr().cast::<T::Acc>(), o.out.strides[o.dim]);
    // SAFETY: `Acc` is `T` itself, so these are the output's elements.
    let out = unsafe { Lanes::new(out) };
    let operands = Scatter { out, index: o.index.lanes, source: o.source.lanes, stride };
    // SAFETY: the op's shape rule matches index, source and target except in `dim`, where every index was checked; tasks differ
    // in another dimension; source and index do not overlap the output.
    unsafe { scatter_lines(&tasks, &lines, &operands, |sum: T::Acc, x: T| put(sum, x.widen())) }
}

/// Combines a run of accumulators with elements of stride `step`.
///
/// # Safety
/// There must be an element for each accumulator, and no concurrent write to it; the caller upholds this.
#[inline(always)]
pub unsafe fn put_run<T: Sum>(sums: &mut [T::Acc], from: *const T, step: isize, put: impl Put<T>) {
    // SAFETY: as the caller guarantees.
    unsafe {
        if step == 1 {
            for (l, sum) in sums.iter_mut().enumerate() {
                *sum = put(*sum, T::load(from.add(l)).widen());
            }
        } else {
            for (l, sum) in sums.iter_mut().enumerate() {
                *sum = put(*sum, T::load(from.offset(l as isize * step)).widen());
            }
        }
    }
}

/// Returns the loops along the dimension and over its lines, with the strides of output, target, index and source, and whether
/// the source has a smaller stride along a line than across lines.
fn lines<T: Sum>(o: &Operands<'_, T>) -> ([isize; 4], Nest<4>, bool) {
    let (sizes, index, source) = o.geometry();
    let strides = [&o.out.strides, &o.target.strides, &index, &source];
    let others = (0..sizes.len()).filter(|d| *d != o.dim);
    let tasks = Nest::sorted(others.map(|d| (sizes[d], strides.map(|s| s[d]))).collect());
    let along = strides.map(|s| s[o.dim]);
    let dense = along[3].abs() <= tasks.inner().1[3].abs();
    (along, tasks, dense)
}

/// Combines in the accumulation type, one part of the output at a time that stays in the caches: lines along the dimension
/// if the source is dense along it, otherwise blocks of columns across it.
pub(super) fn by_panels<T: Sum>(mut o: Operands<'_, T>, put: impl Put<T>) -> Result<(), Error> {
    let (sizes, ..) = o.geometry();
    let (dim, count, n) = (o.dim, o.target.sizes[o.dim], sizes[o.dim]);
    if (0..sizes.len()).any(|d| d != dim && sizes[d] != o.out.sizes[d]) {
        copy_all(&o.out, &o.target)?;
        (o.target.lanes, o.target.strides) = (o.out.lanes, o.out.strides.clone());
    }
    let (along, tasks, lines) = lines(&o);
    let shortest = if lines { LINES } else { COLUMNS };
    let failed = OnceLock::new();
    tasks.for_each_row_of(count + n, shortest, |at, len, across| {
        let of = |cells: Lanes<'_, T>, k: usize| cells.as_ptr().wrapping_offset(at[k]);
        let part = Part {
            out: of(o.out.lanes, 0),
            target: of(o.target.lanes, 1).cast_const(),
            index: o.index.lanes.as_ptr().cast_const().wrapping_offset(at[2]),
            source: of(o.source.lanes, 3).cast_const(),
            across,
            along,
            count,
            n,
            put,
        };
        // SAFETY: the op's shape rule matches index, source and target except in `dim`, where every index was checked; tasks
        // differ in another dimension; source and index do not overlap the output.
        let made = unsafe {
            if lines {
                (0..len).step_by(LINES).try_for_each(|l| part.lines(l, LINES.min(len - l)))
            } else {
                (0..len).step_by(COLUMNS).try_for_each(|l| part.columns(l, COLUMNS.min(len - l)))
            }
        };
        if let Err(error) = made {
            failed.get_or_init(|| error);
        }
    })?;
    failed.into_inner().map_or(Ok(()), Err)
}

/// Neighbouring lines of output, target, index and source: their first elements, the strides across and along lines, and
/// the number of elements of a line of the output and of the source.
struct Part<T: Sum, F> {
    out: *mut T,
    target: *const T,
    index: *const i64,
    source: *const T,
    across: [isize; 4],
    along: [isize; 4],
    count: usize,
    n: usize,
    put: F,
}

impl<T: Sum, F: Put<T>> Part<T, F> {
    /// Processes lines one by one, starting at `first`.
    ///
    /// # Safety
    /// The lines must exist, each index must be below `count`, and the output must be uniquely owned; the caller upholds
    /// this.
    unsafe fn lines(&self, first: usize, lines: usize) -> Result<(), Error> {
        let (across, along, put) = (self.across, self.along, self.put);
        // Dense lines are accumulated in the output, without a copy of the source.
        let direct = !T::WIDE && along == [1; 4];
        let mut sums = Buffer::<T::Acc>::zeroed(if direct { 0 } else { self.count })?;
        // Lines that cross the output's dense dimension are transposed together.
        let transposed = along[0] != 1 && across[0] == 1;
        let mut made = Buffer::<T::Cell>::zeroed(if transposed { lines * self.count } else { 0 })?;
        let mut block = [T::Acc::default(); BLOCK];
        for l in 0..lines {
            let at = |k: usize| (first + l) as isize * across[k];
            // SAFETY: as the caller guarantees; `made` has an element for each sum of each line. Without `WIDE`, `Acc` is `T`
            // itself.
            unsafe {
                if direct {
                    let (out, target) = (self.out.offset(at(0)), self.target.offset(at(1)));
                    if out.cast_const() != target {
                        copy_dense(out, target, self.count);
                    }
                    let (index, source) = (self.index.offset(at(2)), self.source.offset(at(3)));
                    for j in 0..self.n {
                        let sum = out.cast::<T::Acc>().add(*index.add(j) as usize);
                        *sum = put(*sum, T::load(source.add(j)).widen());
                    }
                    continue;
                }
                T::widen_run(&mut sums, self.target.offset(at(1)), along[1]);
                for j in (0..self.n).step_by(BLOCK) {
                    let block = &mut block[..BLOCK.min(self.n - j)];
                    let (index, source) = (self.index.offset(at(2)), self.source.offset(at(3)));
                    T::widen_run(block, source.offset(j as isize * along[3]), along[3]);
                    for (b, x) in block.iter().enumerate() {
                        let sum = sums.as_mut_ptr().add(*index.offset((j + b) as isize * along[2]) as usize);
                        *sum = put(*sum, *x);
                    }
                }
                match transposed {
                    true => T::narrow_run(&sums, made.as_mut_ptr().add(l * self.count).cast(), 1),
                    false => T::narrow_run(&sums, self.out.offset(at(0)), along[0]),
                }
            }
        }
        if transposed {
            // SAFETY: the output has an element for each line and index; strides of tensors are not negative.
            unsafe {
                let to = self.out.add(first).cast::<T::Cell>();
                transpose(to, along[0] as usize, made.as_ptr(), self.count, lines, self.count);
            }
        }
        Ok(())
    }

    /// Combines `lines` lines together, starting at `first`.
    ///
    /// # Safety
    /// As for [`Part::lines`].
    unsafe fn columns(&self, first: usize, lines: usize) -> Result<(), Error> {
        let (across, along, put) = (self.across, self.along, self.put);
        let at = |k: usize, i: usize| first as isize * across[k] + i as isize * along[k];
        // SAFETY: each row is written before elements are added to it.
        let mut sums = unsafe { Buffer::<T::Acc>::unwritten(self.count * lines) }?;
        let mut block = [T::Acc::default(); COLUMNS];
        let block = &mut block[..lines];
        // Prefetches rows with a large stride, which the hardware prefetcher does not predict.
        let soon = |i: usize, end: usize| (i + AHEAD < end).then_some(i + AHEAD);
        // SAFETY: as the caller guarantees.
        unsafe {
            for (i, row) in sums.chunks_exact_mut(lines).enumerate() {
                if let Some(i) = soon(i, self.count).filter(|_| across[1] == 1) {
                    fetch(self.target.offset(at(1, i)), lines);
                }
                T::widen_run(row, self.target.offset(at(1, i)), across[1]);
            }
            for j in 0..self.n {
                if let Some(j) = soon(j, self.n).filter(|_| (across[2], across[3]) == (1, 1)) {
                    fetch(self.index.offset(at(2, j)), lines);
                    fetch(self.source.offset(at(3, j)), lines);
                }
                let (index, source) = (self.index.offset(at(2, j)), self.source.offset(at(3, j)));
                if across[2] == 0 {
                    let row = &mut sums[*index as usize * lines..][..lines];
                    put_run(row, source, across[3], put);
                    continue;
                }
                T::widen_run(block, source, across[3]);
                for (l, x) in block.iter().enumerate() {
                    let i = *index.offset(l as isize * across[2]) as usize;
                    let sum = sums.as_mut_ptr().add(i * lines + l);
                    *sum = put(*sum, *x);
                }
            }
            for (i, row) in sums.chunks_exact(lines).enumerate() {
                T::narrow_run(row, self.out.offset(at(0, i)), across[0]);
            }
        }
        Ok(())
    }
}
