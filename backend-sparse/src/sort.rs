//! Stable radix sort of entries by key.
//!
//! A key and an index are packed into one integer; keys with too many bits are sorted by their lower bits first and then by
//! the upper ones. One stable partition by the highest bits creates buckets, which are then sorted independently by LSD
//! radix passes. Work items and buckets depend on the number of entries alone. Scratch: 20 bytes for each entry.

use crate::coo::PIECE;
use keyway_sdk::author::{Error, Scratch, parallel_chunks_mut, parallel_for};
use std::sync::Mutex;

/// Bits of a digit within a bucket.
const DIGIT: u32 = 11;
/// Maximum number of bits of the partition into buckets.
const BUCKETS: u32 = 7;
/// The number of entries below which they are sorted by comparison.
const FEW: usize = 1 << 11;

/// The order of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Strictly increasing keys.
    Rising,
    /// Non-decreasing keys.
    Sorted,
    /// Unsorted keys.
    Any,
}

/// The order of these keys.
pub fn order(keys: &[u64]) -> Order {
    let (mut rising, mut sorted) = (true, true);
    for pair in keys.windows(2) {
        rising &= pair[0] < pair[1];
        sorted &= pair[0] <= pair[1];
    }
    match (rising, sorted) {
        (true, _) => Order::Rising,
        (_, true) => Order::Sorted,
        _ => Order::Any,
    }
}

/// The permutation that sorts the keys, stably.
///
/// # Errors
/// Insufficient memory; more entries than 2^32.
pub fn sorted_places(keys: &[u64]) -> Result<Scratch<u32>, Error> {
    let most = keys.iter().copied().max().unwrap_or(0);
    let key_bits = u64::BITS - most.leading_zeros();
    let place_bits = usize::BITS - keys.len().leading_zeros();
    check_count(keys)?;
    let room = u64::BITS - place_bits;
    let lower =
        sorted_by(|at| keys[at] & (u64::MAX >> place_bits), keys.len(), key_bits.min(room), place_bits)?;
    if key_bits <= room {
        return Ok(lower);
    }
    let upper = sorted_by(|at| keys[lower[at] as usize] >> room, keys.len(), key_bits - room, place_bits)?;
    let mut places = Scratch::<u32>::zeroed(keys.len())?;
    places.iter_mut().zip(upper.iter()).for_each(|(place, &at)| *place = lower[at as usize]);
    Ok(places)
}

/// Refuses more entries than 32-bit indices can number.
///
/// # Errors
/// More entries than 2^32.
pub fn check_count(keys: &[u64]) -> Result<(), Error> {
    if u32::try_from(keys.len()).is_err() {
        return Err(Error::Unsupported { what: format!("{} entries, more than 2^32,", keys.len()) });
    }
    Ok(())
}

/// The permutation that sorts these keys of `bits` bits, which fit above an index.
fn sorted_by(
    key: impl Fn(usize) -> u64 + Sync,
    len: usize,
    bits: u32,
    place_bits: u32,
) -> Result<Scratch<u32>, Error> {
    let mut packed = Scratch::<u64>::zeroed(len)?;
    parallel_chunks_mut(&mut packed, PIECE, |piece, packed| {
        let begin = piece * PIECE;
        packed
            .iter_mut()
            .enumerate()
            .for_each(|(n, out)| *out = key(begin + n) << place_bits | (begin + n) as u64);
    })?;
    let (sorted, _) = sort(packed, place_bits, bits)?;
    let mask = (1u64 << place_bits) - 1;
    let mut places = Scratch::<u32>::zeroed(len)?;
    parallel_chunks_mut(&mut places, PIECE, |piece, places| {
        places
            .iter_mut()
            .zip(&sorted[piece * PIECE..])
            .for_each(|(place, record)| *place = (record & mask) as u32);
    })?;
    Ok(places)
}

/// The bits of a record above `low`, masked by `mask`.
#[inline(always)]
fn digit(record: u64, low: u32, mask: usize) -> usize {
    (record >> low) as usize & mask
}

/// Sorts records stably by the `bits` bits above `low`; also returns the offsets of parts with equal highest bits, and the
/// end.
///
/// # Errors
/// Insufficient memory.
pub fn sort(mut records: Scratch<u64>, low: u32, bits: u32) -> Result<(Scratch<u64>, Vec<usize>), Error> {
    if records.len() < FEW || bits == 0 {
        records.sort_by_key(|record| record >> low);
        let bounds = vec![0, records.len()];
        return Ok((records, bounds));
    }
    let top = bits.min(BUCKETS);
    let rest = bits - top;
    let (mut partitioned, bounds) = partition(&records, low + rest, top)?;
    // Each bucket, with the same range of the other buffer as scratch.
    let mut jobs = Vec::new();
    let (mut left, mut spare) = (&mut partitioned[..], &mut records[..]);
    for pair in bounds.windows(2) {
        let (bucket, more) = left.split_at_mut(pair[1] - pair[0]);
        let (scratch, more_spare) = spare.split_at_mut(pair[1] - pair[0]);
        jobs.push(Mutex::new((bucket, scratch)));
        (left, spare) = (more, more_spare);
    }
    parallel_for(jobs.len(), 1, |range| {
        for job in &jobs[range] {
            let (bucket, scratch) = &mut *job.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            sort_bucket(bucket, scratch, low, rest);
        }
    })?;
    drop(jobs);
    Ok((partitioned, bounds))
}

