//! The loops of products; those of sparse by dense are in [`by_dense`](super::by_dense).
//!
//! Dense by sparse keeps one row of the result and adds each entry to it. Sparse by sparse keeps one row of the result, of the
//! columns that the second has if it is much wider than it has entries, beside a list of those that the row has.

use crate::coo::{Coo, more_room, room, unsupported};
use crate::csr::{Csr, out_of_order, row_begins};
use crate::number::Number;
use keyway_cpu_loops::{Contiguous, ViewExt};
use keyway_sdk::author::{Error, Scratch, parallel_chunks_mut};
use std::ops::Range;
use std::sync::Mutex;

/// Times as many rows or columns as entries are too many to keep a number for each.
const WIDE: usize = 8;

/// Bits of a word that says which columns there are.
const WORD: usize = u64::BITS as usize;

/// Whether there are so many of them.
fn are_too_many(count: usize, nnz: usize) -> bool {
    count > WIDE * nnz.max(1 << 10)
}

/// A coalesced matrix, or a stack of them, as rows. Scratch: 8 bytes for each row.
pub struct Rows<'a, T: Number> {
    /// The numbers of the rows, in order, where only those are here that have entries.
    stored: Option<Scratch<u64>>,
    /// Where the entries of each row begin, and the end.
    begins: Scratch<i64>,
    /// The column of each entry.
    columns: Contiguous<'a, i64>,
    nnz: usize,
    values: Contiguous<'a, T>,
    /// How many columns there are.
    pub width: usize,
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
        let Some((&width, outer)) = coo.sizes.split_last().filter(|_| coo.sparse_dim == coo.sizes.len())
        else {
            return Err(unsupported(format!(
                "a product of a sparse tensor with {} dense dimensions",
                coo.sizes.len() - coo.sparse_dim
            )));
        };
        let rows = crate::coo::product(outer);
        let mut strides = crate::coo::row_major(outer);
        strides.push(0);
        let (stored, begins) = if only_stored && are_too_many(rows, coo.nnz) {
            let mut keys = coo.keys_by(&strides)?;
            let count = number_in_turn(&mut keys)?;
            let mut begins = Scratch::<i64>::zeroed(count + 1)?;
            let mut stored = Scratch::<u64>::zeroed(count)?;
            row_begins(keys.iter().map(|&nth| nth as usize), coo.nnz, &mut begins)?;
            let index = coo.keys_by(&strides)?;
            stored.iter_mut().zip(&*begins).for_each(|(row, &first)| *row = index[first as usize]);
            (Some(stored), begins)
        } else {
            let mut begins = Scratch::<i64>::zeroed(rows + 1)?;
            if outer.len() == 1 {
                // A row outside the matrix is out of order too, but its own error says more.
                row_begins(columns[..coo.nnz].iter().map(|&row| row as usize), coo.nnz, &mut begins)
                    .or_else(|error| coo.index().and(Err(error)))?;
            } else {
                let keys = coo.keys_by(&strides)?;
                row_begins(keys.iter().map(|&row| row as usize), coo.nnz, &mut begins)?;
            }
            (None, begins)
        };
        Ok(Rows {
            stored,
            begins,
            columns,
            nnz: coo.nnz,
            values: coo.values.tensor().view_bits::<T>()?.contiguous()?,
            width: width as usize,
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
            columns,
            nnz: csr.nnz,
            values: csr.values.tensor().view_bits::<T>()?.contiguous()?,
            width: csr.sizes[1] as usize,
        })
    }

    /// How many rows there are, or of these have entries where only those are here.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.nnz
    }

    /// The columns and the values of the entries of a row.
    #[inline(always)]
    pub fn slices(&self, row: usize) -> (&[i64], &[T]) {
        let range = self.range(row);
        (&self.columns[self.columns.len() - self.nnz..][range.clone()], &self.values[range])
    }

    /// Where the entries of a row are.
    fn range(&self, row: usize) -> Range<usize> {
        self.begins[row] as usize..self.begins[row + 1] as usize
    }

    /// The row's index in the matrix.
    fn index(&self, nth: usize) -> i64 {
        self.stored.as_ref().map_or(nth as i64, |stored| stored[nth] as i64)
    }

    /// Which one this row is here; none without entries.
    #[inline(always)]
    fn find(&self, row: usize) -> Option<usize> {
        match &self.stored {
            None => Some(row),
            Some(stored) => stored.binary_search(&(row as u64)).ok(),
        }
    }

    /// Column and value of each entry of a row.
    #[inline(always)]
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, T::Acc)> + Clone + '_ {
        let (columns, values) = self.slices(row);
        columns.iter().zip(values).map(|(&column, value)| (column as usize, value.widen()))
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
        for (nth, factor) in a[row * k..(row + 1) * k].iter().enumerate() {
            let factor = factor.widen();
            for (column, value) in b.row(batch * k + nth) {
                sums[column] = T::plus(sums[column], T::times(factor, value));
            }
        }
        out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = T::narrow(*sum));
    })?;
    short.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err)
}

