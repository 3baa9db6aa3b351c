//! Derivatives checked against differences, and computed twice instead of saved.

use crate::autograd::tensors;
use crate::error::OrRaise;
use crate::function::detached;
use crate::handle::PyTensor;
use crate::modes;
use crate::runtime;
use keyway::Tensor;
use keyway::autograd::gradcheck::{self, Tolerance};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A Python function of tensors as a Rust one.
fn called(function: &Py<PyAny>) -> impl Fn(&[Tensor]) -> keyway::Result<Vec<Tensor>> + Send + Sync + '_ {
    move |inputs: &[Tensor]| {
        let run = |py: Python<'_>| {
            let args = inputs.iter().map(|tensor| Bound::new(py, PyTensor(tensor.clone())));
            let args = PyTuple::new(py, args.collect::<PyResult<Vec<_>>>()?)?;
            tensors(function.bind(py).call1(args)?.as_any())
        };
        Python::attach(|py| modes::scoped(|| run(py))).map_err(keyway::Error::other)
    }
}

/// The difference between the derivative of a function and finite differences as text, or `None`; with `twice`, for the second
/// derivative.
#[pyfunction]
pub fn _gradcheck(
    py: Python<'_>,
    function: Py<PyAny>,
    inputs: &Bound<'_, PyAny>,
    eps: f64,
    atol: f64,
    rtol: f64,
    twice: bool,
) -> PyResult<Option<String>> {
    runtime::start(py)?;
    let (inputs, tolerance) = (tensors(inputs)?, Tolerance { eps, atol, rtol });
    let mismatch = detached(py, || {
        let function = called(&function);
        match twice {
            false => gradcheck::gradcheck(&function, &inputs, tolerance),
            true => gradcheck::gradgradcheck(&function, &inputs, tolerance),
        }
    });
    Ok(mismatch.or_raise()?.map(|mismatch| mismatch.to_string()))
}

/// Calls a function of tensors without saving tensors for backward, which calls it again.
#[pyfunction]
pub fn _checkpoint<'py>(
    py: Python<'py>,
    function: Py<PyAny>,
    inputs: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyTuple>> {
    runtime::start(py)?;
    let inputs = tensors(inputs)?;
    let run = move |inputs: &[Tensor]| called(&function)(inputs);
    let made = keyway::autograd::checkpoint(run, &inputs).or_raise()?;
    let each = made.into_iter().map(|tensor| Bound::new(py, PyTensor(tensor)));
    PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)
}
