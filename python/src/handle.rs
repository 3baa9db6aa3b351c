//! The class `Tensor` as a Rust type; its methods are in `tensor` and `operators`.

use crate::buffer;
use keyway::Tensor;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// An array of numbers of one dtype on a device, whose calls autograd can record.
#[pyclass(name = "Tensor", module = "keyway", frozen, weakref, dict)]
pub struct TensorObject(pub Handle);

pub type PyTensor = TensorObject;

/// The object of a tensor: a constructor of the name of the type, whose field is the handle.
#[allow(non_snake_case)]
pub fn PyTensor(tensor: Tensor) -> PyTensor {
    TensorObject(Handle { first: tensor, moved: OnceLock::new(), is_initialised: AtomicBool::new(true) })
}

/// The tensor of an object. It changes at most once: `share_memory_` moves it to other memory.
///
/// The first tensor is not dropped before the object, since borrows of it and buffers over its memory may exist.
pub struct Handle {
    first: Tensor,
    moved: OnceLock<Tensor>,
    is_initialised: AtomicBool,
}

impl Handle {
    /// Whether the object has its tensor. CPython 3.11 creates the dict of a new object after the object is known to the garbage
    /// collector, which may visit it then: its memory is zero until the tensor is written.
    pub fn is_initialised(&self) -> bool {
        self.is_initialised.load(Ordering::Relaxed)
    }

    /// Replaces the tensor by one with the same elements in other memory; later calls have no effect.
    pub fn move_to(&self, tensor: Tensor) {
        let _ = self.moved.set(tensor);
    }
}

impl Deref for Handle {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        self.moved.get().unwrap_or(&self.first)
    }
}

/// A result that is `NotImplemented` where an operand fits neither.
pub type Operand<'py> = PyResult<Bound<'py, PyAny>>;

/// Whether an object has the buffer protocol and is no text, bytes or tensor.
pub fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive, and the check reads its type alone.
    let has = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 1;
    has && !object.is_instance_of::<PyBytes>() && object.cast::<PyTensor>().is_err()
}

/// The tensor that an object is or whose memory it can share: a tensor, a NumPy array or scalar.
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Ok(Some(tensor.get().0.clone()));
    }
    if has_buffer(object) {
        return buffer::import(object, None).map(Some);
    }
    Ok(None)
}
