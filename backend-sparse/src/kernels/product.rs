//! What products read, rows of a sparse matrix, and dense by sparse, which keeps one row of the result and adds each entry to
//! it. The loops of the other products are in [`by_dense`](super::by_dense) and [`by_sparse`](super::by_sparse).

use super::dealt::{ask_for, dealt};
use crate::coo::{Coo, room, unsupported};
use crate::csr::{Csr, out_of_order, row_begins};
use crate::number::{CHAIN, Number};
use keyway_cpu_loops::{Contiguous, ViewExt};
use keyway_sdk::author::{Error, Scratch, parallel_chunks_mut};
use std::ops::Range;
use std::sync::Mutex;

/// Times as many rows or columns as entries are too many to keep a number for each.
const WIDE: usize = 8;

/// Records in a cache line.
const LINE: usize = 8;
/// Records that are asked for at a time at most.
const ASKED: usize = 64 * LINE;

/// Whether there are so many of them.
pub fn are_too_many(count: usize, nnz: usize) -> bool {
    count > WIDE * nnz.max(1 << 10)
}

/// A matrix, or a stack of them, as rows. Scratch: 8 bytes for each row.
pub struct Rows<'a, T: Number> {
    /// The numbers of the rows, in order, where only those are here that have entries.
    stored: Option<Scratch<u64>>,
    /// Where the entries of each row begin, and the end.
    begins: Scratch<i64>,
    columns: Columns<'a>,
    nnz: usize,
    /// Those of the entries, one after the other.
    values: Contiguous<'a, T>,
    /// How many columns there are.
    pub width: usize,
}

/// Where the columns of the entries are.
enum Columns<'a> {
    /// The last of these indices.
    Given(Contiguous<'a, i64>),
    /// With the bits of the value or, where it has too many, with the entry that it is of. See [`dealt`].
    Dealt(Scratch<u64>),
}

/// Room for the entries of a row that are read of records.
#[derive(Default)]
pub struct Room<T> {
    columns: Vec<i64>,
    values: Vec<T>,
}

impl<'a, T: Number> Rows<'a, T> {
    /// Of a coalesced tensor without dense dimensions; rows of a stack of matrices follow each other.
    ///
    /// # Errors
    /// A tensor with dense dimensions; components that do not fit.
    pub fn of(coo: &'a Coo<'_>) -> Result<Self, Error> {
        Self::read(coo, false, coo.index()?)
    }

    /// As [`Rows::of`], of a matrix whose columns are as they are: one may lie outside the sizes.
    ///
    /// # Errors
    /// As [`Rows::of`].
    pub fn of_unchecked(coo: &'a Coo<'_>) -> Result<Self, Error> {
        Self::read(coo, false, if coo.sizes.len() == 2 { coo.unchecked_index()? } else { coo.index()? })
    }

    /// As [`Rows::of`], but where there are far more rows than entries only rows that have some. Scratch: 8 bytes for each
    /// row, at most 16 for each entry.
    ///
    /// # Errors
    /// As [`Rows::of`].
    pub fn of_stored(coo: &'a Coo<'_>) -> Result<Self, Error> {
        Self::read(coo, true, coo.index()?)
    }

    fn read(coo: &'a Coo<'_>, only_stored: bool, columns: Contiguous<'a, i64>) -> Result<Self, Error> {
        let (stored, begins) = begins_of(coo, only_stored, &columns)?;
        Ok(Rows {
            stored,
            begins,
            columns: Columns::Given(columns),
            nnz: coo.nnz,
            values: coo.values.tensor().view_bits::<T>()?.contiguous()?,
            width: coo.sizes.last().copied().unwrap_or(0) as usize,
        })
    }

    /// Of compressed rows, whose columns the caller has read.
    ///
    /// # Errors
    /// Components that do not fit.
    pub fn of_compressed(csr: &'a Csr<'_>, columns: Contiguous<'a, i64>) -> Result<Self, Error> {
        let from = csr.begins()?;
        let mut begins = Scratch::<i64>::zeroed(from.len())?;
        begins.copy_from_slice(&from);
        Ok(Rows {
            stored: None,
            begins,
            columns: Columns::Given(columns),
            nnz: csr.nnz,
            values: csr.values.tensor().view_bits::<T>()?.contiguous()?,
            width: csr.sizes[1] as usize,
        })
    }

