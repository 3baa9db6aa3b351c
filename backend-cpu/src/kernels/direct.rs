//! Small products of f32 and f64 without packing: for matrices of a hundred rows and columns, packing as `gemm` does costs
//! more than it saves.
//!
//! A register tile of the result accumulates over the reduction dimension. If tiles do not divide the result, the last ones
//! overlap the previous ones and write the same values again.

use super::product::{Matrix, Tile};
use keyway_cpu_loops::vectors::{Lanes, ROWS, Vector, read_some};
use keyway_sdk::author::Real;

/// The maximum span of `b` in bytes, so that its columns are reread from L1.
const SPAN: usize = 40 << 10;
/// The maximum number of vectors of a tile's row for which the accumulators of [`ROWS`] rows fit the registers.
const VECTORS: usize = 3;

/// The maximum number of rows for which `b` is read in place despite a larger span, and the block size of the reduction
/// dimension.
const FLAT: usize = 32;
const DEPTH: usize = 128;

/// Whether this module computes a product of these sizes, if rows of `b` and `out` are dense and `b` has this span.
pub fn is_small<T: Lanes>(rows: usize, columns: usize, inner: usize) -> bool {
    // A SIMD level with an unknown number of registers uses `gemm`.
    ROWS > 1
        && rows >= ROWS
        && columns >= T::Vector::LANES
        && inner > 0
        && inner.saturating_mul(columns).saturating_mul(size_of::<T>()) <= SPAN
}

/// Whether [`multiply`] may be called.
pub fn fits<T: Lanes>(tile: &Tile<T>) -> bool {
    let Tile { rows, columns, inner, b, out, .. } = *tile;
    is_small::<T>(rows, columns, inner)
        && b.column == 1
        && out.column == 1
        && inner.saturating_mul(b.row).saturating_mul(size_of::<T>()) <= SPAN
}

/// Whether [`multiply_deep`] may be called and is faster: few rows, divisible into whole register tiles.
pub fn is_flat<T: Lanes>(tile: &Tile<T>) -> bool {
    let Tile { rows, columns, inner, b, out, .. } = *tile;
    ROWS > 1
        && rows <= FLAT
        && rows.is_multiple_of(ROWS)
        && columns >= T::Vector::LANES
        && columns % T::Vector::LANES == 0
        && inner > 0
        && b.column == 1
        && out.column == 1
}

/// The product in blocks of the reduction dimension, so that the block of `b` stays in L2.
///
/// # Safety
/// As for [`multiply`], of a tile that [is flat](is_flat); the addend may be `out` itself.
pub unsafe fn multiply_deep<T: Real + Lanes<Acc = T>>(tile: &Tile<T>) {
    let out = Matrix { data: tile.out.data.cast_const(), row: tile.out.row, column: tile.out.column };
    for begin in (0..tile.inner).step_by(DEPTH) {
        let part = Tile {
            inner: DEPTH.min(tile.inner - begin),
            a: tile.a.at(0, begin),
            b: tile.b.at(begin, 0),
            input: if begin == 0 { tile.input } else { Some((out, T::ONE)) },
            ..*tile
        };
        // SAFETY: the caller guarantees the elements. Tiles divide the result, so that no element is added twice.
        unsafe { multiply(&part) };
    }
}

/// Computes the product.
///
/// # Safety
/// All elements described by the sizes and strides of the tile must exist, those of `out` must be uniquely owned, and
/// it must [fit](fits); the caller upholds this.
pub unsafe fn multiply<T: Real + Lanes<Acc = T>>(tile: &Tile<T>) {
    let lanes = T::Vector::LANES;
    let mut column = 0;
    while column < tile.columns {
        let wide = match (tile.columns - column) / lanes {
            0 => {
                column = tile.columns - lanes;
                1
            }
            // Two and two, not three and one: a tile of one row is bound by the latency of its additions.
            4 => 2,
            n => n.min(VECTORS),
        };
        for row in (0..tile.rows).step_by(ROWS) {
            let row = row.min(tile.rows - ROWS);
            // SAFETY: the caller guarantees the elements; the block is within the tile.
            unsafe {
                match wide {
                    1 => block::<T, 1>(tile, (row, column)),
                    2 => block::<T, 2>(tile, (row, column)),
                    _ => block::<T, VECTORS>(tile, (row, column)),
                }
            }
        }
        column += wide * lanes;
    }
}

/// Computes [`ROWS`] rows of `N` vectors of the result. A function of its own with plain loops over constants, so that the
/// compiler allocates registers for the accumulators.
///
/// # Safety
/// As for [`multiply`]; the block must be within the tile.
#[inline(never)]
#[expect(
    clippy::needless_range_loop,
    reason = "the sums stay in registers only where each index is a constant"
)]
unsafe fn block<T: Real + Lanes<Acc = T>, const N: usize>(tile: &Tile<T>, (row, column): (usize, usize)) {
    let lanes = T::Vector::LANES;
    let zero = T::Vector::splat(T::ZERO);
    let mut sums = [[zero; N]; ROWS];
    let (a, b) = (tile.a.at(row, 0), tile.b.at(0, column));
    for k in 0..tile.inner {
        let mut line = [zero; N];
        // SAFETY: the caller guarantees the elements.
        unsafe {
            for j in 0..N {
                line[j] = T::Vector::load(b.at(k, 0).data.add(j * lanes));
            }
            for i in 0..ROWS {
                let a = T::Vector::splat(*a.at(i, k).data);
                for j in 0..N {
                    sums[i][j] = a.mul_add(line[j], sums[i][j]);
                }
            }
        }
    }
    for i in 0..ROWS {
        for j in 0..N {
            // SAFETY: the caller guarantees the elements.
            unsafe { write(tile, sums[i][j], (row + i, column + j * lanes)) };
        }
    }
}

/// Writes a vector of the result.
///
/// # Safety
/// As for [`multiply`]; the vector must be within the tile.
#[inline(always)]
unsafe fn write<T: Real + Lanes<Acc = T>>(tile: &Tile<T>, sums: T::Vector, (row, column): (usize, usize)) {
    let mut value = sums;
    // SAFETY: the caller guarantees the elements.
    unsafe {
        if tile.alpha != T::ONE {
            value = value.mul_add(T::Vector::splat(tile.alpha), T::Vector::splat(T::ZERO));
        }
        if let Some((input, beta)) = tile.input {
            let added = read_some(input.at(row, column).data, input.column, T::Vector::LANES);
            value = added.mul_add(T::Vector::splat(beta), value);
        }
        value.store(tile.out.at(row, column).data);
    }
}
