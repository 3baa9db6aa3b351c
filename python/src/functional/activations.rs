//! Activations.

use super::called;
use crate::handle::PyTensor;
use keyway::Tensor;
use pyo3::prelude::*;

/// Activations without options.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        pub fn $name(input: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
            called(input, Tensor::$name)
        }
    )*};
}

plain! {
    /// The input clamped to 0 to 6.
    relu6;
    /// `relu6(x + 3) / 6`.
    hardsigmoid;
    /// The logarithm of the logistic function.
    logsigmoid;
    /// `x / (1 + abs(x))`.
    softsign;
    /// `x - tanh(x)`.
    tanhshrink;
}

/// The input clamped to `min_val` to `max_val`.
#[pyfunction]
#[pyo3(signature = (input, min_val=-1.0, max_val=1.0))]
pub fn hardtanh(input: &Bound<'_, PyTensor>, min_val: f64, max_val: f64) -> PyResult<PyTensor> {
    called(input, |x| x.hardtanh_with(min_val, max_val))
}

/// The input with elements from `-lambd` to `lambd` set to 0.
#[pyfunction]
#[pyo3(signature = (input, lambd=0.5))]
pub fn hardshrink(input: &Bound<'_, PyTensor>, lambd: f64) -> PyResult<PyTensor> {
    called(input, |x| x.hardshrink_with(lambd))
}

/// The input with elements of at most `threshold` set to `value`.
#[pyfunction]
pub fn threshold(input: &Bound<'_, PyTensor>, threshold: f64, value: f64) -> PyResult<PyTensor> {
    called(input, |x| x.threshold(threshold, value))
}
