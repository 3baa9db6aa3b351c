//! Sparse tensors: their constructors and parts.

use crate::data::finish;
use crate::dtype;
use crate::error::OrRaise;
use crate::handle::{PyTensor, tensor};
use crate::runtime;
use keyway::{DType, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A tensor of an argument: a tensor, an array, or nested numbers.
fn given(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let made = match tensor(object)? {
        Some(tensor) => tensor,
        None => crate::data::from_nested(object, dtype)?,
    };
    match dtype {
        Some(dtype) if dtype != made.dtype() => made.to_dtype(dtype).or_raise(),
        _ => Ok(made),
    }
}

/// The shape that holds all indices, and the sizes of the values' blocks.
fn smallest(indices: &Tensor, values: &Tensor) -> PyResult<Vec<usize>> {
    if indices.rank() != 2 || indices.elem_count() == 0 {
        return Err(PyTypeError::new_err("sparse_coo_tensor: pass `size` for a tensor without entries"));
    }
    let most: Vec<i64> = indices.amax(1).or_raise()?.to_vec().or_raise()?;
    let sizes = most.iter().map(|&most| usize::try_from(most).map_or(0, |most| most.saturating_add(1)));
    Ok(sizes.chain(values.shape().iter().skip(1).copied()).collect())
}

/// A sparse tensor of coordinates, `[dimensions, entries]`, and of the values there.
#[pyfunction]
#[pyo3(signature = (indices, values, size=None, *, dtype=None, device=None, requires_grad=false))]
pub fn sparse_coo_tensor(
    py: Python<'_>,
    indices: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    size: Option<Vec<usize>>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let dtype = dtype.map(dtype::convert).transpose()?;
    let (indices, values) = (given(indices, Some(DType::I64))?, given(values, dtype)?);
    let size = size.map_or_else(|| smallest(&indices, &values), Ok)?;
    finish(Tensor::sparse_coo(&indices, &values, &size[..]).or_raise()?, None, device, requires_grad)
}

/// A sparse matrix by rows: where each row begins among the entries, and the columns and values of the entries.
#[pyfunction]
#[pyo3(signature = (crow_indices, col_indices, values, size, *, dtype=None, device=None, requires_grad=false))]
#[allow(clippy::too_many_arguments)]
pub fn sparse_csr_tensor(
    py: Python<'_>,
    crow_indices: &Bound<'_, PyAny>,
    col_indices: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    size: Vec<usize>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let dtype = dtype.map(dtype::convert).transpose()?;
    let (rows, columns) = (given(crow_indices, Some(DType::I64))?, given(col_indices, Some(DType::I64))?);
    let made = Tensor::sparse_csr(&rows, &columns, &given(values, dtype)?, &size[..]).or_raise()?;
    finish(made, None, device, requires_grad)
}

#[pymethods]
impl PyTensor {
    /// The tensor as a sparse one of coordinates; the dimensions beyond `sparse_dim` are strided blocks.
    #[pyo3(signature = (sparse_dim=None))]
    fn to_sparse(&self, sparse_dim: Option<usize>) -> PyResult<PyTensor> {
        match sparse_dim {
            Some(dims) => self.0.to_sparse_with(dims),
            None => self.0.to_sparse(),
        }
        .or_raise()
        .map(PyTensor)
    }

    /// The matrix as a sparse one by rows.
    fn to_sparse_csr(&self) -> PyResult<PyTensor> {
        self.0.to_sparse_csr().or_raise().map(PyTensor)
    }

    /// The tensor with all elements; itself if it is strided.
    fn to_dense(&self) -> PyResult<PyTensor> {
        self.0.to_dense().or_raise().map(PyTensor)
    }

    /// The sparse tensor with sorted coordinates, and with the sum of the values of each.
    fn coalesce(&self) -> PyResult<PyTensor> {
        self.0.coalesce().or_raise().map(PyTensor)
    }

    /// Whether the coordinates are sorted and differ.
    fn is_coalesced(&self) -> PyResult<bool> {
        self.0.is_coalesced().or_raise()
    }

    /// The coordinates, `[dimensions, entries]`.
    #[pyo3(name = "indices")]
    fn coordinates(&self) -> PyResult<PyTensor> {
        self.0.indices().or_raise().map(PyTensor)
    }

    /// The values of the entries.
    fn values(&self) -> PyResult<PyTensor> {
        self.0.values().or_raise().map(PyTensor)
    }

    /// Where each row of a sparse matrix begins among the entries.
    fn crow_indices(&self) -> PyResult<PyTensor> {
        self.0.crow_indices().or_raise().map(PyTensor)
    }

    /// The columns of the entries of a sparse matrix.
    fn col_indices(&self) -> PyResult<PyTensor> {
        self.0.col_indices().or_raise().map(PyTensor)
    }

    /// The number of entries.
    fn _nnz(&self) -> PyResult<usize> {
        self.0.nnz().or_raise()
    }

    /// The number of dimensions that coordinates have.
    fn sparse_dim(&self) -> PyResult<usize> {
        self.0.sparse_dim().or_raise()
    }

    /// The number of dimensions of each value.
    fn dense_dim(&self) -> PyResult<usize> {
        self.0.dense_dim().or_raise()
    }

    /// Whether the tensor is sparse, of coordinates.
    #[getter]
    fn is_sparse(&self) -> bool {
        self.0.is_sparse()
    }
}
