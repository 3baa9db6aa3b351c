//! Functions that draw random numbers.

use super::called;
use crate::handle::PyTensor;
use keyway::Tensor;
use pyo3::prelude::*;

/// Dropout of elements or of channels.
macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (input, p=0.5, training=true))]
        pub fn $name(input: &Bound<'_, PyTensor>, p: f64, training: bool) -> PyResult<PyTensor> {
            called(input, |x| x.$name(p, training))
        }
    )*};
}

dropouts! {
    /// Sets elements to 0 with probability `p` while training, and divides the others by `1 - p`.
    dropout;
    /// Dropout of whole channels of `[batch, channels, length]`.
    dropout1d;
    /// Dropout of whole channels of `[batch, channels, height, width]`.
    dropout2d;
    /// Dropout of whole channels of `[batch, channels, depth, height, width]`.
    dropout3d;
    /// Dropout that preserves mean and variance behind `selu` (Klambauer et al. 2017).
    alpha_dropout;
    /// `alpha_dropout` of whole channels.
    feature_alpha_dropout;
}

/// A sample of the Gumbel-softmax distribution (Jang et al. 2017); one-hot if `hard`.
#[pyfunction]
#[pyo3(signature = (logits, tau=1.0, hard=false, dim=-1))]
pub fn gumbel_softmax(logits: &Bound<'_, PyTensor>, tau: f64, hard: bool, dim: i64) -> PyResult<PyTensor> {
    called(logits, |x| x.gumbel_softmax(tau, hard, dim))
}

/// Ones with the probabilities of the input, and zeros.
#[pyfunction]
pub fn bernoulli(input: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
    called(input, Tensor::bernoulli)
}

/// Counts of Poisson distributions with the rates of the input.
#[pyfunction]
pub fn poisson(input: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
    called(input, Tensor::poisson)
}

/// Indices that are drawn with the weights of each row.
#[pyfunction]
#[pyo3(signature = (input, num_samples, replacement=false))]
pub fn multinomial(input: &Bound<'_, PyTensor>, num_samples: usize, replacement: bool) -> PyResult<PyTensor> {
    called(input, |x| x.multinomial_with(num_samples, replacement))
}

#[pymethods]
impl PyTensor {
    /// Fills the tensor with ones of probability `p`, a number or a tensor of probabilities, and zeros.
    #[pyo3(signature = (p=None))]
    fn bernoulli_<'py>(slf: Bound<'py, Self>, p: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, Self>> {
        use crate::error::OrRaise;
        let own = &slf.get().0;
        match p.map(|p| crate::arg::operand(p, crate::arg::Parts::Default)).transpose()?.flatten() {
            None => own.bernoulli_(0.5),
            Some(p) => own.bernoulli_(p.arg(&[])),
        }
        .or_raise()?;
        Ok(slf)
    }

    /// Fills the tensor with exponentially distributed numbers.
    #[pyo3(signature = (lambd=1.0))]
    fn exponential_<'py>(slf: Bound<'py, Self>, lambd: f64) -> PyResult<Bound<'py, Self>> {
        use crate::error::OrRaise;
        slf.get().0.exponential_(lambd).or_raise()?;
        Ok(slf)
    }

    /// Fills the tensor with integers from `low` up to `high`, `high` excluded.
    #[pyo3(signature = (low, high))]
    fn random_<'py>(slf: Bound<'py, Self>, low: i64, high: i64) -> PyResult<Bound<'py, Self>> {
        use crate::error::OrRaise;
        slf.get().0.random_(low, high).or_raise()?;
        Ok(slf)
    }
}
