//! Search for the index of the first largest or smallest element along a dimension.

use super::super::buffer::Buffer;
use super::rank::Ranked;
use keyway_cpu_loops::vectors::halves;
use keyway_sdk::author::{Error, Lanes, parallel_for};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Elements of a row that are reduced before the index of their extreme is searched. The first block of bytes is shorter,
/// since it often contains an element that nothing can exceed.
const BLOCK: usize = 2048;
const FIRST_BLOCK: usize = 256;
/// Elements that are compared with the extreme at a time when its index is searched.
const PLACE: usize = 64;
/// Columns that one inner loop processes.
const COLUMNS: usize = 512;
const GRAIN: usize = 32 * 1024;
/// The number of rows below which each row is split among threads, and the number of elements of a part.
const FEW_ROWS: usize = 16;
const PART: usize = 128 * 1024;

/// Whether `b` is more extreme than `a`, an earlier element.
#[inline(always)]
#[allow(clippy::eq_op)]
fn beats<R: Copy + PartialOrd>(b: R, a: R) -> bool {
    (b > a) | (b != b) & (a == a)
}

/// The extreme of a nonempty block.
#[inline(always)]
fn extreme<T: Ranked, const MAX: bool>(block: &[T::Stored]) -> T::Rank {
    // The number of lanes fills four vectors of 64 bytes.
    match size_of::<T::Stored>() {
        1 => lanes::<T, MAX, 256>(block),
        2 => lanes::<T, MAX, 128>(block),
        4 => lanes::<T, MAX, 64>(block),
        _ => lanes::<T, MAX, 32>(block),
    }
}

#[inline(always)]
#[allow(clippy::eq_op)]
fn lanes<T: Ranked, const MAX: bool, const L: usize>(block: &[T::Stored]) -> T::Rank {
    let rank = |x: &T::Stored| T::rank::<MAX>(*x);
    let nan = |x: T::Rank| x != x;
    let (mut best, mut any_nan) = (rank(&block[0]), false);
    if let Some(last) = block.last_chunk::<L>() {
        // A plain loop over an array: the compiler may leave closures or iterators over lanes as calls.
        let mut lanes = [best; L];
        let mut i = 0;
        while i < block.len() {
            // The last chunk may overlap the previous one, which does not change the extreme.
            let chunk = block[i..].first_chunk::<L>().unwrap_or(last);
            let mut unordered = false;
            for k in 0..L {
                let x = T::rank::<MAX>(chunk[k]);
                lanes[k] = if x > lanes[k] { x } else { lanes[k] };
                // Comparisons lose NaN. Integer ranks are equal to themselves.
                unordered |= x != x;
            }
            any_nan |= unordered;
            i += L;
        }
        best = halves(&mut lanes, |a, b| if b > a { b } else { a });
    } else {
        for x in block {
            best = if rank(x) > best { rank(x) } else { best };
            any_nan |= nan(rank(x));
        }
    }
    if any_nan { block.iter().map(rank).find(|x| nan(*x)).unwrap_or(best) } else { best }
}

/// The first index in a block of an element with this rank.
#[inline(always)]
#[allow(clippy::eq_op)]
fn place<T: Ranked, const MAX: bool>(block: &[T::Stored], of: T::Rank) -> usize {
    let same = |x: &T::Stored| {
        let x = T::rank::<MAX>(*x);
        (x == of) | (x != x) & (of != of)
    };
    for (k, part) in block.chunks(PLACE).enumerate() {
        if part.iter().fold(false, |any, x| any | same(x)) {
            return k * PLACE + part.iter().position(same).unwrap_or(0);
        }
    }
    0
}

/// The rank of the extreme of a nonempty row, and its first index.
fn row<T: Ranked, const MAX: bool>(row: &[T::Stored]) -> (T::Rank, usize) {
    // Few bools and small integers suffice to find their extreme.
    let first = if size_of::<T::Stored>() == 1 { FIRST_BLOCK } else { BLOCK };
    let mut end = first.min(row.len());
    let (mut block, mut best) = (0..end, extreme::<T, MAX>(&row[..end]));
    while end < row.len() && !T::is_final(best) {
        let next = end..(end + BLOCK).min(row.len());
        end = next.end;
        let found = extreme::<T, MAX>(&row[next.clone()]);
        if beats(found, best) {
            (block, best) = (next, found);
        }
    }
    (best, block.start + place::<T, MAX>(&row[block.clone()], best))
}

