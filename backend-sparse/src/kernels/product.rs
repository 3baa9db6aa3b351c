//! Operands of products: the rows of a sparse matrix; and dense by sparse, which accumulates one row of the result and adds
//! each entry to it. The loops of the other products are in [`by_dense`](super::by_dense) and
//! [`by_sparse`](super::by_sparse).

use super::dealt::{ask_for, dealt};
use crate::coo::{Coo, unsupported, with_capacity};
use crate::csr::{Csr, out_of_order, row_begins};
use crate::number::{CHAIN, Number};
use keyway_cpu_loops::{Contiguous, ViewExt};
use keyway_sdk::author::{Error, Scratch, parallel_chunks_mut};
use std::ops::Range;
use std::sync::Mutex;

/// The ratio of rows or columns to entries above which one counter per row or column takes too much memory.
const WIDE: usize = 8;

/// Records in a cache line.
const LINE: usize = 8;
/// The maximum size of a prefetch in bytes.
const ASKED: usize = 64 * LINE;

/// Whether `count` exceeds that ratio.
pub fn are_too_many(count: usize, nnz: usize) -> bool {
    count > WIDE * nnz.max(1 << 10)
}

/// A matrix, or a batch of matrices, as rows. Scratch: 8 bytes for each row.
pub struct Rows<'a, T: Number> {
    /// The sorted indices of the rows, if only nonempty rows are present.
    stored: Option<Scratch<u64>>,
    /// Offsets of the entries of each row, and the end.
    begins: Scratch<i64>,
    columns: Columns<'a>,
    nnz: usize,
    /// The values of the entries, contiguous.
    values: Contiguous<'a, T>,
    /// Number of columns.
    pub width: usize,
}

/// The columns of the entries.
enum Columns<'a> {
    /// The last row of the indices.
    Given(Contiguous<'a, i64>),
    /// Packed with the bits of the value or, if it has too many, with the index of the entry. See [`dealt`].
    Dealt(Scratch<u64>),
}

/// Buffers for the unpacked entries of a row.
#[derive(Default)]
pub struct Decoded<T> {
    columns: Vec<i64>,
    values: Vec<T>,
}

impl<'a, T: Number> Rows<'a, T> {
    /// The rows of a coalesced tensor without dense dimensions; those of a batch of matrices are concatenated.
    ///
    /// # Errors
    /// A tensor with dense dimensions; mismatched components.
    pub fn of(coo: &'a Coo<'_>) -> Result<Self, Error> {
        Self::read(coo, false, coo.index()?)
    }

    /// As [`Rows::of`], for a matrix with unchecked columns: one may be out of range.
    ///
    /// # Errors
    /// As [`Rows::of`].
    pub fn of_unchecked(coo: &'a Coo<'_>) -> Result<Self, Error> {
        Self::read(coo, false, if coo.sizes.len() == 2 { coo.unchecked_index()? } else { coo.index()? })
    }

    /// As [`Rows::of`], but with only the nonempty rows if there are far more rows than entries. Scratch: 8 bytes for each
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

    /// The rows of a CSR matrix, whose columns the caller has read.
    ///
    /// # Errors
    /// Mismatched components.
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

    /// The rows of an unsorted COO matrix, transposed if `transposed`: a row is in the order of entries, possibly with
    /// duplicates. `None` for more than 2^32 entries. Scratch: that of [`dealt`].
    ///
    /// # Errors
    /// Mismatched components; insufficient memory.
    pub fn dealt(coo: &'a Coo<'_>, transposed: bool) -> Result<Option<Self>, Error> {
        let index = coo.unchecked_index()?;
        let (rows, columns) = index.split_at(coo.nnz);
        let values = coo.values.tensor().view_bits::<T>()?.contiguous()?;
        let (mut ends, mut sizes) = ([rows, columns], [coo.sizes[0] as usize, coo.sizes[1] as usize]);
        if transposed {
            ends.reverse();
            sizes.reverse();
        }
        let made = match size_of::<T>() > size_of::<u32>() {
            true => dealt(ends, sizes, |n| n as u32),
            false => dealt(ends, sizes, |n| values[n].to_low_bits() as u32),
        };
        // The error of the index check is more specific.
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

    /// Number of rows, or of non-empty ones if only those are present.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.nnz
    }

    /// The columns of all entries, and their values, for rows that are not packed records.
    pub fn given(&self) -> (&[i64], &[T]) {
        match &self.columns {
            Columns::Given(columns) => (&columns[columns.len() - self.nnz..], &self.values),
            Columns::Dealt(_) => (&[], &[]),
        }
    }

    /// The columns and the values of the entries of a row; `None` if memory is insufficient.
    #[inline(always)]
    pub fn slices<'s>(&'s self, row: usize, decoded: &'s mut Decoded<T>) -> Option<(&'s [i64], &'s [T])> {
        match &self.columns {
            Columns::Given(columns) => {
                let range = self.range(row);
                Some((&columns[columns.len() - self.nnz..][range.clone()], &self.values[range]))
            }
            Columns::Dealt(records) => self.decoded(&records[self.range(row)], decoded),
        }
    }

    /// As [`Rows::slices`], for packed records. Prefetches as many records after them, those of the next row.
    #[inline(never)]
    fn decoded<'s>(&'s self, records: &[u64], decoded: &'s mut Decoded<T>) -> Option<(&'s [i64], &'s [T])> {
        let Decoded { columns, values } = decoded;
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

    /// The range of the entries of a row.
    pub fn range(&self, row: usize) -> Range<usize> {
        self.begins[row] as usize..self.begins[row + 1] as usize
    }

    /// The row's index in the matrix.
    pub fn index(&self, nth: usize) -> i64 {
        self.stored.as_ref().map_or(nth as i64, |stored| stored[nth] as i64)
    }

    /// The position of this row among the stored ones; `None` if it is empty.
    #[inline(always)]
    pub fn find(&self, row: usize) -> Option<usize> {
        match &self.stored {
            None => Some(row),
            Some(stored) => stored.binary_search(&(row as u64)).ok(),
        }
    }

    /// Column and value of each entry of a row that is not packed records.
    #[inline(always)]
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, T::Acc)> + Clone + '_ {
        let (range, (columns, values)) = (self.range(row), self.given());
        let pairs = columns[range.clone()].iter().zip(&values[range]);
        pairs.map(|(&column, value)| (column as usize, value.widen()))
    }
}

/// The indices of the nonempty rows, if only these are requested, and the row pointers.
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
            // A row out of range is unsorted too, but its own error is more specific.
            row_begins(index[..coo.nnz].iter().map(|&row| row as usize), coo.nnz, &mut begins)
                .or_else(|error| coo.index().and(Err(error)))?;
        } else {
            let keys = coo.keys_by(&strides)?;
            row_begins(keys.iter().map(|&row| row as usize), coo.nnz, &mut begins)?;
        }
        Ok((None, begins))
    }
}

/// Replaces sorted keys by their ranks; returns the number of distinct ones.
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

/// `out[i, ..] = sum(a[i, k] * b[k, ..])` for each matrix of a batch: `n` rows times matrices with `k` rows.
///
/// # Errors
/// Errors of the host.
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
        let mut sums = match with_capacity(m) {
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
        // A row contributes at most one addend per column.
        let mut totals = match with_capacity(m) {
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
