//! Matrix-vector and dot products. Both are memory bound: each element of the matrix is read once, in memory order, and
//! several rows are read in an interleaved loop, which keeps more memory requests in flight.
//!
//! The matrix is split into pieces that depend on the sizes alone; their partial sums are added in order.

use super::product::{Batch, Matrix, Tile};
use super::widen::finish;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Lanes as Elements, ROWS, Vector, sum, widen};
use keyway_sdk::author::{Element, Error, Lanes, Real, Scratch};

/// Elements of the matrix that justify another thread.
const WORK: usize = 1 << 15;
/// The maximum number of matrix elements of a batched product that a single thread computes.
const SMALL: usize = 1 << 18;
/// The piece of a row that has its own partial sum, in elements.
const PIECE: usize = 1 << 16;
/// The block sizes for dense columns: of the reduction dimension, and of the outputs.
const BLOCK: (usize, usize) = (256, 2048);
/// Dense columns that are accumulated in one pass over the outputs.
const LINES: usize = 8;

/// Computes the products if one operand of each is a vector.
///
/// # Safety
/// All elements described by the sizes and strides of the products must exist, and those of `out` must be uniquely
/// owned; the caller upholds this.
pub unsafe fn multiply<T: Elements>(all: &Batch<T>) -> Option<Result<(), Error>> {
    let Tile { rows, columns, inner, .. } = all.first;
    if rows > 1 && columns > 1 || inner == 0 {
        return None;
    }
    let product = |i: usize, spread: bool| {
        let product = all.product(i);
        // SAFETY: the caller guarantees the elements.
        unsafe { column(&if columns == 1 { product } else { product.transposed() }, spread) }
    };
    let elements = rows * columns * inner;
    Some(if all.count > 1 && elements < SMALL {
        parallel_try(all.count, WORK / elements, |mut range| range.try_for_each(|i| product(i, false)))
    } else {
        (0..all.count).try_for_each(|i| product(i, true))
    })
}

/// The product of two dense vectors, read in place.
///
/// # Safety
/// Both must have `n` elements.
pub unsafe fn dot<T: Elements>(a: *const T, b: *const T, n: usize) -> Result<T::Acc, Error> {
    let pieces = n.div_ceil(PIECE);
    let mut sums = Scratch::<T::Acc>::zeroed(pieces)?;
    // SAFETY: the addresses are used within the operands and the sums during this call.
    let (to, a, b) =
        unsafe { (Lanes::new(sums.as_mut_ptr()), Lanes::new(a.cast_mut()), Lanes::new(b.cast_mut())) };
    parallel_try(pieces, 1, |range| {
        for i in range {
            let (first, n) = (i * PIECE, PIECE.min(n - i * PIECE));
            // SAFETY: the caller guarantees the elements; each piece has its own sum.
            unsafe { *to.as_ptr().add(i) = dot_piece(a.as_ptr().add(first), b.as_ptr().add(first), n) };
        }
        Ok(())
    })?;
    Ok(sums.iter().fold(T::Acc::ZERO, |total, part| total + *part))
}

/// # Safety
/// As for [`dot`].
#[inline(never)]
#[expect(
    clippy::needless_range_loop,
    reason = "the sums stay in registers only where each index is a constant"
)]
unsafe fn dot_piece<T: Elements>(a: *const T, b: *const T, n: usize) -> T::Acc {
    const SUMS: usize = 8;
    let lanes = T::Vector::LANES;
    let mut sums = [T::Vector::splat(T::Acc::ZERO); SUMS];
    let mut k = 0;
    // SAFETY: the caller guarantees the elements.
    unsafe {
        while k + SUMS * lanes <= n {
            for s in 0..SUMS {
                let at = k + s * lanes;
                sums[s] = T::read(a.add(at)).mul_add(T::read(b.add(at)), sums[s]);
            }
            k += SUMS * lanes;
        }
        let mut total = T::Acc::ZERO;
        for s in 0..SUMS / 2 {
            total += sum(sums[2 * s], sums[2 * s + 1]);
        }
        for k in k..n {
            total += (*a.add(k)).to_acc() * (*b.add(k)).to_acc();
        }
        total
    }
}