/// [`row`] of a long row in parallel parts; parts after one with an element that nothing can exceed are skipped.
fn long_row<T: Ranked, const MAX: bool>(row_of: &[T::Stored]) -> Result<usize, Error> {
    let parts = row_of.len().div_ceil(PART);
    let part = |k: usize| -> Range<usize> { k * PART..((k + 1) * PART).min(row_of.len()) };
    let (mut places, last) = (Buffer::<u64>::zeroed(parts)?, AtomicUsize::new(parts));
    // SAFETY: the address is used within the buffer, which outlives the loop; each part writes its own element.
    let to = unsafe { Lanes::new(places.as_mut_ptr()) };
    parallel_for(parts, 1, |tasks| {
        for k in tasks.take_while(|k| *k <= last.load(Ordering::Relaxed)) {
            let (best, at) = row::<T, MAX>(&row_of[part(k)]);
            // SAFETY: as above.
            unsafe { to.write(k, (part(k).start + at) as u64) };
            if T::is_final(best) {
                last.fetch_min(k, Ordering::Relaxed);
            }
        }
    })?;
    let rank = |at: usize| T::rank::<MAX>(row_of[at]);
    let seen = (last.into_inner() + 1).min(parts);
    Ok(places[1..seen].iter().fold(places[0] as usize, |best, &at| {
        if beats(rank(at as usize), rank(best)) { at as usize } else { best }
    }))
}

/// The indices along the middle dimension of a nonempty input of `outer * n * inner` elements.
pub fn search<T: Ranked, const MAX: bool>(
    input: &[T::Stored],
    (n, inner): (usize, usize),
    places: &mut [i64],
) -> Result<(), Error> {
    let outer = input.len() / (n * inner);
    if inner == 1 && outer < FEW_ROWS && n > PART {
        for (row, to) in input.chunks_exact(n).zip(places) {
            *to = long_row::<T, MAX>(row)? as i64;
        }
        return Ok(());
    }
    // SAFETY: the address is used within `places`, which outlives the loops; each is written once.
    let to = unsafe { Lanes::new(places.as_mut_ptr()) };
    if inner == 1 {
        return parallel_for(outer, GRAIN.div_ceil(n), |rows| {
            for r in rows {
                // SAFETY: as above.
                unsafe { to.write(r, row::<T, MAX>(&input[r * n..(r + 1) * n]).1 as i64) };
            }
        });
    }
    let across = inner.div_ceil(COLUMNS);
    parallel_for(outer * across, GRAIN.div_ceil(n * COLUMNS.min(inner)), |units| {
        for unit in units {
            let (o, first) = (unit / across, unit % across * COLUMNS);
            let width = COLUMNS.min(inner - first);
            // SAFETY: as above.
            let at = unsafe { to.slice_mut(o * inner + first, width) };
            columns::<T, MAX>(&input[o * n * inner + first..], (n, inner), at);
        }
    })
}

/// Rows between writes of the indices found: the largest count that 16 bits hold.
const ROWS: usize = u16::MAX as usize;

