//! `rms_norm` over the columns of a matrix, as in [`layer_norm`](crate::kernels::layer_norm).

// Loops over indices of arrays are unrolled into registers; iterators of iterators are not, at this size.
#![allow(clippy::needless_range_loop)]

use crate::kernels::layer_norm::columns::{Matrix, Number, Numbers, SIDE, groups, lanes};
use crate::kernels::moments::first_of;
use keyway_cpu_loops::vectors::{Lanes as Elements, Vector, load_some, minus, plus, write_some};
use keyway_sdk::author::{Element, Real};

/// `1 / sqrt(mean(x^2) + eps)` of the columns in `G` vectors.
///
/// # Safety
/// The matrix must have the elements.
#[inline(always)]
unsafe fn roots<T: Elements, const G: usize>(
    matrix: &Matrix<T>,
    at: [usize; G],
    some: usize,
    eps: Number<T>,
) -> [Numbers<T>; G] {
    let mut squares = [Numbers::<T>::splat(Number::<T>::ZERO); G];
    let count = Number::<T>::from_f64(matrix.n as f64);
    for i in 0..matrix.n {
        for k in 0..G {
            // SAFETY: the caller guarantees the elements.
            let x = unsafe { matrix.read(matrix.x, i, at[k], some) };
            squares[k] = x.mul_add(x, squares[k]);
        }
    }
    squares.map(|squares| lanes([squares], |[x]| [Number::<T>::ONE / (x / count + eps).sqrt()])[0])
}

/// Normalises the columns. The weight has one value per row.
///
/// # Safety
/// The matrices must have the elements, and the written ones must be uniquely owned.
pub unsafe fn normalise<T: Elements>(matrix: &Matrix<T>, weight: &[Number<T>], eps: Number<T>) {
    groups::<Numbers<T>>(matrix.columns, |c, some, several| {
        // SAFETY: as the caller guarantees.
        unsafe {
            if several {
                group::<T, SIDE>(matrix, c, some, weight, eps);
            } else {
                group::<T, 1>(matrix, c, some, weight, eps);
            }
        }
    });
}

/// # Safety
/// As for [`normalise`].
#[inline(always)]
unsafe fn group<T: Elements, const G: usize>(
    matrix: &Matrix<T>,
    c: usize,
    some: usize,
    weight: &[Number<T>],
    eps: Number<T>,
) {
    let at: [usize; G] = std::array::from_fn(|k| c + k * Numbers::<T>::LANES);
    let zero = Numbers::<T>::splat(Number::<T>::ZERO);
    // SAFETY: as the caller guarantees.
    unsafe {
        let roots = roots(matrix, at, some, eps);
        for i in 0..matrix.n {
            let w = Numbers::<T>::splat(weight[i]);
            for k in 0..G {
                let x = matrix.read(matrix.x, i, at[k], some).mul_add(roots[k], zero);
                write_some(matrix.to.add(i * matrix.step + at[k]), 1, some, x.mul_add(w, zero));
            }
        }
    }
}

/// Writes the gradients of the columns, and adds their contribution to the gradient of the weight.
///
/// # Safety
/// The matrices must have the elements, and the written ones must be uniquely owned; `sums` must be a part with as many
/// rows.
pub unsafe fn gradients<T: Elements>(
    matrix: &Matrix<T>,
    grad: *const T,
    weight: &[Number<T>],
    eps: Number<T>,
    sums: *mut Number<T>,
) {
    groups::<Numbers<T>>(matrix.columns, |c, some, several| {
        // SAFETY: as the caller guarantees.
        unsafe {
            if several {
                gradients_of::<T, SIDE>((matrix, grad), c, some, (weight, eps), sums);
            } else {
                gradients_of::<T, 1>((matrix, grad), c, some, (weight, eps), sums);
            }
        }
    });
}

/// # Safety
/// As for [`gradients`].
#[inline(always)]
unsafe fn gradients_of<T: Elements, const G: usize>(
    (matrix, grad): (&Matrix<T>, *const T),
    c: usize,
    some: usize,
    (weight, eps): (&[Number<T>], Number<T>),
    sums: *mut Number<T>,
) {
    let width = Numbers::<T>::LANES;
    let at: [usize; G] = std::array::from_fn(|k| c + k * width);
    let zero = Numbers::<T>::splat(Number::<T>::ZERO);
    let count = Number::<T>::from_f64(matrix.n as f64);
    // SAFETY: as the caller guarantees.
    unsafe {
        let roots = roots(matrix, at, some, eps);
        let mut products = [zero; G];
        for i in 0..matrix.n {
            let w = Numbers::<T>::splat(weight[i]);
            for k in 0..G {
                let g = matrix.read(grad, i, at[k], some).mul_add(w, zero);
                products[k] = g.mul_add(matrix.read(matrix.x, i, at[k], some), products[k]);
            }
        }
        let along: [Numbers<T>; G] =
            std::array::from_fn(|k| lanes([products[k], roots[k]], |[sum, root]| [sum * root / count])[0]);
        for i in 0..matrix.n {
            let w = Numbers::<T>::splat(weight[i]);
            let mut of_weight: Numbers<T> = load_some(sums.add(i * width), width);
            for k in 0..G {
                let g = matrix.read(grad, i, at[k], some);
                let x = matrix.read(matrix.x, i, at[k], some).mul_add(roots[k], zero);
                let d = minus(g.mul_add(w, zero), x.mul_add(along[k], zero));
                write_some(matrix.to.add(i * matrix.step + at[k]), 1, some, d.mul_add(roots[k], zero));
                let product = g.mul_add(x, zero);
                // Lanes beyond the columns are NaN if `eps` is 0.
                of_weight = plus(of_weight, if some == width { product } else { first_of(product, some) });
            }
            of_weight.store(sums.add(i * width));
        }
    }
}
