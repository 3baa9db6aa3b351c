//! Conversion of operands to f32 for a product, and the epilogue that writes its result from the accumulators.

use super::product::{Matrix, Tile};
use keyway_cpu_loops::transpose;
use keyway_cpu_loops::vectors::{Lanes, Vector, load_some, read_some, widen, write_some};
use keyway_sdk::author::Real;

/// The number of rows or columns that are transposed at a time, and of elements of each.
const TRANSPOSED_BLOCK: (usize, usize) = (16, 64);

/// Widens `rows` by `columns` elements to rows with stride `step`.
///
/// # Safety
/// The elements of source and target must exist, and those of the target must be uniquely owned; the caller upholds this.
pub unsafe fn widen_matrix<T: Lanes<Acc = f32>>(
    to: *mut f32,
    step: usize,
    from: Matrix<*const T>,
    (rows, columns): (usize, usize),
) {
    if from.column == 1 {
        for r in 0..rows {
            // SAFETY: the caller guarantees the row and the target.
            unsafe { widen(to.add(r * step), from.at(r, 0).data, columns) };
        }
    } else if from.row == 1 {
        let mut lines = [[0f32; TRANSPOSED_BLOCK.1]; TRANSPOSED_BLOCK.0];
        for (c, r) in (0..columns)
            .step_by(TRANSPOSED_BLOCK.0)
            .flat_map(|c| (0..rows).step_by(TRANSPOSED_BLOCK.1).map(move |r| (c, r)))
        {
            let (wide, tall) = (TRANSPOSED_BLOCK.0.min(columns - c), TRANSPOSED_BLOCK.1.min(rows - r));
            for (i, line) in lines.iter_mut().enumerate().take(wide) {
                // SAFETY: the caller guarantees the column.
                unsafe { widen(line.as_mut_ptr(), from.at(r, c + i).data, tall) };
            }
            // SAFETY: the caller guarantees the target; the lines are long enough.
            unsafe {
                transpose(to.add(r * step + c), step, lines[0].as_ptr(), TRANSPOSED_BLOCK.1, wide, tall)
            };
        }
    } else {
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            // SAFETY: the caller guarantees both elements.
            unsafe { *to.add(r * step + c) = (*from.at(r, c).data).to_acc() };
        }
    }
}

/// `out = alpha * sums + beta * input`, rounded once from the accumulation type; rows of the sums have stride `step`.
///
/// # Safety
/// The sums and the elements of the tile's `out` and `input` must exist, and those of `out` must be uniquely owned; the
/// caller upholds this.
pub unsafe fn finish<T: Lanes>(tile: &Tile<T>, sums: *const T::Acc, step: usize) {
    let lanes = T::Vector::LANES;
    let dense = tile.out.column == 1 && tile.input.is_none_or(|(input, _)| input.column == 1);
    let plain = tile.input.is_none() && tile.alpha.to_acc() == T::Acc::ONE;
    for r in 0..tile.rows {
        let (mut c, sums, out) = (0, sums.wrapping_add(r * step), tile.out.at(r, 0).data);
        // SAFETY: the caller guarantees sums, input and output.
        unsafe {
            if dense && plain {
                while c + lanes <= tile.columns {
                    T::write(out.add(c), T::Vector::load(sums.add(c)));
                    c += lanes;
                }
            } else if dense {
                while c + lanes <= tile.columns {
                    T::write(out.add(c), scaled(tile, T::Vector::load(sums.add(c)), (r, c), lanes));
                    c += lanes;
                }
            }
            while c < tile.columns {
                let n = lanes.min(tile.columns - c);
                let value = scaled(tile, load_some(sums.add(c), n), (r, c), n);
                write_some(out.add(c * tile.out.column), tile.out.column, n, value);
                c += n;
            }
        }
    }
}

/// `alpha * sums + beta * input` for `n` elements of a row.
///
/// # Safety
/// There must be `n` elements of the input, and `n` must be at most the number of lanes.
#[inline(always)]
unsafe fn scaled<T: Lanes>(
    tile: &Tile<T>,
    sums: T::Vector,
    (row, column): (usize, usize),
    n: usize,
) -> T::Vector {
    let splat = |number: T| T::Vector::splat(number.to_acc());
    let value = sums.mul_add(splat(tile.alpha), T::Vector::splat(T::Acc::ZERO));
    let Some((input, beta)) = tile.input else { return value };
    // SAFETY: as the caller guarantees.
    unsafe { read_some(input.at(row, column).data, input.column, n) }.mul_add(splat(beta), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::half::bf16;

    #[test]
    fn a_matrix_is_widened_whichever_way_it_lies() {
        for (rows, columns) in [(1, 1), (3, 70), (70, 3), (64, 16), (130, 33), (1, 200)] {
            let elements = (rows + 2) * columns * 2;
            let from: Vec<bf16> = (0..elements).map(|i| bf16::from_bits(i as u16)).collect();
            for (row, column) in [(columns, 1), (1, rows), (2 * columns, 2), (0, 1), (1, 0), (1, rows + 2)] {
                let step = columns + 3;
                let mut to = vec![-1f32; rows * step];
                let matrix = Matrix { data: from.as_ptr(), row, column };
                // SAFETY: source and target have the elements at these strides.
                unsafe { widen_matrix(to.as_mut_ptr(), step, matrix, (rows, columns)) };
                for (r, c) in (0..rows).flat_map(|r| (0..step).map(move |c| (r, c))) {
                    let expected = if c < columns { from[r * row + c * column].to_f32() } else { -1.0 };
                    assert_eq!(
                        to[r * step + c],
                        expected,
                        "{rows} x {columns} by {row}, {column} at {r}, {c}"
                    );
                }
            }
        }
    }
}
