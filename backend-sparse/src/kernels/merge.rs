//! Merges two sorted COO tensors whose entries have one value each. Both are split at the same keys, and the parts are
//! merged independently, each into memory for its maximum number of entries; then the parts are concatenated. Scratch: 8
//! bytes and a value for each entry of both, and once more for each entry of an active part.

use crate::coo::{Coo, PIECE, Part, cut_rows, new_tensor};
use crate::number::Number;
use crate::packed::Fields;
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{Error, Scratch, new_host_tensor, parallel_for};
use std::ops::{Deref, Range};
use std::sync::Mutex;

/// A part of both tensors, and its result.
struct Piece<'a, T> {
    /// The ranges in the two tensors.
    range: [Range<usize>; 2],
    keys: &'a mut [u64],
    values: &'a mut [T],
    /// The ranges of its results in `keys` and `values`, one per interleaved merge.
    made: [Range<usize>; 2],
    /// Whether everything is sorted and in range.
    sound: bool,
}

/// Sorted entries, as keys and values.
#[derive(Default)]
struct Entries<T> {
    keys: Vec<u64>,
    values: Vec<T>,
}

/// The sum of two coalesced tensors, without duplicates. `None` if an entry has more than one value, keys need more than 64
/// bits, or either is not sorted or out of range.
///
/// # Errors
/// Insufficient memory.
pub fn merged<T: Number>(a: &Coo<'_>, b: &Coo<'_>) -> Result<Option<Coo<'static>>, Error> {
    let greatest: Vec<u64> = a.sparse_sizes().iter().map(|&size| (size - 1).max(0) as u64).collect();
    let Some(fields) = Fields::of(&greatest).filter(|_| a.width() == 1) else { return Ok(None) };
    let (a, b) = if a.nnz < b.nnz { (b, a) } else { (a, b) };
    let indices = [a.unchecked_index()?, b.unchecked_index()?];
    let values = [
        a.values.tensor().view_bits::<T>()?.contiguous()?,
        b.values.tensor().view_bits::<T>()?.contiguous()?,
    ];
    let all = a.nnz + b.nnz;
    // SAFETY: `Piece::run` writes the elements of each piece's part that `made` names, and only these are read below.
    let (mut keys, mut sums) = unsafe { (Scratch::<u64>::unwritten(all)?, Scratch::<T>::unwritten(all)?) };
    let sizes = a.sparse_sizes();
    let mut pieces = Vec::new();
    let (mut keys_left, mut sums_left) = (&mut keys[..], &mut sums[..]);
    for range in cut(&fields, [&indices[0], &indices[1]], [a.nnz, b.nnz]) {
        let len = range[0].len() + range[1].len();
        let keys = keys_left.split_off_mut(..len).unwrap_or_default();
        let values = sums_left.split_off_mut(..len).unwrap_or_default();
        pieces.push(Mutex::new(Piece { range, keys, values, made: [0..0, 0..0], sound: true }));
    }
    parallel_for(pieces.len(), 1, |range| {
        let mut buffer = Entries::default();
        for piece in &pieces[range] {
            let piece = &mut *piece.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            piece.run(&fields, sizes, &indices, &values, &mut buffer);
        }
    })?;
    let pieces: Vec<Piece<'_, T>> = pieces
        .into_iter()
        .map(|piece| piece.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
        .collect();
    let mut last = None;
    for piece in &pieces {
        for keys in piece.made.iter().map(|range| &piece.keys[range.clone()]) {
            if !piece.sound || keys.first().is_some_and(|first| last.is_some_and(|last| last >= *first)) {
                return Ok(None);
            }
            last = keys.last().copied().or(last);
        }
    }
    drop((indices, values));
    joined(a, &fields, &pieces).map(Some)
}

/// Splits both tensors, with these numbers of entries, into pairs of ranges that are merged with each other.
fn cut(fields: &Fields, indices: [&[i64]; 2], nnz: [usize; 2]) -> Vec<[Range<usize>; 2]> {
    let count = (nnz[0] + nnz[1]).div_ceil(2 * PIECE);
    let mut begin = [0; 2];
    let piece = |nth: usize| {
        let end = if nth == count {
            nnz
        } else {
            let of_a = (nnz[0] * nth / count).max(begin[0]);
            let first = fields.key(indices[0], of_a);
            let of_b = partition_point(nnz[1], |n| fields.key(indices[1], n) < first);
            [of_a, of_b.max(begin[1])]
        };
        let range = [begin[0]..end[0], begin[1]..end[1]];
        begin = end;
        range
    };
    (1..=count).map(piece).collect()
}

