//! Functions of the Rust side that are combinations of ops, and thus are not in the table of ops.

use crate::autograd::tensors;
use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::runtime;
use keyway::Tensor;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The result of a call as a Python tensor.
fn made(result: keyway::Result<Tensor>) -> PyResult<PyTensor> {
    result.or_raise().map(PyTensor)
}

/// Several results as a tuple.
fn tuple<'py>(py: Python<'py>, result: keyway::Result<Vec<Tensor>>) -> PyResult<Bound<'py, PyTuple>> {
    let each = result.or_raise()?.into_iter().map(|tensor| Bound::new(py, PyTensor(tensor)));
    PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)
}

#[pymethods]
impl PyTensor {
    /// The tensor with the dimensions from `start_dim` to `end_dim`, both included, as one.
    #[pyo3(signature = (start_dim=0, end_dim=-1))]
    pub fn flatten(&self, start_dim: i64, end_dim: i64) -> PyResult<PyTensor> {
        made(self.0.flatten(start_dim, end_dim))
    }

    /// The tensor with a dimension split into dimensions of these sizes.
    fn unflatten(&self, dim: i64, sizes: Vec<i64>) -> PyResult<PyTensor> {
        made(self.0.unflatten(dim, &sizes[..]))
    }

    /// A view of `length` elements of a dimension from `start` on.
    pub fn narrow(&self, dim: i64, start: i64, length: usize) -> PyResult<PyTensor> {
        made(self.0.narrow(dim, start, length))
    }

    /// Views of parts of `split_size` elements each, the last one of the rest, or of the given sizes.
    #[pyo3(signature = (split_size, dim=0))]
    pub fn split<'py>(
        &self,
        py: Python<'py>,
        split_size: &Bound<'py, PyAny>,
        dim: i64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        match split_size.extract::<usize>() {
            Ok(size) => tuple(py, self.0.split(size, dim)),
            Err(_) => {
                let sizes: Vec<usize> = split_size.extract().map_err(|_| {
                    PyTypeError::new_err("split: expected a size of at least 1 or a sequence of sizes")
                })?;
                tuple(py, self.0.split_sizes(&sizes, dim))
            }
        }
    }

    /// At most `chunks` views of equal sizes, the last one of the rest.
    #[pyo3(signature = (chunks, dim=0))]
    pub fn chunk<'py>(&self, py: Python<'py>, chunks: usize, dim: i64) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, self.0.chunk(chunks, dim))
    }

    /// The tensor with one dimension, or several, moved to other indices; the others stay in their order.
    pub fn movedim(&self, source: &Bound<'_, PyAny>, destination: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        if let (Ok(source), Ok(destination)) = (source.extract::<i64>(), destination.extract::<i64>()) {
            return made(self.0.movedim(source, destination));
        }
        let (sources, targets): (Vec<i64>, Vec<i64>) = (source.extract()?, destination.extract()?);
        if sources.len() != targets.len() {
            let (expected, got) = (sources.len(), targets.len());
            return Err(PyValueError::new_err(format!(
                "movedim: expected as many destinations as sources, {expected}, got {got}"
            )));
        }
        let rank = self.0.rank() as i64;
        let wrapped = |dims: &[i64]| -> PyResult<Vec<i64>> {
            let found: Vec<i64> = dims.iter().map(|dim| if *dim < 0 { dim + rank } else { *dim }).collect();
            if let Some(at) = found.iter().position(|dim| !(0..rank).contains(dim)) {
                let got = dims[at];
                return Err(PyIndexError::new_err(format!(
                    "movedim: expected a dimension of {rank}, got {got}"
                )));
            }
            if (1..found.len()).any(|at| found[..at].contains(&found[at])) {
                return Err(PyValueError::new_err(format!(
                    "movedim: expected different dimensions, got {dims:?}"
                )));
            }
            Ok(found)
        };
        let (sources, targets) = (wrapped(&sources)?, wrapped(&targets)?);
        let mut rest = (0..rank).filter(|dim| !sources.contains(dim));
        let order = (0..rank).filter_map(|at| match targets.iter().position(|target| *target == at) {
            Some(moved) => sources.get(moved).copied(),
            None => rest.next(),
        });
        made(self.0.permute(&order.collect::<Vec<_>>()[..]))
    }

    /// The tensor with two dimensions exchanged.
    fn swapaxes(&self, axis0: i64, axis1: i64) -> PyResult<PyTensor> {
        made(self.0.swapaxes(axis0, axis1))
    }

    /// A view of the shape of another tensor, whose sizes of 1 are repeated.
    fn expand_as(&self, other: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        made(self.0.expand_as(&other.get().0))
    }

    /// A view of the real parts; the tensor itself if it is real.
    #[getter]
    fn real(&self) -> PyResult<PyTensor> {
        if !self.0.dtype().is_complex() {
            return Ok(PyTensor(self.0.clone()));
        }
        made(self.0.real())
    }

    /// A view of the imaginary parts.
    #[getter]
    fn imag(&self) -> PyResult<PyTensor> {
        made(self.0.imag())
    }

    /// Whether all elements differ by at most `atol + rtol * abs(other)`.
    #[pyo3(signature = (other, rtol=1e-5, atol=1e-8, equal_nan=false))]
    pub fn allclose(
        &self,
        other: &Bound<'_, PyTensor>,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> PyResult<bool> {
        self.0.allclose_with(&*other.get().0, rtol, atol, equal_nan).or_raise()
    }

    /// Whether two tensors have the same shape and elements.
    pub fn equal(&self, other: &Bound<'_, PyTensor>) -> PyResult<bool> {
        self.0.equal(&other.get().0).or_raise()
    }

    /// Sets each element to 0.
    fn zero_<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().0.zero_().or_raise()?;
        Ok(slf)
    }

    /// Fills the tensor with uniformly distributed numbers from `low` to `high`.
    #[pyo3(signature = (low=0.0, high=1.0))]
    fn uniform_<'py>(slf: Bound<'py, Self>, low: f64, high: f64) -> PyResult<Bound<'py, Self>> {
        slf.get().0.uniform_(low, high).or_raise()?;
        Ok(slf)
    }

    /// Fills the tensor with normally distributed numbers.
    #[pyo3(signature = (mean=0.0, std=1.0))]
    fn normal_<'py>(slf: Bound<'py, Self>, mean: f64, std: f64) -> PyResult<Bound<'py, Self>> {
        slf.get().0.normal_(mean, std).or_raise()?;
        Ok(slf)
    }

    /// The diagonal of a matrix, or the matrix with a diagonal.
    #[pyo3(signature = (diagonal=0))]
    pub fn diag(&self, diagonal: i64) -> PyResult<PyTensor> {
        made(self.0.diag_with(diagonal))
    }
}

