//! `csr_spmv`: the product of a matrix of this layout and a vector, an op of the plugin with its own derivative.

use crate::matrix::{Matrix, give, matrix_sizes, vector, with_values};
use keyway_cpu_loops::CallExt;
use keyway_sdk::abi::op::RawOp;
use keyway_sdk::author::{Call, Error, Op, Real, RuleCall, op};
use keyway_sdk::register_kernel;
use keyway_test_faults as faults;

/// `csr_spmv`
pub static SPMV: RawOp = op::<Spmv>();
/// `csr_spmv_backward`
pub static SPMV_BACKWARD: RawOp = op::<SpmvBackward>();

/// See [`SPMV`].
pub struct Spmv;
/// See [`SPMV_BACKWARD`].
pub struct SpmvBackward;

impl Op for Spmv {
    const SCHEMA: &'static str = "csr_spmv(Tensor a, Tensor x) -> Tensor";
    const BACKWARD: &'static str = "csr_spmv_backward";
    const SAMPLES: &'static str = r#"[{"args": [{"sizes": [4, 3]}, {"sizes": [3]}]}]"#;
    const REFERENCE: Option<fn(&Call<'_>) -> Result<(), Error>> = Some(dense_product);

    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        let (a, x) = (call.tensor(0)?, call.tensor(1)?);
        let [rows, columns] = matrix_sizes(&a)?;
        if x.sizes() != [columns as i64] || x.dtype() != a.dtype() {
            return Err(Error::InvalidArgument {
                argument: "x",
                expected: format!(
                    "a vector of {columns} elements of the dtype of `a`, which has {columns} columns"
                ),
                got: format!("shape {:?}", x.sizes()),
            });
        }
        call.state(0, a.dtype(), &[rows as i64])
    }
}

impl Op for SpmvBackward {
    const SCHEMA: &'static str =
        "csr_spmv_backward(Tensor grad, Tensor a, Tensor x, Tensor out) -> (Tensor, Tensor)";

    fn rule(call: &RuleCall<'_>) -> Result<(), Error> {
        let (a, x) = (call.tensor(1)?, call.tensor(2)?);
        call.state(0, a.dtype(), a.sizes())?;
        call.state(1, x.dtype(), x.sizes())
    }
}

/// The product of a strided matrix and a vector.
fn dense_product(call: &Call<'_>) -> Result<(), Error> {
    let (a, x) = (call.contiguous::<f64>(0)?, call.contiguous::<f64>(1)?);
    let mut out = call.contiguous_out::<f64>(0)?;
    for (row, total) in out.iter_mut().enumerate() {
        *total = x.iter().zip(&a[row * x.len()..]).map(|(x, a)| x * a).sum();
    }
    Ok(())
}

fn spmv<T: Real>(call: &Call) -> Result<(), Error> {
    let (a, x) = (Matrix::<T>::read(&call.tensor(0)?)?, call.contiguous::<T>(1)?);
    let mut out = call.contiguous_out::<T>(0)?;
    out.fill(T::ZERO);
    let beside = usize::from(faults::is("csr_spmv_wrong"));
    a.each(|row, column, value| out[row] += value * x[(column + beside) % a.columns]);
    Ok(())
}

fn spmv_backward<T: Real>(call: &Call) -> Result<(), Error> {
    let (grad, x) = (call.contiguous::<T>(0)?, call.contiguous::<T>(2)?);
    let tensor = call.tensor(1)?;
    let a = Matrix::<T>::read(&tensor)?;
    let mut of_values = Vec::with_capacity(a.values.len());
    let mut of_x = vec![T::ZERO; a.columns];
    a.each(|row, column, value| {
        let column_of_x = if faults::is("csr_spmv_gradient") { 0 } else { column };
        of_values.push(grad[row] * x[column_of_x]);
        of_x[column] += grad[row] * value;
    });
    give(call, with_values::<T>(&tensor, &vector(&of_values)?)?)?;
    call.set_output(1, vector(&of_x)?)
}

register_kernel! {
    op: "csr_spmv", signature: "TT>T", device: "cpu", layout: "test.keyway/csr",
    f32 => spmv::<f32>, f64 => spmv::<f64>,
}
register_kernel! {
    op: "csr_spmv_backward", signature: "TTTT>TT", device: "cpu", layout: "test.keyway/csr",
    flags: allocates,
    f32 => spmv_backward::<f32>, f64 => spmv_backward::<f64>,
}
