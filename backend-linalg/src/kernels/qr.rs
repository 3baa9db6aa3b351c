//! `qr`: blocked Householder reflections of `faer`. Scratch: both factors for each task.

use crate::matrices::{Batch, Need, each, pieces};
use crate::number::Number;
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply,
};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};
use faer::{Conj, MatMut, MatRef, Par, Spec};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error};
use std::cmp::Ordering;

fn qr<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let batch = Batch::<T>::read(call, 0)?;
    let complete = call.str(1)? == "complete";
    let (m, n, count) = (batch.rows, batch.columns, batch.count());
    let k = m.min(n);
    // The columns of Q, which are the rows of R.
    let inner = if complete { m } else { k };
    let (mut q, mut r) = (call.contiguous_out::<T>(0)?, call.contiguous_out::<T>(1)?);
    let block = recommended_block_size::<T>(m, n);
    let need = Need {
        elements: m * n + block * k + m * inner,
        stack: qr_in_place_scratch::<T>(m, n, block, Par::Seq, Spec::default())
            .or(apply_scratch::<T>(m, block, inner)),
        cost: 2 * m * n * k + 2 * m * inner * k + m * (n + inner),
    };
    let mut jobs: Vec<_> =
        pieces(&mut q, m * inner, count).into_iter().zip(pieces(&mut r, inner * n, count)).collect();
    each(&mut jobs, &need, |nth, (q, r), workspace| {
        let given = batch.at(nth, batch.lead);
        if !given.iter().all(|x| Number::is_finite(*x)) {
            // `faer` drops NaN of an imaginary part.
            q.fill(T::NAN);
            r.fill(T::NAN);
            return Ok(());
        }
        let (elements, stack) = workspace.parts();
        let (a, rest) = elements.split_at_mut(m * n);
        let (factors, basis) = rest.split_at_mut(block * k);
        let mut a = MatMut::from_column_major_slice_mut(a, m, n);
        let mut factors = MatMut::from_column_major_slice_mut(factors, block, k);
        let mut basis = MatMut::from_column_major_slice_mut(basis, m, inner);
        a.copy_from(MatRef::from_row_major_slice(given, m, n));
        for j in 0..inner {
            for i in 0..m {
                basis[(i, j)] = if i == j { T::ONE } else { T::ZERO };
            }
        }
        if k > 0 {
            qr_in_place(a.as_mut(), factors.as_mut(), Par::Seq, stack, Spec::default());
            let reflections = a.as_ref().subcols(0, k);
            apply(reflections, factors.as_ref(), Conj::No, basis.as_mut(), Par::Seq, stack);
        }
        // The phases of the diagonal of R, with which its elements become 0 or more.
        let modulus = |i: usize| if i < k { a[(i, i)].modulus() } else { T::Part::ZERO };
        let phase = |i: usize| match modulus(i) > T::Part::ZERO {
            true => a[(i, i)].over(modulus(i)),
            false => T::ONE,
        };
        for i in 0..inner {
            let factor = phase(i).conjugate();
            for j in 0..n {
                r[i * n + j] = match i.cmp(&j) {
                    Ordering::Greater => T::ZERO,
                    Ordering::Equal if modulus(i) > T::Part::ZERO => T::of_part(modulus(i)),
                    _ => a[(i, j)] * factor,
                };
            }
        }
        for j in 0..inner {
            let factor = phase(j);
            for i in 0..m {
                q[i * inner + j] = basis[(i, j)] * factor;
            }
        }
        Ok(())
    })
}

kernel!("qr", "TS>TT", qr);
