//! `lu_solve`: row exchanges and two substitutions, in the memory of the result. Scratch: none.

use crate::kernels::solve_triangular::solve;
use crate::matrices::{Batch, Need, count, each, pieces, wrong};
use crate::memory::Workspace;
use crate::number::Number;
use faer::dyn_stack::StackReq;
use faer::{Conj, MatMut, MatRef};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error};

fn lu_solve<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let (lu, pivots, b) =
        (Batch::<T>::read(call, 0)?, Batch::<i32>::vectors(call, 1)?, Batch::<T>::read(call, 2)?);
    let (left, adjoint) = (call.bool(3)?, call.bool(4)?);
    let (n, rows, columns) = (lu.rows, b.rows, b.columns);
    let output = call.output(0)?;
    let lead = &output.sizes()[..output.ndim() - 2];
    let mut out = call.contiguous_out::<T>(0)?;
    let need =
        Need { elements: 0, stack: StackReq::EMPTY, cost: 2 * n * rows * columns + rows * columns + n };
    each(&mut pieces(&mut out, rows * columns, count(lead)), &need, |nth, out, _: &mut Workspace<T>| {
        out.copy_from_slice(b.at(nth, lead));
        let (lu, pivots) = (lu.matrix(nth, lead), pivots.at(nth, lead));
        if let Some(at) = (0..n).find(|&i| lu[(i, i)] == T::ZERO) {
            let got = format!("a singular one: element [{at}, {at}] of U is 0");
            return Err(wrong("self", "a regular matrix", got, nth, lead));
        }
        if let Some(pivot) = pivots.iter().find(|pivot| !(1..=n as i64).contains(&i64::from(**pivot))) {
            let expected = format!("row numbers from 1 to {n}, as `lu_factor` returns them");
            return Err(wrong("pivots", &expected, pivot.to_string(), nth, lead));
        }
        let x = MatMut::from_row_major_slice_mut(out, rows, columns);
        // X A = B is Aᵀ Xᵀ = Bᵀ, and X Aᴴ = B is conj(A) Xᵀ = Bᵀ.
        let conj = if adjoint { Conj::Yes } else { Conj::No };
        match left {
            true => with_factors(lu, conj, pivots, x, adjoint),
            false => with_factors(lu, conj, pivots, x.transpose_mut(), !adjoint),
        }
        Ok(())
    })
}

/// Solves `P L U x = b`, or with `transposed` `(P L U)ᵀ x = b`, in the memory of `b`, with the factors or their conjugates. The
/// diagonal of L is 1 and not stored.
fn with_factors<T: Number>(
    lu: MatRef<'_, T>,
    conj: Conj,
    pivots: &[i32],
    mut x: MatMut<'_, T>,
    transposed: bool,
) {
    let exchange = |x: &mut MatMut<'_, T>, i: usize, pivot: i32| {
        let other = pivot as usize - 1;
        for column in 0..if i == other { 0 } else { x.ncols() } {
            let own = x[(i, column)];
            x[(i, column)] = x[(other, column)];
            x[(other, column)] = own;
        }
    };
    if transposed {
        solve(lu.transpose(), conj, x.as_mut(), false, false);
        solve(lu.transpose(), conj, x.as_mut(), true, true);
        pivots.iter().enumerate().rev().for_each(|(i, &pivot)| exchange(&mut x, i, pivot));
    } else {
        pivots.iter().enumerate().for_each(|(i, &pivot)| exchange(&mut x, i, pivot));
        solve(lu, conj, x.as_mut(), false, true);
        solve(lu, conj, x.as_mut(), true, false);
    }
}

kernel!("lu_solve", "TTTbb>T", lu_solve);