/// The vector, dense and in the accumulation type: borrowed, or a copy in `room`.
///
/// # Safety
/// The elements must exist and outlive the result.
unsafe fn dense<T: Elements>(
    room: &mut Scratch<T::Acc>,
    (from, step): (*const T, usize),
    n: usize,
) -> Result<*const T::Acc, Error> {
    if step == 1 && T::dtype() == T::Acc::dtype() {
        return Ok(from.cast());
    }
    // SAFETY: each element is written below.
    *room = unsafe { Scratch::unwritten(n) }?;
    if step == 1 {
        // SAFETY: the caller guarantees the elements, and the copy has the same number.
        unsafe { widen(room.as_mut_ptr(), from, n) };
        return Ok(room.as_ptr());
    }
    for (i, slot) in room.iter_mut().enumerate() {
        // SAFETY: the caller guarantees the elements.
        *slot = unsafe { *from.add(i * step) }.to_acc();
    }
    Ok(room.as_ptr())
}

/// A product with one column; on this thread alone unless `spread`.
///
/// # Safety
/// As for [`multiply`].
unsafe fn column<T: Elements>(whole: &Tile<T>, spread: bool) -> Result<(), Error> {
    let Tile { rows, inner, a, b, .. } = *whole;
    let (mut x_room, mut sums) = (Scratch::zeroed(0)?, Scratch::zeroed(0)?);
    // SAFETY: the caller guarantees the elements.
    let x = unsafe { dense(&mut x_room, (b.data, b.row), inner)? };
    let by_columns = a.row == 1 && a.column != 1 && rows > 1;
    let (deep, wide) = if by_columns { BLOCK } else { (PIECE, (WORK / inner).max(1).next_multiple_of(ROWS)) };
    let pieces = inner.div_ceil(deep);
    // SAFETY: each work item writes its sums.
    sums = if pieces * rows > 0 { unsafe { Scratch::<T::Acc>::unwritten(pieces * rows) }? } else { sums };
    // SAFETY: the addresses are used within the operands and the sums during this call.
    let (to, x, data) =
        unsafe { (Lanes::new(sums.as_mut_ptr()), Lanes::new(x.cast_mut()), Lanes::new(a.data.cast_mut())) };
    let blocks = rows.div_ceil(wide);
    let work = deep.min(inner) * wide.min(rows);
    parallel_try(pieces * blocks, if spread { WORK / work } else { usize::MAX }, |range| {
        for i in range {
            let (k, r) = (i / blocks * deep, i % blocks * wide);
            let (inner, rows_here) = (deep.min(inner - k), wide.min(rows - r));
            let a = Matrix { data: data.as_ptr().cast_const(), row: a.row, column: a.column }.at(r, k);
            // SAFETY: the caller guarantees the elements; each piece has its own sums.
            unsafe {
                let (x, to) = (x.as_ptr().add(k).cast_const(), to.as_ptr().add(i / blocks * rows + r));
                if by_columns {
                    add_columns(a, x, to, (rows_here, inner));
                } else if a.column == 1 || inner == 1 {
                    add_rows(a, x, to, (rows_here, inner));
                } else {
                    for r in 0..rows_here {
                        let terms = (0..inner).map(|k| (*a.at(r, k).data).to_acc() * *x.add(k));
                        *to.add(r) = terms.fold(T::Acc::ZERO, |total, term| total + term);
                    }
                }
            }
        }
        Ok(())
    })?;
    let (first, others) = sums.split_at_mut(rows);
    for piece in others.chunks_exact(rows) {
        first.iter_mut().zip(piece).for_each(|(total, part)| *total += *part);
    }
    // SAFETY: the caller guarantees the elements; there is a sum for each row.
    unsafe { finish(&whole.transposed(), first.as_ptr(), rows) };
    Ok(())
}