/// The first of `count` indices for which the predicate is false; it must be true for all indices before it.
fn partition_point(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl<T: Number> Piece<'_, T> {
    fn run(
        &mut self,
        fields: &Fields,
        sizes: &[i64],
        indices: &[impl Deref<Target = [i64]>; 2],
        values: &[impl Deref<Target = [T]>; 2],
        buffer: &mut Entries<T>,
    ) {
        let [a, b] = self.range.clone();
        buffer.keys.resize(a.len() + b.len(), 0);
        let (keys_of_a, keys_of_b) = buffer.keys.split_at_mut(a.len());
        self.sound = fields.rising_keys(&indices[0], sizes, a.start, keys_of_a)
            & fields.rising_keys(&indices[1], sizes, b.start, keys_of_b);
        let (half_of_a, half_of_b) = match keys_of_a.get(a.len() / 2) {
            Some(middle) => (a.len() / 2, keys_of_b.partition_point(|key| key < middle)),
            None => (0, 0),
        };
        buffer.values.clear();
        buffer.values.extend_from_slice(&values[0][a.clone()]);
        buffer.values.extend_from_slice(&values[1][b.clone()]);
        let ends = [a.len(), a.len() + b.len()];
        let halves = [
            Merge { a: 0..half_of_a, b: ends[0]..ends[0] + half_of_b, at: 0 },
            Merge { a: half_of_a..ends[0], b: ends[0] + half_of_b..ends[1], at: half_of_a + half_of_b },
        ];
        self.made = merge(buffer, halves, self.keys, self.values);
    }
}

/// The remaining entries of two ranges, and the position of the next result.
struct Merge {
    a: Range<usize>,
    b: Range<usize>,
    at: usize,
}

impl Merge {
    #[inline(always)]
    fn has_both(&self) -> bool {
        self.a.start < self.a.end && self.b.start < self.b.end
    }

    /// Writes the next key, with the sum of its values. Branchless, as the source is unpredictable.
    #[inline(always)]
    fn step<T: Number>(&mut self, from: &Entries<T>, keys: &mut [u64], values: &mut [T]) {
        let (a, b) = (self.a.start, self.b.start);
        let (left, right) = (from.keys[a], from.keys[b]);
        let (of_a, of_b) = (left <= right, right <= left);
        keys[self.at] = left.min(right);
        let parts = (T::kept(from.values[a].widen(), of_a), T::kept(from.values[b].widen(), of_b));
        values[self.at] = T::narrow(T::plus(parts.0, parts.1));
        (self.a.start, self.b.start, self.at) = (a + usize::from(of_a), b + usize::from(of_b), self.at + 1);
    }

    /// Writes the remaining entries.
    #[inline(never)]
    fn finish<T: Number>(mut self, from: &Entries<T>, keys: &mut [u64], values: &mut [T]) -> usize {
        while self.has_both() {
            self.step(from, keys, values);
        }
        for rest in [self.a, self.b] {
            let end = self.at + rest.len();
            keys[self.at..end].copy_from_slice(&from.keys[rest.clone()]);
            values[self.at..end].copy_from_slice(&from.values[rest]);
            self.at = end;
        }
        self.at
    }
}

/// Merges two pairs of ranges, each key once with the sum of its values; returns the ranges of the results. Each step
/// depends on the previous one, so two merges are interleaved.
fn merge<T: Number>(
    from: &Entries<T>,
    [mut first, mut second]: [Merge; 2],
    keys: &mut [u64],
    values: &mut [T],
) -> [Range<usize>; 2] {
    let begins = [first.at, second.at];
    while first.has_both() && second.has_both() {
        first.step(from, keys, values);
        second.step(from, keys, values);
    }
    let ends = [first.finish(from, keys, values), second.finish(from, keys, values)];
    [begins[0]..ends[0], begins[1]..ends[1]]
}

