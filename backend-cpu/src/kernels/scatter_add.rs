//! `scatter_add` and `index_add`. For the accumulation type, see [`long_sums`](super::long_sums).

use super::accumulate::Sum;
use super::buffer::Buffer;
use super::cells::{Cells, shifted};
use super::gather::{AHEAD, fetch};
use super::long_sums::{CHAIN, are_long, may_meet};
use super::nest::Nest;
use super::number::Number;
use super::radix::sort_upper;
use super::scatter::Operands;
use super::scatter_panels::{combine, put_run};
use keyway_cpu_loops::{Cost, copy_dense};
use keyway_sdk::author::{Call, Element, Error, c64, c128, num_threads, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// The minimum number and length of slices that are added whole; fewer or shorter ones are added by columns.
const SHORTEST: usize = 8;
/// The ratio of slices to sources above which slices without a source are skipped.
const SPARSE: usize = 16;
/// Accumulators of a slice per block.
const BLOCK: usize = 512;

/// Adds `alpha` times the source to the output elements at the indices.
pub fn add<T: Sum>(mut o: Operands<'_, T>, slices: bool, alpha: T::Acc) -> Result<(), Error> {
    // Sums are written before the whole source is read.
    o.source = o.source.cast::<T::Cell>().apart_from(&o.out)?.cast();
    if o.out.numel() == 0 {
        return Ok(());
    }
    if slices && by_slices(&o, alpha, num_threads())? {
        return Ok(());
    }
    if are_long(&o) {
        let alpha = T::lengthen(alpha);
        return combine(o.cast::<T::Long>(), move |sum, x| sum.plus(x.scaled(alpha)));
    }
    combine(o, move |sum, x| sum.plus(x.scaled(alpha)))
}

/// The sources of each slice, grouped by slice in source order.
pub struct Sources {
    /// The slice of each group; `None` if group `i` is slice `i`.
    slices: Option<Buffer<u32>>,
    /// The offset of each group, followed by the end.
    ends: Buffer<u32>,
    order: Buffer<u32>,
}

impl Sources {
    /// Creates a group for each of `count` slices, by a counting sort of the `n` sources.
    fn of_all(n: usize, count: usize, index: impl Fn(usize) -> usize) -> Result<Sources, Error> {
        let (mut ends, mut order) = (Buffer::<u32>::zeroed(count + 2)?, Buffer::<u32>::zeroed(n)?);
        (0..n).for_each(|j| ends[index(j) + 2] += 1);
        (1..count + 2).for_each(|k| ends[k] += ends[k - 1]);
        for j in 0..n {
            let place = &mut ends[index(j) + 1];
            order[*place as usize] = j as u32;
            *place += 1;
        }
        Ok(Sources { slices: None, ends, order })
    }

    /// Creates a group for each slice that has sources: time and memory depend on the number of sources, not of slices.
    pub fn of_few(n: usize, index: impl Fn(usize) -> usize) -> Result<Sources, Error> {
        let mut pairs = Buffer::<u64>::zeroed(n)?;
        pairs.iter_mut().enumerate().for_each(|(j, pair)| *pair = (index(j) as u64) << 32 | j as u64);
        let mut spare = Buffer::<u64>::zeroed(n)?;
        let pairs = sort_upper(&mut pairs, &mut spare);
        let slice = |j: usize| (pairs[j] >> 32) as u32;
        let begins = |j: usize| j == 0 || slice(j) != slice(j - 1);
        let groups = (0..n).filter(|&j| begins(j)).count();
        let (mut slices, mut ends) = (Buffer::zeroed(groups)?, Buffer::zeroed(groups + 2)?);
        for (group, j) in (0..n).filter(|&j| begins(j)).enumerate() {
            (slices[group], ends[group]) = (slice(j), j as u32);
        }
        ends[groups..].fill(n as u32);
        let mut order = Buffer::<u32>::zeroed(n)?;
        order.iter_mut().zip(pairs.iter()).for_each(|(source, pair)| *source = *pair as u32);
        Ok(Sources { slices: Some(slices), ends, order })
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.ends.len() - 2
    }

    /// The slice of a group, and its sources.
    #[inline(always)]
    pub fn group(&self, group: usize) -> (usize, &[u32]) {
        let slice = self.slices.as_ref().map_or(group, |slices| slices[group] as usize);
        (slice, &self.order[self.ends[group] as usize..self.ends[group + 1] as usize])
    }
}

/// Adds whole dense slices: the sources of one index in order, while a block of their sum stays in registers or L1. Returns
/// whether the operands allow it. The sums do not depend on the number of threads.
fn by_slices<T: Sum>(o: &Operands<'_, T>, alpha: T::Acc, threads: usize) -> Result<bool, Error> {
    let (sizes, index, source) = o.geometry();
    let (n, count) = (sizes[o.dim], o.target.sizes[o.dim]);
    let (at, strides) = (index[o.dim], [&o.out.strides, &o.target.strides, &source].map(|s| s[o.dim]));
    let others = (0..sizes.len()).filter(|d| *d != o.dim);
    let others = others.map(|d| (sizes[d], [o.out.strides[d], o.target.strides[d], source[d]])).collect();
    let slice = Nest::<3>::sorted(others);
    let (width, steps) = slice.inner();
    let in_place = o.target.is_at(&o.out);
    let few = in_place && count / SPARSE > n && u32::try_from(count).is_ok();
    // Each slice belongs to one thread, so a minimum number is needed.
    let short = width < SHORTEST || count < SHORTEST;
    if steps != [1; 3] || short && !few || u32::try_from(n).is_err() {
        return Ok(false);
    }
    let put = move |sum: T::Acc, x: T::Acc| sum.plus(x.scaled(alpha));
    // SAFETY: the op's shape rule guarantees `n` indices.
    let index = |j: usize| unsafe { *o.index.lanes.as_ptr().offset(j as isize * at) } as usize;
    let in_order = in_place && !T::WIDE && slice.len() == width && threads == 1;
    if in_order && !may_meet(o) {
        // A single thread adds in the order of the source, which is also the order within each slice.
        for j in 0..n {
            let row = |j: usize| o.out.lanes.as_ptr().wrapping_offset(index(j) as isize * strides[0]);
            if j + AHEAD < n {
                fetch(row(j + AHEAD), width);
            }
            // SAFETY: as below.
            unsafe {
                let sums = std::slice::from_raw_parts_mut(row(j).cast::<T::Acc>(), width);
                let from = o.source.lanes.as_ptr().cast_const().offset(j as isize * strides[2]);
                put_run(sums, from, 1, put);
            }
        }
        return Ok(true);
    }
    let sources_of = match few {
        true => Sources::of_few(n, index)?,
        false => Sources::of_all(n, count, index)?,
    };
    let groups = sources_of.len();
    let work = slice.len().saturating_mul(1 + n / groups.max(1));
    parallel_for(groups, (Cost::Cheap.grain() / work).max(1), |range| {
        let end = range.end;
        for group in range {
            let (k, sources) = sources_of.group(group);
            if sources.is_empty() && in_place {
                continue;
            }
            let is_long = T::LOSES_DIGITS && sources.len() > CHAIN;
            if in_place && !T::WIDE && slice.len() == width && !is_long {
                // The sums stay in place; with little code between two slices, the processor overlaps their cache misses.
                let row = |k: usize| o.out.lanes.as_ptr().wrapping_offset(k as isize * strides[0]);
                let from =
                    |j: u32| o.source.lanes.as_ptr().cast_const().wrapping_offset(j as isize * strides[2]);
                if group + AHEAD < end {
                    let (soon, sources) = sources_of.group(group + AHEAD);
                    fetch(row(soon), width);
                    sources.first().into_iter().for_each(|j| fetch(from(*j), width));
                }
                let out = row(k).cast::<T::Acc>();
                // SAFETY: the slice is dense; without `WIDE`, `Acc` is `T` itself. The source does not overlap it.
                let sums = unsafe { std::slice::from_raw_parts_mut(out, width) };
                for j in sources {
                    // SAFETY: there is a dense slice of the source for each index.
                    unsafe { put_run(sums, from(*j), 1, put) };
                }
                continue;
            }
            let first =
                |cells: &Cells<'_, T>, d: usize| shifted(cells.lanes, k as isize * strides[d]).as_ptr();
            let memory = (first(&o.out, 0), first(&o.target, 1).cast_const(), o.source.lanes.as_ptr());
            // SAFETY: the loops are over a slice of each of the three tensors, and the source has one slice per index; each
            // slice of the output is written once, and the source does not overlap it.
            unsafe {
                if is_long {
                    let (out, target, from) = memory;
                    let memory = (out.cast(), target.cast(), from.cast());
                    slice_sums::<T::Long>(&slice, memory, (sources, strides[2]), T::lengthen(alpha));
                } else {
                    slice_sums::<T>(&slice, memory, (sources, strides[2]), alpha);
                }
            }
        }
    })?;
    Ok(true)
}

/// Adds the sources, with stride `apart`, to one slice, one block of sums at a time.
///
/// # Safety
/// The loops must be those of the output, the target and the source; the output must be uniquely owned and not overlap the
/// source. The caller upholds this.
unsafe fn slice_sums<T: Sum>(
    slice: &Nest<3>,
    (out, target, source): (*mut T, *const T, *mut T),
    (sources, apart): (&[u32], isize),
    alpha: T::Acc,
) {
    let put = move |sum: T::Acc, x: T::Acc| sum.plus(x.scaled(alpha));
    let mut block = [T::Acc::default(); BLOCK];
    slice.for_each_row_here(|[to, from, s], len, _| {
        for i in (0..len).step_by(BLOCK) {
            let sums = &mut block[..BLOCK.min(len - i)];
            // SAFETY: as the caller guarantees.
            unsafe {
                let (out, target) = (out.offset(to).add(i), target.offset(from).add(i));
                if sources.is_empty() {
                    copy_dense(out, target, sums.len());
                    continue;
                }
                T::widen_run(sums, target, 1);
                for j in sources {
                    let from = source.cast_const().offset(*j as isize * apart + s);
                    put_run(sums, from.add(i), 1, put);
                }
                T::narrow_run(sums, out, 1);
            }
        }
    });
}

fn scatter_add<T: Sum>(call: &Call) -> Result<(), Error> {
    add::<T>(Operands::of(call, false)?, false, T::Acc::from_i64(1))
}

fn index_add<T: Sum>(call: &Call) -> Result<(), Error> {
    add::<T>(Operands::of(call, true)?, true, call.scalar(4)?)
}

kernel!(
    "scatter_add",
    "TiTT>T",
    scatter_add,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);
kernel!(
    "index_add",
    "TiTTs>T",
    index_add,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);

#[cfg(test)]
mod tests {
    use super::super::scatter_panels::{by_lines, by_panels};
    use super::*;
    use keyway_sdk::author::Lanes;

    type Add = fn(Operands<'_, i64>, bool) -> Result<(), Error>;

    /// A matrix over `memory`, in row-major order or transposed.
    fn matrix<'a>(memory: &'a mut [i64], sizes: [usize; 2], transposed: bool) -> Cells<'a, i64> {
        let [rows, columns] = sizes.map(|n| n as isize);
        let strides = if transposed { vec![1, rows] } else { vec![columns, 1] };
        // SAFETY: the memory lives for `'a`, and is used through these addresses alone.
        Cells::at(unsafe { Lanes::new(memory.as_mut_ptr()) }, sizes.to_vec(), strides)
    }

    fn at(cells: &Cells<'_, i64>, place: [usize; 2]) -> isize {
        (0..2).map(|d| place[d] as isize * cells.strides[d]).sum()
    }

    fn check(slices: bool, dim: usize, run: Add) {
        for (count, n, width) in [(9, 700, 40), (600, 17, 200), (8, 1, 129), (33, 5, 9)] {
            let sizes = |along: usize| if dim == 0 { [along, width] } else { [width, along] };
            for transposed in 0..8 {
                let filled = |n: usize, f: fn(usize) -> i64| -> Vec<i64> { (0..n).map(f).collect() };
                let mut target = filled(count * width, |i| i as i64 * 7);
                let mut source = filled(n * width, |i| (i * i) as i64);
                let mut index: Vec<i64> =
                    (0..n * width).map(|i| (i * i + i / 3) as i64 % count as i64).collect();
                let mut out = vec![0; count * width];
                let target = matrix(&mut target, sizes(count), transposed & 1 != 0);
                let source = matrix(&mut source, sizes(n), transposed & 2 != 0);
                let result = matrix(&mut out, sizes(count), transposed & 4 != 0);
                let index = match slices {
                    // SAFETY: as above.
                    true => Cells::at(unsafe { Lanes::new(index.as_mut_ptr()) }, vec![n], vec![1]),
                    false => matrix(&mut index, sizes(n), transposed & 2 != 0),
                };
                let mut expected = vec![0; count * width];
                // SAFETY: the indices are within the matrices.
                unsafe {
                    for place in (0..count * width).map(|i| [i / sizes(count)[1], i % sizes(count)[1]]) {
                        expected[at(&result, place) as usize] =
                            *target.lanes.as_ptr().offset(at(&target, place));
                    }
                    for place in (0..n * width).map(|i| [i / sizes(n)[1], i % sizes(n)[1]]) {
                        let i = if slices { place[dim] as isize } else { at(&index, place) };
                        let mut to = place;
                        to[dim] = *index.lanes.as_ptr().offset(i) as usize;
                        expected[at(&result, to) as usize] +=
                            3 * *source.lanes.as_ptr().offset(at(&source, place));
                    }
                }
                let operands = Operands::new(target, result, index, source, dim, slices);
                run(operands, slices).unwrap();
                assert_eq!(out, expected, "{count} {n} {width} along {dim}, {slices} {transposed}");
            }
        }
    }

    #[test]
    fn few_sources_of_many_slices_are_added_in_place() {
        let sizes =
            [(600, 17, 200), (600, 36, 3), (4000, 1, 2), (700, 0, 9), (592, 36, 530), (20_000, 1100, 2)];
        for ((count, n, width), threads) in sizes.into_iter().flat_map(|sizes| [(sizes, 1), (sizes, 2)]) {
            let mut target: Vec<i64> = (0..count * width).map(|i| i as i64 * 7).collect();
            let mut source: Vec<i64> = (0..n * width).map(|i| (i * i) as i64).collect();
            let mut index: Vec<i64> = (0..n).map(|i| (i * i * 31 + i / 3) as i64 % count as i64).collect();
            let mut expected = target.clone();
            for (i, x) in source.iter().enumerate() {
                expected[index[i / width] as usize * width + i % width] += 3 * x;
            }
            // SAFETY: the memory is accessed through these addresses alone during their lifetime.
            let at = |memory: &mut Vec<i64>| unsafe { Lanes::new(memory.as_mut_ptr()) };
            let to = at(&mut target);
            let cells = |lanes, rows: usize| Cells::at(lanes, vec![rows, width], vec![width as isize, 1]);
            let index = Cells::at(at(&mut index), vec![n], vec![1]);
            let operands =
                Operands::new(cells(to, count), cells(to, count), index, cells(at(&mut source), n), 0, true);
            assert!(by_slices(&operands, 3, threads).unwrap(), "{count} {n} {width}");
            assert_eq!(target, expected, "{count} {n} {width}");
        }
    }

    #[test]
    fn each_way_gives_the_same_sums() {
        for dim in [0, 1] {
            for slices in [false, true] {
                check(slices, dim, |o, slices| add(o, slices, 3));
                check(slices, dim, |o, _| by_panels(o, |sum, x| sum + 3 * x));
                check(slices, dim, |o, _| by_lines(o, |sum, x| sum + 3 * x));
            }
        }
    }
}
