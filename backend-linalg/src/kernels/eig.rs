//! `eig`, `eigvals`: Hessenberg form by Householder reflections, then the multishift QR algorithm, of `faer`. Scratch: two
//! matrices for each task.

use crate::matrices::{Batch, Need, diverged, each, finite, pieces, scaled, wrong};
use crate::number::{Number, Part};
use crate::signs::{phase, with_phase};
use faer::linalg::evd::ComputeEigenvectors;
use faer::{MatMut, MatRef};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error};

type Complex<T> = <<T as Number>::Part as Part>::Complex;

fn need<T: Number>(n: usize, vectors: ComputeEigenvectors) -> Need {
    Need { elements: 2 * n * n + 2 * n, stack: T::eigen_scratch(n, vectors), cost: 25 * n * n * n }
}

fn eig<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let batch = Batch::<T>::read(call, 0)?;
    let (n, count) = (batch.rows, batch.count());
    let (mut values, mut vectors) =
        (call.contiguous_out::<Complex<T>>(0)?, call.contiguous_out::<Complex<T>>(1)?);
    let mut jobs: Vec<_> =
        pieces(&mut values, n, count).into_iter().zip(pieces(&mut vectors, n * n, count)).collect();
    each(&mut jobs, &need::<T>(n, ComputeEigenvectors::Yes), |nth, (values, vectors), workspace| {
        if n == 0 {
            return Ok(());
        }
        let (elements, stack) = workspace.parts();
        let (a, rest) = elements.split_at_mut(n * n);
        let (columns, packed) = rest.split_at_mut(n * n);
        let given = batch.at(nth, batch.lead);
        finite(given, n, nth, batch.lead)?;
        let scale = scaled(given, n, n, a);
        let a = MatRef::from_column_major_slice(a, n, n);
        let mut columns = MatMut::from_column_major_slice_mut(columns, n, n);
        T::eigen(a, packed, Some(columns.as_mut()), stack)
            .map_err(|_| diverged("eigenvalues", nth, batch.lead))?;
        for (j, value) in values.iter_mut().enumerate() {
            *value = times(T::eigenvalue(packed, n, j), scale);
            // Divided by the largest component first: squares neither overflow nor vanish.
            let component = |i: usize| T::eigenvector(packed, columns.as_ref(), i, j);
            if (0..n).any(|i| !Number::is_finite(component(i))) {
                let got =
                    "one whose eigenvectors exceed the range of the dtype; `eigvals` has its eigenvalues";
                let expected = "a matrix that is not far from a diagonalisable one";
                return Err(wrong("self", expected, got.into(), nth, batch.lead));
            }
            let largest = (0..n).map(|i| component(i).modulus()).fold(T::Part::ZERO, larger);
            let relative = |i: usize| component(i).over(largest).modulus();
            let norm = (0..n).fold(T::Part::ZERO, |sum, i| sum + relative(i) * relative(i)).root();
            let unit = |i: usize| component(i).over(largest).over(norm);
            let phase = phase((0..n).map(unit));
            for i in 0..n {
                vectors[i * n + j] = with_phase(unit(i), phase, i);
            }
        }
        Ok(())
    })
}

fn larger<P: Part>(a: P, b: P) -> P {
    if b > a { b } else { a }
}

/// The product of a complex number and a real one.
fn times<P: Part>(x: P::Complex, by: P) -> P::Complex {
    x * P::Complex::of_part(by)
}

fn eigvals<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let batch = Batch::<T>::read(call, 0)?;
    let (n, count) = (batch.rows, batch.count());
    let mut values = call.contiguous_out::<Complex<T>>(0)?;
    let need = need::<T>(n, ComputeEigenvectors::No);
    each(&mut pieces(&mut values, n, count), &need, |nth, values, workspace| {
        if n == 0 {
            return Ok(());
        }
        let (elements, stack) = workspace.parts();
        let (a, packed) = elements.split_at_mut(n * n);
        let given = batch.at(nth, batch.lead);
        finite(given, n, nth, batch.lead)?;
        let scale = scaled(given, n, n, a);
        let packed = &mut packed[..2 * n];
        T::eigen(MatRef::from_column_major_slice(a, n, n), packed, None, stack)
            .map_err(|_| diverged("eigenvalues", nth, batch.lead))?;
        for (j, value) in values.iter_mut().enumerate() {
            *value = times(T::eigenvalue(packed, n, j), scale);
        }
        Ok(())
    })
}

kernel!("eig", "T>TT", eig);
kernel!("eigvals", "T>T", eigvals);