/// Partitions records stably by the `bits` bits above `low`; also returns the offset of each part.
fn partition(records: &[u64], low: u32, bits: u32) -> Result<(Scratch<u64>, Vec<usize>), Error> {
    let (buckets, mask) = (1usize << bits, (1usize << bits) - 1);
    let pieces = records.len().div_ceil(PIECE);
    let mut counts = vec![0usize; pieces * buckets];
    parallel_chunks_mut(&mut counts, buckets, |piece, counts| {
        for record in &records[piece * PIECE..records.len().min((piece + 1) * PIECE)] {
            counts[digit(*record, low, mask)] += 1;
        }
    })?;
    // The output position of each work item in each bucket: buckets in order, and work items in order within each.
    let mut bounds = Vec::with_capacity(buckets + 1);
    let mut partitioned = Scratch::<u64>::zeroed(records.len())?;
    let mut slots: Vec<Mutex<Vec<std::slice::IterMut<'_, u64>>>> =
        (0..pieces).map(|_| Mutex::new(Vec::with_capacity(buckets))).collect();
    let (mut rest, mut at) = (&mut partitioned[..], 0);
    for bucket in 0..buckets {
        bounds.push(at);
        for piece in 0..pieces {
            let count = counts[piece * buckets + bucket];
            let (slot, more) = rest.split_at_mut(count);
            slots[piece].get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).push(slot.iter_mut());
            (rest, at) = (more, at + count);
        }
    }
    bounds.push(at);
    parallel_for(pieces, 1, |range| {
        for piece in range {
            let mut slots = slots[piece].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            for record in &records[piece * PIECE..records.len().min((piece + 1) * PIECE)] {
                // The histogram guarantees a free slot.
                if let Some(slot) = slots[digit(*record, low, mask)].next() {
                    *slot = *record;
                }
            }
        }
    })?;
    drop(slots);
    Ok((partitioned, bounds))
}

/// Sorts one bucket by the `bits` bits above `low`.
fn sort_bucket(bucket: &mut [u64], scratch: &mut [u64], low: u32, bits: u32) {
    if bucket.len() < FEW {
        bucket.sort_by_key(|record| record >> low);
        return;
    }
    let passes = bits.div_ceil(DIGIT);
    let width = if passes == 0 { 0 } else { bits.div_ceil(passes) };
    let (mut from, mut to) = (&mut *bucket, &mut *scratch);
    let mut starts = [0usize; 1 << DIGIT];
    for pass in 0..passes {
        let (shift, mask) = (low + pass * width, (1usize << width.min(bits - pass * width)) - 1);
        let mask = mask & ((1 << DIGIT) - 1);
        starts[..=mask].fill(0);
        from.iter().for_each(|record| starts[digit(*record, shift, mask)] += 1);
        let mut at = 0;
        for start in &mut starts[..=mask] {
            (*start, at) = (at, at + *start);
        }
        for record in from.iter() {
            let of = digit(*record, shift, mask);
            to[starts[of]] = *record;
            starts[of] += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    if passes % 2 == 1 {
        bucket.copy_from_slice(scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[u64]) {
        let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
        expected.sort_by_key(|&at| keys[at as usize]);
        assert!(sorted_places(keys).unwrap()[..] == expected, "{} keys", keys.len());
    }

    /// Pseudorandom keys.
    fn keys(count: usize, below: u64) -> Vec<u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        (0..count).map(|_| next() % below.max(1)).collect()
    }

    #[test]
    fn places_are_those_of_a_stable_sort() {
        check(&[]);
        for count in [1, 2, 100, FEW - 1, FEW, 3 * PIECE + 17] {
            for below in [1, 2, 37, 1 << 11, 1 << 20, 1 << 40, u64::MAX] {
                check(&keys(count, below));
            }
        }
        // All keys in one bucket, and a single distant key.
        let mut near = keys(2 * PIECE, 1000);
        near.push(1 << 50);
        check(&near);
    }

    #[test]
    fn the_order_of_keys_is_seen() {
        assert_eq!(order(&[]), Order::Rising);
        assert_eq!(order(&[1, 2, 5]), Order::Rising);
        assert_eq!(order(&[1, 1, 5]), Order::Sorted);
        assert_eq!(order(&[1, 5, 2]), Order::Any);
    }
}
