//! `solve_triangular`: the recursive substitution of `faer`, in the memory of the result. Scratch: none.

use crate::matrices::{Batch, Need, each, pieces, wrong};
use crate::memory::Workspace;
use crate::number::Number;
use faer::dyn_stack::StackReq;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place_with_conj,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place_with_conj,
};
use faer::{Conj, MatMut, MatRef, Par};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error};

/// Solves `a x = b`, or that with the conjugate of `a`, in the memory of `b`.
pub fn solve<T: Number>(a: MatRef<'_, T>, conj: Conj, b: MatMut<'_, T>, upper: bool, unit: bool) {
    match (upper, unit) {
        (false, false) => solve_lower_triangular_in_place_with_conj(a, conj, b, Par::Seq),
        (false, true) => solve_unit_lower_triangular_in_place_with_conj(a, conj, b, Par::Seq),
        (true, false) => solve_upper_triangular_in_place_with_conj(a, conj, b, Par::Seq),
        (true, true) => solve_unit_upper_triangular_in_place_with_conj(a, conj, b, Par::Seq),
    }
}

fn solve_triangular<T: Number>(call: &Call<'_>) -> Result<(), Error> {
    let (a, b) = (Batch::<T>::read(call, 0)?, Batch::<T>::read(call, 1)?);
    let (upper, left, unit) = (call.bool(2)?, call.bool(3)?, call.bool(4)?);
    let (n, rows, columns) = (a.rows, b.rows, b.columns);
    let output = call.output(0)?;
    let lead = &output.sizes()[..output.ndim() - 2];
    let mut out = call.contiguous_out::<T>(0)?;
    let need = Need { elements: 0, stack: StackReq::EMPTY, cost: n * rows * columns + n * n };
    let count = crate::matrices::count(lead);
    each(&mut pieces(&mut out, rows * columns, count), &need, |nth, out, _: &mut Workspace<T>| {
        out.copy_from_slice(b.at(nth, lead));
        let a = a.matrix(nth, lead);
        if let Some(at) = (0..n).find(|&i| !unit && a[(i, i)] == T::ZERO) {
            let got = format!("a zero at row {at}");
            return Err(wrong("self", "a diagonal without zeros", got, nth, lead));
        }
        let x = MatMut::from_row_major_slice_mut(out, rows, columns);
        // X A = B is Aᵀ Xᵀ = Bᵀ.
        match left {
            true => solve(a, Conj::No, x, upper, unit),
            false => solve(a.transpose(), Conj::No, x.transpose_mut(), !upper, unit),
        }
        Ok(())
    })
}

kernel!("solve_triangular", "TTbbb>T", solve_triangular);
