//! Wrapping integer products: register tiles over packed panels, for any strides of the operands.

use super::number::Number;
use super::product::{Batch, Matrix, Multiply, Tile, each_tile, tile_sizes};
use keyway_sdk::author::{Error, Plain, Scratch};

/// Elements of a panel along the reduction dimension (k).
const PANEL: usize = 256;

/// Copies `rows` by `columns` elements into a panel with row stride `wide`.
///
/// # Safety
/// The elements must exist; the caller upholds this.
unsafe fn pack<T: Plain>(
    panel: &mut [T],
    from: Matrix<*const T>,
    (rows, columns): (usize, usize),
    wide: usize,
) {
    for (r, line) in panel.chunks_exact_mut(wide).enumerate().take(rows) {
        if from.column == 1 {
            // SAFETY: the caller guarantees the elements, which are contiguous; the panel is separate memory.
            unsafe { from.at(r, 0).data.copy_to_nonoverlapping(line.as_mut_ptr(), columns) };
            continue;
        }
        for (c, slot) in line[..columns].iter_mut().enumerate() {
            // SAFETY: the caller guarantees the elements.
            *slot = unsafe { *from.at(r, c).data };
        }
    }
}

/// Rows of a register tile.
const ROWS: usize = 4;

/// Accumulates [`ROWS`] rows of `left` by `C` columns of `right` in a register tile, and adds it to the sums. Rows of
/// `right` and of the sums have stride `columns`. The loops have constant bounds and neither panics nor calls, so that the
/// compiler allocates registers for the tile.
#[inline(never)]
fn add_block<T: Number + Plain, const C: usize>(
    sums: &mut [T],
    left: [&[T]; ROWS],
    right: &[T],
    columns: usize,
) {
    let [mut first, mut second, mut third, mut fourth] = [[T::from_i64(0); C]; ROWS];
    let [a, b, c, d] = left;
    let depth = right.len().div_ceil(columns).min(a.len()).min(b.len()).min(c.len()).min(d.len());
    let (a, b, c, d) = (&a[..depth], &b[..depth], &c[..depth], &d[..depth]);
    for k in 0..depth {
        let Some(line) = right.get(k * columns..).and_then(<[T]>::first_chunk::<C>) else { return };
        let (a, b, c, d) = (a[k], b[k], c[k], d[k]);
        for j in 0..C {
            first[j] = first[j].plus(a.times(line[j]));
            second[j] = second[j].plus(b.times(line[j]));
            third[j] = third[j].plus(c.times(line[j]));
            fourth[j] = fourth[j].plus(d.times(line[j]));
        }
    }
    for (row, block) in sums.chunks_mut(columns).zip([first, second, third, fourth]) {
        for (sum, made) in row.iter_mut().zip(block) {
            *sum = sum.plus(made);
        }
    }
}

