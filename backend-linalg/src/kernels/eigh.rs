//! `eigh`, `eigvalsh`: tridiagonal form by Householder reflections, then QR iteration, or divide and conquer for large
//! matrices, of `faer`. Scratch: two matrices and the
//! values for each task.

use crate::matrices::{Batch, Need, diverged, each, finite, pieces};
use crate::number::Number;
use crate::signs::{phase, with_phase};
use faer::diag::DiagMut;
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::{MatMut, MatRef, Par, Spec};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error};

/// The memory for matrices of `n` rows.
fn need<T: Number>(n: usize, vectors: ComputeEigenvectors) -> Need {
    let stack = match n {
        0 => faer::dyn_stack::StackReq::EMPTY,
        _ => self_adjoint_evd_scratch::<T>(n, vectors, Par::Seq, Spec::default()),
    };
    Need { elements: 2 * n * n + n, stack, cost: 9 * n * n * n }
}

/// Writes the Hermitian part of a matrix, which is symmetric if it is real, by columns.
fn hermitian<T: Number>(a: &[T], n: usize, out: &mut [T]) {
    for i in 0..n {
        for j in 0..n {
            out[j * n + i] = a[i * n + j] * T::HALF + a[j * n + i].conjugate() * T::HALF;
        }
    }
}

fn eigh<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let batch = Batch::<T>::read(call, 0)?;
    let (n, count) = (batch.rows, batch.count());
    let (mut values, mut vectors) = (call.contiguous_out::<T::Part>(0)?, call.contiguous_out::<T>(1)?);
    let mut jobs: Vec<_> =
        pieces(&mut values, n, count).into_iter().zip(pieces(&mut vectors, n * n, count)).collect();
    each(&mut jobs, &need::<T>(n, ComputeEigenvectors::Yes), |nth, (values, vectors), workspace| {
        if n == 0 {
            return Ok(());
        }
        let (elements, stack) = workspace.parts();
        let (a, rest) = elements.split_at_mut(n * n);
        let (columns, diagonal) = rest.split_at_mut(n * n);
        let given = batch.at(nth, batch.lead);
        finite(given, n, nth, batch.lead)?;
        hermitian(given, n, a);
        self_adjoint_evd(
            MatRef::from_column_major_slice(a, n, n),
            DiagMut::from_slice_mut(diagonal),
            Some(MatMut::from_column_major_slice_mut(columns, n, n)),
            Par::Seq,
            stack,
            Spec::default(),
        )
        .map_err(|_| diverged("eigenvalues", nth, batch.lead))?;
        values.iter_mut().zip(&*diagonal).for_each(|(value, x)| *value = x.part());
        for (j, column) in columns.chunks_exact(n).enumerate() {
            let phase = phase(column.iter().copied());
            for (i, &x) in column.iter().enumerate() {
                vectors[i * n + j] = with_phase(x, phase, i);
            }
        }
        Ok(())
    })
}

fn eigvalsh<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let batch = Batch::<T>::read(call, 0)?;
    let (n, count) = (batch.rows, batch.count());
    let mut values = call.contiguous_out::<T::Part>(0)?;
    let need = need::<T>(n, ComputeEigenvectors::No);
    each(&mut pieces(&mut values, n, count), &need, |nth, values, workspace| {
        if n == 0 {
            return Ok(());
        }
        let (elements, stack) = workspace.parts();
        let given = batch.at(nth, batch.lead);
        finite(given, n, nth, batch.lead)?;
        let (a, rest) = elements.split_at_mut(n * n);
        hermitian(given, n, a);
        let (a, diagonal) = (MatRef::from_column_major_slice(a, n, n), &mut rest[..n]);
        self_adjoint_evd(a, DiagMut::from_slice_mut(diagonal), None, Par::Seq, stack, Spec::default())
            .map_err(|_| diverged("eigenvalues", nth, batch.lead))?;
        values.iter_mut().zip(&*diagonal).for_each(|(value, x)| *value = x.part());
        Ok(())
    })
}

kernel!("eigh", "T>TT", eigh);
kernel!("eigvalsh", "T>T", eigvalsh);
