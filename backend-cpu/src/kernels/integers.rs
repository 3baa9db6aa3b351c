//! Products of integers, which wrap: by a plain loop over panels that are dense whatever the operands' strides.

use super::number::Number;
use super::product::{Batch, Matrix, Multiply, Tile, each_tile, tile_sizes};
use keyway_sdk::author::{Error, Plain, Scratch};

/// Elements of a panel along the summed dimension.
const PANEL: usize = 256;

/// Copies `rows` by `columns` elements into a panel in row-major order.
///
/// # Safety
/// The elements must exist; the caller upholds this.
unsafe fn pack<T: Plain>(panel: &mut [T], from: Matrix<*const T>, rows: usize, columns: usize) {
    for (r, line) in panel.chunks_exact_mut(columns).enumerate().take(rows) {
        for (c, slot) in line.iter_mut().enumerate() {
            // SAFETY: the caller guarantees the elements.
            *slot = unsafe { *from.at(r, c).data };
        }
    }
}

/// Adds `left`, some numbers, times as many rows of `right` to the sums: four rows at a time, so that a sum is read and
/// written for each fourth product alone.
fn add_rows<T: Number + Plain>(sums: &mut [T], left: &[T], right: &[T]) {
    let columns = sums.len();
    let (fours, rest) = left.as_chunks::<4>();
    let (whole, others) = right.split_at(fours.len() * 4 * columns);
    for (x, rows) in fours.iter().zip(whole.chunks_exact(4 * columns)) {
        let ([a, b], [c, d]) = (pair(rows, columns), pair(&rows[2 * columns..], columns));
        for ((((sum, &a), &b), &c), &d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let (low, high) = (x[0].times(a).plus(x[1].times(b)), x[2].times(c).plus(x[3].times(d)));
            *sum = sum.plus(low.plus(high));
        }
    }
    for (&x, row) in rest.iter().zip(others.chunks_exact(columns)) {
        sums.iter_mut().zip(row).for_each(|(sum, &y)| *sum = sum.plus(x.times(y)));
    }
}

/// The first two rows.
fn pair<T>(rows: &[T], columns: usize) -> [&[T]; 2] {
    [&rows[..columns], &rows[columns..2 * columns]]
}

/// # Safety
/// As for [`Multiply::batch`], of this tile.
unsafe fn tile<T: Number + Plain>(tile: &Tile<T>) -> Result<(), Error> {
    let Tile { rows, columns, inner, out, .. } = *tile;
    let depth = inner.min(PANEL);
    let mut sums = Scratch::<T>::zeroed(rows * columns)?;
    let mut left = Scratch::<T>::zeroed(rows * depth)?;
    let mut right = Scratch::<T>::zeroed(depth * columns)?;
    for begin in (0..inner).step_by(PANEL) {
        let n = PANEL.min(inner - begin);
        // SAFETY: the caller guarantees the elements.
        unsafe {
            pack(&mut left, tile.a.at(0, begin), rows, n);
            pack(&mut right, tile.b.at(begin, 0), n, columns);
        }
        for (sums, left) in sums.chunks_exact_mut(columns).zip(left.chunks_exact(n)) {
            add_rows(sums, left, &right[..n * columns]);
        }
    }
    for (r, sums) in sums.chunks_exact(columns).enumerate() {
        for (c, &sum) in sums.iter().enumerate() {
            let mut value = tile.alpha.times(sum);
            // SAFETY: the caller guarantees the elements.
            unsafe {
                if let Some((input, beta)) = tile.input {
                    value = value.plus(beta.times(*input.at(r, c).data));
                }
                *out.at(r, c).data = value;
            }
        }
    }
    Ok(())
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Multiply for $t {
            unsafe fn batch(all: &Batch<$t>) -> Result<(), Error> {
                let Tile { rows, columns, inner, .. } = all.first;
                let sizes = tile_sizes(all.count, rows, columns, inner);
                // SAFETY: the caller guarantees the elements.
                each_tile(all, sizes, |i, first| unsafe { tile(&all.product(i).part(first, sizes)) })
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);
