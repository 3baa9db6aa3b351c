//! `lu_factor`: the recursive LU decomposition with partial pivoting of `faer`. Scratch: one matrix and two permutations for
//! each task.

use crate::matrices::{Batch, Need, each, pieces};
use crate::number::Number;
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::{MatMut, MatRef, Par, Spec};
use keyway_cpu_loops::{CallExt, reserve};
use keyway_sdk::author::{Call, Error};

fn lu_factor<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let batch = Batch::<T>::read(call, 0)?;
    let (m, n) = (batch.rows, batch.columns);
    let (k, count) = (m.min(n), batch.count());
    let (mut lu, mut pivots) = (call.contiguous_out::<T>(0)?, call.contiguous_out::<i32>(1)?);
    let need = Need {
        elements: m * n,
        stack: lu_in_place_scratch::<usize, T>(m, n, Par::Seq, Spec::default()),
        cost: m * n * k + m * n,
    };
    let mut jobs: Vec<_> =
        pieces(&mut lu, m * n, count).into_iter().zip(pieces(&mut pivots, k, count)).collect();
    each(&mut jobs, &need, |nth, (out, pivots), workspace| {
        let (elements, stack) = workspace.parts();
        let mut a = MatMut::from_column_major_slice_mut(elements, m, n);
        a.copy_from(batch.matrix(nth, batch.lead));
        let (mut forward, mut inverse) = (filled(m)?, filled(m)?);
        let (forward, inverse) = (&mut forward[..], &mut inverse[..]);
        if k > 0 {
            lu_in_place(a.as_mut(), forward, inverse, Par::Seq, stack, Spec::default());
            // `faer` divides complex columns of zeros by their pivot.
            if !T::IS_REAL && !is_finite(a.as_ref()) && is_finite(batch.matrix(nth, batch.lead)) {
                a.copy_from(batch.matrix(nth, batch.lead));
                eliminate(a.as_mut(), forward);
            }
        }
        MatMut::from_row_major_slice_mut(out, m, n).copy_from(a.as_ref());
        // Row `i` of the result is row `forward[i]` of the matrix. The transpositions that lead there, from 1 as in LAPACK:
        // `rows[i]` is the row that is now at position `i`, `positions` is its inverse.
        let (mut rows, mut positions) = (filled(m)?, filled(m)?);
        for (i, pivot) in pivots.iter_mut().enumerate() {
            let at = positions[forward[i]];
            *pivot = at as i32 + 1;
            let (here, wanted) = (rows[i], rows[at]);
            rows.swap(i, at);
            positions[here] = at;
            positions[wanted] = i;
        }
        Ok(())
    })
}

fn is_finite<T: Number>(a: MatRef<'_, T>) -> bool {
    (0..a.ncols()).all(|j| (0..a.nrows()).all(|i| Number::is_finite(a[(i, j)])))
}

/// Gaussian elimination with partial pivoting, which leaves columns of zeros as they are. `order` becomes the order of the rows.
fn eliminate<T: Number>(mut a: MatMut<'_, T>, order: &mut [usize]) {
    let (m, n) = (a.nrows(), a.ncols());
    order.iter_mut().enumerate().for_each(|(i, row)| *row = i);
    for step in 0..m.min(n) {
        let larger = |best: usize, i: usize| {
            if a[(i, step)].modulus() > a[(best, step)].modulus() { i } else { best }
        };
        let pivot = (step..m).fold(step, larger);
        order.swap(step, pivot);
        for j in 0..n {
            let (own, other) = (a[(step, j)], a[(pivot, j)]);
            (a[(step, j)], a[(pivot, j)]) = (other, own);
        }
        let size = a[(step, step)].modulus();
        if size == T::Part::ZERO {
            continue;
        }
        let inverse = a[(step, step)].conjugate().over(size).over(size);
        for i in step + 1..m {
            let factor = a[(i, step)] * inverse;
            a[(i, step)] = factor;
            for j in step + 1..n {
                let rest = a[(i, j)] - factor * a[(step, j)];
                a[(i, j)] = rest;
            }
        }
    }
}

/// `0..n`.
fn filled(n: usize) -> Result<Vec<usize>, Error> {
    let mut made = reserve(n)?;
    made.extend(0..n);
    Ok(made)
}

kernel!("lu_factor", "T>TT", lu_factor);
