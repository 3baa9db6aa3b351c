//! Products of a few rows and a matrix with dense columns, such as a batch of inputs and the weights of a layer: each
//! column is read once, in place, and multiplied by several rows. Packing the matrix for `gemm` would take longer than the
//! product.
//!
//! Rows that fill vectors are packed so that a vector has one element of each row: it is multiplied by a broadcast element
//! of a column, and no horizontal sum is needed. With fewer rows, vectors are along the columns.

use super::product::{Batch, Matrix, Tile};
use super::widen::finish;
use keyway_cpu_loops::vectors::{Lanes as Elements, ROWS, Vector, load_some, read_some, sum, widen};
use keyway_cpu_loops::{parallel_try, transpose, widen_transposed};
use keyway_sdk::author::{Error, Lanes, Real, Scratch};
use std::any::TypeId;

/// The maximum number of rows, and the minimum number of columns and of elements of the reduction dimension.
const MOST: usize = 32;
const LEAST: usize = 128;
/// The number of columns of a block of accumulators.
const BLOCK: usize = 96;
/// Bytes of a row that are multiplied in one pass, so that the columns stay in L1.
const DEPTH: usize = 4096;
/// The number of rows and of columns of a register tile.
const TALL: usize = 4;
const WIDE: usize = if ROWS > 4 { 6 } else { 2 };
/// The number of accumulators in registers if rows fill vectors, and the bytes of such rows, which stay in L1.
const SUMS: usize = if ROWS > 4 { 24 } else { 8 };
const NEAR: usize = 1 << 15;
/// The maximum number of vectors of rows that are multiplied together.
const MOST_VECTORS: usize = 4;
/// The minimum number of multiplications per thread.
const WORK: usize = 1 << 20;

/// Computes the product if its sizes are supported.
///
/// # Safety
/// All elements described by the sizes and strides of the products must exist, and those of `out` must be uniquely
/// owned; the caller upholds this.
pub unsafe fn multiply<T: Elements>(all: &Batch<T>) -> Option<Result<(), Error>> {
    let Tile { rows, columns, inner, b, out, .. } = all.first;
    // A SIMD level with an unknown number of registers uses `gemm`.
    let fits = ROWS > 1
        && all.count == 1
        && rows <= MOST
        && columns.min(inner) >= LEAST
        && b.row == 1
        && b.column > 1
        && out.column == 1;
    // SAFETY: the caller guarantees the elements.
    fits.then(|| unsafe { product(&all.first) })
}

/// # Safety
/// As for [`multiply`].
unsafe fn product<T: Elements>(whole: &Tile<T>) -> Result<(), Error> {
    let Tile { rows, columns, inner, b, .. } = *whole;
    let padded = rows.next_multiple_of(T::Vector::LANES);
    let filled = 4 * rows >= 3 * padded;
    // SAFETY: as the caller guarantees.
    let left = unsafe { if filled { packed(whole, padded) } else { lines(whole) } }?;
    let left = &left;
    // SAFETY: the address is used within the matrix, during this call.
    let right = unsafe { Lanes::new(b.data.cast_mut()) };
    let bytes = size_of::<T::Acc>();
    let depth = if filled { (NEAR / (padded * bytes)).max(1) } else { DEPTH / bytes };
    let whole = &Batch::one(*whole);
    parallel_try(columns.div_ceil(BLOCK), (WORK / (rows * inner * BLOCK)).max(1), |blocks| {
        let mut sums = Scratch::<T::Acc>::zeroed(rows * BLOCK)?;
        let mut transposed = Scratch::<T::Acc>::zeroed(if filled { padded * BLOCK } else { 0 })?;
        let mut wide = Scratch::<T::Acc>::zeroed(if filled { SUMS * depth } else { 0 })?;
        for first in blocks.map(|block| block * BLOCK) {
            let n = BLOCK.min(columns - first);
            sums.fill(T::Acc::ZERO);
            transposed.fill(T::Acc::ZERO);
            for begin in (0..inner).step_by(depth) {
                let right = Matrix { data: right.as_ptr().cast_const(), row: 1, column: b.column };
                let right = right.at(begin, first);
                let depth = depth.min(inner - begin);
                // SAFETY: the caller guarantees the elements; the sums have an element for each row and column.
                unsafe {
                    if filled {
                        let left = left.as_ptr().add(begin * padded);
                        add_filled::<T>(
                            (left, padded),
                            right,
                            &mut wide,
                            transposed.as_mut_ptr(),
                            (n, depth),
                        );
                    } else {
                        let left = Matrix { data: left.as_ptr(), row: inner, column: 1 }.at(0, begin);
                        add::<T>(left, right, sums.as_mut_ptr(), (rows, n, depth));
                    }
                }
            }
            // SAFETY: as above; each block writes its own columns.
            unsafe {
                if filled {
                    transpose(sums.as_mut_ptr(), BLOCK, transposed.as_ptr(), padded, n, rows);
                }
                finish(&whole.first.part((0, first), (rows, n)), sums.as_ptr(), BLOCK);
            }
        }
        Ok(())
    })
}

