//! Kernels of the host's ops for CSR.

use crate::matrix::{Builder, Matrix, give, is_csr, unsupported, vector, with_values};
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Arg, Call, Error, Real, call_op};
use keyway_sdk::register_kernel;
use keyway_test_faults as faults;

/// CSR by strided into strided, which the host allocates.
fn mm<T: Real>(call: &Call) -> Result<(), Error> {
    if !is_csr(&call.tensor(0)?) || is_csr(&call.tensor(1)?) {
        return Err(unsupported("a product of matrices but CSR by strided"));
    }
    let a = Matrix::<T>::read(&call.tensor(0)?)?;
    let b = call.contiguous::<T>(1)?;
    let columns = call.tensor(1)?.sizes()[1] as usize;
    let mut out = call.contiguous_out::<T>(0)?;
    out.fill(T::ZERO);
    let cut = faults::is("csr_mm_wrong");
    let dense_values = call.tensor(0)?.component(2)?.is_contiguous();
    let mut zero_in = None;
    a.each(|row, k, value| {
        if cut && a.row(row).next_back().is_some_and(|at| a.col[at] as usize == k) {
            return;
        }
        let (mut row, mut value) = (row, value);
        let k = if faults::is("csr_columns_16_bits") { k % (1 << 16) } else { k };
        if faults::is("csr_gaps_ignored") && !dense_values {
            value = a.values[0];
        }
        if faults::is("csr_zero_ends_row") {
            zero_in = if value == T::ZERO { Some(row) } else { zero_in };
            value = if zero_in == Some(row) { T::ZERO } else { value };
        }
        if faults::is("csr_rows_skipped") {
            row = (0..row).filter(|&before| !a.row(before).is_empty()).count();
        }
        for j in 0..columns {
            out[row * columns + j] += value * b[k * columns + j];
        }
    });
    Ok(())
}

/// CSR plus CSR is CSR; CSR plus strided, in either order, is strided.
fn add<T: Real>(call: &Call) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    if left.sizes() != right.sizes() {
        return Err(unsupported(format!(
            "a sum of shapes {:?} and {:?} with a CSR matrix",
            left.sizes(),
            right.sizes()
        )));
    }
    let alpha: T = if faults::is("csr_add_alpha") { T::ONE } else { call.scalar(2)? };
    if is_csr(&left) && is_csr(&right) {
        let (a, b) = (Matrix::<T>::read(&left)?, Matrix::<T>::read(&right)?);
        let mut made = Builder::new([a.rows, a.columns]);
        for row in 0..a.rows {
            let mut of_row = std::collections::BTreeMap::new();
            // The sum of 0 and a single -0 would be 0.
            a.row(row).for_each(|at| {
                of_row.entry(a.col[at]).and_modify(|sum| *sum += a.values[at]).or_insert(a.values[at]);
            });
            let of_b = if faults::is("csr_add_unmerged") { 0..0 } else { b.row(row) };
            let mut cancelled = None;
            of_b.for_each(|at| {
                let (column, value) = (b.col[at], alpha * b.values[at]);
                let before = of_row.get(&column).copied();
                let sum = before.map_or(value, |before| before + value);
                of_row.insert(column, sum);
                let cancels = sum == T::ZERO && before.is_some_and(|before| before != T::ZERO);
                cancelled = cancelled.or(cancels.then_some(column));
            });
            if let Some(column) = cancelled.filter(|_| faults::is("csr_cancel_ends_row")) {
                of_row.retain(|of, _| *of < column);
            }
            of_row.into_iter().for_each(|(column, value)| made.entry(column as usize, value));
            made.end_row();
        }
        return give(call, made.build()?);
    }
    let (sparse, dense, of_sparse, of_dense) =
        if is_csr(&left) { (left, 1, T::ONE, alpha) } else { (right, 0, alpha, T::ONE) };
    let m = Matrix::<T>::read(&sparse)?;
    let mut sum: Vec<T> = call.contiguous::<T>(dense)?.iter().map(|&v| of_dense * v).collect();
    m.each(|row, column, value| sum[row * m.columns + column] += of_sparse * value);
    let mut made = call.new_tensor::<T>(sparse.sizes())?;
    made.view_mut::<T>()?.assign(sum);
    give(call, made)
}

