//! `softmax` and `log_softmax`: unstored elements count as minus infinity, so the result has the pattern of its argument.
//! Along a dense dimension complete lines are stored. Scratch: that of coalescing; along the last sparse dimension at most
//! four values of the accumulation type for each entry, and 24 bytes for each nonempty line; along another one, and if an
//! entry has more than one value, two f64 for each element of such a line, and for each entry at most 28 bytes.

use crate::coalesce::{coalesced, groups};
use crate::coo::{Coo, PIECE, dim_of, one, row_major};
use crate::number::{Number, by_float};
use crate::packed::{BLOCK, Fields};
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{
    Arg, Call, Element, Error, OwnedTensor, Plain, Real, Scratch, new_host_tensor, parallel_chunks_mut,
    parallel_for,
};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of entries whose differences, exponentials and results are computed in sequence, so that these stay in the
/// caches; longer lines are not split.
const BATCH: usize = 1 << 17;

fn softmax(call: &Call<'_>) -> Result<(), Error> {
    along(call, "softmax")
}

fn log_softmax(call: &Call<'_>) -> Result<(), Error> {
    along(call, "log_softmax")
}

fn along(call: &Call<'_>, op: &str) -> Result<(), Error> {
    let coo = Coo::argument(call, 0)?;
    let dim = dim_of(call.int(1)?, coo.sizes.len())?;
    let logarithm = op == "log_softmax";
    let in_last = dim + 1 == coo.sparse_dim && coo.width() == 1;
    let (coo, begins) = match if in_last { line_begins(&coo)? } else { None } {
        Some(begins) => (Coo { coalesced: true, ..coo }, Some(begins)),
        None => {
            let coo = coalesced(coo)?;
            let begins = if in_last { line_begins(&coo)? } else { None };
            (coo, begins)
        }
    };
    let values = if let Some(begins) = begins {
        by_float!(coo.dtype(), in_order(&coo, &begins, logarithm))?
    } else if dim >= coo.sparse_dim && !coo.sizes.is_empty() {
        one(op, &[coo.values.arg(), Arg::Int((dim - coo.sparse_dim + 1) as i64)])?
    } else {
        by_float!(coo.dtype(), lines(&coo, dim, logarithm))?
    };
    coo.with_values(values).give_like(call, call.tensor(0)?)
}

/// Computes along the last sparse dimension, where the entries of a line are contiguous.
fn in_order<T: Number>(coo: &Coo<'_>, begins: &[usize], logarithm: bool) -> Result<OwnedTensor, Error> {
    let values = coo.values.tensor().view::<T>()?.contiguous()?;
    let mut shape = vec![coo.nnz as i64];
    shape.extend_from_slice(coo.dense_sizes());
    let mut made = new_host_tensor::<T>(&shape)?;
    if let Some(mut out) = made.view_mut::<T>()?.as_mut_slice() {
        for lines in cut(begins, BATCH) {
            let range = lines[0]..lines[lines.len() - 1];
            let part = out.split_off_mut(..range.len()).unwrap_or_default();
            batch(&values[range], part, lines, logarithm)?;
        }
    }
    Ok(made)
}

