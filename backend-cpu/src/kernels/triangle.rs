//! `eye`, `tril` and `triu`: matrices by where an element stands to the diagonal.

use super::indexed::{produce, produce_from};
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Element, Error};
use keyway_sdk::half::{bf16, f16};
use std::ops::Range;

/// Rows and columns of the matrices in a shape.
fn matrix(sizes: &[i64]) -> (usize, usize) {
    match sizes {
        [.., rows, columns] => (*rows as usize, *columns as usize),
        _ => (1, 1),
    }
}

/// Calls `f(row, column, range)` for each part of elements `first..first + n` that lies in one row: the place of its first
/// element in the matrix, and the part's range within the `n`.
fn by_rows(
    first: usize,
    n: usize,
    (rows, columns): (usize, usize),
    mut f: impl FnMut(usize, usize, Range<usize>),
) {
    let mut at = 0;
    while at < n {
        let (line, column) = ((first + at) / columns, (first + at) % columns);
        let end = n.min(at + columns - column);
        f(line % rows, column, at..end);
        at = end;
    }
}

fn eye<T: Element>(call: &Call) -> Result<(), Error> {
    let out = call.out::<T>(0)?;
    let matrix = matrix(out.sizes());
    produce(out, Cost::Cheap, |first, values| {
        values.fill(T::default());
        by_rows(first, values.len(), matrix, |row, column, range| {
            if let Some(i) = row.checked_sub(column).filter(|i| *i < range.len()) {
                values[range.start + i] = T::from_i64(1);
            }
        });
    })
}

/// The elements of a row up to the diagonal `diagonal` above the main one and with it, or those from it on.
fn part<T: Element>(call: &Call, lower: bool) -> Result<(), Error> {
    // The first column that the lower triangle of row 0 does not have; the upper one begins at the diagonal itself.
    let end = call.int(1)?.saturating_add(i64::from(lower));
    let (input, out) = (call.view::<T>(0)?, call.out::<T>(0)?);
    let matrix = matrix(out.sizes());
    produce_from(input, out, Cost::Cheap, |first, read, values| {
        by_rows(first, read.len(), matrix, |row, column, range| {
            let before = end.saturating_add(row as i64 - column as i64).clamp(0, range.len() as i64) as usize;
            let middle = range.start + before;
            let (kept, dropped) = if lower {
                (range.start..middle, middle..range.end)
            } else {
                (middle..range.end, range.start..middle)
            };
            values[kept.clone()].copy_from_slice(&read[kept]);
            values[dropped].fill(T::default());
        });
    })
}

fn tril<T: Element>(call: &Call) -> Result<(), Error> {
    part::<T>(call, true)
}

fn triu<T: Element>(call: &Call) -> Result<(), Error> {
    part::<T>(call, false)
}

kernel!("eye", "T>T", eye, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("tril", "Ti>T", tril, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("triu", "Ti>T", triu, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
