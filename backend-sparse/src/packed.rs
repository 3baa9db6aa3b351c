//! Entries packed into 64-bit integers: the indices of an entry in the high bits, so that integers have the order of
//! coordinates, and its value, or its position, in the low bits. Sorting moves only these integers, and the output is read
//! sequentially: indices by shifts, values mostly without an indirection. Scratch: 16 bytes for each entry.

use crate::coo::{Coo, PIECE, cut_rows, new_tensor};
use crate::number::Number;
use crate::sort::sort;
use keyway_cpu_loops::ViewExt;
use keyway_sdk::author::{Error, OwnedTensor, Scratch, new_host_tensor, parallel_chunks_mut, parallel_for};
use std::sync::Mutex;

/// Entries whose keys are computed at a time.
pub const BLOCK: usize = 512;

/// The bit fields of the sparse indices in a key.
pub struct Fields {
    /// The lowest bit of each field, and its mask.
    at: Vec<(u32, u64)>,
    /// The number of bits of a key.
    bits: u32,
}

impl Fields {
    /// The fields for indices up to these; `None` if they need more than 63 bits.
    pub fn of(greatest: &[u64]) -> Option<Fields> {
        let mut bits = 0;
        let mut at = vec![(0, 0); greatest.len()];
        for (field, most) in at.iter_mut().zip(greatest).rev() {
            let width = u64::BITS - most.leading_zeros();
            *field = (bits, u64::MAX.checked_shr(u64::BITS - width).unwrap_or(0));
            bits += width;
            if bits >= u64::BITS {
                return None;
            }
        }
        Some(Fields { at, bits })
    }

    /// Writes the keys of the entries that start at `first`.
    fn keys(&self, index: &[i64], first: usize, keys: &mut [u64]) {
        keys.fill(0);
        let nnz = index.len() / self.at.len().max(1);
        for (row, &(shift, _)) in self.at.iter().enumerate() {
            let from = &index[row * nnz + first..][..keys.len()];
            keys.iter_mut().zip(from).for_each(|(key, &at)| *key |= (at as u64) << shift);
        }
    }

    /// Like [`Fields::keys`]; returns whether all indices are in range.
    pub fn keys_within(&self, index: &[i64], sizes: &[i64], first: usize, keys: &mut [u64]) -> bool {
        let nnz = index.len() / self.at.len().max(1);
        let mut within = true;
        for (nth, keys) in keys.chunks_mut(BLOCK).enumerate() {
            let count = keys.len();
            let mut rows = self.at.iter().zip(sizes).enumerate().map(|(row, (&(shift, _), &size))| {
                (&index[row * nnz + first + nth * BLOCK..][..count], shift, size as u64)
            });
            let Some((from, shift, size)) = rows.next() else {
                keys.fill(0);
                continue;
            };
            for (key, &at) in keys.iter_mut().zip(from) {
                *key = (at as u64) << shift;
                within &= (at as u64) < size;
            }
            for (from, shift, size) in rows {
                for (key, &at) in keys.iter_mut().zip(from) {
                    *key |= (at as u64) << shift;
                    within &= (at as u64) < size;
                }
            }
        }
        within
    }

    /// As [`Fields::keys_within`]; returns whether keys are strictly increasing, too.
    #[inline(never)]
    pub fn rising_keys(&self, index: &[i64], sizes: &[i64], first: usize, keys: &mut [u64]) -> bool {
        let mut is_sound = true;
        for begin in (0..keys.len()).step_by(BLOCK) {
            let end = keys.len().min(begin + BLOCK);
            is_sound &= self.keys_within(index, sizes, first + begin, &mut keys[begin..end]);
            let pairs = keys[begin.saturating_sub(1)..end].windows(2);
            is_sound &= pairs.fold(true, |rise, pair| rise & (pair[0] < pair[1]));
        }
        is_sound
    }

    /// The number of bits of the index in the last dimension, the lowest ones of a key.
    pub fn last_bits(&self) -> u32 {
        self.at.last().map_or(0, |(_, mask)| mask.count_ones())
    }

