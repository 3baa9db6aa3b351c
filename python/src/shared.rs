//! Memory that processes share.

use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::{dtype, error, runtime};
use keyway::dispatcher::memory::Shared;
use keyway::storage::SharedHandle;
use keyway::{DType, Tensor};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::path::PathBuf;

/// The tensors besides this one that use its memory, as text; `None` if there is none.
fn others(tensor: &Tensor) -> Option<String> {
    let storages = tensor.storage().map_or(1, |storage| storage.strong_count());
    let of_base = tensor.as_ref().base().map_or(1, Shared::strong_count);
    let handles = Shared::strong_count(tensor.as_ref()).max(of_base);
    let count = (storages - 1).max(handles - 1);
    (count > 0).then(|| format!("{count} other tensor{}", if count == 1 { "" } else { "s" }))
}

#[pymethods]
impl PyTensor {
    /// Moves the tensor to memory that other processes can map, with its gradient, and returns it. No effect if it is there.
    fn _share<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let handle = &slf.get().0;
        if handle.is_shared() {
            return Ok(slf);
        }
        if let Some(others) = others(handle) {
            return Err(error::raise(
                "ShapeError",
                format!(
                    "share_memory_: expected memory that this tensor alone uses, but {others} (views, `detach()`, `state_dict()`, \
                     optimisers, graphs) would keep the old memory; call it before they are made, or share a `clone()`"
                ),
            ));
        }
        let mut moved = Tensor::clone(handle);
        moved.share_memory_().or_raise()?;
        handle.move_to(moved);
        Ok(slf)
    }

    /// Whether the tensor is in memory that other processes can map.
    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    /// A copy in memory that other processes can map, without history, or the tensor itself, detached, if it is in such memory.
    fn _to_shared(&self) -> PyResult<PyTensor> {
        self.0.to_shared_memory().or_raise().map(PyTensor)
    }

    /// A text by which another process of the same user opens the tensor's memory with `keyway.open_shared`, as long as this
    /// process has a tensor over the memory.
    fn shared_name(&self) -> PyResult<String> {
        self.0.shared_name().or_raise()
    }

    /// A new descriptor of the tensor's file, its dtype, offset, sizes and strides. The caller closes the descriptor.
    #[allow(clippy::type_complexity)]
    fn _shared_parts(&self) -> PyResult<(i32, &'static str, usize, Vec<usize>, Vec<usize>)> {
        let handle = self.0.shared_handle().or_raise()?;
        let (offset, sizes, strides) = (handle.offset(), handle.sizes().to_vec(), handle.strides().to_vec());
        Ok((handle.into_file().into_raw_fd(), dtype::name(self.0.dtype()), offset, sizes, strides))
    }
}

/// The tensor of `_shared_parts`. The descriptor is copied: the caller closes its own.
#[pyfunction]
pub fn _from_shared_parts(
    py: Python<'_>,
    file: i32,
    dtype: &Bound<'_, PyAny>,
    offset: usize,
    sizes: Vec<usize>,
    strides: Vec<usize>,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    if file < 0 {
        return Err(PyOSError::new_err(format!("expected a descriptor, got {file}")));
    }
    // SAFETY: it is not negative, and is used for one system call alone, which refuses a descriptor that is not open.
    let file = unsafe { BorrowedFd::borrow_raw(file) }.try_clone_to_owned()?;
    let handle = SharedHandle::new(file, dtype::convert(dtype)?, offset, &sizes, &strides);
    Tensor::from_shared_handle(&handle).or_raise().map(PyTensor)
}

/// The tensor of a name that `Tensor.shared_name` returned in this or another process of the same user: the same memory.
///
/// Raises FileError if that process has ended or no longer has a tensor over the memory.
#[pyfunction]
pub fn open_shared(py: Python<'_>, name: &str) -> PyResult<PyTensor> {
    runtime::start(py)?;
    Tensor::open_shared(name).or_raise().map(PyTensor)
}

/// Zeros in memory that other processes can map.
#[pyfunction]
#[pyo3(signature = (size, dtype=None))]
pub fn _zeros_shared(
    py: Python<'_>,
    size: Vec<usize>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let dtype = dtype.map(dtype::convert).transpose()?.unwrap_or_else(keyway::default_dtype);
    Tensor::zeros_shared(&size[..], dtype).or_raise().map(PyTensor)
}

/// The first `size` values of a file of raw values, as one dimension.
///
/// With `shared`, the file is mapped: changes reach the file, which is created or extended if it is too short. A program that
/// truncates it meanwhile ends this process with SIGBUS. Otherwise the values are read.
#[pyfunction]
#[pyo3(signature = (filename, shared=false, size=0, *, dtype=None, requires_grad=false))]
pub fn from_file(
    py: Python<'_>,
    filename: PathBuf,
    shared: bool,
    size: usize,
    dtype: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let dtype: DType = dtype.map(dtype::convert).transpose()?.unwrap_or_else(keyway::default_dtype);
    let made = py.detach(|| Tensor::from_file(&filename, shared, size, dtype)).or_raise()?;
    if requires_grad {
        made.requires_grad_(true).or_raise()?;
    }
    Ok(PyTensor(made))
}