/// Computes a range of lines, with the offsets in `lines`. The host computes the exponentials, in the accumulation type;
/// sums are in f64.
fn batch<T: Number>(values: &[T], out: &mut [T], lines: &[usize], logarithm: bool) -> Result<(), Error> {
    // The difference of each value to the maximum of its line.
    let mut less = new_host_tensor::<T::Acc>(&[values.len() as i64])?;
    if let Some(out) = less.view_mut::<T::Acc>()?.as_mut_slice() {
        each_line(out, lines, |first, out| {
            let line = &values[first..first + out.len()];
            let most = greatest_of(line);
            out.iter_mut().zip(line).for_each(|(out, value)| *out = T::minus(value.widen(), most));
        })?;
    }
    let powers = one("exp", &[Arg::Owned(&less)])?;
    let powers = powers.tensor().view::<T::Acc>()?.contiguous()?;
    let less = if logarithm { Some(less.tensor().view::<T::Acc>()?.contiguous()?) } else { None };
    each_line(out, lines, |first, out| {
        let powers = &powers[first..first + out.len()];
        let sum = sum_of(powers);
        if let Some(less) = &less {
            let (less, logarithm) = (&less[first..first + out.len()], Real::ln(sum));
            out.iter_mut().zip(less).for_each(|(out, less)| *out = T::from_f64(less.to_f64() - logarithm));
            return;
        }
        // If rounded to fewer bits, a product with the reciprocal is as accurate as a quotient.
        let (factor, divisor) = if size_of::<T>() < size_of::<f64>() { (1.0 / sum, 1.0) } else { (1.0, sum) };
        out.iter_mut().zip(powers).for_each(|(out, power)| {
            *out = T::from_f64(power.to_f64() * factor / divisor);
        });
    })
}

/// The maximum in sixteen lanes, which are then reduced. NaN may be ignored: the sum is then NaN, too.
fn greatest_of<T: Number>(numbers: &[T]) -> T::Acc {
    let greater = |a: T::Acc, b: T::Acc| if b > a { b } else { a };
    let (blocks, rest) = numbers.as_chunks::<16>();
    let mut most = [T::LEAST; 16];
    for block in blocks {
        most.iter_mut().zip(block).for_each(|(most, number)| *most = greater(*most, number.widen()));
    }
    let all = most.into_iter().chain(rest.iter().map(|number| number.widen()));
    all.fold(T::LEAST, greater)
}

/// The sum in eight accumulators, which are then added.
fn sum_of<A: Element>(numbers: &[A]) -> f64 {
    let (blocks, rest) = numbers.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for block in blocks {
        sums.iter_mut().zip(block).for_each(|(sum, number)| *sum += number.to_f64());
    }
    sums.iter().sum::<f64>() + rest.iter().map(|number| number.to_f64()).sum::<f64>()
}

/// The offsets of the entries of each line along the last sparse dimension, and the end. `None` if entries are not sorted, have
/// duplicates or are out of range, or if a key needs more than 64 bits.
fn line_begins(coo: &Coo<'_>) -> Result<Option<Vec<usize>>, Error> {
    begins_of(&coo.unchecked_index()?, coo.sparse_sizes(), coo.nnz)
}

/// Like [`line_begins`], for `nnz` entries with these indices.
fn begins_of(index: &[i64], sizes: &[i64], nnz: usize) -> Result<Option<Vec<usize>>, Error> {
    let greatest: Vec<u64> = sizes.iter().map(|&size| (size - 1).max(0) as u64).collect();
    let Some(fields) = Fields::of(&greatest) else { return Ok(None) };
    let mut pieces = vec![Vec::new(); nnz.div_ceil(PIECE)];
    let are_sound = AtomicBool::new(true);
    parallel_chunks_mut(&mut pieces, 1, |nth, begins| {
        let range = nth * PIECE..nnz.min((nth + 1) * PIECE);
        if are_sound.load(Ordering::Relaxed) && !begins_within(&fields, index, sizes, range, &mut begins[0]) {
            are_sound.store(false, Ordering::Relaxed);
        }
    })?;
    if !are_sound.into_inner() {
        return Ok(None);
    }
    pieces.push(vec![nnz]);
    Ok(Some(pieces.concat()))
}

