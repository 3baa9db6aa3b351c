//! Distribution of unsorted entries to rows, for products, which add all entries of a row: a histogram of entries by row,
//! then a stable scatter (counting sort), so that the result does not depend on the number of work items. Duplicates remain
//! separate. Scratch: 8 bytes for each entry and 12 for each row; in larger matrices up to half a byte more for each entry.

use crate::coo::wrong;
use keyway_sdk::author::{Error, Scratch, parallel_chunks_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Minimum ratio of entries to rows for a histogram per work item.
const WORTH: usize = 8;
/// Maximum number of work items.
const PIECES: usize = 16;
/// Prefetch distance, in entries, of the line that an entry is written to.
const AHEAD: usize = 32;

/// Entries by row.
pub struct Dealt {
    /// Offsets of the entries of each row, and the end.
    pub begins: Scratch<i64>,
    /// The column of each entry in the upper 32 bits, and its payload in the lower ones.
    pub records: Scratch<u64>,
}

/// Distributes the entries by their row in `to`, each with its column in `from` and 32 bits of payload. `None` if there are
/// more than 2^32 entries or columns.
///
/// # Errors
/// An entry outside of the matrix; insufficient memory.
pub fn dealt(
    [to, from]: [&[i64]; 2],
    [rows, columns]: [usize; 2],
    own: impl Fn(usize) -> u32 + Sync,
) -> Result<Option<Dealt>, Error> {
    let nnz = to.len();
    if u32::try_from(nnz.max(columns)).is_err() {
        return Ok(None);
    }
    let mut begins = Scratch::<i64>::zeroed(rows + 1)?;
    if rows == 0 {
        let records = Scratch::zeroed(0)?;
        return if nnz == 0 { Ok(Some(Dealt { begins, records })) } else { Err(outside()) };
    }
    let pieces = (nnz / (WORTH * rows)).clamp(1, PIECES);
    let range = |piece: usize| piece * nnz / pieces..(piece + 1) * nnz / pieces;
    let any_outside = AtomicBool::new(false);
    // The number of entries of each row in a work item, then the position of its next entry.
    let mut places = Scratch::<u32>::zeroed(pieces * rows)?;
    parallel_chunks_mut(&mut places, rows, |piece, counts| {
        for &row in &to[range(piece)] {
            match counts.get_mut(row as usize) {
                Some(count) => *count += 1,
                None => any_outside.store(true, Ordering::Relaxed),
            }
        }
    })?;
    let mut at = 0;
    for row in 0..rows {
        begins[row] = i64::from(at);
        for piece in 0..pieces {
            let place = &mut places[piece * rows + row];
            (*place, at) = (at, at + *place);
        }
    }
    begins[rows] = i64::from(at);
    // SAFETY: `deal` below assigns each index from 0 to the number of entries to one entry, and if any is out of range nothing is
    // read.
    let mut records = unsafe { Scratch::<u64>::unwritten(nnz) }?;
    let shared = shared(&mut records);
    parallel_chunks_mut(&mut places, rows, |piece, places| {
        let mut within = true;
        for entry in range(piece) {
            let soon = to.get(entry + AHEAD).and_then(|&row| places.get(row as usize));
            ask_for(shared.as_ptr().wrapping_add(soon.map_or(0, |&place| place as usize)));
            let column = from[entry] as u64;
            within &= column < columns as u64;
            let Some(place) = places.get_mut(to[entry] as usize) else { continue };
            if let Some(record) = shared.get(*place as usize) {
                record.store(column << u32::BITS | u64::from(own(entry)), Ordering::Relaxed);
            }
            *place = place.wrapping_add(1);
        }
        if !within {
            any_outside.store(true, Ordering::Relaxed);
        }
    })?;
    if any_outside.into_inner() {
        return Err(outside());
    }
    Ok(Some(Dealt { begins, records }))
}

/// A slice that several threads write.
fn shared(numbers: &mut Scratch<u64>) -> &[AtomicU64] {
    let numbers: *mut [u64] = &mut numbers[..];
    // SAFETY: an `AtomicU64` has the size of a `u64`, scratch memory is aligned to 64 bytes, and the result is the
    // exclusive borrow, which excludes all other accesses.
    unsafe { &*(numbers as *const [AtomicU64]) }
}

/// Prefetches an address that the hardware prefetcher cannot predict.
#[inline(always)]
pub fn ask_for<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and accepts any address; the instruction is part of the x86-64 baseline.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cold]
fn outside() -> Error {
    wrong("indices", "indices within the sizes of the matrix", "others, in a component that was changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_row_stay_in_their_order() {
        let count = 4 * WORTH * 5 + 3;
        let (mut to, mut from) = (Vec::new(), Vec::new());
        let mut state = 7u32;
        for _ in 0..count {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            to.push(i64::from(state >> 16) % 5);
            from.push(i64::from(state >> 8) % 11);
        }
        for count in [0, 1, 7, count] {
            let (to, from) = (&to[..count], &from[..count]);
            let made = dealt([to, from], [5, 11], |n| n as u32).unwrap().unwrap();
            let mut wanted: Vec<usize> = (0..count).collect();
            wanted.sort_by_key(|&n| to[n]);
            let found: Vec<_> =
                made.records.iter().map(|record| ((record >> 32) as i64, *record as u32 as usize)).collect();
            assert_eq!(found, wanted.iter().map(|&n| (from[n], n)).collect::<Vec<_>>());
            for row in 0..5 {
                let before = to.iter().filter(|&&to| to < row as i64).count();
                assert_eq!(made.begins[row], before as i64);
            }
            assert_eq!(made.begins[5], count as i64);
        }
    }

    #[test]
    fn what_lies_outside_is_an_error() {
        assert!(dealt([&[0, 2], &[0, 0]], [2, 1], |_| 0).is_err());
        assert!(dealt([&[0, -1], &[0, 0]], [2, 1], |_| 0).is_err());
        assert!(dealt([&[0, 1], &[0, 1]], [2, 1], |_| 0).is_err());
        assert!(dealt([&[0, 1], &[0, -1]], [2, 1], |_| 0).is_err());
        assert!(dealt([&[0], &[0]], [0, 1], |_| 0).is_err());
        assert!(dealt([&[], &[]], [0, 0], |_| 0).unwrap().is_some());
    }
}