/// Computes the indices in neighbouring columns, the first of which starts at `input`. The inner loop counts rows in
/// integers as narrow as the ranks, so that a vector has as many row counts as ranks.
fn columns<T: Ranked, const MAX: bool>(input: &[T::Stored], (n, inner): (usize, usize), at: &mut [i64]) {
    let mut best = [T::Rank::default(); COLUMNS];
    let best = &mut best[..at.len()];
    best.iter_mut().zip(input).for_each(|(best, x)| *best = T::rank::<MAX>(*x));
    at.fill(0);
    for begin in (1..n).step_by(ROWS) {
        // The one-based row of the extreme in this group of rows; 0 if the extreme is in an earlier group.
        let mut found = [0u16; COLUMNS];
        let found = &mut found[..at.len()];
        for i in begin..n.min(begin + ROWS) {
            let from = &input[i * inner..][..at.len()];
            let here = (i - begin + 1) as u16;
            for ((best, found), x) in best.iter_mut().zip(&mut *found).zip(from) {
                let x = T::rank::<MAX>(*x);
                let take = beats(x, *best);
                *best = if take { x } else { *best };
                *found = if take { here } else { *found };
            }
        }
        for (at, &found) in at.iter_mut().zip(&*found) {
            if found > 0 {
                *at = (begin + usize::from(found) - 1) as i64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::half::f16;

    /// The expected index: of the first NaN, otherwise of the first extreme.
    fn expected(row: &[f32], max: bool) -> usize {
        let nan = row.iter().position(|x| x.is_nan());
        nan.unwrap_or_else(|| {
            let mut best = 0;
            for (i, x) in row.iter().enumerate() {
                if if max { *x > row[best] } else { *x < row[best] } {
                    best = i;
                }
            }
            best
        })
    }

    fn check(values: &[f32]) {
        let halves: Vec<f16> = values.iter().map(|x| f16::from_f32(*x)).collect();
        let narrowed: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
        let mut place = [0];
        let n = values.len();
        search::<f32, true>(values, (n, 1), &mut place).unwrap();
        assert_eq!(place[0] as usize, expected(values, true), "{n}");
        search::<f32, false>(values, (n, 1), &mut place).unwrap();
        assert_eq!(place[0] as usize, expected(values, false), "{n}");
        search::<f16, true>(&halves, (n, 1), &mut place).unwrap();
        assert_eq!(place[0] as usize, expected(&narrowed, true), "{n}");
        search::<f16, false>(&halves, (n, 1), &mut place).unwrap();
        assert_eq!(place[0] as usize, expected(&narrowed, false), "{n}");
    }

    #[test]
    fn the_first_extreme_is_found_wherever_it_lies() {
        for n in [1, 2, 63, 64, 65, 255, 256, 257, 2303, 2304, 2305, 5000, PART + 1, 2 * PART + 300] {
            let plain: Vec<f32> = (0..n).map(|i| ((i * 7919) % 4001) as f32 - 2000.0).collect();
            check(&plain);
            for at in [0, n / 3, n / 2, n - 1] {
                for special in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e9, -1e9] {
                    let mut values = plain.clone();
                    values[at] = special;
                    check(&values);
                    values[n - 1] = f32::NAN;
                    check(&values);
                }
            }
        }
    }

    #[test]
    fn equal_elements_give_the_first_place() {
        check(&[-1.0, -0.0, 0.0, -0.0]);
        check(&[1.0, 0.0, -0.0]);
        check(&vec![2.0; 3000]);
        check(&vec![f32::NAN; 3000]);
        let mut place = [0];
        let mut truths = vec![0u8; 3 * PART];
        search::<bool, true>(&truths, (3 * PART, 1), &mut place).unwrap();
        assert_eq!(place, [0]);
        (truths[2 * PART + 5], truths[2 * PART + 9]) = (7, 1);
        search::<bool, true>(&truths, (3 * PART, 1), &mut place).unwrap();
        assert_eq!(place[0] as usize, 2 * PART + 5, "any byte but 0 is true");
    }

    fn check_columns<const MAX: bool>(values: &[f32], (n, inner): (usize, usize)) {
        let column = |j: usize| (0..n).map(move |i| i * inner + j);
        let check = |kind: &str, values: &[f32], places: &[i64]| {
            for (j, &place) in places.iter().enumerate() {
                let own: Vec<f32> = column(j).map(|k| values[k]).collect();
                assert_eq!(place as usize, expected(&own, MAX), "{kind}, {n} x {inner}, column {j}, {MAX}");
            }
        };
        let mut places = vec![-1; inner];
        search::<f32, MAX>(values, (n, inner), &mut places).unwrap();
        check("f32", values, &places);
        let halves: Vec<f16> = values.iter().map(|x| f16::from_f32(*x)).collect();
        search::<f16, MAX>(&halves, (n, inner), &mut places).unwrap();
        check("f16", &halves.iter().map(|x| x.to_f32()).collect::<Vec<_>>(), &places);
        // NaN becomes 0 in the cast.
        let whole: Vec<i64> = values.iter().map(|x| *x as i64).collect();
        search::<i64, MAX>(&whole, (n, inner), &mut places).unwrap();
        check("i64", &whole.iter().map(|x| *x as f32).collect::<Vec<_>>(), &places);
    }

    #[test]
    fn columns_are_as_rows() {
        // More columns than one inner loop processes, and numbers of rows around the limit of a group.
        for (n, inner) in [(37, COLUMNS + 3), (1, 5), (2, 5), (ROWS, 2), (ROWS + 1, 3), (2 * ROWS + 70, 3)] {
            let spread = |k: usize| ((k * 7919) % 4001) as f32 - 2000.0;
            let mut values: Vec<f32> = (0..n * inner).map(spread).collect();
            check_columns::<true>(&values, (n, inner));
            check_columns::<false>(&values, (n, inner));
            // The extremes are in the last row, NaN in one column.
            values[(n - 1) * inner..].fill(3000.0);
            values[n * inner - 1] = f32::NAN;
            check_columns::<true>(&values, (n, inner));
            values[(n - 1) * inner..].fill(-3000.0);
            check_columns::<false>(&values, (n, inner));
        }
    }
}
