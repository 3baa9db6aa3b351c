//! The buffer protocol (PEP 3118): memory that NumPy and Keyway share.

use crate::dtype;
use crate::error::OrRaise;
use keyway::storage::Blob;
use keyway::{DType, Device, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::{CStr, CString, c_int};
use std::ptr;

/// The dtype of a buffer's elements by their format.
///
/// # Errors
/// `TypeError` for a byte order other than the machine's, and for elements that are no numbers.
fn dtype_of(format: &str, size: usize) -> PyResult<DType> {
    let native = if cfg!(target_endian = "little") { '<' } else { '>' };
    let bare = format.trim_start_matches(['@', '=', native]);
    if bare.starts_with(['<', '>', '!']) {
        return Err(PyTypeError::new_err(format!(
            "expected elements in the byte order of this machine, got the format `{format}`; convert the array with \
             `x.astype(x.dtype.newbyteorder('='))`"
        )));
    }
    let signed = |size| match size {
        1 => Some(DType::I8),
        2 => Some(DType::I16),
        4 => Some(DType::I32),
        8 => Some(DType::I64),
        _ => None,
    };
    let unsigned = |size| match size {
        1 => Some(DType::U8),
        2 => Some(DType::U16),
        4 => Some(DType::U32),
        8 => Some(DType::U64),
        _ => None,
    };
    let found = match bare {
        "b" | "h" | "i" | "l" | "q" | "n" => signed(size),
        "B" | "H" | "I" | "L" | "Q" | "N" => unsigned(size),
        other => dtype::DTYPES.iter().find(|(.., format)| *format == Some(other)).map(|(dtype, ..)| *dtype),
    };
    found.filter(|dtype| dtype.size() == size).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "expected elements of a number type, got the format `{format}` of {size} bytes; arrays of objects, text, \
             dates or records have no dtype here"
        ))
    })
}

/// A buffer that an object exports, released when this is dropped. PyO3's own type refuses arrays without dimensions.
struct View(Box<ffi::Py_buffer>);

// SAFETY: a buffer may be used and released on any thread that holds the interpreter's lock, which `drop` takes.
unsafe impl Send for View {}

impl View {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<View> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the object is alive, and the buffer is one to be filled, at an address that does not change.
        let status = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, ffi::PyBUF_FULL_RO) };
        if status == 0 { Ok(View(view)) } else { Err(PyErr::fetch(object.py())) }
    }

    /// The `ndim` values at an address; none for a null one.
    fn list(&self, start: *mut ffi::Py_ssize_t) -> &[ffi::Py_ssize_t] {
        if start.is_null() || self.0.ndim == 0 {
            return &[];
        }
        // SAFETY: the exporter keeps `ndim` values at each address that is not null until the buffer is released.
        unsafe { std::slice::from_raw_parts(start, self.0.ndim as usize) }
    }

    fn shape(&self) -> Vec<usize> {
        self.list(self.0.shape).iter().map(|&size| size as usize).collect()
    }

    fn format(&self) -> String {
        // SAFETY: the exporter's text ends with a zero byte; a null one means bytes, by PEP 3118.
        let text = (!self.0.format.is_null()).then(|| unsafe { CStr::from_ptr(self.0.format) });
        text.map_or("B".into(), |text| text.to_string_lossy().into_owned())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // Without an interpreter the exporter's memory is gone.
        Python::try_attach(|_| {
            // SAFETY: the buffer was filled by `of` and is released here alone, with the interpreter's lock.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.0) }
        });
    }
}

/// The tensor over the memory of an object that has the buffer protocol, or over a copy.
///
/// The memory is shared unless `copy` is asked for or needed: for negative strides, strides that are no multiple of an element,
/// and unaligned elements. `copy = Some(false)` makes a needed copy an error.
///
/// # Errors
/// `TypeError` for elements that have no dtype; `BufferError` for a copy that is needed and was refused.
pub fn import(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let py = object.py();
    let buffer = View::of(object)?;
    let size = buffer.0.itemsize as usize;
    let dtype = dtype_of(&buffer.format(), size)?;
    let shape = buffer.shape();
    let data: *mut u8 = buffer.0.buf.cast();
    let in_elements =
        |&bytes: &isize| usize::try_from(bytes).ok().filter(|s| s % size == 0).map(|s| s / size);
    let strides: Option<Vec<usize>> = buffer.list(buffer.0.strides).iter().map(in_elements).collect();
    let aligned = data.addr().is_multiple_of(size.min(8));
    let empty = shape.contains(&0);
    let reason = match &strides {
        _ if empty => None,
        None => Some("its strides are negative or no multiple of an element"),
        Some(_) if !aligned => Some("its elements are not aligned"),
        Some(_) if !buffer.0.suboffsets.is_null() => Some("it is an array of pointers"),
        Some(_) => None,
    };
    if copy == Some(false)
        && let Some(reason) = reason
    {
        return Err(PyBufferError::new_err(format!(
            "the memory cannot be shared: {reason}; leave `copy` out, or pass a contiguous array"
        )));
    }
    let (true, false, Some(strides), false) = (reason.is_none(), copy == Some(true), strides, empty) else {
        let bytes =
            py.import("builtins")?.getattr("memoryview")?.call1((object,))?.call_method0("tobytes")?;
        return from_bytes(bytes.cast::<PyBytes>()?.as_bytes(), &shape, dtype);
    };
    let last: usize = shape.iter().zip(&strides).map(|(size, stride)| (size - 1) * stride).sum();
    let (bytes, read_only) = ((last + 1) * size, buffer.0.readonly != 0);
    // SAFETY: the exporter keeps the memory valid until the buffer is released, which its drop in the deleter does, with the
    // interpreter's lock where it still runs. The bytes end with the last element of the exporter's own shape and strides, none
    // of which is negative. That Python writes to the array while a kernel reads it is the caller's to avoid, as with two
    // threads that use one NumPy array.
    let blob = unsafe { Blob::from_raw_parts(data, bytes, Device::CPU, move |_| drop(buffer)) };
    let blob = blob.map_err(keyway::Error::from).or_raise()?.named("buffer");
    let blob = if read_only { blob.read_only() } else { blob };
    Tensor::from_blob_strided(blob, &shape[..], &strides[..], dtype).or_raise()
}