/// The rows in the accumulation type.
///
/// # Safety
/// As for [`multiply`].
unsafe fn lines<T: Elements>(whole: &Tile<T>) -> Result<Scratch<T::Acc>, Error> {
    let Tile { rows, inner, a, .. } = *whole;
    // SAFETY: each element is written below.
    let mut left = unsafe { Scratch::<T::Acc>::unwritten(rows * inner) }?;
    for (r, line) in left.chunks_exact_mut(inner).enumerate() {
        let from = a.at(r, 0);
        // SAFETY: the caller guarantees the elements, and the target has the same number.
        unsafe {
            if a.column == 1 {
                widen(line.as_mut_ptr(), from.data, inner);
            } else {
                line.iter_mut().enumerate().for_each(|(k, to)| *to = (*from.at(0, k).data).to_acc());
            }
        }
    }
    Ok(left)
}

/// The rows in the accumulation type, packed as `[inner][padded]`, with zeros after the last row.
///
/// # Safety
/// As for [`multiply`].
unsafe fn packed<T: Elements>(whole: &Tile<T>, padded: usize) -> Result<Scratch<T::Acc>, Error> {
    let Tile { rows, inner, a, .. } = *whole;
    let mut left = Scratch::<T::Acc>::zeroed(inner * padded)?;
    // SAFETY: the caller guarantees the elements, and the target has the same number.
    unsafe {
        if a.column == 1 {
            widen_transposed(left.as_mut_ptr(), padded, a.data, a.row, (rows, inner));
        } else {
            for (k, line) in left.chunks_exact_mut(padded).enumerate() {
                (0..rows).for_each(|r| line[r] = (*a.at(r, k).data).to_acc());
            }
        }
    }
    Ok(left)
}

/// Adds products of packed rows and columns to the sums, `[column][padded]`; `wide` has capacity for `depth` elements of
/// [`SUMS`] columns.
///
/// # Safety
/// As for [`add`].
unsafe fn add_filled<T: Elements>(
    (left, padded): (*const T::Acc, usize),
    right: Matrix<*const T>,
    wide: &mut [T::Acc],
    sums: *mut T::Acc,
    sizes: (usize, usize),
) {
    const HALF: usize = MOST_VECTORS / 2;
    let (lanes, mut r) = (T::Vector::LANES, 0);
    while r < padded {
        // SAFETY: the caller guarantees elements and sums.
        unsafe {
            let (left, sums) = ((left.add(r), padded), sums.add(r));
            match (padded - r) / lanes {
                MOST_VECTORS.. => {
                    some_filled::<T, MOST_VECTORS, { SUMS / MOST_VECTORS }>(left, right, wide, sums, sizes);
                    r += MOST_VECTORS * lanes;
                }
                HALF.. => {
                    some_filled::<T, HALF, { SUMS / HALF }>(left, right, wide, sums, sizes);
                    r += HALF * lanes;
                }
                _ => {
                    some_filled::<T, 1, SUMS>(left, right, wide, sums, sizes);
                    r += lanes;
                }
            }
        }
    }
}

