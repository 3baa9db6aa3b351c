//! Strided by sparse, with rows and columns of all three exchanged: a line of the strided operand, times the value of each entry
//! of the row that it belongs to, is added to lines of the result. Both are gone through in panels of some columns, so that the
//! operand's line stays in registers and the result's lines lie in the cache that is next to the core. Each panel is one piece
//! of work, so that no two pieces write one line and sums are in the order of the entries. Scratch: the result once more, of
//! numbers of the type in which sums are accumulated.

use super::product::Rows;
use crate::coo::{PIECE, wrong};
use crate::number::Number;
use keyway_sdk::author::{Error, Scratch, parallel_chunks_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a line of a panel: two cache lines.
const LINE: usize = 128;

/// The sums of `value * lines[row]` for each column, with lines of `m` numbers, into `out`. The rows were not dealt out.
///
/// # Errors
/// A column outside the matrix; memory that does not suffice.
pub fn scattered<T: Number>(rows: &Rows<'_, T>, lines: &[T], m: usize, out: &mut [T]) -> Result<(), Error> {
    match (m, size_of::<T::Acc>()) {
        (0, _) => Ok(()),
        (1, _) => by_panels::<T, 1>(rows, lines, m, out),
        (_, 8) => by_panels::<T, { LINE / 8 }>(rows, lines, m, out),
        _ => by_panels::<T, { LINE / 4 }>(rows, lines, m, out),
    }
}

fn by_panels<T: Number, const W: usize>(
    rows: &Rows<'_, T>,
    lines: &[T],
    m: usize,
    out: &mut [T],
) -> Result<(), Error> {
    let (count, panels) = (out.len() / m, m.div_ceil(W));
    let any_outside = AtomicBool::new(count == 0 && rows.entries() > 0);
    let mut sums = Scratch::<T::Acc>::zeroed(panels * count * W)?;
    let (columns, values) = rows.given();
    parallel_chunks_mut(&mut sums, (count * W).max(1), |nth, sums| {
        let sums = sums.as_chunks_mut::<W>().0;
        let mut all_within = true;
        for (row, line) in lines.chunks_exact(m).enumerate().take(rows.len()) {
            let (range, mut own) = (rows.range(row), [T::ZERO; W]);
            own.iter_mut().zip(&line[nth * W..]).for_each(|(own, number)| *own = number.widen());
            for (&column, value) in columns[range.clone()].iter().zip(&values[range]) {
                let Some(sum) = sums.get_mut(column as usize) else {
                    all_within = false;
                    continue;
                };
                let value = value.widen();
                for (sum, other) in sum.iter_mut().zip(&own) {
                    *sum = T::plus(*sum, T::times(value, *other));
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
                out.iter_mut().zip(from).for_each(|(out, sum)| *out = T::narrow(*sum));
            }
        }
    })
}
