//! Initial values of parameters.

use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::runtime;
use keyway::nn::init::{self, Fan};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The result of a function as a Python tensor.
fn made(py: Python<'_>, run: impl FnOnce() -> keyway::Result<keyway::Tensor>) -> PyResult<PyTensor> {
    runtime::start(py)?;
    run().or_raise().map(PyTensor)
}

fn fan(mode: &str) -> PyResult<Fan> {
    match mode {
        "fan_in" => Ok(Fan::In),
        "fan_out" => Ok(Fan::Out),
        _ => Err(PyValueError::new_err(format!("expected `mode` to be fan_in or fan_out, got {mode}"))),
    }
}

/// Numbers from a normal distribution within bounds.
#[pyfunction]
pub fn _init_trunc_normal(
    py: Python<'_>,
    shape: Vec<usize>,
    mean: f64,
    std: f64,
    a: f64,
    b: f64,
) -> PyResult<PyTensor> {
    made(py, || init::trunc_normal_with(shape, mean, std, (a, b)))
}

/// A matrix with orthonormal rows or columns, times `gain`.
#[pyfunction]
pub fn _init_orthogonal(py: Python<'_>, shape: Vec<usize>, gain: f64) -> PyResult<PyTensor> {
    made(py, || init::orthogonal(shape, gain))
}

/// A matrix with a share of zeros in each column.
#[pyfunction]
pub fn _init_sparse(py: Python<'_>, shape: Vec<usize>, sparsity: f64, std: f64) -> PyResult<PyTensor> {
    made(py, || init::sparse(shape, sparsity, std))
}

/// Kaiming's initial values for a slope `a` of the rectifier.
#[pyfunction]
pub fn _init_kaiming(
    py: Python<'_>,
    shape: Vec<usize>,
    a: f64,
    mode: &str,
    uniform: bool,
) -> PyResult<PyTensor> {
    let fan = fan(mode)?;
    made(py, || match uniform {
        true => init::kaiming_uniform_with(shape, a, fan),
        false => init::kaiming_normal_with(shape, a, fan),
    })
}

/// Xavier's initial values.
#[pyfunction]
pub fn _init_xavier(py: Python<'_>, shape: Vec<usize>, gain: f64, uniform: bool) -> PyResult<PyTensor> {
    made(py, || match uniform {
        true => init::xavier_uniform_with(shape, gain),
        false => init::xavier_normal(shape, gain),
    })
}
