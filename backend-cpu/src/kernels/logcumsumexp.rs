//! `logcumsumexp`: each running value depends on the previous one, so several lines are processed in parallel: [`LINES`]
//! along the last dimension, neighbouring columns along others. The accumulation type is that of `cumsum`: small addends to
//! a large value would be lost to rounding.

use super::cumsum::Summand;
use super::logaddexp::log_sum;
use super::number::Apply;
use super::running::{Lined, in_rows};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error, Lanes, Real, parallel_for};
use keyway_sdk::half::{bf16, f16};

/// Lines that are processed in parallel.
const LINES: usize = 32;
/// Columns that one inner loop processes.
const COLUMNS: usize = 256;
const GRAIN: usize = 1024;

/// Adds a row to the running values.
#[inline(never)]
fn add<A: Apply + Real>(running: &mut [A], row: &[A]) {
    running.iter_mut().zip(row).for_each(|(running, x)| *running = log_sum(*running, *x));
}

/// Scans all lines of `n` elements in the slices, at most [`LINES`].
fn lines<T: Summand<Sum: Apply + Real>>(from: &[T], to: &mut [T], n: usize) {
    let mut running = [T::Sum::NEG_INFINITY; LINES];
    let (mut row, mut made) = ([T::Sum::NEG_INFINITY; LINES], [T::default(); LINES]);
    for i in 0..n {
        row.iter_mut().zip(from[i..].iter().step_by(n)).for_each(|(x, from)| *x = from.widen());
        add(&mut running, &row);
        T::narrow_all(&running, &mut made);
        to[i..].iter_mut().step_by(n).zip(made).for_each(|(to, made)| *to = made);
    }
}

fn logcumsumexp<T: Summand<Sum: Apply + Real>>(call: &Call) -> Result<(), Error> {
    // Scanning the rows of a copy of a transposed matrix is faster than scanning its columns.
    let Lined { input, n, inner } = in_rows::<T>(call)?;
    let mut out = call.contiguous_out::<T>(0)?;
    if input.is_empty() {
        return Ok(());
    }
    // SAFETY: the address is used within the output, which outlives the loop; units write disjoint lines or columns.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    if inner == 1 {
        let all = input.len() / n;
        return parallel_for(all.div_ceil(LINES), GRAIN.div_ceil(n * LINES), |units| {
            for first in units.map(|unit| unit * LINES) {
                let (begin, count) = (first * n, LINES.min(all - first) * n);
                // SAFETY: as above.
                lines(&input[begin..begin + count], unsafe { to.slice_mut(begin, count) }, n);
            }
        });
    }
    let across = inner.div_ceil(COLUMNS);
    parallel_for(input.len() / (n * inner) * across, GRAIN.div_ceil(n * inner.min(COLUMNS)), |units| {
        for unit in units {
            let (outer, first) = (unit / across, unit % across * COLUMNS);
            let width = COLUMNS.min(inner - first);
            let (mut running, mut row) = ([T::Sum::NEG_INFINITY; COLUMNS], [T::Sum::ZERO; COLUMNS]);
            let (running, row) = (&mut running[..width], &mut row[..width]);
            for begin in (0..n).map(|i| (outer * n + i) * inner + first) {
                let from = &input[begin..begin + width];
                row.iter_mut().zip(from).for_each(|(x, from)| *x = from.widen());
                add(running, row);
                // SAFETY: as above.
                T::narrow_all(running, unsafe { to.slice_mut(begin, width) });
            }
        }
    })
}

kernel!("logcumsumexp", "Ti>T", logcumsumexp, [f32, f64, f16, bf16]);
