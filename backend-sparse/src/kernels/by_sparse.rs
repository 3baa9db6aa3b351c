//! Sparse by sparse (Gustavson): one row of the result at a time, with an accumulator for each column of the second matrix.
//! A first pass counts the entries of each row, so that the second pass writes its results in place. Scratch: 8 bytes for
//! each row of the first matrix, 4 for each entry of the second and, if it is much wider than that, 8 more; for each active
//! work item an accumulator and 5 bytes for each column, at most for each entry of the second, and 8 more if a row has more
//! than [`CHAIN`] entries.

use super::product::{Rows, are_too_many};
use crate::coo::{Coo, Part, new_tensor, with_capacity};
use crate::number::{CHAIN, Number};
use keyway_sdk::author::{Error, Scratch, new_host_tensor, parallel_for};
use std::ops::Range;
use std::sync::Mutex;

/// Bits of a word of the column mask.
const WORD: usize = u64::BITS as usize;
/// Rows per work item.
const ROWS: usize = 64;
/// Consecutive work items of one thread, which share its accumulators.
const GRAIN: usize = 8;

/// The product of two sparse matrices, with these sizes and this dtype. Sums that cancel are stored.
///
/// # Errors
/// Insufficient memory; more columns than 2^32.
pub fn sparse_by_sparse<T: Number>(
    a: &Rows<'_, T>,
    b: &Rows<'_, T>,
    sizes: [i64; 2],
    dtype: u16,
) -> Result<Coo<'static>, Error> {
    let columns = Columns::of(b.given().0, b.width)?;
    // The rows of the second matrix that the entries of a row select.
    let met = |row: usize| {
        a.row(row)
            .filter_map(|(k, factor)| Some((b.range(b.find(k)?), factor)))
            .filter(|met| !met.0.is_empty())
    };
    let is_long = T::LOSES_DIGITS && (0..a.len()).any(|row| a.range(row).len() > CHAIN);
    let pieces = a.len().div_ceil(ROWS);
    let mut begins = Scratch::<u64>::zeroed(a.len() + 1)?;
    each_part(
        begins[..a.len()].chunks_mut(ROWS).collect(),
        || columns.bits(),
        |piece, counts, has| {
            for (nth, count) in counts.iter_mut().enumerate() {
                *count = count_of(met(piece * ROWS + nth).map(|(range, _)| &columns.numbers[range]), has);
            }
        },
    )?;
    let mut nnz = 0;
    for begin in &mut *begins {
        (*begin, nnz) = (nnz, nnz + *begin);
    }
    let nnz = nnz as usize;
    let mut indices = new_host_tensor::<i64>(&[2, nnz as i64])?;
    let mut values = new_tensor(dtype, &[nnz as i64])?;
    let (mut places, mut numbers) = (indices.view_mut::<i64>()?, values.view_bits_mut::<T>()?);
    if let (Some(places), Some(mut numbers)) = (places.as_mut_slice(), numbers.as_mut_slice()) {
        let (mut rows_left, mut columns_left) = places.split_at_mut(nnz);
        let mut parts = Vec::with_capacity(pieces);
        for first in (0..a.len()).step_by(ROWS) {
            let count = (begins[(first + ROWS).min(a.len())] - begins[first]) as usize;
            parts.push(Piece {
                rows: rows_left.split_off_mut(..count).unwrap_or_default(),
                columns: columns_left.split_off_mut(..count).unwrap_or_default(),
                values: numbers.split_off_mut(..count).unwrap_or_default(),
            });
        }
        each_part(
            parts,
            || Sums::<T>::new(columns.width, is_long),
            |piece, part, sums| {
                let (mut used, mut at) = (Vec::new(), 0);
                for row in piece * ROWS..a.len().min((piece + 1) * ROWS) {
                    used.clear();
                    used.extend(met(row));
                    let products: usize = used.iter().map(|(range, _)| range.len()).sum();
                    // If a wide row has few products, their columns are found individually, otherwise by scanning all bits.
                    let found = match products < sums.has.len() / 4 {
                        true => sums.row::<true>(&used, &columns.numbers, b.given().1),
                        false => sums.row::<false>(&used, &columns.numbers, b.given().1),
                    };
                    let end = at + found;
                    part.rows[at..end].fill(a.index(row));
                    sums.take(found, &columns, &mut part.columns[at..end], &mut part.values[at..end]);
                    at = end;
                }
            },
        )?;
    }
    let (indices, values) = (Part::Made(indices), Part::Made(values));
    Ok(Coo { sizes: sizes.to_vec(), sparse_dim: 2, nnz, coalesced: true, indices, values })
}

/// A range of rows of the result.
struct Piece<'a, T> {
    rows: &'a mut [i64],
    columns: &'a mut [i64],
    values: &'a mut [T],
}

