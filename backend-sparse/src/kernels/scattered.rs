//! Products that take the entries of a sparse matrix as they come: a line of the strided operand, times the entry's value, is
//! added to a line of the result. Entries in order of the operand's lines, of which many follow each other, need no more than
//! that the lines of the result are near: both are gone through in panels of a few columns, which are copied side by side.
//! Each panel is one piece of work, so that no two pieces write one line and sums are in the order of the entries. Scratch:
//! the operand and the result once more, of numbers of the type in which sums are accumulated.

use crate::coo::{PIECE, wrong};
use crate::number::Number;
use keyway_sdk::author::{Error, Scratch, parallel_chunks_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a line of a panel: one cache line.
const LINE: usize = 64;
/// The entries of a sparse matrix.
pub struct Entries<'a, T> {
    /// To which line of the result each adds.
    pub to: &'a [i64],
    /// Which line of the operand.
    pub from: &'a [i64],
    /// Times what.
    pub values: &'a [T],
}

/// The sums of `value * lines[from]` for each line `to`, with lines of `m` numbers, into `out`.
///
/// # Errors
/// An entry outside of either; memory that does not suffice.
pub fn scattered<T: Number>(
    entries: &Entries<'_, T>,
    lines: &[T],
    m: usize,
    out: &mut [T],
) -> Result<(), Error> {
    match (m, size_of::<T::Acc>()) {
        (0, _) => Ok(()),
        (1, _) => by_panels::<T, 1>(entries, lines, m, out),
        (_, 8) => by_panels::<T, { LINE / 8 }>(entries, lines, m, out),
        _ => by_panels::<T, { LINE / 4 }>(entries, lines, m, out),
    }
}

fn by_panels<T: Number, const W: usize>(
    entries: &Entries<'_, T>,
    lines: &[T],
    m: usize,
    out: &mut [T],
) -> Result<(), Error> {
    let (rows, panels) = (out.len() / m, m.div_ceil(W));
    if rows == 0 {
        return if entries.to.is_empty() { Ok(()) } else { Err(outside()) };
    }
    let count = lines.len() / m;
    let mut copied = Scratch::<T::Acc>::zeroed(panels * count * W)?;
    parallel_chunks_mut(&mut copied, (count * W).max(1), |nth, panel| {
        let from = lines.chunks_exact(m);
        panel
            .as_chunks_mut::<W>()
            .0
            .iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to = widened(&from[nth * W..]));
    })?;
    let any_outside = AtomicBool::new(false);
    let mut sums = Scratch::<T::Acc>::zeroed(panels * rows * W)?;
    parallel_chunks_mut(&mut sums, rows * W, |nth, sums| {
        let sums = sums.as_chunks_mut::<W>().0;
        let panel = copied[nth * count * W..(nth + 1) * count * W].as_chunks::<W>().0;
        let mut all_within = true;
        let pairs = entries.to.iter().zip(entries.from).zip(entries.values);
        pairs.for_each(|((&to, &from), value)| match (sums.get_mut(to as usize), panel.get(from as usize)) {
            (Some(sum), Some(line)) => {
                let value = value.widen();
                for (sum, other) in sum.iter_mut().zip(line) {
                    *sum = T::plus(*sum, T::times(value, *other));
                }
            }
            _ => all_within = false,
        });
        if !all_within {
            any_outside.store(true, Ordering::Relaxed);
        }
    })?;
    if any_outside.into_inner() {
        return Err(outside());
    }
    let piece_rows = (PIECE / m).max(1);
    parallel_chunks_mut(out, piece_rows * m, |piece, out| {
        for (nth, out) in out.chunks_exact_mut(m).enumerate() {
            let row = piece * piece_rows + nth;
            for (panel, out) in out.chunks_mut(W).enumerate() {
                let from = &sums[(panel * rows + row) * W..];
                out.iter_mut().zip(from).for_each(|(out, sum)| *out = T::narrow(*sum));
            }
        }
    })
}

/// The first numbers, as many as there are.
#[inline(always)]
fn widened<T: Number, const W: usize>(from: &[T]) -> [T::Acc; W] {
    match from.first_chunk::<W>() {
        Some(from) => from.map(T::widen),
        None => std::array::from_fn(|at| from.get(at).map_or(T::ZERO, |value| value.widen())),
    }
}

#[cold]
fn outside() -> Error {
    wrong("indices", "indices within the sizes of the matrix", "others, in a component that was changed")
}