    /// Of a matrix of coordinates in any order, or where `turned` is set of that with rows and columns exchanged: what is in a
    /// row is in the order of entries, and a place may come more than once. Nothing where there are more than 2^32 entries.
    /// Scratch: that of [`dealt`].
    ///
    /// # Errors
    /// Components that do not fit; memory that does not suffice.
    pub fn dealt(coo: &'a Coo<'_>, turned: bool) -> Result<Option<Self>, Error> {
        let index = coo.unchecked_index()?;
        let (rows, columns) = index.split_at(coo.nnz);
        let values = coo.values.tensor().view_bits::<T>()?.contiguous()?;
        let (mut ends, mut sizes) = ([rows, columns], [coo.sizes[0] as usize, coo.sizes[1] as usize]);
        if turned {
            ends.reverse();
            sizes.reverse();
        }
        let made = match size_of::<T>() > size_of::<u32>() {
            true => dealt(ends, sizes, |n| n as u32),
            false => dealt(ends, sizes, |n| values[n].to_low_bits() as u32),
        };
        // Which index it is says more.
        let made = made.or_else(|error| coo.index().and(Err(error)))?;
        Ok(made.map(|made| Rows {
            stored: None,
            begins: made.begins,
            columns: Columns::Dealt(made.records),
            nnz: coo.nnz,
            values,
            width: sizes[1],
        }))
    }

    /// How many rows there are, or of these have entries where only those are here.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.nnz
    }

    /// The columns of all entries, and their values, of rows that were not dealt out.
    pub fn given(&self) -> (&[i64], &[T]) {
        match &self.columns {
            Columns::Given(columns) => (&columns[columns.len() - self.nnz..], &self.values),
            Columns::Dealt(_) => (&[], &[]),
        }
    }

    /// The columns and the values of the entries of a row; none where there is no memory for them.
    #[inline(always)]
    pub fn slices<'s>(&'s self, row: usize, room: &'s mut Room<T>) -> Option<(&'s [i64], &'s [T])> {
        match &self.columns {
            Columns::Given(columns) => {
                let range = self.range(row);
                Some((&columns[columns.len() - self.nnz..][range.clone()], &self.values[range]))
            }
            Columns::Dealt(records) => self.decoded(&records[self.range(row)], room),
        }
    }

    /// As [`Rows::slices`], of records. As many behind them, the next row's, are asked for.
    #[inline(never)]
    fn decoded<'s>(&'s self, records: &[u64], room: &'s mut Room<T>) -> Option<(&'s [i64], &'s [T])> {
        let Room { columns, values } = room;
        columns.clear();
        values.clear();
        columns.try_reserve(records.len()).ok()?;
        values.try_reserve(records.len()).ok()?;
        for nth in (0..records.len().min(ASKED)).step_by(LINE) {
            ask_for(records.as_ptr_range().end.wrapping_add(nth));
        }
        columns.extend(records.iter().map(|record| (record >> u32::BITS) as i64));
        match size_of::<T>() > size_of::<u32>() {
            true => values.extend(records.iter().map(|record| self.values[*record as u32 as usize])),
            false => values.extend(records.iter().map(|record| T::from_low_bits(*record))),
        }
        Some((columns, values))
    }

    /// Where the entries of a row are.
    pub fn range(&self, row: usize) -> Range<usize> {
        self.begins[row] as usize..self.begins[row + 1] as usize
    }

    /// The row's index in the matrix.
    pub fn index(&self, nth: usize) -> i64 {
        self.stored.as_ref().map_or(nth as i64, |stored| stored[nth] as i64)
    }

    /// Which one this row is here; none without entries.
    #[inline(always)]
    pub fn find(&self, row: usize) -> Option<usize> {
        match &self.stored {
            None => Some(row),
            Some(stored) => stored.binary_search(&(row as u64)).ok(),
        }
    }

    /// Column and value of each entry of a row that was not dealt out.
    #[inline(always)]
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, T::Acc)> + Clone + '_ {
        let (range, (columns, values)) = (self.range(row), self.given());
        let pairs = columns[range.clone()].iter().zip(&values[range]);
        pairs.map(|(&column, value)| (column as usize, value.widen()))
    }
}

