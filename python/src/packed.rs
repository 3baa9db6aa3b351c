//! Batches of sequences of several lengths.

use crate::autograd::tensors;
use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::runtime;
use keyway::nn::{self, PackedSequence};
use pyo3::prelude::*;

/// The steps of sequences of several lengths, by time, without padding. `pack_padded_sequence` and `pack_sequence` make one.
#[pyclass(name = "PackedSequence", module = "keyway.nn.utils.rnn", frozen, weakref)]
pub struct PyPacked(PackedSequence);

#[pymethods]
impl PyPacked {
    /// The steps of all sequences, by time.
    #[getter]
    fn data(&self) -> PyTensor {
        PyTensor(self.0.data().clone())
    }

    /// The number of sequences that have each step.
    #[getter]
    fn batch_sizes(&self) -> PyResult<PyTensor> {
        let sizes: Vec<i64> = self.0.batch_sizes().iter().map(|&size| size as i64).collect();
        keyway::Tensor::from_slice(&sizes, sizes.len()).or_raise().map(PyTensor)
    }

    /// The numbers of the sequences, longest first.
    #[getter]
    fn sorted_indices(&self) -> PyResult<PyTensor> {
        self.0.sorted().or_raise().map(PyTensor)
    }

    /// Where each sequence is among the sorted ones.
    #[getter]
    fn unsorted_indices(&self) -> PyResult<PyTensor> {
        self.0.unsorted().or_raise().map(PyTensor)
    }

    /// The batch sizes as ints.
    fn _sizes(&self) -> Vec<usize> {
        self.0.batch_sizes().to_vec()
    }

    /// The same sequences of other steps.
    fn _with_data(&self, data: &Bound<'_, PyTensor>) -> PyPacked {
        PyPacked(self.0.with_data(data.get().0.clone()))
    }

    /// The sequences with another dtype or device.
    #[pyo3(signature = (*args, **kwargs))]
    fn to(
        &self,
        py: Python<'_>,
        args: &Bound<'_, pyo3::types::PyTuple>,
        kwargs: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> PyResult<PyPacked> {
        let data = Bound::new(py, self.data())?.call_method("to", args, kwargs)?;
        Ok(self._with_data(data.cast::<PyTensor>()?))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// The steps of a padded batch.
#[pyfunction]
pub fn _pack_padded(
    py: Python<'_>,
    input: &Bound<'_, PyTensor>,
    lengths: Vec<usize>,
    batch_first: bool,
) -> PyResult<PyPacked> {
    runtime::start(py)?;
    PackedSequence::from_padded(&input.get().0, &lengths, batch_first).or_raise().map(PyPacked)
}

/// The padded batch of packed sequences, and their lengths.
#[pyfunction]
pub fn _pad_packed(
    packed: &Bound<'_, PyPacked>,
    batch_first: bool,
    padding_value: f64,
) -> PyResult<(PyTensor, Vec<usize>)> {
    let (padded, lengths) = packed.get().0.to_padded(batch_first, padding_value).or_raise()?;
    Ok((PyTensor(padded), lengths))
}

/// Sequences of several lengths as a padded batch.
#[pyfunction]
#[pyo3(signature = (sequences, batch_first=false, padding_value=0.0))]
pub fn pad_sequence(
    py: Python<'_>,
    sequences: &Bound<'_, PyAny>,
    batch_first: bool,
    padding_value: f64,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    nn::pad_sequence(&tensors(sequences)?, batch_first, padding_value).or_raise().map(PyTensor)
}
