//! Strided by sparse, computed transposed: a line of the strided operand, times the value of each entry of its row, is
//! added to lines of the result. Both are processed in panels of columns, so that the operand's line stays in registers and
//! the result's lines in L1. Each panel is one work item, so that no two work items write one line and sums are in the
//! order of the entries. Scratch: the result once more, in the accumulation type, f64 for all floats if a column has more
//! than [`CHAIN`] entries; and 4 bytes for each column.

use super::product::Rows;
use crate::coo::{PIECE, wrong};
use crate::number::{CHAIN, Number};
use keyway_sdk::author::{Error, Plain, Scratch, parallel_chunks_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a line of a panel: two cache lines.
const LINE: usize = 128;

/// Writes the sums of `value * lines[row]` for each column to `out`; lines have `m` elements. The rows must not be packed
/// records.
///
/// # Errors
/// A column out of range; insufficient memory.
pub fn scattered<T: Number>(rows: &Rows<'_, T>, lines: &[T], m: usize, out: &mut [T]) -> Result<(), Error> {
    if m == 0 {
        return Ok(());
    }
    if T::LOSES_DIGITS && has_long_column(rows.given().0, out.len() / m)? {
        return in_width::<T, InTotals>(rows, lines, m, out);
    }
    in_width::<T, InSums>(rows, lines, m, out)
}

fn in_width<T: Number, S: Sums<T>>(
    rows: &Rows<'_, T>,
    lines: &[T],
    m: usize,
    out: &mut [T],
) -> Result<(), Error> {
    match (m, size_of::<S::Acc>()) {
        (1, _) => by_panels::<T, S, 1>(rows, lines, m, out),
        (_, 8) => by_panels::<T, S, { LINE / 8 }>(rows, lines, m, out),
        _ => by_panels::<T, S, { LINE / 4 }>(rows, lines, m, out),
    }
}

/// Whether one of `count` columns has more than [`CHAIN`] entries.
fn has_long_column(columns: &[i64], count: usize) -> Result<bool, Error> {
    if columns.len() <= CHAIN {
        return Ok(false);
    }
    let mut counts = Scratch::<u32>::zeroed(count)?;
    for &column in columns {
        if let Some(count) = counts.get_mut(column as usize) {
            *count = count.saturating_add(1);
        }
    }
    Ok(counts.iter().any(|&count| count as usize > CHAIN))
}

/// The accumulation type of sums.
trait Sums<T> {
    type Acc: Plain;
    const ZERO: Self::Acc;
    fn widen(number: T) -> Self::Acc;
    fn with_product(sum: Self::Acc, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn narrow(sum: Self::Acc) -> T;
}

/// Accumulates in [`Number::Acc`].
struct InSums;

impl<T: Number> Sums<T> for InSums {
    type Acc = T::Acc;
    const ZERO: T::Acc = T::ZERO;
    #[inline(always)]
    fn widen(number: T) -> T::Acc {
        number.widen()
    }
    #[inline(always)]
    fn with_product(sum: T::Acc, a: T::Acc, b: T::Acc) -> T::Acc {
        T::plus(sum, T::times(a, b))
    }
    #[inline(always)]
    fn narrow(sum: T::Acc) -> T {
        T::narrow(sum)
    }
}

/// Accumulates in [`Number::Total`].
struct InTotals;

impl<T: Number> Sums<T> for InTotals {
    type Acc = T::Total;
    const ZERO: T::Total = T::NO_TOTAL;
    #[inline(always)]
    fn widen(number: T) -> T::Total {
        number.addend()
    }
    #[inline(always)]
    fn with_product(sum: T::Total, a: T::Total, b: T::Total) -> T::Total {
        T::with(sum, T::total_times(a, b))
    }
    #[inline(always)]
    fn narrow(sum: T::Total) -> T {
        T::rounded(sum)
    }
}

fn by_panels<T: Number, S: Sums<T>, const W: usize>(
    rows: &Rows<'_, T>,
    lines: &[T],
    m: usize,
    out: &mut [T],
) -> Result<(), Error> {
    let (count, panels) = (out.len() / m, m.div_ceil(W));
    let any_outside = AtomicBool::new(count == 0 && rows.entries() > 0);
    let mut sums = Scratch::<S::Acc>::zeroed(panels * count * W)?;
    let (columns, values) = rows.given();
    parallel_chunks_mut(&mut sums, (count * W).max(1), |nth, sums| {
        let sums = sums.as_chunks_mut::<W>().0;
        let mut all_within = true;
        for (row, line) in lines.chunks_exact(m).enumerate().take(rows.len()) {
            let (range, mut own) = (rows.range(row), [S::ZERO; W]);
            own.iter_mut().zip(&line[nth * W..]).for_each(|(own, number)| *own = S::widen(*number));
            for (&column, value) in columns[range.clone()].iter().zip(&values[range]) {
                let Some(sum) = sums.get_mut(column as usize) else {
                    all_within = false;
                    continue;
                };
                let value = S::widen(*value);
                for (sum, other) in sum.iter_mut().zip(&own) {
                    *sum = S::with_product(*sum, value, *other);
                }
            }
        }
        if !all_within {
            any_outside.store(true, Ordering::Relaxed);
        }
    })?;
    if any_outside.into_inner() {
        let got = "others, in a component that was changed";
        return Err(wrong("indices", "indices within the sizes of the matrix", got));
    }
    let piece_rows = (PIECE / m).max(1);
    parallel_chunks_mut(out, piece_rows * m, |piece, out| {
        for (nth, out) in out.chunks_exact_mut(m).enumerate() {
            let row = piece * piece_rows + nth;
            for (panel, out) in out.chunks_mut(W).enumerate() {
                let from = &sums[(panel * count + row) * W..];
                out.iter_mut().zip(from).for_each(|(out, sum)| *out = S::narrow(*sum));
            }
        }
    })
}
