//! `svd`, `svdvals`: bidiagonal form by Householder reflections, then QR iteration, or divide and conquer for large matrices,
//! of `faer`. Scratch: the matrix, both bases and the values for each task.

use crate::matrices::{Batch, Need, diverged, each, finite, pieces, scaled};
use crate::number::Number;
use crate::signs::{phase, with_phase};
use faer::diag::DiagMut;
use faer::dyn_stack::StackReq;
use faer::linalg::svd::{ComputeSvdVectors, svd as decompose, svd_scratch};
use faer::{MatMut, MatRef, Par, Spec};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error};

fn stack<T: Number>(m: usize, n: usize, vectors: ComputeSvdVectors) -> StackReq {
    match m.min(n) {
        0 => StackReq::EMPTY,
        _ => svd_scratch::<T>(m, n, vectors, vectors, Par::Seq, Spec::default()),
    }
}

fn svd<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let (batch, full) = (Batch::<T>::read(call, 0)?, call.bool(1)?);
    let (m, n, count) = (batch.rows, batch.columns, batch.count());
    let k = m.min(n);
    let (of_u, of_v) = if full { (m, n) } else { (k, k) };
    let (mut u, mut s, mut v) =
        (call.contiguous_out::<T>(0)?, call.contiguous_out::<T::Part>(1)?, call.contiguous_out::<T>(2)?);
    let vectors = if full { ComputeSvdVectors::Full } else { ComputeSvdVectors::Thin };
    let need = Need {
        elements: m * n + m * of_u + n * of_v + k,
        stack: stack::<T>(m, n, vectors),
        cost: 12 * m * n * k + m * of_u + n * of_v,
    };
    let left = pieces(&mut u, m * of_u, count);
    let right = pieces(&mut v, of_v * n, count);
    let mut jobs: Vec<_> = left.into_iter().zip(pieces(&mut s, k, count)).zip(right).collect();
    each(&mut jobs, &need, |nth, ((u, s), vh), workspace| {
        let (elements, stack) = workspace.parts();
        let (a, rest) = elements.split_at_mut(m * n);
        let (left, rest) = rest.split_at_mut(m * of_u);
        let (right, diagonal) = rest.split_at_mut(n * of_v);
        if k == 0 {
            // The bases of an empty matrix.
            u.iter_mut().enumerate().for_each(|(i, x)| *x = if i % (m + 1) == 0 { T::ONE } else { T::ZERO });
            vh.iter_mut().enumerate().for_each(|(i, x)| *x = if i % (n + 1) == 0 { T::ONE } else { T::ZERO });
            return Ok(());
        }
        let given = batch.at(nth, batch.lead);
        finite(given, n, nth, batch.lead)?;
        let scale = scaled(given, m, n, a);
        // `faer` 0.24 reads a block of the full bases that it does not write.
        left.fill(T::ZERO);
        right.fill(T::ZERO);
        decompose(
            MatRef::from_column_major_slice(a, m, n),
            DiagMut::from_slice_mut(&mut diagonal[..k]),
            Some(MatMut::from_column_major_slice_mut(left, m, of_u)),
            Some(MatMut::from_column_major_slice_mut(right, n, of_v)),
            Par::Seq,
            stack,
            Spec::default(),
        )
        .map_err(|_| diverged("singular values", nth, batch.lead))?;
        s.iter_mut().zip(&*diagonal).for_each(|(value, x)| *value = x.part() * scale);
        let columns = left.chunks_exact(m);
        // The phase of a pair of vectors is that of the left one.
        let phase = |j: usize, column: &[T]| match j < k {
            true => phase(column.iter().copied()),
            false => (T::ONE, usize::MAX),
        };
        for (j, column) in columns.clone().enumerate() {
            let phase = phase(j, column);
            for (i, &x) in column.iter().enumerate() {
                u[i * of_u + j] = with_phase(x, phase, i);
            }
        }
        for (j, column) in right.chunks_exact(n).enumerate() {
            let (factor, _) = columns.clone().nth(j).map_or((T::ONE, 0), |left| phase(j, left));
            for (x, &value) in vh[j * n..][..n].iter_mut().zip(column) {
                *x = (value * factor).conjugate();
            }
        }
        Ok(())
    })
}

fn svdvals<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let batch = Batch::<T>::read(call, 0)?;
    let (m, n, count) = (batch.rows, batch.columns, batch.count());
    let k = m.min(n);
    let mut values = call.contiguous_out::<T::Part>(0)?;
    let need =
        Need { elements: m * n + k, stack: stack::<T>(m, n, ComputeSvdVectors::No), cost: 4 * m * n * k };
    each(&mut pieces(&mut values, k, count), &need, |nth, values, workspace| {
        if k == 0 {
            return Ok(());
        }
        let (elements, stack) = workspace.parts();
        let given = batch.at(nth, batch.lead);
        finite(given, n, nth, batch.lead)?;
        let (a, diagonal) = elements.split_at_mut(m * n);
        let scale = scaled(given, m, n, a);
        let a = MatRef::from_column_major_slice(a, m, n);
        let singular = DiagMut::from_slice_mut(&mut diagonal[..k]);
        decompose(a, singular, None, None, Par::Seq, stack, Spec::default())
            .map_err(|_| diverged("singular values", nth, batch.lead))?;
        values.iter_mut().zip(&*diagonal).for_each(|(value, x)| *value = x.part() * scale);
        Ok(())
    })
}

kernel!("svd", "Tb>TTT", svd);
kernel!("svdvals", "T>T", svdvals);
