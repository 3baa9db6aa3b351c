//! The order of samples, an embedded data set, and random numbers of one batch.

use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::runtime;
use keyway::data::{Digits, Sampler};
use keyway::rng::{self, Generator};
use pyo3::prelude::*;

/// The indices of an epoch in random order, which the number of samples, the seed and the epoch's index determine.
#[pyfunction]
pub fn _shuffled(samples: usize, seed: u64, epoch: u64) -> Vec<usize> {
    Sampler::shuffled(samples, seed).order(epoch)
}

/// The result of a function that takes no arguments, while random numbers of this thread come from a generator of its own with
/// this seed.
#[pyfunction]
pub fn _with_seed(py: Python<'_>, seed: u64, function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    runtime::start(py)?;
    rng::with_generator(&Generator::new(seed), || function.call0()).map(Bound::unbind)
}

/// Images and labels of the handwritten digits: those for training, and those for testing.
#[pyfunction]
pub fn _digits(py: Python<'_>) -> PyResult<[(PyTensor, PyTensor); 2]> {
    runtime::start(py)?;
    let (train, test) = Digits::train_test().or_raise()?;
    Ok([train, test].map(|part| (PyTensor(part.inputs().clone()), PyTensor(part.targets().clone()))))
}