    /// The key of one entry.
    pub fn key(&self, index: &[i64], entry: usize) -> u64 {
        let mut key = [0];
        self.keys(index, entry, &mut key);
        key[0]
    }

    /// Extracts the indices in each dimension from keys.
    pub fn indices(&self, keys: &[u64], rows: &mut [&mut [i64]]) {
        for (row, &(shift, mask)) in rows.iter_mut().zip(&self.at) {
            row.iter_mut().zip(keys).for_each(|(at, key)| *at = (key >> shift & mask) as i64);
        }
    }

    /// Whether the coordinates of `nnz` entries are strictly increasing.
    pub fn rise(&self, index: &[i64], nnz: usize) -> bool {
        let (mut block, mut last) = ([0; BLOCK], None);
        for first in (0..nnz).step_by(BLOCK) {
            let keys = &mut block[..BLOCK.min(nnz - first)];
            self.keys(index, first, keys);
            let rise = keys.windows(2).fold(true, |rise, pair| rise & (pair[0] < pair[1]));
            if !rise || last.is_some_and(|last| last >= keys[0]) {
                return false;
            }
            last = keys.last().copied();
        }
        true
    }
}

/// Entries with duplicates added.
pub struct Summed {
    /// `[sparse_dim, nnz]`.
    pub indices: OwnedTensor,
    /// `[nnz, dense sizes...]`.
    pub values: OwnedTensor,
    /// Number of distinct coordinates.
    pub nnz: usize,
}

/// Sorts the entries and adds duplicates in order. `None` if an entry has more than one value, or a 64-bit integer has no
/// capacity for its key and the minimum that is packed with it.
///
/// # Errors
/// Insufficient memory.
pub fn summed<T: Number>(coo: &Coo<'_>, index: &[i64], fields: &Fields) -> Result<Option<Summed>, Error> {
    if coo.width() != 1 {
        return Ok(None);
    }
    let values = coo.values.tensor().view_bits::<T>()?.contiguous()?;
    let value_bits = 8 * size_of::<T>() as u32;
    if fields.bits + value_bits < u64::BITS {
        return sorted(coo, index, fields, value_bits, |n| values[n].to_low_bits(), T::from_low_bits)
            .map(Some);
    }
    let place_bits = usize::BITS - coo.nnz.leading_zeros();
    if fields.bits + place_bits < u64::BITS {
        let mask = (1 << place_bits) - 1;
        return sorted(
            coo,
            index,
            fields,
            place_bits,
            |n| n as u64,
            |record| values[(record & mask) as usize],
        )
        .map(Some);
    }
    Ok(None)
}

/// A part of the sorted entries, and the targets of its results: the values, and the indices of each dimension.
type Part<'a, T> = (&'a mut [u64], &'a mut [T], Vec<&'a mut [i64]>);

/// As [`summed`], with `low` bits for each entry below its key, from which its value is read.
fn sorted<T: Number>(
    coo: &Coo<'_>,
    index: &[i64],
    fields: &Fields,
    low: u32,
    own: impl Fn(usize) -> u64 + Sync,
    value: impl Fn(u64) -> T + Sync,
) -> Result<Summed, Error> {
    let mut records = Scratch::<u64>::zeroed(coo.nnz)?;
    parallel_chunks_mut(&mut records, PIECE, |piece, records| {
        for (nth, records) in records.chunks_mut(BLOCK).enumerate() {
            let first = piece * PIECE + nth * BLOCK;
            fields.keys(index, first, records);
            records.iter_mut().enumerate().for_each(|(n, record)| *record = *record << low | own(first + n));
        }
    })?;
    let (mut records, bounds) = match records.is_sorted_by_key(|record| record >> low) {
        true => (records, vec![0, coo.nnz]),
        false => sort(records, low, fields.bits)?,
    };
    let mut counts = vec![0; bounds.len() - 1];
    parallel_chunks_mut(&mut counts, 1, |part, count| {
        let part = &records[bounds[part]..bounds[part + 1]];
        let changes =
            part.windows(2).fold(0, |sum, pair| sum + usize::from(pair[0] >> low != pair[1] >> low));
        count[0] = changes + usize::from(!part.is_empty());
    })?;
    let nnz: usize = counts.iter().sum();
    let mut indices = new_host_tensor::<i64>(&[coo.sparse_dim as i64, nnz as i64])?;
    let mut sizes = vec![nnz as i64];
    sizes.extend_from_slice(coo.dense_sizes());
    let mut values = new_tensor(coo.dtype(), &sizes)?;
    let (mut places, mut numbers) = (indices.view_mut::<i64>()?, values.view_bits_mut::<T>()?);
    if let (Some(mut numbers), Some(places)) = (numbers.as_mut_slice(), places.as_mut_slice()) {
        let rows = cut_rows(places, nnz, &mut counts.iter().copied());
        let (mut parts, mut rest) = (Vec::with_capacity(counts.len()), &mut records[..]);
        for ((pair, &count), rows) in bounds.windows(2).zip(&counts).zip(rows) {
            let records = rest.split_off_mut(..pair[1] - pair[0]).unwrap_or_default();
            let numbers = numbers.split_off_mut(..count).unwrap_or_default();
            parts.push(Mutex::new((records, numbers, rows)));
        }
        parallel_for(parts.len(), 1, |range| {
            for part in &parts[range] {
                let part: &mut Part<'_, T> =
                    &mut part.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let (records, numbers, rows) = part;
                add_up(records, low, &value, numbers);
                fields.indices(&records[..numbers.len()], rows);
            }
        })?;
    }
    Ok(Summed { indices, values, nnz })
}