/// The columns of a matrix that have accumulators.
struct Columns {
    /// The nonempty columns, if these are far fewer than all columns; empty ones have no accumulator.
    known: Option<Vec<i64>>,
    /// The accumulator index of each entry.
    numbers: Vec<u32>,
    /// Number of accumulators.
    width: usize,
}

impl Columns {
    fn of(columns: &[i64], width: usize) -> Result<Self, Error> {
        let (mut known, mut count) = (None, width);
        if are_too_many(width, columns.len()) || u32::try_from(width).is_err() {
            let mut sorted = with_capacity(columns.len())?;
            sorted.extend_from_slice(columns);
            sorted.sort_unstable();
            sorted.dedup();
            count = sorted.len();
            known = Some(sorted);
        }
        if u32::try_from(count).is_err() {
            return Err(Error::Unsupported {
                what: format!("a product with {count} columns, more than 2^32,"),
            });
        }
        let mut numbers = with_capacity(columns.len())?;
        match &known {
            None => numbers.extend(columns.iter().map(|&column| column as u32)),
            Some(known) => numbers
                .extend(columns.iter().map(|column| known.partition_point(|known| known < column) as u32)),
        }
        Ok(Columns { known, numbers, width: count })
    }

    /// The cleared bit mask of the columns.
    fn bits(&self) -> Result<Vec<u64>, Error> {
        let mut bits = with_capacity(self.width.div_ceil(WORD))?;
        bits.resize(self.width.div_ceil(WORD), 0);
        Ok(bits)
    }
}

/// Calls `body` with the index of each part, the part, and a value of `make` that is reused for several parts.
fn each_part<P: Send, S>(
    parts: Vec<P>,
    make: impl Fn() -> Result<S, Error> + Sync,
    body: impl Fn(usize, &mut P, &mut S) + Sync,
) -> Result<(), Error> {
    let parts: Vec<Mutex<P>> = parts.into_iter().map(Mutex::new).collect();
    let short = Mutex::new(None);
    parallel_for(parts.len(), GRAIN, |range| match make() {
        Ok(mut made) => {
            for nth in range {
                body(nth, &mut parts[nth].lock().unwrap_or_else(|poisoned| poisoned.into_inner()), &mut made);
            }
        }
        Err(error) => *short.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error),
    })?;
    short.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err)
}

/// The number of columns in the union of some rows. `has` is a mask of columns, cleared before and after.
fn count_of<'a>(rows: impl Iterator<Item = &'a [u32]> + Clone, has: &mut [u64]) -> u64 {
    let (mut count, mut products) = (0, 0);
    for row in rows.clone() {
        for &column in row {
            let (word, bit) = (&mut has[column as usize / WORD], 1 << (column as usize % WORD));
            count += u64::from(*word & bit == 0);
            *word |= bit;
        }
        products += row.len();
    }
    if products < has.len() / 8 {
        rows.flatten().for_each(|&column| has[column as usize / WORD] = 0);
    } else {
        has.fill(0);
    }
    count
}

/// The accumulators of one row of a product, one per column, and a mask of the columns present. Accumulators of absent
/// columns have the neutral element.
struct Sums<T: Number> {
    sums: Vec<T::Acc>,
    /// The sums of the previous blocks of rows, if there are more than [`CHAIN`] rows.
    totals: Vec<T::Total>,
    has: Vec<u64>,
    /// The nonzero words of `has`, if they are listed.
    words: Vec<usize>,
    /// The columns with a sum, with capacity for two more.
    found: Vec<u32>,
}

impl<T: Number> Sums<T> {
    /// Allocates for `width` columns; `is_long` if there are rows with more than [`CHAIN`] entries.
    fn new(width: usize, is_long: bool) -> Result<Self, Error> {
        let long = if is_long { width } else { 0 };
        let mut totals = with_capacity(long)?;
        totals.resize(long, Self::no_total());
        let (mut sums, mut has) = (with_capacity(width)?, with_capacity(width.div_ceil(WORD))?);
        let mut found = with_capacity(width + 2)?;
        sums.resize(width, T::kept(T::ZERO, false));
        has.resize(width.div_ceil(WORD), 0);
        found.resize(width + 2, 0);
        Ok(Sums { sums, totals, has, words: Vec::new(), found })
    }

    /// The neutral element of totals.
    fn no_total() -> T::Total {
        T::total_kept(T::NO_TOTAL, false)
    }