/// The entries of some rows of a product of two matrices, in order.
#[derive(Default)]
pub struct Entries<T> {
    /// Each row, and how many entries it has.
    pub rows: Vec<(i64, usize)>,
    /// Columns.
    pub columns: Vec<i64>,
    /// Values.
    pub values: Vec<T>,
}

/// The product of two sparse matrices, some rows after the other. What cancels is stored.
///
/// # Errors
/// What the host reports.
pub fn sparse_by_sparse<T: Number>(a: &Rows<'_, T>, b: &Rows<'_, T>) -> Result<Vec<Entries<T>>, Error> {
    // Of a matrix that is far wider than it has entries, the columns that it has are counted instead.
    let compact = are_too_many(b.width, b.nnz).then(|| {
        let mut columns = room(b.nnz)?;
        columns.extend_from_slice(&b.columns[b.columns.len() - b.nnz..]);
        columns.sort_unstable();
        columns.dedup();
        Ok::<_, Error>(columns)
    });
    let compact = compact.transpose()?;
    let width = compact.as_ref().map_or(b.width, Vec::len);
    let columns = &b.columns[b.columns.len() - b.nnz..];
    let numbers = compact.as_ref().map(|known: &Vec<i64>| {
        let mut numbers = room(columns.len())?;
        numbers.extend(columns.iter().map(|column| known.partition_point(|known| known < column) as i64));
        Ok::<_, Error>(numbers)
    });
    let numbers = numbers.transpose()?;
    let numbers = numbers.as_deref().unwrap_or(columns);
    let column_of = |number: usize| compact.as_ref().map_or(number as i64, |columns| columns[number]);
    let piece_rows = 64;
    let pieces = a.len().div_ceil(piece_rows);
    let mut made = room(pieces)?;
    made.extend((0..pieces).map(|_| Mutex::new(Ok(Entries::default()))));
    keyway_sdk::author::parallel_for(pieces, 8, |range| {
        // A number for each column serves all pieces; a piece that there is no room for is an error of its own.
        let mut sums = Sums::<T>::new(width);
        for piece in range {
            let rows = piece * piece_rows..a.len().min((piece + 1) * piece_rows);
            let entries = match &mut sums {
                Ok(sums) => rows_of_product(a, b, rows, numbers, &column_of, sums),
                Err(error) => Err(error.clone()),
            };
            *made[piece].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = entries;
        }
    })?;
    made.into_iter()
        .map(|piece| piece.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
        .collect()
}

/// Some rows of a product; `numbers` are the columns of the entries of `b` as `sums` counts them, and `column_of` leads back.
fn rows_of_product<T: Number>(
    a: &Rows<'_, T>,
    b: &Rows<'_, T>,
    rows: Range<usize>,
    numbers: &[i64],
    column_of: &impl Fn(usize) -> i64,
    sums: &mut Sums<T>,
) -> Result<Entries<T>, Error> {
    let mut entries = Entries::default();
    let mut used = Vec::new();
    for row in rows {
        used.clear();
        used.extend(a.row(row).filter_map(|(k, factor)| Some((b.range(b.find(k)?), factor))));
        let products: usize = used.iter().map(|(range, _)| range.len()).sum();
        let before = entries.columns.len();
        more_room(&mut entries.columns, products)?;
        more_room(&mut entries.values, products)?;
        let give = |column, sum| {
            entries.columns.push(column_of(column));
            entries.values.push(T::narrow(sum));
        };
        // Few products in a wide row are looked for where they are, others by a look at all bits.
        if products < sums.has.len() / 4 {
            sums.row::<true>(&used, numbers, &b.values, give);
        } else {
            sums.row::<false>(&used, numbers, &b.values, give);
        }
        entries.rows.push((a.index(row), entries.columns.len() - before));
    }
    Ok(entries)
}

/// The sums of one row of a product, a number for each column, and a bit for each that has one. Numbers of columns without
/// one are such that adding to them changes nothing.
struct Sums<T: Number> {
    sums: Vec<T::Acc>,
    has: Vec<u64>,
    /// The words of `has` with bits, where they are listed.
    words: Vec<usize>,
}

impl<T: Number> Sums<T> {
    fn new(width: usize) -> Result<Self, Error> {
        let (mut sums, mut has) = (room(width)?, room(width.div_ceil(WORD))?);
        sums.resize(width, T::kept(T::ZERO, false));
        has.resize(width.div_ceil(WORD), 0);
        Ok(Sums { sums, has, words: Vec::new() })
    }

    /// Adds up some rows, each times a factor, and calls `give` with each column that one of them has and its sum, in the
    /// order of columns.
    fn row<const LISTED: bool>(
        &mut self,
        rows: &[(Range<usize>, T::Acc)],
        columns: &[i64],
        values: &[T],
        mut give: impl FnMut(usize, T::Acc),
    ) {
        for (range, factor) in rows {
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
        if LISTED {
            self.words.sort_unstable();
            for nth in 0..self.words.len() {
                self.take(self.words[nth], &mut give);
            }
            self.words.clear();
        } else {
            (0..self.has.len()).for_each(|word| self.take(word, &mut give));
        }
    }

    /// Gives the sums of the columns of one word, and forgets them.
    #[inline(always)]
    fn take(&mut self, word: usize, give: &mut impl FnMut(usize, T::Acc)) {
        let mut bits = std::mem::take(&mut self.has[word]);
        while bits != 0 {
            let column = word * WORD + bits.trailing_zeros() as usize;
            give(column, std::mem::replace(&mut self.sums[column], T::kept(T::ZERO, false)));
            bits &= bits - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Column and bits of the sum, as given.
    fn row<const LISTED: bool>(
        sums: &mut Sums<f32>,
        rows: &[(Range<usize>, f32)],
        columns: &[i64],
        values: &[f32],
    ) -> Vec<(usize, u32)> {
        let mut given = Vec::new();
        sums.row::<LISTED>(rows, columns, values, |column, sum| given.push((column, sum.to_bits())));
        given
    }

    #[test]
    fn listed_and_looked_through_sums_are_those_of_a_loop() {
        const WIDTH: usize = 5 * WORD + 7;
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let (mut listed, mut looked) = (Sums::new(WIDTH).unwrap(), Sums::new(WIDTH).unwrap());
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
            // The same sums each time, so that what one row leaves behind is seen in the next.
            assert_eq!(row::<true>(&mut listed, &rows, &columns, &values), wanted);
            assert_eq!(row::<false>(&mut looked, &rows, &columns, &values), wanted);
        }
    }
}
