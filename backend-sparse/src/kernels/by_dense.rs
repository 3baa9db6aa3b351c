//! Sparse by dense, row by row: the accumulators of a panel of columns stay in registers, one set for the even and one for
//! the odd entries of a row, while one line of the panel is read for each entry. With enough entries, the columns of a
//! panel are first packed contiguously, so that its lines stay in L1. Scratch: one panel, and for distributed rows 8 bytes
//! and a value for each entry of the longest row per active work item.

use super::product::{Decoded, Rows};
use crate::coo::wrong;
use crate::number::{CHAIN, Number};
use keyway_sdk::author::{Error, Scratch, parallel_chunks_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a line of a panel: two cache lines, whose accumulators fit the registers.
const LINE: usize = 128;
/// The approximate number of products per work item.
const WORK: usize = 1 << 15;

/// A running product: a batch of `rows_per` rows by a batch of matrices with `m` columns.
struct Job<'a, T: Number> {
    a: &'a Rows<'a, T>,
    rows_per: usize,
    b: &'a [T],
    m: usize,
    /// Whether a column is out of range.
    outside: AtomicBool,
    /// Whether memory was insufficient for the entries of a row.
    short: AtomicBool,
}

/// `out[r, ..] = sum(a[r, k] * b[batch of r, k, ..])`
///
/// # Errors
/// A column outside the matrix; insufficient memory.
pub fn sparse_by_dense<T: Number>(
    a: &Rows<'_, T>,
    rows_per: usize,
    b: &[T],
    m: usize,
    out: &mut [T],
) -> Result<(), Error> {
    if m == 0 {
        return Ok(());
    }
    let (outside, short) = (AtomicBool::new(false), AtomicBool::new(false));
    let job = Job { a, rows_per: rows_per.max(1), b, m, outside, short };
    if size_of::<T::Acc>() == 8 { job.run::<{ LINE / 8 }>(out) } else { job.run::<{ LINE / 4 }>(out) }?;
    if job.short.into_inner() {
        let requested = a.entries().saturating_mul(size_of::<i64>() + size_of::<T>()) as u64;
        return Err(Error::OutOfMemory { requested, available: 0 });
    }
    if job.outside.into_inner() {
        let expected = format!("columns from 0 and below {}", a.width);
        return Err(wrong("col_indices", expected, "others, in a component that was changed"));
    }
    Ok(())
}

impl<T: Number> Job<'_, T> {
    fn run<const W: usize>(&self, out: &mut [T]) -> Result<(), Error> {
        let lines = self.b.len() / self.m;
        if self.m == 1 {
            let b = self.b.as_chunks::<1>().0;
            return self.rows(out, 0, 1, |k| b.get(k), T::widen);
        }
        let tail = self.m % W;
        if self.a.entries() < 2 * lines || self.m == W {
            for first in (0..self.m - tail).step_by(W) {
                let line = |k: usize| self.b.get(k.checked_mul(self.m)? + first..)?.first_chunk::<W>();
                self.rows(out, first, W, line, T::widen)?;
            }
            for first in self.m - tail..self.m {
                let line = |k: usize| self.b.get(k.checked_mul(self.m)? + first..)?.first_chunk::<1>();
                self.rows(out, first, 1, line, T::widen)?;
            }
            return Ok(());
        }
        let mut panel = Scratch::<T::Acc>::zeroed(lines * W)?;
        for first in (0..self.m - tail).step_by(W) {
            self.panel::<W>(&mut panel, first, W, out)?;
        }
        let first = self.m - tail;
        match tail {
            0 => Ok(()),
            1..=4 => self.panel::<4>(&mut panel, first, tail, out),
            5..=8 => self.panel::<8>(&mut panel, first, tail, out),
            9..=16 => self.panel::<16>(&mut panel, first, tail, out),
            _ => self.panel::<W>(&mut panel, first, tail, out),
        }
    }

    /// Computes the `width` columns of the result that start at `first` with a panel of `W` columns; columns beyond `width`
    /// are ignored.
    fn panel<const W: usize>(
        &self,
        panel: &mut [T::Acc],
        first: usize,
        width: usize,
        out: &mut [T],
    ) -> Result<(), Error> {
        const LINES: usize = 1 << 9;
        let panel = &mut panel[..self.b.len() / self.m * W];
        parallel_chunks_mut(panel, LINES * W, |piece, lines| {
            for (nth, line) in lines.as_chunks_mut::<W>().0.iter_mut().enumerate() {
                let from = &self.b[(piece * LINES + nth) * self.m + first..][..width];
                line.iter_mut().zip(from).for_each(|(to, from)| *to = from.widen());
            }
        })?;
        let lines = panel.as_chunks::<W>().0;
        self.rows(out, first, width, |k| lines.get(k), |wide| wide)
    }

    /// Computes the `width` columns of the result that start at `first`; `line` returns the factor of an entry's column.
    fn rows<'b, V: Copy + 'b, const W: usize>(
        &self,
        out: &mut [T],
        first: usize,
        width: usize,
        line: impl Fn(usize) -> Option<&'b [V; W]> + Sync,
        widen: impl Fn(V) -> T::Acc + Copy + Sync,
    ) -> Result<(), Error> {
        let piece_rows = (WORK / self.m).clamp(1, 1 << 10);
        parallel_chunks_mut(out, piece_rows * self.m, |piece, out| {
            let mut decoded = Decoded::default();
            for (nth, out) in out.chunks_mut(self.m).enumerate() {
                let row = piece * piece_rows + nth;
                let base = row / self.rows_per * self.a.width;
                let Some((columns, values)) = self.a.slices(row, &mut decoded) else {
                    return self.short.store(true, Ordering::Relaxed);
                };
                let line = |k: i64| line(base.wrapping_add(k as usize));
                match sums::<T, V, W>(columns, values, line, widen) {
                    Some(sums) => out[first..first + width].copy_from_slice(&sums[..width]),
                    None => self.outside.store(true, Ordering::Relaxed),
                }
            }
        })
    }
}