/// Writes the starts of lines among the entries of `range` to `begins`; returns whether these entries are sorted, without
/// duplicates, and within the sizes.
fn begins_within(
    fields: &Fields,
    index: &[i64],
    sizes: &[i64],
    range: Range<usize>,
    begins: &mut Vec<usize>,
) -> bool {
    // Compared with the last key of the previous block, which the first block lacks.
    let (low, mut keys) = (fields.last_bits(), [0; BLOCK + 1]);
    match range.start.checked_sub(1) {
        Some(last) => keys[0] = fields.key(index, last),
        None => begins.push(0),
    }
    for first in range.clone().step_by(BLOCK) {
        let count = BLOCK.min(range.end - first);
        let mut is_sound = fields.keys_within(index, sizes, first, &mut keys[1..=count]);
        let skipped = usize::from(first == 0);
        for (nth, part) in keys[skipped..count].chunks(64).enumerate() {
            let at = skipped + nth * 64;
            // A bit for each entry that starts a line.
            let mut bits = 0u64;
            for (n, (before, key)) in part.iter().zip(&keys[at + 1..]).enumerate() {
                is_sound &= before < key;
                bits |= u64::from((before ^ key) >> low != 0) << n;
            }
            while bits != 0 {
                begins.push(first + at + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
        if !is_sound {
            return false;
        }
        keys[0] = keys[count];
    }
    true
}

/// Splits lines into parts of at most `entries` entries, and of at least one line.
fn cut(mut lines: &[usize], entries: usize) -> Vec<&[usize]> {
    let mut parts = Vec::new();
    while lines.len() > 1 {
        let count = lines[1..].partition_point(|end| end - lines[0] <= entries).max(1);
        parts.push(&lines[..=count]);
        lines = &lines[count..];
    }
    parts
}

/// Calls `body` with the index of the first entry of each line, relative to the first line, and its part of `out`.
fn each_line<T: Plain>(
    mut out: &mut [T],
    lines: &[usize],
    body: impl Fn(usize, &mut [T]) + Sync,
) -> Result<(), Error> {
    let mut parts = Vec::new();
    for lines in cut(lines, PIECE) {
        let part = out.split_off_mut(..lines[lines.len() - 1] - lines[0]).unwrap_or_default();
        parts.push(Mutex::new((lines, part)));
    }
    parallel_for(parts.len(), 1, |range| {
        for part in &parts[range] {
            let (part, out) = &mut *part.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            for pair in part.windows(2) {
                body(pair[0] - lines[0], &mut out[pair[0] - part[0]..pair[1] - part[0]]);
            }
        }
    })
}

/// Computed in f64 for every dtype.
fn lines<T: Number>(coo: &Coo<'_>, dim: usize, logarithm: bool) -> Result<OwnedTensor, Error> {
    let mut sizes = coo.sparse_sizes().to_vec();
    if let Some(size) = sizes.get_mut(dim) {
        *size = 1;
    }
    let mut strides = row_major(&sizes);
    if let Some(stride) = strides.get_mut(dim) {
        *stride = 0;
    }
    let groups = groups(&coo.keys_by(&strides)?)?;
    let (width, count) = (coo.width(), groups.len());
    let values = coo.values.tensor().view::<T>()?.contiguous()?;
    let at = |entry: u32, column: usize| values[entry as usize * width + column].to_f64();
    // The maximum of each line, and the sum of the exponentials.
    let mut greatest = Scratch::<f64>::zeroed(count * width)?;
    let mut sums = Scratch::<f64>::zeroed(count * width)?;
    let per_piece = (PIECE / width.max(1)).max(1);
    let lines_of = |piece: usize, n: usize| groups.of(piece * per_piece + n);
    if width > 0 {
        parallel_chunks_mut(&mut greatest, per_piece * width, |piece, out| {
            for (n, out) in out.chunks_mut(width).enumerate() {
                for (column, out) in out.iter_mut().enumerate() {
                    let line = lines_of(piece, n).iter().map(|&entry| at(entry, column));
                    *out = line.fold(f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a });
                }
            }
        })?;
        parallel_chunks_mut(&mut sums, per_piece * width, |piece, out| {
            for (n, out) in out.chunks_mut(width).enumerate() {
                for (column, out) in out.iter_mut().enumerate() {
                    let most = greatest[(piece * per_piece + n) * width + column];
                    *out = lines_of(piece, n).iter().map(|&entry| Real::exp(at(entry, column) - most)).sum();
                }
            }
        })?;
    }
    let mut line_of = Scratch::<u32>::zeroed(coo.nnz)?;
    for line in 0..count {
        groups.of(line).iter().for_each(|&entry| line_of[entry as usize] = line as u32);
    }
    let mut shape = vec![coo.nnz as i64];
    shape.extend_from_slice(coo.dense_sizes());
    let mut made = new_host_tensor::<T>(&shape)?;
    if let (Some(out), true) = (made.view_mut::<T>()?.as_mut_slice(), width > 0) {
        parallel_chunks_mut(out, per_piece * width, |piece, out| {
            for (n, out) in out.chunks_mut(width).enumerate() {
                let entry = piece * per_piece + n;
                for (column, out) in out.iter_mut().enumerate() {
                    let of_line = line_of[entry] as usize * width + column;
                    let less = at(entry as u32, column) - greatest[of_line];
                    let sum = sums[of_line];
                    *out = T::from_f64(if logarithm { less - Real::ln(sum) } else { Real::exp(less) / sum });
                }
            }
        })?;
    }
    Ok(made)
}

float_kernels!("softmax", "Ti>T", softmax);
float_kernels!("log_softmax", "Ti>T", log_softmax);

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of a matrix with the same number in each row.
    fn rows_of(count: usize, nnz: usize) -> Vec<i64> {
        let (rows, columns) = ((0..nnz).map(|n| n / count), (0..nnz).map(|n| n % count));
        rows.chain(columns).map(|at| at as i64).collect()
    }

    #[test]
    fn lines_begin_in_each_piece() {
        let nnz = 3 * PIECE + 7;
        for count in [1, 100, PIECE, PIECE + 1, nnz] {
            let (index, sizes) = (rows_of(count, nnz), [nnz.div_ceil(count) as i64, count as i64]);
            let mut wanted: Vec<usize> = (0..nnz).step_by(count).collect();
            wanted.push(nnz);
            assert!(begins_of(&index, &sizes, nnz).unwrap() == Some(wanted), "{count} in a row");
        }
        assert_eq!(begins_of(&[], &[4, 4], 0).unwrap(), Some(vec![0]));
    }

    #[test]
    fn what_is_out_of_order_is_found_at_each_place() {
        let (nnz, count) = (3 * PIECE + 7, 100);
        let (index, sizes) = (rows_of(count, nnz), [nnz.div_ceil(count) as i64, count as i64]);
        for at in [1, BLOCK - 1, BLOCK, BLOCK + 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, nnz - 1] {
            // A duplicate, then swapped coordinates, then indices out of range, some of which leave a key unchanged.
            let mut other = index.clone();
            (other[at], other[nnz + at]) = (index[at - 1], index[nnz + at - 1]);
            assert_eq!(begins_of(&other, &sizes, nnz).unwrap(), None, "{at}");
            other = index.clone();
            other.swap(at - 1, at);
            other.swap(nnz + at - 1, nnz + at);
            assert_eq!(begins_of(&other, &sizes, nnz).unwrap(), None, "{at}");
            for (row, outside) in
                [(0, -1), (0, sizes[0]), (0, 1 << 60), (1, -1), (1, sizes[1]), (1, i64::MIN)]
            {
                other = index.clone();
                other[row * nnz + at] = outside;
                assert_eq!(begins_of(&other, &sizes, nnz).unwrap(), None, "{outside} at {at}");
            }
            other = index.clone();
            other[at] |= 1 << 62;
            assert_eq!(begins_of(&other, &sizes, nnz).unwrap(), None, "{at}");
        }
    }

    #[test]
    fn parts_are_whole_lines() {
        let lines = [0, 3, 4, 9, 11, 12];
        assert_eq!(cut(&lines, 4), [&[0, 3, 4][..], &[4, 9], &[9, 11, 12]]);
        assert_eq!(cut(&lines, 100), [&lines[..]]);
        assert!(cut(&[0], 4).is_empty());
    }
}
