//! Shared parts of the gradients of normalised rows and columns, for all norms.

use super::arrangement::{Arrangement, Columns, Rows, arrangement};
use super::columns::{Block, Contributions, Matrix, TRANSPOSED};
use super::{GRAIN, PART};
use crate::kernels::buffer::Buffer;
use crate::kernels::moments::widened;
use keyway_cpu_loops::CallExt;
use keyway_cpu_loops::vectors::Lanes as Elements;
use keyway_sdk::author::{Call, Error, Lanes, Real, parallel_for};

/// The input and gradients of a backward pass.
pub struct Operands<'a, T> {
    pub grad: Lanes<'a, T>,
    pub x: Lanes<'a, T>,
    pub to: Lanes<'a, T>,
}

/// Computes the gradients of columns, with one weight for each row of their matrices; returns the gradients of the
/// parameters, which have one value per row.
type OfColumns<T, A> = unsafe fn(&Operands<'_, T>, &Columns, &[A], A) -> Result<Buffer<A>, Error>;
/// Computes the gradients of rows of the given number of elements.
type OfRows<T, A> = unsafe fn(&Operands<'_, T>, usize, &Rows, &[A], A) -> Result<Buffer<A>, Error>;

/// Calls one of the two functions, according to the layout of the call's tensors: gradient, input, normalised shape and
/// weight, and the gradient of the input as output 0. Both functions require valid elements at each address, and the
/// written ones to be uniquely owned.
///
/// # Errors
/// Errors of the functions.
pub fn by_arrangement<T: Elements>(
    call: &Call,
    eps: T::Acc,
    of_columns: OfColumns<T, T::Acc>,
    of_rows: OfRows<T, T::Acc>,
) -> Result<Buffer<T::Acc>, Error> {
    let shape = call.ints(2)?;
    let n: usize = shape.iter().map(|n| *n as usize).product();
    let tensors = [call.tensor(1)?, call.tensor(0)?, call.output(0)?];
    let (grad, x) = (call.view::<T>(0)?, call.view::<T>(1)?);
    match arrangement(&tensors, shape.len()) {
        Some(arrangement) => {
            let mut out = call.out::<T>(0)?;
            // SAFETY: the arrangement is that of the three tensors, and the output is uniquely owned.
            unsafe {
                let strided = Operands {
                    grad: Lanes::new(grad.as_ptr().cast_mut()),
                    x: Lanes::new(x.as_ptr().cast_mut()),
                    to: out.lanes(),
                };
                match arrangement {
                    Arrangement::Columns(columns) => {
                        let weight = widened::<T>(call, 3, n, T::Acc::ONE)?;
                        of_columns(&strided, &columns, &weight, eps)
                    }
                    Arrangement::Rows(rows) => {
                        let weight = rows.widened::<T>(call, 3, n, T::Acc::ONE)?;
                        of_rows(&strided, n, &rows, &weight, eps)
                    }
                }
            }
        }
        None => {
            let (grad, x) = (call.contiguous::<T>(0)?, call.contiguous::<T>(1)?);
            let mut out = call.contiguous_out::<T>(0)?;
            let (rows, weight) = (Rows::dense(x.len() / n.max(1), n), widened::<T>(call, 3, n, T::Acc::ONE)?);
            // SAFETY: the slices have the rows.
            unsafe {
                let dense = Operands {
                    grad: Lanes::new(grad.as_ptr().cast_mut()),
                    x: Lanes::new(x.as_ptr().cast_mut()),
                    to: Lanes::new(out.as_mut_ptr()),
                };
                of_rows(&dense, n, &rows, &weight, eps)
            }
        }
    }
}

/// Computes the gradients of columns, matrix by matrix: `gradients` is called with a matrix, its gradient, and the `width`
/// sums of its part. Returns the sums over all parts.
///
/// # Safety
/// The elements at each address must exist, and the written ones must be uniquely owned.
pub unsafe fn in_columns<T: Elements>(
    on: &Operands<'_, T>,
    columns: &Columns,
    width: usize,
    gradients: impl Fn(&Matrix<T>, *const T, *mut T::Acc) + Sync,
) -> Result<Buffer<T::Acc>, Error> {
    let &Columns { n, step, count, .. } = columns;
    let matrices = columns.matrices();
    let together = (PART / (n * count)).max(1);
    let parts = matrices.div_ceil(together);
    let mut sums = Contributions::<T>::new(width, parts)?;
    // SAFETY: the address is used within the sums, which outlive the loop; each part has its own sums.
    let to_sums = unsafe { Lanes::new(sums.as_mut_ptr()) };
    parallel_for(parts, GRAIN.div_ceil(together * n * count), |range| {
        for part in range {
            let sums = to_sums.as_ptr().wrapping_add(part * Contributions::<T>::len(width));
            for at in (part * together..((part + 1) * together).min(matrices)).map(|m| columns.at(m)) {
                let at = |lanes: Lanes<'_, T>| lanes.as_ptr().wrapping_add(at);
                let matrix = Matrix { x: at(on.x).cast_const(), to: at(on.to), n, step, columns: count };
                gradients(&matrix, at(on.grad), sums);
            }
        }
    })?;
    sums.sums(width)
}

/// As [`in_columns`], for `count` contiguous rows of at most [`SHORT`](super::columns::SHORT) elements, which are
/// transposed to columns.
///
/// # Safety
/// As for [`in_columns`].
pub unsafe fn in_short_rows<T: Elements>(
    on: &Operands<'_, T>,
    n: usize,
    count: usize,
    width: usize,
    gradients: impl Fn(&Matrix<T>, *const T, *mut T::Acc) + Sync,
) -> Result<Buffer<T::Acc>, Error> {
    let together = (PART / (n * TRANSPOSED)).max(1) * TRANSPOSED;
    let parts = count.div_ceil(together);
    let mut sums = Contributions::<T>::new(width, parts)?;
    // SAFETY: as in `in_columns`.
    let to_sums = unsafe { Lanes::new(sums.as_mut_ptr()) };
    parallel_for(parts, GRAIN.div_ceil(together * n), |range| {
        let (mut rows, mut x, mut grad) = (Block::<T>::new(), Block::<T>::new(), Block::<T>::new());
        for part in range {
            let sums = to_sums.as_ptr().wrapping_add(part * Contributions::<T>::len(width));
            let end = ((part + 1) * together).min(count);
            for first in (part * together..end).step_by(TRANSPOSED) {
                let columns = TRANSPOSED.min(end - first);
                let at = |lanes: Lanes<'_, T>| lanes.as_ptr().wrapping_add(first * n);
                // SAFETY: as the caller guarantees; each element is read before it is overwritten.
                unsafe {
                    x.read(&mut rows, at(on.x), n, columns);
                    grad.read(&mut rows, at(on.grad), n, columns);
                }
                let to = x.as_mut_ptr();
                let matrix = Matrix { x: to.cast_const(), to, n, step: columns, columns };
                gradients(&matrix, grad.as_mut_ptr(), sums);
                // SAFETY: as above.
                unsafe { x.write(&mut rows, at(on.to), n, columns) };
            }
        }
    })?;
    sums.sums(width)
}