/// The sums over the entries of a row; `None` for a column without a line.
#[inline(always)]
fn sums<'b, T: Number, V: Copy + 'b, const W: usize>(
    columns: &[i64],
    values: &[T],
    line: impl Fn(i64) -> Option<&'b [V; W]>,
    widen: impl Fn(V) -> T::Acc + Copy,
) -> Option<[T; W]> {
    if T::LOSES_DIGITS && columns.len() > CHAIN {
        return long_sums(columns, values, line, widen);
    }
    Some(block_sums(columns, values, line, widen)?.map(T::narrow))
}

/// As [`sums`], for more than [`CHAIN`] entries.
#[cold]
#[inline(never)]
fn long_sums<'b, T: Number, V: Copy + 'b, const W: usize>(
    columns: &[i64],
    values: &[T],
    line: impl Fn(i64) -> Option<&'b [V; W]>,
    widen: impl Fn(V) -> T::Acc + Copy,
) -> Option<[T; W]> {
    let mut totals = [T::NO_TOTAL; W];
    for (columns, values) in columns.chunks(CHAIN).zip(values.chunks(CHAIN)) {
        let sums = block_sums(columns, values, &line, widen)?;
        totals.iter_mut().zip(sums).for_each(|(total, sum)| *total = T::with(*total, T::lengthen(sum)));
    }
    Some(totals.map(T::rounded))
}

/// The sums over a range of entries, even and odd ones separately; `None` for a column without a line.
#[inline(always)]
fn block_sums<'b, T: Number, V: Copy + 'b, const W: usize>(
    columns: &[i64],
    values: &[T],
    line: impl Fn(i64) -> Option<&'b [V; W]>,
    widen: impl Fn(V) -> T::Acc + Copy,
) -> Option<[T::Acc; W]> {
    let add = |sums: &mut [T::Acc; W], factor: T, line: &[V; W]| {
        let factor = factor.widen();
        for (sum, other) in sums.iter_mut().zip(line) {
            *sum = T::plus(*sum, T::times(factor, widen(*other)));
        }
    };
    let (mut even, mut odd) = ([T::ZERO; W], [T::ZERO; W]);
    let (columns, last_column) = columns.as_chunks::<2>();
    let (values, last_value) = values.as_chunks::<2>();
    for (column, value) in columns.iter().zip(values) {
        let (a, b) = (line(column[0])?, line(column[1])?);
        add(&mut even, value[0], a);
        add(&mut odd, value[1], b);
    }
    if let (&[column], &[value]) = (last_column, last_value) {
        add(&mut even, value, line(column)?);
    }
    even.iter_mut().zip(&odd).for_each(|(sum, other)| *sum = T::plus(*sum, *other));
    Some(even)
}
