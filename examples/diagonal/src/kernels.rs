//! The ops that read a diagonal matrix directly.

use crate::layout::{diagonal, diagonal_of, is_diagonal};
use keyway_cpu_loops::{CallExt, Contiguous, ViewExt};
use keyway_sdk::author::{Arg, Call, Error, Real, Tensor, call_op};
use keyway_sdk::register_kernel;

fn unsupported(what: impl Into<String>) -> Error {
    Error::Unsupported { what: what.into() }
}

/// The stored values.
fn values<'a, T: Real>(tensor: &Tensor<'a>) -> Result<Contiguous<'a, T>, Error> {
    tensor.component(0)?.view::<T>()?.contiguous()
}

/// Diagonal times diagonal is diagonal; with a dense matrix each row, or each column, is multiplied by one value.
fn mm<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    if is_diagonal(&left) && is_diagonal(&right) {
        let (a, b) = (values::<T>(&left)?, values::<T>(&right)?);
        return call.set_output(0, diagonal_of(call, (0..a.len()).map(|i| a[i] * b[i]))?);
    }
    let (dense, by_row, factors) =
        if is_diagonal(&left) { (1, true, values::<T>(&left)?) } else { (0, false, values::<T>(&right)?) };
    let sizes = call.tensor(dense)?.sizes();
    let (columns, elements) = (sizes[1] as usize, call.contiguous::<T>(dense)?);
    let factor = |at: usize| if by_row { factors[at / columns] } else { factors[at % columns] };
    let mut made = call.new_tensor::<T>(sizes)?;
    made.view_mut::<T>()?.assign((0..elements.len()).map(|at| factor(at) * elements[at]));
    call.set_output(0, made)
}

/// Diagonal plus diagonal is diagonal; with a dense matrix the sum is dense.
fn add<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    if left.sizes() != right.sizes() {
        return Err(unsupported(format!(
            "a sum of shapes {:?} and {:?} with a diagonal matrix",
            left.sizes(),
            right.sizes()
        )));
    }
    let alpha: T = call.scalar(2)?;
    if is_diagonal(&left) && is_diagonal(&right) {
        let (a, b) = (values::<T>(&left)?, values::<T>(&right)?);
        return call.set_output(0, diagonal_of(call, (0..a.len()).map(|i| a[i] + alpha * b[i]))?);
    }
    let (stored, of_stored, dense, of_dense) = if is_diagonal(&left) {
        (values::<T>(&left)?, T::ONE, 1, alpha)
    } else {
        (values::<T>(&right)?, alpha, 0, T::ONE)
    };
    let mut sum: Vec<T> = call.contiguous::<T>(dense)?.iter().map(|&v| of_dense * v).collect();
    let places = sum.iter_mut().step_by(stored.len() + 1);
    places.zip(stored.iter()).for_each(|(place, &value)| *place += of_stored * value);
    let mut made = call.new_tensor::<T>(left.sizes())?;
    made.view_mut::<T>()?.assign(sum);
    call.set_output(0, made)
}

/// Elementwise: the product with a scalar, a diagonal or a dense matrix is diagonal.
fn mul<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    let (own, other, at) = if is_diagonal(&left) { (left, right, 1) } else { (right, left, 0) };
    let stored = values::<T>(&own)?;
    let n = stored.len();
    let factors: Vec<T> = if is_diagonal(&other) && other.sizes() == own.sizes() {
        values::<T>(&other)?.to_vec()
    } else if !is_diagonal(&other) && other.numel() == 1 && other.ndim() <= 2 {
        vec![call.contiguous::<T>(at)?[0]; n]
    } else if !is_diagonal(&other) && other.sizes() == own.sizes() {
        let dense = call.contiguous::<T>(at)?;
        (0..n).map(|i| dense[i * (n + 1)]).collect()
    } else {
        return Err(unsupported(format!("a diagonal matrix times a tensor of shape {:?}", other.sizes())));
    };
    call.set_output(0, diagonal_of(call, (0..n).map(|i| stored[i] * factors[i]))?)
}

/// The sum of all elements.
fn sum<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    if !call.is_none(1)? && !call.ints(1)?.is_empty() {
        return Err(unsupported("a sum of a diagonal matrix over some of its dimensions"));
    }
    let total = values::<T>(&call.tensor(0)?)?.iter().fold(T::ZERO, |sum, &value| sum + value);
    let sizes: &[i64] = if call.bool(2)? { &[1, 1] } else { &[] };
    let mut made = call.new_tensor::<T>(sizes)?;
    made.view_mut::<T>()?.assign([total]);
    call.set_output(0, made)
}

/// The matrix itself; the host creates a new tensor for it.
fn transpose(call: &Call<'_>) -> Result<(), Error> {
    call.set_output(0, call.tensor(0)?.retain()?)
}

/// Casts the values by calling the host's `to_dtype`.
fn to_dtype<T: Real>(call: &Call<'_>) -> Result<(), Error> {
    let tensor = call.tensor(0)?;
    let cast = call_op("to_dtype", &[Arg::Tensor(tensor.component(0)?), Arg::Dtype(call.dtype(1)?)])?;
    let values = cast.first().ok_or_else(|| unsupported("a cast without a result"))?;
    call.set_output(0, diagonal::<T>(tensor.sizes()[0] as usize, Arg::Owned(values))?)
}

register_kernel! {
    op: "mm", signature: "TT>T", device: "cpu", layout: "example.org/diagonal",
    flags: allocates,
    f32 => mm::<f32>, f64 => mm::<f64>,
}
register_kernel! {
    op: "add", signature: "TTs>T", device: "cpu", layout: "example.org/diagonal",
    flags: allocates,
    f32 => add::<f32>, f64 => add::<f64>,
}
register_kernel! {
    op: "mul", signature: "TT>T", device: "cpu", layout: "example.org/diagonal",
    flags: allocates,
    f32 => mul::<f32>, f64 => mul::<f64>,
}
register_kernel! {
    op: "sum", signature: "TIb>T", device: "cpu", layout: "example.org/diagonal",
    flags: allocates,
    f32 => sum::<f32>, f64 => sum::<f64>,
}
register_kernel! {
    op: "transpose", signature: "Tii>T", device: "cpu", layout: "example.org/diagonal",
    flags: allocates,
    f32 => transpose, f64 => transpose,
}
register_kernel! {
    op: "to_dtype", signature: "Td>T", device: "cpu", layout: "example.org/diagonal",
    flags: allocates,
    f32 => to_dtype::<f32>, f64 => to_dtype::<f64>,
}