/// The numbers of the rows that are stored, if only these are to be there, and where the entries of each row begin.
fn begins_of(
    coo: &Coo<'_>,
    only_stored: bool,
    index: &[i64],
) -> Result<(Option<Scratch<u64>>, Scratch<i64>), Error> {
    let Some((_, outer)) = coo.sizes.split_last().filter(|_| coo.sparse_dim == coo.sizes.len()) else {
        return Err(unsupported(format!(
            "a product of a sparse tensor with {} dense dimensions",
            coo.sizes.len() - coo.sparse_dim
        )));
    };
    let rows = crate::coo::product(outer);
    let mut strides = crate::coo::row_major(outer);
    strides.push(0);
    if only_stored && are_too_many(rows, coo.nnz) {
        let mut keys = coo.keys_by(&strides)?;
        let count = number_in_turn(&mut keys)?;
        let mut begins = Scratch::<i64>::zeroed(count + 1)?;
        let mut stored = Scratch::<u64>::zeroed(count)?;
        row_begins(keys.iter().map(|&nth| nth as usize), coo.nnz, &mut begins)?;
        let keys = coo.keys_by(&strides)?;
        stored.iter_mut().zip(&*begins).for_each(|(row, &first)| *row = keys[first as usize]);
        Ok((Some(stored), begins))
    } else {
        let mut begins = Scratch::<i64>::zeroed(rows + 1)?;
        if outer.len() == 1 {
            // A row outside the matrix is out of order too, but its own error says more.
            row_begins(index[..coo.nnz].iter().map(|&row| row as usize), coo.nnz, &mut begins)
                .or_else(|error| coo.index().and(Err(error)))?;
        } else {
            let keys = coo.keys_by(&strides)?;
            row_begins(keys.iter().map(|&row| row as usize), coo.nnz, &mut begins)?;
        }
        Ok((None, begins))
    }
}

/// Puts in the place of keys that do not fall how many others come before each; says how many there are.
fn number_in_turn(keys: &mut [u64]) -> Result<usize, Error> {
    if !keys.is_sorted() {
        return Err(out_of_order());
    }
    let (mut count, mut last) = (0, None);
    for key in keys {
        count += u64::from(last != Some(*key));
        last = Some(std::mem::replace(key, count.saturating_sub(1)));
    }
    Ok(count as usize)
}

/// `out[i, ..] = sum of a[i, k] * b[k, ..]` for each matrix of a stack: `n` rows by the rows of `b`, `k` of them each.
///
/// # Errors
/// What the host reports.
pub fn dense_by_sparse<T: Number>(
    a: &[T],
    [n, k]: [usize; 2],
    b: &Rows<'_, T>,
    out: &mut [T],
) -> Result<(), Error> {
    let m = b.width;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let short = Mutex::new(None);
    parallel_chunks_mut(out, m, |row, out| {
        let batch = row / n;
        let mut sums = match room(m) {
            Ok(sums) => sums,
            Err(error) => {
                *short.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
                return;
            }
        };
        sums.resize(m, T::ZERO);
        let add = |factors: Range<usize>, sums: &mut [T::Acc]| {
            for nth in factors {
                let factor = a[row * k + nth].widen();
                for (column, value) in b.row(batch * k + nth) {
                    sums[column] = T::plus(sums[column], T::times(factor, value));
                }
            }
        };
        if !T::LOSES_DIGITS || k <= CHAIN {
            add(0..k, &mut sums);
            out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = T::narrow(*sum));
            return;
        }
        // A row adds at most once to each column.
        let mut totals = match room(m) {
            Ok(totals) => totals,
            Err(error) => {
                *short.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
                return;
            }
        };
        totals.resize(m, T::NO_TOTAL);
        for first in (0..k).step_by(CHAIN) {
            add(first..(first + CHAIN).min(k), &mut sums);
            for (total, sum) in totals.iter_mut().zip(&mut sums) {
                *total = T::with(*total, T::lengthen(std::mem::replace(sum, T::ZERO)));
            }
        }
        out.iter_mut().zip(&totals).for_each(|(out, total)| *out = T::rounded(*total));
    })?;
    short.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err)
}
