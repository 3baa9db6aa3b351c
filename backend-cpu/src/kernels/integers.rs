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

/// Rows whose sums are kept in registers together.
const ROWS: usize = 4;

/// Dense panels of the operands: rows of `n` elements, and `n` rows of `columns`.
struct Panels<'a, T> {
    left: &'a [T],
    right: &'a [T],
    n: usize,
    columns: usize,
}

impl<T: Number + Plain> Panels<'_, T> {
    /// Adds the product to the sums, [`ROWS`] rows of `WIDE` columns at a time.
    fn add<const WIDE: usize>(&self, sums: &mut [T], rows: usize) {
        let columns = self.columns - self.columns % WIDE;
        let whole = rows - rows % ROWS;
        for row in (0..whole).step_by(ROWS) {
            for column in (0..columns).step_by(WIDE) {
                self.block::<WIDE>(sums, row, column);
            }
        }
        for row in 0..rows {
            let from = if row < whole { columns } else { 0 };
            let left = &self.left[row * self.n..(row + 1) * self.n];
            let sums = &mut sums[row * self.columns..(row + 1) * self.columns][from..];
            for (&x, right) in left.iter().zip(self.right.chunks_exact(self.columns)) {
                sums.iter_mut().zip(&right[from..]).for_each(|(sum, &y)| *sum = sum.plus(x.times(y)));
            }
        }
    }

    /// One block of sums. Loops over indices of arrays, which are unrolled into registers.
    #[inline(never)]
    #[expect(
        clippy::needless_range_loop,
        reason = "the sums stay in registers only where each index is a constant"
    )]
    fn block<const WIDE: usize>(&self, sums: &mut [T], row: usize, column: usize) {
        let mut block = [[T::default(); WIDE]; ROWS];
        let (left, right) = (&self.left[row * self.n..(row + ROWS) * self.n], &self.right[column..]);
        for k in 0..self.n {
            let Some(line) = right[k * self.columns..].first_chunk::<WIDE>() else { return };
            for r in 0..ROWS {
                let x = left[r * self.n + k];
                for c in 0..WIDE {
                    block[r][c] = block[r][c].plus(x.times(line[c]));
                }
            }
        }
        for (r, block) in block.iter().enumerate() {
            let sums = &mut sums[(row + r) * self.columns + column..][..WIDE];
            sums.iter_mut().zip(block).for_each(|(sum, &x)| *sum = sum.plus(x));
        }
    }
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
        let panels = Panels { left: &left, right: &right, n, columns };
        match size_of::<T>() {
            8 => panels.add::<16>(&mut sums, rows),
            4 => panels.add::<32>(&mut sums, rows),
            _ => panels.add::<64>(&mut sums, rows),
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