/// Adds the product of the row `left` and the matrix `right` to a row of sums, four rows of `right` at a time, so that a
/// sum is loaded and stored once per four products.
fn add_row<T: Number + Plain>(sums: &mut [T], left: &[T], right: &[T]) {
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

/// Adds the product of two panels to the sums: by register tiles if `C` divides the columns, remaining rows one by one.
fn add_panels<T: Number + Plain, const C: usize>(
    sums: &mut [T],
    left: &[T],
    right: &[T],
    (columns, depth): (usize, usize),
) {
    let blocks = if columns.is_multiple_of(C) { left.len() / depth / ROWS * ROWS } else { 0 };
    let (blocked, others) = sums.split_at_mut(blocks * columns);
    for (sums, left) in blocked.chunks_exact_mut(ROWS * columns).zip(left.chunks_exact(ROWS * depth)) {
        let left = std::array::from_fn(|i| &left[i * depth..][..depth]);
        (0..columns).step_by(C).for_each(|c| add_block::<T, C>(&mut sums[c..], left, &right[c..], columns));
    }
    for (sums, left) in others.chunks_exact_mut(columns).zip(left[blocks * depth..].chunks_exact(depth)) {
        add_row(sums, left, right);
    }
}

/// Computes one tile of the result, in blocks of `C` columns.
///
/// # Safety
/// As for [`Multiply::batch`], of this tile.
unsafe fn tile<T: Number + Plain, const C: usize>(tile: &Tile<T>) -> Result<(), Error> {
    let Tile { rows, columns, inner, out, .. } = *tile;
    let depth = inner.min(PANEL);
    // A partial last block is padded with zeros.
    let wide = if rows >= ROWS && columns >= C { columns.next_multiple_of(C) } else { columns };
    let mut sums = Scratch::<T>::zeroed(rows * wide)?;
    let mut left = Scratch::<T>::zeroed(rows * depth)?;
    let mut right = Scratch::<T>::zeroed(depth * wide)?;
    for begin in (0..inner).step_by(PANEL) {
        let n = PANEL.min(inner - begin);
        // SAFETY: the caller guarantees the elements.
        unsafe {
            pack(&mut left, tile.a.at(0, begin), (rows, n), n);
            pack(&mut right, tile.b.at(begin, 0), (n, columns), wide);
        }
        add_panels::<T, C>(&mut sums, &left[..rows * n], &right[..n * wide], (wide, n));
    }
    for (r, sums) in sums.chunks_exact(wide).enumerate() {
        for (c, &sum) in sums[..columns].iter().enumerate() {
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

/// The number of columns of a block: the fastest of the widths whose register tile fits the registers of a SIMD level.
const fn block_columns(element_bytes: usize) -> usize {
    if element_bytes < 4 { 64 / element_bytes } else { 16 }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Multiply for $t {
            unsafe fn batch(all: &Batch<$t>) -> Result<(), Error> {
                const COLUMNS: usize = block_columns(size_of::<$t>());
                let Tile { rows, columns, inner, .. } = all.first;
                let sizes = tile_sizes(all.count, rows, columns, inner);
                // SAFETY: the caller guarantees the elements.
                each_tile(all, sizes, |i, first| unsafe { tile::<$t, COLUMNS>(&all.product(i).part(first, sizes)) })
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

#[cfg(test)]
mod tests {
    use super::super::product::multiply_one;
    use super::*;

    fn check<T: Multiply + PartialEq + std::fmt::Debug>(
        (rows, columns, inner): (usize, usize, usize),
        transposed: bool,
    ) {
        // Beyond the range of the narrow dtypes, so that products wrap.
        let number = |i: usize| T::from_i64((i * 7919 % 263) as i64 - 131);
        let a: Vec<T> = (0..rows * inner).map(number).collect();
        let b: Vec<T> = (0..inner * columns).map(|i| number(i + 5)).collect();
        let bias: Vec<T> = (0..columns).map(|i| number(i + 2)).collect();
        let mut out = vec![T::from_i64(0); rows * columns];
        let (row, column) = if transposed { (1, inner) } else { (columns, 1) };
        let whole = Tile {
            rows,
            columns,
            inner,
            a: Matrix { data: a.as_ptr(), row: inner, column: 1 },
            b: Matrix { data: b.as_ptr(), row, column },
            out: Matrix { data: out.as_mut_ptr(), row: columns, column: 1 },
            input: Some((Matrix { data: bias.as_ptr(), row: 0, column: 1 }, T::from_i64(3))),
            alpha: T::from_i64(2),
        };
        // SAFETY: the vectors have the elements of these sizes and strides; `out` is used here alone.
        unsafe { multiply_one(&whole) }.expect("memory");
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let product = |k: usize| a[r * inner + k].times(b[k * row + c * column]);
            let sum = (0..inner).fold(T::from_i64(0), |sum, k| sum.plus(product(k)));
            let expected = T::from_i64(2).times(sum).plus(T::from_i64(3).times(bias[c]));
            assert_eq!(out[r * columns + c], expected, "{rows} {columns} {inner} {transposed} at {r}, {c}");
        }
    }

    #[test]
    fn products_are_exact_in_whole_blocks_and_beside_them() {
        for sizes in [
            (1, 1, 1),
            (1, 40, 9),
            (3, 16, 300),
            (4, 16, 8),
            (6, 67, 257),
            (9, 3, 5),
            (64, 64, 64),
            (5, 7, 0),
        ] {
            for transposed in [false, true] {
                check::<i8>(sizes, transposed);
                check::<u16>(sizes, transposed);
                check::<i32>(sizes, transposed);
                check::<i64>(sizes, transposed);
            }
        }
    }
}