    /// Adds rows, each times a factor, and finds the columns present, in order; returns their number.
    fn row<const LISTED: bool>(
        &mut self,
        rows: &[(Range<usize>, T::Acc)],
        columns: &[u32],
        values: &[T],
    ) -> usize {
        for (nth, (range, factor)) in rows.iter().enumerate() {
            if nth > 0 && nth % CHAIN == 0 {
                for (total, sum) in self.totals.iter_mut().zip(&mut self.sums) {
                    let sum = std::mem::replace(sum, T::kept(T::ZERO, false));
                    *total = T::with(*total, T::lengthen(sum));
                }
            }
            for (&column, value) in columns[range.clone()].iter().zip(&values[range.clone()]) {
                let column = column as usize;
                let (sum, has) = (&mut self.sums[column], &mut self.has[column / WORD]);
                *sum = T::plus(*sum, T::times(*factor, value.widen()));
                if LISTED && *has == 0 {
                    self.words.push(column / WORD);
                }
                *has |= 1 << (column % WORD);
            }
        }
        let mut at = 0;
        if LISTED {
            self.words.sort_unstable();
            for &word in &self.words {
                at = found_in(word, &mut self.has[word], &mut self.found, at);
            }
            self.words.clear();
        } else {
            for (word, bits) in self.has.iter_mut().enumerate() {
                at = found_in(word, bits, &mut self.found, at);
            }
        }
        at
    }

    /// Writes the sums of the `found` columns, and clears them.
    fn take(&mut self, found: usize, columns: &Columns, to: &mut [i64], values: &mut [T]) {
        let found = &self.found[..found];
        match &columns.known {
            None => to.iter_mut().zip(found).for_each(|(to, &column)| *to = column.into()),
            Some(known) => to.iter_mut().zip(found).for_each(|(to, &column)| *to = known[column as usize]),
        }
        for (value, &column) in values.iter_mut().zip(found) {
            let sum = std::mem::replace(&mut self.sums[column as usize], T::kept(T::ZERO, false));
            *value = match self.totals.get_mut(column as usize) {
                None => T::narrow(sum),
                Some(total) => {
                    T::rounded(T::with(std::mem::replace(total, Self::no_total()), T::lengthen(sum)))
                }
            };
        }
    }
}

/// Lists the columns of one word, starting at `at`, and clears them; returns the end of the list.
#[inline(always)]
fn found_in(word: usize, bits: &mut u64, found: &mut [u32], at: usize) -> usize {
    let (mut bits, first) = (std::mem::take(bits), (word * WORD) as u32);
    let end = at + bits.count_ones() as usize;
    // The number of set bits of a word is unpredictable: two are read without a branch, which usually suffices.
    let mut next = at;
    for place in &mut found[at..at + 2] {
        *place = first.wrapping_add(bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
        next += 1;
    }
    while bits != 0 {
        found[next] = first.wrapping_add(bits.trailing_zeros());
        bits &= bits - 1;
        next += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Column and bits of each sum, as written.
    fn row<const LISTED: bool>(
        sums: &mut Sums<f32>,
        rows: &[(Range<usize>, f32)],
        columns: &Columns,
        values: &[f32],
    ) -> Vec<(usize, u32)> {
        let count = sums.row::<LISTED>(rows, &columns.numbers, values);
        let (mut to, mut given) = (vec![0; count], vec![0.0; count]);
        sums.take(count, columns, &mut to, &mut given);
        to.iter().zip(given).map(|(column, sum)| (*column as usize, sum.to_bits())).collect()
    }

    #[test]
    fn listed_and_looked_through_sums_are_those_of_a_loop() {
        const WIDTH: usize = 5 * WORD + 7;
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let (mut listed, mut looked) = (Sums::new(WIDTH, false).unwrap(), Sums::new(WIDTH, true).unwrap());
        for lens in [&[][..], &[0], &[1], &[3, 0, 5], &[40, 1, 40, 40], &[WIDTH, WIDTH]] {
            let (mut columns, mut values, mut rows) = (Vec::new(), Vec::new(), Vec::new());
            for &len in lens {
                let begin = columns.len();
                let step = WIDTH / len.max(1);
                columns.extend((0..len).map(|nth| (nth * step + next(step)) as i64));
                values.extend((0..len).map(|_| [-0.0, 0.0, 1.5, next(1000) as f32 * 0.01][next(4)]));
                rows.push((begin..columns.len(), [1.0, -1.0, 0.3][next(3)]));
            }
            let mut wanted = std::collections::BTreeMap::new();
            for (range, factor) in &rows {
                for at in range.clone() {
                    let term: f32 = factor * values[at];
                    wanted.entry(columns[at] as usize).and_modify(|sum| *sum += term).or_insert(term);
                }
            }
            let wanted: Vec<_> = wanted.into_iter().map(|(column, sum)| (column, sum.to_bits())).collect();
            let columns = Columns::of(&columns, WIDTH).unwrap();
            let counted = rows.iter().map(|(range, _)| &columns.numbers[range.clone()]);
            let mut has = columns.bits().unwrap();
            assert_eq!(count_of(counted, &mut has), wanted.len() as u64);
            assert!(has.iter().all(|&bits| bits == 0));
            // The same sums each time, so that leftovers of one row are detected in the next.
            assert_eq!(row::<true>(&mut listed, &rows, &columns, &values), wanted);
            assert_eq!(row::<false>(&mut looked, &rows, &columns, &values), wanted);
        }
    }
}