/// A tensor with these elements in row-major order, in memory of its own.
pub fn from_bytes(bytes: &[u8], shape: &[usize], dtype: DType) -> PyResult<Tensor> {
    // Memory of 16-byte words is aligned for each dtype.
    let mut words = vec![0u128; bytes.len().div_ceil(16)];
    let data: *mut u8 = words.as_mut_ptr().cast();
    // SAFETY: the words have at least as many bytes, and are new, so they do not overlap with them.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
    // SAFETY: the address is that of the words, which the deleter owns and no one else uses.
    let blob = unsafe { Blob::from_raw_parts(data, bytes.len(), Device::CPU, move |_| drop(words)) };
    Tensor::from_blob(blob.map_err(keyway::Error::from).or_raise()?, shape, dtype).or_raise()
}

/// The lists and the text that an exported buffer points to. The buffer's reference to the object keeps the tensor alive.
struct Exported {
    format: CString,
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
}

/// Whether the strides are those of a column-major array without gaps.
fn is_column_major(tensor: &Tensor) -> bool {
    let mut expected = 1;
    tensor.shape().iter().zip(tensor.strides()).all(|(&size, &stride)| {
        let fits = size == 1 || stride == expected;
        expected *= size;
        fits
    })
}

/// Fills `view` for a consumer that asks for the buffer of `object`, which is `tensor` in Python.
///
/// # Safety
/// `view` is a valid `Py_buffer` to be filled, or null; the interpreter keeps this when it calls the slot.
///
/// # Errors
/// `BufferError` for a tensor that is not strided in host memory, needs a gradient, has a dtype without a format, or is read-only
/// or not contiguous where the consumer asks otherwise.
pub unsafe fn export(
    tensor: Tensor,
    object: Bound<'_, PyAny>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("expected a buffer to fill, got none"));
    }
    let refused =
        |reason: &str| Err(PyBufferError::new_err(format!("the tensor's memory cannot be shared: {reason}")));
    if tensor.requires_grad() {
        return refused("it requires a gradient; call `detach()` first");
    }
    let Some(format) = dtype::format(tensor.dtype()) else {
        return refused(
            "its dtype has no format of the buffer protocol; convert it, for example with `float()`",
        );
    };
    if tensor.device() != Device::CPU || tensor.storage().is_err() {
        return refused("it is not a strided tensor in host memory; call `cpu()` or `to_dense()` first");
    }
    let read_only = tensor.is_read_only();
    if flags & ffi::PyBUF_WRITABLE != 0 && read_only {
        return refused("it is read-only, and the consumer asked to write");
    }
    let asks = |flag: c_int| flags & flag == flag;
    let (strided, rows) = (asks(ffi::PyBUF_STRIDES), tensor.is_contiguous());
    let columns = rows && tensor.rank() <= 1 || is_column_major(&tensor);
    let fits = rows && !asks(ffi::PyBUF_F_CONTIGUOUS)
        || columns && strided && !asks(ffi::PyBUF_C_CONTIGUOUS)
        || strided
            && ![ffi::PyBUF_C_CONTIGUOUS, ffi::PyBUF_F_CONTIGUOUS, ffi::PyBUF_ANY_CONTIGUOUS]
                .into_iter()
                .any(asks);
    if !fits {
        return refused("it has other strides than the consumer asked for; call `contiguous()` first");
    }
    let size = tensor.dtype().size() as ffi::Py_ssize_t;
    let sized =
        |values: &[usize], by: ffi::Py_ssize_t| values.iter().map(|&v| v as ffi::Py_ssize_t * by).collect();
    let exported = Box::new(Exported {
        format: CString::new(format).unwrap_or_default(),
        shape: sized(tensor.shape(), 1),
        strides: sized(tensor.strides(), size),
    });
    let exported = Box::into_raw(exported);
    // SAFETY: the caller passes a buffer to fill. All pointers are to the box, which `release` frees, and to the tensor's memory,
    // which `obj` keeps alive: a new reference, which the interpreter takes back, to an object whose tensor never changes.
    unsafe {
        (*view).buf = tensor.data_ptr().cast_mut().cast();
        (*view).len = tensor.elem_count() as ffi::Py_ssize_t * size;
        (*view).itemsize = size;
        (*view).readonly = read_only.into();
        (*view).ndim = tensor.rank() as c_int;
        (*view).format = if flags & ffi::PyBUF_FORMAT == 0 {
            ptr::null_mut()
        } else {
            (*exported).format.as_ptr().cast_mut()
        };
        (*view).shape =
            if flags & ffi::PyBUF_ND == 0 { ptr::null_mut() } else { (*exported).shape.as_mut_ptr() };
        (*view).strides = if strided { (*exported).strides.as_mut_ptr() } else { ptr::null_mut() };
        (*view).suboffsets = ptr::null_mut();
        (*view).internal = exported.cast();
        (*view).obj = object.into_ptr();
    }
    Ok(())
}

/// Frees what [`export`] allocated.
///
/// # Safety
/// `view` was filled by `export` and is released once; the interpreter keeps this.
pub unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` is the box of `export`, and this is its only release.
    drop(unsafe { Box::from_raw((*view).internal.cast::<Exported>()) });
}
