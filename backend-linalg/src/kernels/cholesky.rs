//! `cholesky`: the left-looking blocked algorithm of `faer`. Scratch: one matrix for each task.

use crate::matrices::{Batch, Need, each, pieces, wrong};
use crate::number::Number;
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::{MatMut, Par, Spec};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error};
use std::cmp::Ordering;

fn cholesky<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let (batch, upper) = (Batch::<T>::read(call, 0)?, call.bool(1)?);
    let n = batch.rows;
    let mut out = call.contiguous_out::<T>(0)?;
    let need = Need {
        elements: n * n,
        stack: cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default()),
        cost: n * n * n / 3 + n * n,
    };
    each(&mut pieces(&mut out, n * n, batch.count()), &need, |nth, out, workspace| {
        let (elements, stack) = workspace.parts();
        let a = batch.at(nth, batch.lead);
        let mut l = MatMut::from_column_major_slice_mut(elements, n, n);
        for j in 0..n {
            for i in j..n {
                l[(i, j)] = a[i * n + j] * T::HALF + a[j * n + i].conjugate() * T::HALF;
            }
            // `faer` reads the real part of the diagonal alone: NaN of an imaginary part is passed on.
            let own = l[(j, j)];
            let rest = own - T::of_part(own.part());
            l[(j, j)] = own + T::of_part(rest.modulus());
        }
        cholesky_in_place(l.as_mut(), Default::default(), Par::Seq, stack, Spec::default()).map_err(
            |LltError::NonPositivePivot { index }| {
                let got = format!("one whose leading minor of order {} is not positive", index + 1);
                wrong("self", "a positive definite matrix", got, nth, batch.lead)
            },
        )?;
        for i in 0..n {
            for j in 0..n {
                let (row, column) = if upper { (j, i) } else { (i, j) };
                let value = match row.cmp(&column) {
                    Ordering::Less => T::ZERO,
                    Ordering::Equal => T::of_part(l[(row, row)].part()),
                    Ordering::Greater => l[(row, column)],
                };
                out[i * n + j] = if upper { value.conjugate() } else { value };
            }
        }
        Ok(())
    })
}

kernel!("cholesky", "Tb>T", cholesky);
