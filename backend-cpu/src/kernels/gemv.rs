//! A matrix times a vector, and the product of two vectors: bound by memory, so that each element of the
//! matrix is read once, in the order in which it lies.

use super::product::Matrix;
use keyway_sdk::author::{Error, Lanes, Real, Scratch, parallel_for};

/// Sums that run side by side in one dot product.
const LANES: usize = 32;
/// Elements of the matrix that one piece of work reads at least.
const WORK: usize = 1 << 15;
/// A dot product is cut into pieces of this many elements, whose sums are added in order.
const PIECE: usize = 1 << 16;

/// The sum of the products of two strided vectors.
///
/// # Safety
/// Both must have `n` elements at these strides; the caller upholds this.
#[inline]
pub unsafe fn dot<T: Real>(n: usize, (a, a_step): (*const T, usize), (b, b_step): (*const T, usize)) -> T {
    let mut total = T::ZERO;
    if a_step == 1 && b_step == 1 {
        // SAFETY: the caller guarantees the elements, which lie one behind the other.
        let (a, b) = unsafe { (std::slice::from_raw_parts(a, n), std::slice::from_raw_parts(b, n)) };
        let mut sums = [T::ZERO; LANES];
        let (blocks, others) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        let (rest, other_rest) = (blocks.remainder(), others.remainder());
        for (x, y) in blocks.zip(others) {
            for l in 0..LANES {
                sums[l] = x[l].mul_add(y[l], sums[l]);
            }
        }
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            for l in 0..width {
                sums[l] = sums[l] + sums[l + width];
            }
        }
        total = sums[0];
        for (&x, &y) in rest.iter().zip(other_rest) {
            total = x.mul_add(y, total);
        }
    } else {
        for i in 0..n {
            // SAFETY: the caller guarantees the elements.
            total = unsafe { (*a.add(i * a_step)).mul_add(*b.add(i * b_step), total) };
        }
    }
    total
}

/// [`dot`] over pieces in parallel; the pieces depend on `n` alone.
///
/// # Safety
/// As for [`dot`].
pub unsafe fn long_dot<T: Real>(n: usize, a: (*const T, usize), b: (*const T, usize)) -> Result<T, Error> {
    if n <= PIECE {
        // SAFETY: the caller guarantees the elements.
        return Ok(unsafe { dot(n, a, b) });
    }
    let mut sums = Scratch::<T>::zeroed(n.div_ceil(PIECE))?;
    // SAFETY: the addresses are used within the vectors and `sums` for the time of this call.
    let (to, x, y) =
        unsafe { (Lanes::new(sums.as_mut_ptr()), Lanes::new(a.0.cast_mut()), Lanes::new(b.0.cast_mut())) };
    parallel_for(n.div_ceil(PIECE), 1, |pieces| {
        for i in pieces {
            let begin = i * PIECE;
            // SAFETY: each piece lies within the vectors, and has one place in `sums`.
            unsafe {
                let (x, y) = (x.as_ptr().add(begin * a.1), y.as_ptr().add(begin * b.1));
                to.write(i, dot(PIECE.min(n - begin), (x.cast_const(), a.1), (y.cast_const(), b.1)));
            }
        }
    })?;
    Ok(sums.iter().fold(T::ZERO, |total, &sum| total + sum))
}

/// `out = a * x` for a matrix of `rows` by `inner`.
///
/// # Safety
/// The elements must exist, and nobody else may use those of `out`; the caller upholds this.
pub unsafe fn gemv<T: Real>(
    rows: usize,
    inner: usize,
    a: Matrix<*const T>,
    (x, x_step): (*const T, usize),
    (out, out_step): (*mut T, usize),
) -> Result<(), Error> {
    let mut packed = Scratch::<T>::zeroed(if x_step == 1 { 0 } else { inner })?;
    let x = if x_step == 1 {
        x
    } else {
        for (i, slot) in packed.iter_mut().enumerate() {
            // SAFETY: the caller guarantees the elements.
            *slot = unsafe { *x.add(i * x_step) };
        }
        packed.as_ptr()
    };
    if rows == 1 {
        // SAFETY: the caller guarantees the elements.
        unsafe { *out = long_dot(inner, (a.data, a.column), (x, 1))? };
        return Ok(());
    }
    // SAFETY: the addresses are used within the operands for the time of this call.
    let (from, x, to) = unsafe { (Lanes::new(a.data.cast_mut()), Lanes::new(x.cast_mut()), Lanes::new(out)) };
    if a.column <= a.row {
        let grain = (WORK / inner.max(1)).max(1);
        return parallel_for(rows, grain, |range| {
            for r in range {
                // SAFETY: each row is read and each result written by one thread.
                unsafe {
                    let row = from.as_ptr().add(r * a.row).cast_const();
                    to.write(r * out_step, dot(inner, (row, a.column), (x.as_ptr().cast_const(), 1)));
                }
            }
        });
    }
    const BLOCK: usize = 256;
    let grain = (WORK / (inner.max(1) * BLOCK)).max(1);
    parallel_for(rows.div_ceil(BLOCK), grain, |blocks| {
        for block in blocks {
            let begin = block * BLOCK;
            let n = BLOCK.min(rows - begin);
            let mut sums = [T::ZERO; BLOCK];
            for k in 0..inner {
                // SAFETY: the column lies within the matrix; the results of a block are written by one thread.
                unsafe {
                    let factor = *x.as_ptr().add(k);
                    let column = from.as_ptr().add(begin * a.row + k * a.column).cast_const();
                    if a.row == 1 {
                        let column = std::slice::from_raw_parts(column, n);
                        for (sum, &value) in sums[..n].iter_mut().zip(column) {
                            *sum = value.mul_add(factor, *sum);
                        }
                    } else {
                        for (i, sum) in sums[..n].iter_mut().enumerate() {
                            *sum = (*column.add(i * a.row)).mul_add(factor, *sum);
                        }
                    }
                }
            }
            for (i, &sum) in sums[..n].iter().enumerate() {
                // SAFETY: as above.
                unsafe { to.write((begin + i) * out_step, sum) };
            }
        }
    })
}