/// Multiplies dense rows by a vector.
///
/// # Safety
/// The elements must exist, and those of `to` must be uniquely owned.
unsafe fn add_rows<T: Elements>(
    a: Matrix<*const T>,
    x: *const T::Acc,
    to: *mut T::Acc,
    (rows, inner): (usize, usize),
) {
    let mut r = 0;
    while r < rows {
        // SAFETY: the caller guarantees the rows and the results.
        unsafe {
            if rows - r >= ROWS {
                dots::<T, ROWS>(a.at(r, 0), x, to.add(r), inner);
                r += ROWS;
            } else {
                dots::<T, 1>(a.at(r, 0), x, to.add(r), inner);
                r += 1;
            }
        }
    }
}

/// Multiplies `R` dense rows by a vector. A row's sum does not depend on `R`. The loops have constant bounds, so that the
/// compiler allocates registers for the accumulators.
///
/// # Safety
/// As for [`add_rows`].
#[inline(never)]
#[expect(
    clippy::needless_range_loop,
    reason = "the sums stay in registers only where each index is a constant"
)]
unsafe fn dots<T: Elements, const R: usize>(
    a: Matrix<*const T>,
    x: *const T::Acc,
    to: *mut T::Acc,
    inner: usize,
) {
    let lanes = T::Vector::LANES;
    let mut sums = [[T::Vector::splat(T::Acc::ZERO); 2]; R];
    let mut k = 0;
    // SAFETY: the caller guarantees the elements and the results.
    unsafe {
        while k + 2 * lanes <= inner {
            for half in 0..2 {
                let x = T::Vector::load(x.add(k + half * lanes));
                for r in 0..R {
                    sums[r][half] = T::read(a.at(r, k + half * lanes).data).mul_add(x, sums[r][half]);
                }
            }
            k += 2 * lanes;
        }
        for r in 0..R {
            let mut total = sum(sums[r][0], sums[r][1]);
            for k in k..inner {
                total += (*a.at(r, k).data).to_acc() * *x.add(k);
            }
            *to.add(r) = total;
        }
    }
}

/// Multiplies a matrix with dense columns by a vector: each column is added to the sums (axpy).
///
/// # Safety
/// As for [`add_rows`].
unsafe fn add_columns<T: Elements>(
    a: Matrix<*const T>,
    x: *const T::Acc,
    to: *mut T::Acc,
    (rows, inner): (usize, usize),
) {
    let mut k = 0;
    // SAFETY: the caller guarantees the elements and the results.
    unsafe {
        std::slice::from_raw_parts_mut(to, rows).fill(T::Acc::ZERO);
        while k < inner {
            if inner - k >= LINES {
                add_lines::<T, LINES>(a.at(0, k), x.add(k), to, rows);
                k += LINES;
            } else {
                add_lines::<T, 1>(a.at(0, k), x.add(k), to, rows);
                k += 1;
            }
        }
    }
}

/// Adds `N` columns, each scaled by its element of the vector, to the sums.
///
/// # Safety
/// As for [`add_rows`], with `N` columns.
#[inline]
unsafe fn add_lines<T: Elements, const N: usize>(
    a: Matrix<*const T>,
    x: *const T::Acc,
    to: *mut T::Acc,
    rows: usize,
) {
    let lanes = T::Vector::LANES;
    // SAFETY: the caller guarantees the elements and the results.
    unsafe {
        let factors: [T::Acc; N] = std::array::from_fn(|i| *x.add(i));
        let vectors = factors.map(T::Vector::splat);
        let mut r = 0;
        while r + lanes <= rows {
            let mut sums = T::Vector::load(to.add(r));
            for (i, &factor) in vectors.iter().enumerate() {
                sums = T::read(a.data.add(i * a.column + r)).mul_add(factor, sums);
            }
            sums.store(to.add(r));
            r += lanes;
        }
        for r in r..rows {
            for (i, &factor) in factors.iter().enumerate() {
                *to.add(r) += (*a.data.add(i * a.column + r)).to_acc() * factor;
            }
        }
    }
}