/// [`add_filled`] for `R` vectors of rows, by `C` columns.
///
/// # Safety
/// As for [`add`].
unsafe fn some_filled<T: Elements, const R: usize, const C: usize>(
    left: (*const T::Acc, usize),
    right: Matrix<*const T>,
    wide: &mut [T::Acc],
    sums: *mut T::Acc,
    (columns, depth): (usize, usize),
) {
    for c in (0..columns).step_by(C) {
        let n = C.min(columns - c);
        // SAFETY: the caller guarantees elements and sums.
        unsafe {
            let right = if TypeId::of::<T>() == TypeId::of::<T::Acc>() {
                Matrix { data: right.at(0, c).data.cast(), row: 1, column: right.column }
            } else {
                for (i, to) in wide.chunks_exact_mut(depth).enumerate().take(n) {
                    widen(to.as_mut_ptr(), right.at(0, c + i).data, depth);
                }
                Matrix { data: wide.as_ptr(), row: 1, column: depth }
            };
            let sums = sums.add(c * left.1);
            if n == C {
                outer::<T::Vector, R, C>(left, right, sums, depth);
                continue;
            }
            for i in 0..n {
                outer::<T::Vector, R, 1>(left, right.at(0, i), sums.add(i * left.1), depth);
            }
        }
    }
}

/// Multiplies `R` vectors of rows by `C` columns; the loops have constant bounds, as in [`dots`].
///
/// # Safety
/// As for [`add`].
#[inline(never)]
#[expect(
    clippy::needless_range_loop,
    reason = "the sums stay in registers only where each index is a constant"
)]
unsafe fn outer<V: Vector, const R: usize, const C: usize>(
    (left, padded): (*const V::Number, usize),
    right: Matrix<*const V::Number>,
    sums: *mut V::Number,
    depth: usize,
) {
    let mut made = [[V::splat(V::Number::ZERO); R]; C];
    // SAFETY: the caller guarantees the elements and the sums.
    unsafe {
        for c in 0..C {
            for r in 0..R {
                made[c][r] = V::load(sums.add(c * padded + r * V::LANES));
            }
        }
        for k in 0..depth {
            let mut x = [made[0][0]; R];
            for r in 0..R {
                x[r] = V::load(left.add(k * padded + r * V::LANES));
            }
            for c in 0..C {
                let y = V::splat(*right.at(k, c).data);
                for r in 0..R {
                    made[c][r] = x[r].mul_add(y, made[c][r]);
                }
            }
        }
        for c in 0..C {
            for r in 0..R {
                made[c][r].store(sums.add(c * padded + r * V::LANES));
            }
        }
    }
}

/// Adds products of rows and columns to the sums.
///
/// # Safety
/// The elements must exist, and the sums must be uniquely owned.
unsafe fn add<T: Elements>(
    left: Matrix<*const T::Acc>,
    right: Matrix<*const T>,
    sums: *mut T::Acc,
    (rows, columns, depth): (usize, usize, usize),
) {
    for c in (0..columns).step_by(WIDE) {
        for r in (0..rows).step_by(TALL) {
            let (tall, wide) = (TALL.min(rows - r), WIDE.min(columns - c));
            // SAFETY: the caller guarantees the elements and the sums.
            unsafe {
                let sums = sums.add(r * BLOCK + c);
                let (left, right) = (left.at(r, 0), right.at(0, c));
                match (tall, wide) {
                    (TALL, WIDE) => dots::<T, TALL, WIDE>(left, right, sums, depth),
                    (TALL, _) => {
                        (0..wide).for_each(|c| dots::<T, TALL, 1>(left, right.at(0, c), sums.add(c), depth));
                    }
                    _ => (0..tall).flat_map(|r| (0..wide).map(move |c| (r, c))).for_each(|(r, c)| {
                        dots::<T, 1, 1>(left.at(r, 0), right.at(0, c), sums.add(r * BLOCK + c), depth);
                    }),
                }
            }
        }
    }
}

