//! `lu_factor`: the recursive LU decomposition with partial pivoting of `faer`. Scratch: one matrix and two permutations for
//! each task.

use crate::matrices::{Batch, Need, each, pieces};
use crate::number::Number;
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::{MatMut, Par, Spec};
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

/// `0..n`.
fn filled(n: usize) -> Result<Vec<usize>, Error> {
    let mut made = reserve(n)?;
    made.extend(0..n);
    Ok(made)
}

kernel!("lu_factor", "T>TT", lu_factor);
