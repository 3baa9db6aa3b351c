//! `searchsorted`

use super::buffer::Buffer;
use super::cells::Cells;
use super::order::Key;
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error, Lanes, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// The number of values per work item.
const PIECE: usize = 1 << 10;
/// The number of values whose binary searches are interleaved.
const SIDE: usize = 16;

fn searchsorted<T: Key>(call: &Call) -> Result<(), Error> {
    let (sequence, values) = (Cells::<T>::argument(call, 0)?, Cells::<T>::argument(call, 1)?);
    let right = call.bool(2)?;
    let mut out = call.contiguous_out::<i64>(0)?;
    let n = sequence.sizes.last().copied().unwrap_or(0);
    // One sequence for all values, or one sequence for each line of values.
    let width =
        if sequence.sizes.len() <= 1 { usize::MAX } else { values.sizes.last().copied().unwrap_or(1) };
    let (count, all) = (out.len(), sequence.numel());
    // SAFETY: the address is used within `out`, which is borrowed for the whole call.
    let lanes = unsafe { Lanes::new(out.as_mut_ptr()) };
    // SAFETY: the plan makes both arguments contiguous.
    let (at, value) =
        unsafe { (|k: usize| sequence.lanes.read(k).key(), |i: usize| values.lanes.read(i).key()) };
    // Keys are precomputed if each is compared several times.
    let keys = Buffer::<u64>::zeroed(if count > all / 8 { all } else { 0 })?;
    let mut keys = keys;
    keys.iter_mut().enumerate().for_each(|(k, key)| *key = at(k));
    let keys = &keys[..];
    parallel_for(count, PIECE, |range| {
        let mut first = range.start;
        while first < range.end {
            // The values of one line of the sequence.
            let line = first / width.max(1);
            let end = range.end.min((line + 1).saturating_mul(width));
            // SAFETY: each value belongs to one work item.
            let found = unsafe { lanes.slice_mut(first, end - first) };
            let (value, base) = (|i: usize| value(first + i), line * n);
            match (keys.is_empty(), right) {
                (true, _) => search(found, n, value, |k, v| at(base + k) < v || right && at(base + k) == v),
                (_, false) => search(found, n, value, in_line(keys, base, n, |key, v| key < v)),
                (_, true) => search(found, n, value, in_line(keys, base, n, |key, v| key <= v)),
            }
            first = end;
        }
    })
}

/// Returns the test whether element `k` of a line precedes a value.
#[inline(always)]
fn in_line(
    keys: &[u64],
    base: usize,
    n: usize,
    before: impl Fn(u64, u64) -> bool,
) -> impl Fn(usize, u64) -> bool {
    let line = &keys[base..base + n];
    // SAFETY: a search accesses keys below `n` alone.
    move |k, v| before(unsafe { *line.get_unchecked(k) }, v)
}

/// Writes the number of the `n` keys that precede each value, by interleaved branchless binary searches.
#[inline(always)]
fn search(found: &mut [i64], n: usize, value: impl Fn(usize) -> u64, before: impl Fn(usize, u64) -> bool) {
    for (chunk, found) in found.chunks_mut(SIDE).enumerate() {
        let (mut values, mut places) = ([0u64; SIDE], [0usize; SIDE]);
        for (l, v) in values[..found.len()].iter_mut().enumerate() {
            *v = value(chunk * SIDE + l);
        }
        let mut len = n;
        while len > 1 {
            let half = len / 2;
            for l in 0..SIDE {
                places[l] += if before(places[l] + half - 1, values[l]) { half } else { 0 };
            }
            len -= half;
        }
        for (l, found) in found.iter_mut().enumerate() {
            let last = n > 0 && before(places[l], values[l]);
            *found = (places[l] + usize::from(last)) as i64;
        }
    }
}

kernel!("searchsorted", "TTb>T", searchsorted, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_keys_come_before_a_value_as_are_counted() {
        for n in [0, 1, 2, 3, 15, 16, 17, 100] {
            let keys: Vec<u64> = (0..n as u64).map(|k| k / 2 * 3).collect();
            let values: Vec<u64> = (0..2 * n as u64 + 3).map(|i| i * 7 % (2 * n as u64 + 3)).collect();
            let mut found = vec![0; values.len()];
            search(&mut found, n, |i| values[i], in_line(&keys, 0, n, |key, v| key < v));
            let counted: Vec<i64> =
                values.iter().map(|v| keys.iter().filter(|key| *key < v).count() as i64).collect();
            assert_eq!(found, counted, "{n}");
        }
    }
}
