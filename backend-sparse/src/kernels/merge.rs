//! Two tensors of coordinates in order as one, where an entry is one number. Both are cut at the same places, and the parts
//! merged apart, each into memory for as many entries as it may have; then the parts are put together. Scratch: 8 bytes and
//! a value for each entry of both, and 8 bytes for each entry of a part that is under way.

use crate::coo::{Coo, PIECE, Part, new_tensor};
use crate::number::Number;
use crate::packed::Fields;
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{Error, Scratch, new_host_tensor, parallel_for};
use std::sync::Mutex;

/// Entries in order, as keys and values.
#[derive(Clone, Copy)]
struct Entries<'a, T> {
    keys: &'a [u64],
    values: &'a [T],
}

/// A part of both tensors, and what it gives.
struct Piece<'a, T> {
    /// Where it begins and ends in either.
    range: [[usize; 2]; 2],
    keys: &'a mut [u64],
    values: &'a mut [T],
    /// How many entries it gives.
    count: usize,
    /// Whether all is in order and within the sizes.
    sound: bool,
}

/// The entries of both, each place once. Nothing where an entry is more than one number, places need more bits than a
/// number has, or either is not in order or not within its sizes.
///
/// # Errors
/// Memory that does not suffice.
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
    // SAFETY: `Piece::run` writes the first `count` elements of each piece's part before it sets `count`, and no more than
    // these are read below.
    let (mut keys, mut sums) = unsafe { (Scratch::<u64>::unwritten(all)?, Scratch::<T>::unwritten(all)?) };
    let sizes = a.sparse_sizes();
    let mut pieces = Vec::new();
    let (mut keys_left, mut sums_left) = (&mut keys[..], &mut sums[..]);
    let (count, mut begin) = (all.div_ceil(2 * PIECE), [0; 2]);
    for nth in 1..=count {
        let end = if nth == count {
            [a.nnz, b.nnz]
        } else {
            let of_a = (a.nnz * nth / count).max(begin[0]);
            let first = fields.key(&indices[0], of_a);
            let of_b = partition_point(b.nnz, |n| fields.key(&indices[1], n) < first);
            [of_a, of_b.max(begin[1])]
        };
        let len = end[0] - begin[0] + end[1] - begin[1];
        let keys = keys_left.split_off_mut(..len).unwrap_or_default();
        let values = sums_left.split_off_mut(..len).unwrap_or_default();
        let range = [[begin[0], end[0]], [begin[1], end[1]]];
        pieces.push(Mutex::new(Piece { range, keys, values, count: 0, sound: true }));
        begin = end;
    }
    parallel_for(pieces.len(), 1, |range| {
        let mut buffers = [Vec::new(), Vec::new()];
        for piece in &pieces[range] {
            let piece = &mut *piece.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            piece.run(&fields, sizes, &indices, &values, &mut buffers);
        }
    })?;
    let mut pieces: Vec<Piece<'_, T>> = pieces
        .into_iter()
        .map(|piece| piece.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
        .collect();
    let mut last = None;
    for piece in &mut pieces {
        let keys = &piece.keys[..piece.count];
        if !piece.sound || keys.first().is_some_and(|first| last.is_some_and(|last| last >= *first)) {
            return Ok(None);
        }
        last = keys.last().copied().or(last);
    }
    drop((indices, values));
    joined(a, &fields, &pieces).map(Some)
}

/// The first of `count` numbers for which this is not so, of which the earlier ones are.
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
        indices: &[impl std::ops::Deref<Target = [i64]>; 2],
        values: &[impl std::ops::Deref<Target = [T]>; 2],
        buffers: &mut [Vec<u64>; 2],
    ) {
        for ((index, range), buffer) in indices.iter().zip(self.range).zip(&mut *buffers) {
            buffer.clear();
            buffer.resize(range[1] - range[0], 0);
            self.sound &= fields.keys_within(index, sizes, range[0], buffer);
        }
        let entries = |of: usize| Entries {
            keys: &buffers[of],
            values: &values[of][self.range[of][0]..self.range[of][1]],
        };
        self.count = merge(entries(0), entries(1), self.keys, self.values);
        let keys = &self.keys[..self.count];
        self.sound &= keys.windows(2).fold(true, |rise, pair| rise & (pair[0] < pair[1]));
    }
}

/// Writes what is in either, each key once with the sum of its values; says how many there are.
fn merge<T: Number>(a: Entries<'_, T>, b: Entries<'_, T>, keys: &mut [u64], values: &mut [T]) -> usize {
    let (mut i, mut j, mut at) = (0, 0, 0);
    // Which comes first nobody can guess, so it is no branch.
    while i < a.keys.len() && j < b.keys.len() {
        let (left, right) = (a.keys[i], b.keys[j]);
        let (of_a, of_b) = (left <= right, right <= left);
        keys[at] = left.min(right);
        let parts = (T::kept(a.values[i].widen(), of_a), T::kept(b.values[j].widen(), of_b));
        values[at] = T::narrow(T::plus(parts.0, parts.1));
        (i, j, at) = (i + usize::from(of_a), j + usize::from(of_b), at + 1);
    }
    for (rest, from) in [(a, i), (b, j)] {
        let count = rest.keys.len() - from;
        keys[at..at + count].copy_from_slice(&rest.keys[from..]);
        values[at..at + count].copy_from_slice(&rest.values[from..]);
        at += count;
    }
    at
}

/// The pieces as one tensor, of the sizes of `like`.
fn joined<T: Number>(
    like: &Coo<'_>,
    fields: &Fields,
    pieces: &[Piece<'_, T>],
) -> Result<Coo<'static>, Error> {
    let nnz: usize = pieces.iter().map(|piece| piece.count).sum();
    let mut indices = new_host_tensor::<i64>(&[like.sparse_dim as i64, nnz as i64])?;
    let mut sizes = vec![nnz as i64];
    sizes.extend_from_slice(like.dense_sizes());
    let mut values = new_tensor(like.dtype(), &sizes)?;
    let (mut places, mut numbers) = (indices.view_mut::<i64>()?, values.view_bits_mut::<T>()?);
    if let (Some(mut numbers), Some(places)) = (numbers.as_mut_slice(), places.as_mut_slice()) {
        let mut rows: Vec<&mut [i64]> = places.chunks_mut(nnz.max(1)).collect();
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let numbers = numbers.split_off_mut(..piece.count).unwrap_or_default();
            let rows = rows.iter_mut().map(|row| row.split_off_mut(..piece.count).unwrap_or_default());
            parts.push(Mutex::new((piece, numbers, rows.collect::<Vec<_>>())));
        }
        parallel_for(parts.len(), 1, |range| {
            for part in &parts[range] {
                let (piece, numbers, rows) =
                    &mut *part.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                numbers.copy_from_slice(&piece.values[..piece.count]);
                fields.indices(&piece.keys[..piece.count], rows);
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
        let a = Entries { keys: &[1, 4, 7], values: &[-0.0f32, 2.0, 3.0] };
        let b = Entries { keys: &[2, 4, 9, 10], values: &[5.0, -2.0, -0.0, 1.0] };
        let (mut keys, mut values) = ([0; 7], [0.0; 7]);
        let count = merge(a, b, &mut keys, &mut values);
        assert_eq!(keys[..count], [1, 2, 4, 7, 9, 10]);
        assert_eq!(
            values[..count].iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
            [-0.0f32, 5.0, 0.0, 3.0, -0.0, 1.0].map(f32::to_bits)
        );
    }
}