/// Multiplies `R` rows by `C` columns. The loops have constant bounds, so that the compiler allocates registers for the
/// register tile.
///
/// # Safety
/// As for [`add`].
#[inline(never)]
#[expect(
    clippy::needless_range_loop,
    reason = "the sums stay in registers only where each index is a constant"
)]
unsafe fn dots<T: Elements, const R: usize, const C: usize>(
    left: Matrix<*const T::Acc>,
    right: Matrix<*const T>,
    sums: *mut T::Acc,
    depth: usize,
) {
    let lanes = T::Vector::LANES;
    let zero = T::Vector::splat(T::Acc::ZERO);
    let mut made = [[zero; C]; R];
    let mut k = 0;
    // SAFETY: the caller guarantees the elements and the sums.
    unsafe {
        while k + lanes <= depth {
            let mut x = [zero; R];
            for r in 0..R {
                x[r] = T::Vector::load(left.at(r, k).data);
            }
            for c in 0..C {
                let y = T::read(right.at(k, c).data);
                for r in 0..R {
                    made[r][c] = y.mul_add(x[r], made[r][c]);
                }
            }
            k += lanes;
        }
        if k < depth {
            for c in 0..C {
                let y = read_some(right.at(k, c).data, 1, depth - k);
                for r in 0..R {
                    made[r][c] = y.mul_add(load_some(left.at(r, k).data, depth - k), made[r][c]);
                }
            }
        }
        for r in 0..R {
            for c in 0..C {
                *sums.add(r * BLOCK + c) += sum(made[r][c], zero);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::half::{bf16, f16};

    fn check<T: Elements>(rows: usize, columns: usize, inner: usize, transposed: bool) {
        let number = |i: usize| T::from_f64((i * 7 % 13) as f64 - 6.0);
        let a: Vec<T> = (0..rows * inner).map(number).collect();
        let b: Vec<T> = (0..inner * columns).map(|i| number(i + 5)).collect();
        let bias: Vec<T> = (0..columns).map(|i| number(i + 2)).collect();
        let mut out = vec![T::from_f64(f64::NAN); rows * columns];
        let (row, column) = if transposed { (1, rows) } else { (inner, 1) };
        let whole = Tile {
            rows,
            columns,
            inner,
            a: Matrix { data: a.as_ptr(), row, column },
            b: Matrix { data: b.as_ptr(), row: 1, column: inner },
            out: Matrix { data: out.as_mut_ptr(), row: columns, column: 1 },
            input: Some((Matrix { data: bias.as_ptr(), row: 0, column: 1 }, T::from_f64(3.0))),
            alpha: T::from_f64(1.0),
        };
        // SAFETY: the vectors have the elements of these sizes and strides; `out` is used here alone.
        unsafe { product(&whole) }.expect("memory");
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let term = |k: usize| a[r * row + k * column].to_f64() * b[c * inner + k].to_f64();
            let expected = (0..inner).map(term).sum::<f64>() + 3.0 * bias[c].to_f64();
            // Integers below 2^24, so that f32 sums are exact.
            let expected = T::from_f64(expected).to_f64();
            assert_eq!(
                out[r * columns + c].to_f64(),
                expected,
                "{} {rows} {columns} {inner} {r} {c}",
                T::NAME
            );
        }
    }

    #[test]
    fn products_are_exact_in_whole_blocks_and_beside_them() {
        for (rows, columns, inner) in
            [(1, 1, 1), (4, 64, 64), (5, 67, 39), (8, 100, 129), (15, 31, 40), (24, 98, 300), (32, 130, 1100)]
        {
            for transposed in [false, true] {
                check::<f32>(rows, columns, inner, transposed);
                check::<f64>(rows, columns, inner, transposed);
                check::<f16>(rows, columns, inner.min(200), transposed);
                check::<bf16>(rows, columns, inner.min(200), transposed);
            }
        }
    }
}