/// Concatenates the parts to a tensor with the sizes of `like`.
fn joined<T: Number>(
    like: &Coo<'_>,
    fields: &Fields,
    pieces: &[Piece<'_, T>],
) -> Result<Coo<'static>, Error> {
    let nnz: usize = pieces.iter().flat_map(|piece| &piece.made).map(Range::len).sum();
    let mut indices = new_host_tensor::<i64>(&[like.sparse_dim as i64, nnz as i64])?;
    let mut sizes = vec![nnz as i64];
    sizes.extend_from_slice(like.dense_sizes());
    let mut values = new_tensor(like.dtype(), &sizes)?;
    let (mut places, mut numbers) = (indices.view_mut::<i64>()?, values.view_bits_mut::<T>()?);
    if let (Some(mut numbers), Some(places)) = (numbers.as_mut_slice(), places.as_mut_slice()) {
        let ranges = || pieces.iter().flat_map(|piece| piece.made.iter().map(move |made| (piece, made)));
        let rows = cut_rows(places, nnz, &mut ranges().map(|(_, made)| made.len()));
        let mut parts = Vec::with_capacity(rows.len());
        for ((piece, made), rows) in ranges().zip(rows) {
            let numbers = numbers.split_off_mut(..made.len()).unwrap_or_default();
            parts.push(Mutex::new((&piece.keys[made.clone()], &piece.values[made.clone()], numbers, rows)));
        }
        parallel_for(parts.len(), 1, |range| {
            for part in &parts[range] {
                let (keys, from, numbers, rows) =
                    &mut *part.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                numbers.copy_from_slice(from);
                fields.indices(keys, rows);
            }
        })?;
    }
    let (indices, values) = (Part::Made(indices), Part::Made(values));
    let (sizes, sparse_dim) = (like.sizes.clone(), like.sparse_dim);
    Ok(Coo { sizes, sparse_dim, nnz, coalesced: true, indices, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_of_either_comes_once() {
        let from = Entries {
            keys: vec![1, 4, 7, 2, 4, 9, 10],
            values: vec![-0.0f32, 2.0, 3.0, 5.0, -2.0, -0.0, 1.0],
        };
        for half in 0..=3 {
            let half_of_b = from.keys[3..].partition_point(|key| half < 3 && *key < from.keys[half]);
            let half_of_b = if half == 3 { 4 } else { half_of_b };
            let halves = [
                Merge { a: 0..half, b: 3..3 + half_of_b, at: 0 },
                Merge { a: half..3, b: 3 + half_of_b..7, at: half + half_of_b },
            ];
            let (mut keys, mut values) = ([0; 7], [0.0; 7]);
            let made = merge(&from, halves, &mut keys, &mut values);
            let places = || made.iter().flat_map(Clone::clone);
            assert_eq!(places().map(|n| keys[n]).collect::<Vec<_>>(), [1, 2, 4, 7, 9, 10]);
            assert_eq!(
                places().map(|n| values[n].to_bits()).collect::<Vec<_>>(),
                [-0.0f32, 5.0, 0.0, 3.0, -0.0, 1.0].map(f32::to_bits)
            );
        }
    }

    /// The sum of both, by pieces as in [`merged`]; `None` if they are not sorted.
    fn by_pieces(index: [&[i64]; 2], sizes: &[i64]) -> Option<Vec<(u64, i64)>> {
        let greatest: Vec<u64> = sizes.iter().map(|&size| size as u64 - 1).collect();
        let fields = Fields::of(&greatest).unwrap();
        let nnz = index.map(|index| index.len() / sizes.len());
        let values = nnz.map(|nnz| (0..nnz as i64).map(|n| n * 3 + 1).collect::<Vec<_>>());
        let mut all: Vec<(u64, i64)> = Vec::new();
        for range in cut(&fields, index, nnz) {
            let len = range[0].len() + range[1].len();
            let (mut keys, mut sums) = (vec![0; len], vec![0; len]);
            let mut piece =
                Piece { range, keys: &mut keys, values: &mut sums, made: [0..0, 0..0], sound: true };
            piece.run(&fields, sizes, &index, &[&values[0][..], &values[1]], &mut Entries::default());
            for n in piece.made.iter().flat_map(Clone::clone) {
                all.push((piece.keys[n], piece.values[n]));
            }
            if !piece.sound {
                return None;
            }
        }
        all.is_sorted_by(|a, b| a.0 < b.0).then_some(all)
    }

    #[test]
    fn pieces_together_are_both() {
        let end = 3 * PIECE as i64;
        let every = |step: usize| (0..end).step_by(step).collect::<Vec<_>>();
        for (a, b) in [(every(1), every(2)), (every(1), every(1)), (every(3), every(1)), (every(2), vec![])] {
            let mut wanted = std::collections::BTreeMap::new();
            for list in [&a, &b] {
                list.iter()
                    .enumerate()
                    .for_each(|(n, &at)| *wanted.entry(at as u64).or_insert(0) += n as i64 * 3 + 1);
            }
            assert!(by_pieces([&a, &b], &[end]).unwrap() == wanted.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_out_of_order_is_found_in_each_piece() {
        let (count, end) = (3 * PIECE, 3 * PIECE as i64);
        let list: Vec<i64> = (0..end).collect();
        let ends = cut(&Fields::of(&[end as u64 - 1]).unwrap(), [&list, &list], [count; 2]);
        for at in [1, PIECE, ends[0][0].end - 1, ends[0][0].end, ends[1][0].end + 1, count - 1] {
            for to in [list[at - 1], -1, end, i64::MIN] {
                let mut other = list.clone();
                other[at] = to;
                assert_eq!(by_pieces([&other, &list], &[end]), None, "{to} at {at}");
                assert_eq!(by_pieces([&list, &other], &[end]), None, "{to} at {at}");
            }
        }
    }
}