#[pymethods]
impl PyTensor {
    /// The elements at row-major indices, in the shape of `index`; negative indices count from the end.
    pub fn take(&self, index: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
        made(self.0.take(&index.get().0))
    }

    /// The tensor with each slice of a dimension, or each element if `dim` is `None`, repeated: `repeats` times, or slice `i`
    /// `repeats[i]` times.
    #[pyo3(signature = (repeats, dim=None))]
    pub fn repeat_interleave(&self, repeats: &Bound<'_, PyAny>, dim: Option<i64>) -> PyResult<PyTensor> {
        let flat = if dim.is_none() { Some(self.0.reshape([-1]).or_raise()?) } else { None };
        let (x, dim) = (flat.as_ref().unwrap_or(&self.0), dim.unwrap_or(0));
        match repeats.cast::<PyTensor>() {
            Ok(repeats) => made(x.repeat_interleave_each(&repeats.get().0, dim)),
            Err(_) => made(x.repeat_interleave(repeats.extract()?, dim)),
        }
    }
}

/// Views of tensors in the shape to which they broadcast.
#[pyfunction]
#[pyo3(signature = (*tensors))]
pub fn broadcast_tensors<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    tuple(py, Tensor::broadcast_tensors(&self::tensors(tensors)?))
}

/// The shape to which shapes broadcast.
#[pyfunction]
#[pyo3(signature = (*shapes))]
pub fn broadcast_shapes<'py>(py: Python<'py>, shapes: Vec<Vec<usize>>) -> PyResult<Bound<'py, PyTuple>> {
    let folded = shapes
        .into_iter()
        .try_fold(Vec::new(), |sizes, shape| Tensor::broadcast_shapes(&sizes[..], &shape[..]));
    PyTuple::new(py, folded.or_raise()?)
}

/// Tensors one after another along the second dimension, or the only one.
#[pyfunction]
pub fn hstack(tensors: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    made(Tensor::hstack(&self::tensors(tensors)?))
}

/// Tensors one below another along the first dimension; vectors are rows.
#[pyfunction]
pub fn vstack(tensors: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    made(Tensor::vstack(&self::tensors(tensors)?))
}

/// The coordinates of a grid: a tensor for each vector, all of one shape. `indexing="xy"` exchanges the first two dimensions.
#[pyfunction]
#[pyo3(signature = (*tensors, indexing="ij"))]
pub fn meshgrid<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyTuple>,
    indexing: &str,
) -> PyResult<Bound<'py, PyTuple>> {
    runtime::start(py)?;
    tuple(py, Tensor::meshgrid_with(&self::tensors(tensors)?, indexing))
}