/// Writes the sums of the values of equal keys, and moves these keys to the first records. A sum begins with the first
/// value, so that a single -0.0 is preserved. Floats are accumulated in f64, which is accurate for any number of addends,
/// and rounded once.
fn add_up<T: Number>(records: &mut [u64], low: u32, value: impl Fn(u64) -> T, out: &mut [T]) {
    let Some(&first) = records.first() else { return };
    let (mut at, mut last, mut sum) = (0, first >> low, value(first).addend());
    (out[0], records[0]) = (T::rounded(sum), last);
    for n in 1..records.len() {
        let (key, value) = (records[n] >> low, value(records[n]).addend());
        // Branchless, as the repetition of a key is unpredictable.
        at += usize::from(key != last);
        sum = T::with(T::total_kept(sum, key == last), value);
        (out[at], records[at], last) = (T::rounded(sum), key, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_places() {
        let fields = Fields::of(&[2, 0, 5]).unwrap();
        assert_eq!((fields.bits, &fields.at[..]), (5, &[(3, 3), (3, 0), (0, 7)][..]));
        let index = [0, 0, 2, 2, 0, 0, 0, 0, 1, 5, 0, 5];
        let mut keys = [0; 4];
        fields.keys(&index, 0, &mut keys);
        assert_eq!(keys, [1, 5, 16, 21]);
        assert!(fields.rise(&index, 4));
        assert!(!fields.rise(&[0, 0, 1, 1, 0, 0, 0, 0, 1, 5, 5, 5], 4));
        assert!(Fields::of(&[1 << 40, 1 << 40]).is_none());
        assert!(Fields::of(&[u64::MAX]).is_none());
        assert!(Fields::of(&[]).unwrap().rise(&[], 1));
        assert!(!Fields::of(&[]).unwrap().rise(&[], 2));
    }

    #[test]
    fn what_falls_together_is_added_up() {
        let record = |key: u64, value: f32| key << 32 | value.to_low_bits();
        let mut records = [record(3, -0.0), record(4, 1.5), record(4, 2.0), record(9, 1.0), record(9, -1.0)];
        let mut out = [7.0f32; 3];
        add_up(&mut records, 32, f32::from_low_bits, &mut out);
        assert_eq!(
            (out.map(f32::to_bits), &records[..3]),
            ([-0.0f32, 3.5, 0.0].map(f32::to_bits), &[3, 4, 9][..])
        );
        // More addends than f32 adds exactly one by one.
        let mut records = vec![record(3, 1.0); 3];
        records.insert(0, record(3, 16_777_216.0));
        let mut out = [0.0f32; 1];
        add_up(&mut records, 32, f32::from_low_bits, &mut out);
        assert_eq!(out, [16_777_220.0]);
    }
}