/// CSR times a number, or times a strided matrix of its shape: CSR with the same pattern.
fn mul<T: Real>(call: &Call) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    let (sparse, other) = match (is_csr(&left), is_csr(&right)) {
        (true, false) => (left, 1),
        (false, true) => (right, 0),
        _ => return Err(unsupported("a product of two CSR matrices, element by element,")),
    };
    let factor = call.tensor(other)?;
    let m = Matrix::<T>::read(&sparse)?;
    let factors = call.contiguous::<T>(other)?;
    let mut values = Vec::with_capacity(m.values.len());
    match factor.numel() {
        1 => m.each(|_, _, value| values.push(value * factors[0])),
        _ if factor.sizes() == sparse.sizes() => {
            let beside = usize::from(faults::is("csr_mul_pattern"));
            let of = |row: usize, column: usize| factors[row * m.columns + (column + beside) % m.columns];
            m.each(|row, column, value| values.push(value * of(row, column)));
        }
        _ => return Err(unsupported(format!("CSR times a strided tensor of shape {:?}", factor.sizes()))),
    }
    give(call, with_values::<T>(&sparse, &vector(&values)?)?)
}

fn transpose<T: Real>(call: &Call) -> Result<(), Error> {
    if faults::is("csr_transpose_dead") {
        return Err(unsupported("a transposed matrix"));
    }
    let m = Matrix::<T>::read(&call.tensor(0)?)?;
    let dims = [call.int(1)?, call.int(2)?].map(|d| if d < 0 { d + 2 } else { d });
    if dims[0] == dims[1] {
        // Returns the argument itself: the host creates a separate tensor of it.
        return give(call, call.tensor(0)?.retain()?);
    }
    let mut columns: Vec<Vec<(usize, T)>> = vec![Vec::new(); m.columns];
    m.each(|row, column, value| columns[column].push((row, value)));
    let mut made = Builder::new([m.columns, m.rows]);
    for column in columns {
        column.into_iter().for_each(|(row, value)| made.entry(row, value));
        made.end_row();
    }
    give(call, made.build()?)
}

/// Casts the values by the host's own op.
fn to_dtype<T: Real>(call: &Call) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let values = call_op("to_dtype", &[Arg::Tensor(tensor.component(2)?), Arg::Dtype(call.dtype(1)?)])?;
    let values = values.first().ok_or_else(|| unsupported("a cast without a result"))?;
    give(call, with_values::<T>(&tensor, values)?)
}

register_kernel! {
    op: "mm", signature: "TT>T", device: "cpu", layout: "test.keyway/csr",
    f32 => mm::<f32>, f64 => mm::<f64>,
}
register_kernel! {
    op: "add", signature: "TTs>T", device: "cpu", layout: "test.keyway/csr",
    flags: allocates,
    f32 => add::<f32>, f64 => add::<f64>,
}
register_kernel! {
    op: "mul", signature: "TT>T", device: "cpu", layout: "test.keyway/csr",
    flags: allocates,
    f32 => mul::<f32>, f64 => mul::<f64>,
}
register_kernel! {
    op: "transpose", signature: "Tii>T", device: "cpu", layout: "test.keyway/csr",
    flags: allocates,
    f32 => transpose::<f32>, f64 => transpose::<f64>,
}
register_kernel! {
    op: "to_dtype", signature: "Td>T", device: "cpu", layout: "test.keyway/csr",
    flags: allocates,
    f32 => to_dtype::<f32>, f64 => to_dtype::<f64>,
}
