//! DLPack 1.x: tensors that other libraries and Keyway share without a copy.
//!
//! The structs are those of `dlpack.h` (<https://dmlc.github.io/dlpack/latest/c_api.html>).

use crate::error::OrRaise;
use keyway::storage::Blob;
use keyway::{DType, Device, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::ffi::{CStr, c_void};
use std::ptr;

/// The version of the structs below.
const VERSION: (u32, u32) = (1, 1);
const CPU: i32 = 1;
/// Page-locked host memory of CUDA.
const CUDA_HOST: i32 = 3;
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

const OLD: &CStr = c"dltensor";
const OLD_USED: &CStr = c"used_dltensor";
const NEW: &CStr = c"dltensor_versioned";
const NEW_USED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
struct DLDevice {
    device_type: i32,
    device_id: i32,
}

#[repr(C)]
struct DLDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device: DLDevice,
    ndim: i32,
    dtype: DLDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct DLManagedTensor {
    dl_tensor: DLTensor,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

#[repr(C)]
struct DLManagedTensorVersioned {
    major: u32,
    minor: u32,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    dl_tensor: DLTensor,
}

/// The code of each kind of numbers in `DLDataTypeCode`.
const CODES: [(DType, u8); 15] = [
    (DType::BOOL, 6),
    (DType::U8, 1),
    (DType::U16, 1),
    (DType::U32, 1),
    (DType::U64, 1),
    (DType::I8, 0),
    (DType::I16, 0),
    (DType::I32, 0),
    (DType::I64, 0),
    (DType::F16, 2),
    (DType::BF16, 4),
    (DType::F32, 2),
    (DType::F64, 2),
    (DType::C64, 5),
    (DType::C128, 5),
];

/// An exported tensor with the arrays that its struct points to.
struct Exported<M> {
    managed: M,
    _shape: Vec<i64>,
    _strides: Vec<i64>,
    _tensor: Tensor,
}

fn dl_tensor(tensor: &Tensor, shape: &mut [i64], strides: &mut [i64], code: u8) -> DLTensor {
    DLTensor {
        data: tensor.data_ptr().cast_mut().cast(),
        device: DLDevice { device_type: CPU, device_id: 0 },
        ndim: tensor.rank() as i32,
        dtype: DLDataType { code, bits: (tensor.dtype().size() * 8) as u8, lanes: 1 },
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    }
}

/// Frees an exported tensor of the struct's old form.
///
/// # Safety
/// `managed` is from [`export`] and is freed once; the consumer keeps this.
unsafe extern "C" fn free_old(managed: *mut DLManagedTensor) {
    if !managed.is_null() {
        // SAFETY: `manager_ctx` is the box of `export`, which is freed here alone.
        drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Exported<DLManagedTensor>>()) });
    }
}

/// [`free_old`] for the form with a version.
///
/// # Safety
/// As there.
unsafe extern "C" fn free_new(managed: *mut DLManagedTensorVersioned) {
    if !managed.is_null() {
        // SAFETY: as in `free_old`.
        drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Exported<DLManagedTensorVersioned>>()) });
    }
}

/// Frees a capsule's tensor unless a consumer took it, which renames the capsule.
///
/// # Safety
/// `capsule` is a capsule that is being destroyed; the interpreter keeps this.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is alive during its destructor. A pointer under one of the two names is one of `export`, and was not
    // consumed; its own deleter frees it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NEW.as_ptr()) == 1 {
            free_new(ffi::PyCapsule_GetPointer(capsule, NEW.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, OLD.as_ptr()) == 1 {
            free_old(ffi::PyCapsule_GetPointer(capsule, OLD.as_ptr()).cast());
        }
    }
}

/// A capsule of the tensor, in the form with a version if `versioned`.
///
/// # Errors
/// `BufferError` for a tensor that needs a gradient, is not strided in host memory or has a plugin's dtype.
pub fn export(py: Python<'_>, tensor: &Tensor, versioned: bool, copied: bool) -> PyResult<Py<PyAny>> {
    let refused =
        |reason: &str| Err(PyBufferError::new_err(format!("the tensor cannot be exported: {reason}")));
    if tensor.requires_grad() {
        return refused("it requires a gradient; call `detach()` first");
    }
    if tensor.device() != Device::CPU || tensor.storage().is_err() {
        return refused("it is not a strided tensor in host memory; call `cpu()` or `to_dense()` first");
    }
    let Some((_, code)) = CODES.iter().find(|(dtype, _)| *dtype == tensor.dtype()) else {
        return refused("DLPack has no code for its dtype");
    };
    if tensor.is_read_only() && !versioned {
        return refused(
            "it is read-only, which only DLPack 1.0 can say; the consumer asked for an older version",
        );
    }
    let mut shape: Vec<i64> = tensor.shape().iter().map(|&size| size as i64).collect();
    let mut strides: Vec<i64> = tensor.strides().iter().map(|&stride| stride as i64).collect();
    let described = dl_tensor(tensor, &mut shape, &mut strides, *code);
    let tensor = tensor.clone();
    let (pointer, name): (*mut c_void, &CStr) = if versioned {
        let flags = u64::from(tensor.is_read_only()) * READ_ONLY + u64::from(copied) * IS_COPIED;
        let (major, minor) = VERSION;
        let deleter = Some(free_new as unsafe extern "C" fn(_));
        let managed = DLManagedTensorVersioned {
            major,
            minor,
            manager_ctx: ptr::null_mut(),
            deleter,
            flags,
            dl_tensor: described,
        };
        let exported =
            Box::into_raw(Box::new(Exported { managed, _shape: shape, _strides: strides, _tensor: tensor }));
        // SAFETY: the box was just given up and is used here alone.
        unsafe {
            (*exported).managed.manager_ctx = exported.cast();
            ((&raw mut (*exported).managed).cast(), NEW)
        }
    } else {
        let deleter = Some(free_old as unsafe extern "C" fn(_));
        let managed = DLManagedTensor { dl_tensor: described, manager_ctx: ptr::null_mut(), deleter };
        let exported =
            Box::into_raw(Box::new(Exported { managed, _shape: shape, _strides: strides, _tensor: tensor }));
        // SAFETY: as above.
        unsafe {
            (*exported).managed.manager_ctx = exported.cast();
            ((&raw mut (*exported).managed).cast(), OLD)
        }
    };
    // SAFETY: the pointer is not null, the name lives as long as the program, and the destructor frees what no consumer took.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destroy))) }
        .map(Bound::unbind)
}

/// The dtype of a DLPack type.
fn dtype_of(dtype: &DLDataType) -> PyResult<DType> {
    let found =
        CODES.iter().find(|(known, code)| *code == dtype.code && known.size() * 8 == usize::from(dtype.bits));
    found.filter(|_| dtype.lanes == 1).map(|(dtype, _)| *dtype).ok_or_else(|| {
        let DLDataType { code, bits, lanes } = dtype;
        PyTypeError::new_err(format!(
            "expected numbers with a dtype here, got DLPack code {code} of {bits} bits, {lanes} lanes"
        ))
    })
}

/// Calls a foreign deleter when it is dropped.
struct Foreign {
    free: Option<Box<dyn FnOnce() + Send>>,
}

impl Foreign {
    /// The owner of a struct of a producer with its deleter.
    ///
    /// # Safety
    /// The deleter may be called with the struct, once and on any thread; the producer keeps this, by DLPack.
    unsafe fn of<M: 'static>(managed: *mut M, deleter: Option<unsafe extern "C" fn(*mut M)>) -> Foreign {
        let address = Address(managed);
        let free = move || {
            if let Some(deleter) = deleter {
                // SAFETY: the caller passes a deleter of this struct, and this runs once.
                unsafe { deleter(address.get()) }
            }
        };
        Foreign { free: Some(Box::new(free)) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(free) = self.free.take() {
            free();
        }
    }
}

/// An address that may be sent between threads: DLPack allows a deleter on any thread.
struct Address<T>(*mut T);
// SAFETY: the address is used for one call of the deleter, which DLPack allows on any thread.
unsafe impl<T> Send for Address<T> {}

impl<T> Address<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// The tensor over the memory of an object with `__dlpack__`, which calls the producer's deleter when the last tensor is dropped.
///
/// # Errors
/// `BufferError` for memory of a device, `TypeError` for types without a dtype here, `ValueError` for a capsule that was consumed
/// before or is of a later major version; what the producer raises.
pub fn import(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let py = object.py();
    let capsule = if object.is_instance_of::<PyCapsule>() {
        object.clone()
    } else {
        if !object.hasattr("__dlpack_device__")? {
            return Err(PyTypeError::new_err(format!(
                "expected an object with `__dlpack__`, got {}",
                object.get_type().name()?
            )));
        }
        let (kind, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        if kind != CPU && kind != CUDA_HOST {
            return Err(PyBufferError::new_err(format!(
                "expected memory of the host, got that of DLPack device type {kind}; copy the tensor to the host first"
            )));
        }
        let keywords = PyDict::new(py);
        keywords.set_item("max_version", VERSION)?;
        if copy.is_some() {
            keywords.set_item("copy", copy)?;
        }
        match object.call_method("__dlpack__", (), Some(&keywords)) {
            // Producers before DLPack 1.0 know no keyword.
            Err(error) if error.is_instance_of::<PyTypeError>(py) && copy.is_none() => {
                object.call_method0("__dlpack__")?
            }
            result => result?,
        }
    };
    let pointer = capsule.as_ptr();
    // SAFETY: the object is alive; the call checks that it is a capsule of this name with a pointer.
    let named = |name: &CStr| unsafe { ffi::PyCapsule_IsValid(pointer, name.as_ptr()) == 1 };
    if named(NEW) {
        // SAFETY: the capsule is valid under this name, so it has a struct of the form with a version. Renaming it takes over the
        // ownership, and the deleter is called once.
        unsafe {
            let managed: *mut DLManagedTensorVersioned =
                ffi::PyCapsule_GetPointer(pointer, NEW.as_ptr()).cast();
            if (*managed).major != VERSION.0 {
                let got = (*managed).major;
                return Err(PyValueError::new_err(format!("expected DLPack version 1, got version {got}")));
            }
            ffi::PyCapsule_SetName(pointer, NEW_USED.as_ptr());
            let foreign = Foreign::of(managed, (*managed).deleter);
            share(&(*managed).dl_tensor, (*managed).flags & READ_ONLY != 0, foreign)
        }
    } else if named(OLD) {
        // SAFETY: as above, in the form without a version.
        unsafe {
            let managed: *mut DLManagedTensor = ffi::PyCapsule_GetPointer(pointer, OLD.as_ptr()).cast();
            ffi::PyCapsule_SetName(pointer, OLD_USED.as_ptr());
            share(&(*managed).dl_tensor, false, Foreign::of(managed, (*managed).deleter))
        }
    } else if named(OLD_USED) || named(NEW_USED) {
        Err(PyValueError::new_err("the DLPack capsule was consumed before; ask the producer for a new one"))
    } else {
        Err(PyTypeError::new_err(format!(
            "expected an object with `__dlpack__` or its capsule, got {object}"
        )))
    }
}

/// The tensor over the memory that a struct describes. `foreign` is dropped with it, or at an error.
///
/// # Safety
/// The struct is one of a producer of DLPack whose deleter was not called; its arrays have `ndim` elements. The producer keeps
/// this.
unsafe fn share(described: &DLTensor, read_only: bool, foreign: Foreign) -> PyResult<Tensor> {
    let rank = usize::try_from(described.ndim).unwrap_or(0);
    if described.device.device_type != CPU && described.device.device_type != CUDA_HOST {
        return Err(PyBufferError::new_err("expected memory of the host, got that of a device"));
    }
    let dtype = dtype_of(&described.dtype)?;
    let list = |start: *mut i64| {
        // SAFETY: the caller's struct has `ndim` elements there; without dimensions nothing is read.
        let values = if rank == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(start, rank) } };
        values.iter().map(|&value| usize::try_from(value)).collect::<Result<Vec<_>, _>>()
    };
    let negative =
        |_| PyBufferError::new_err("expected sizes and strides of at least 0; copy the tensor first");
    let shape = list(described.shape).map_err(negative)?;
    let strides = if described.strides.is_null() {
        contiguous(&shape)
    } else {
        list(described.strides).map_err(negative)?
    };
    let empty = shape.contains(&0);
    let last: Option<usize> = shape.iter().zip(&strides).try_fold(0usize, |sum, (&size, &stride)| {
        size.saturating_sub(1).checked_mul(stride)?.checked_add(sum)
    });
    let bytes = last.and_then(|last| (last + usize::from(!empty)).checked_mul(dtype.size()));
    let Some(bytes) = bytes else {
        return Err(PyValueError::new_err("the sizes of the DLPack tensor overflow"));
    };
    if empty {
        drop(foreign);
        return Tensor::empty_with(&shape[..], dtype).or_raise();
    }
    let data: *mut u8 = described.data.cast::<u8>().wrapping_add(described.byte_offset as usize);
    // SAFETY: the producer keeps the memory valid until its deleter is called, which `foreign` does when the last tensor is dropped;
    // the bytes end with the last element of the producer's own shape and strides.
    let blob = unsafe { Blob::from_raw_parts(data, bytes, Device::CPU, move |_| drop(foreign)) };
    let blob = blob.map_err(keyway::Error::from).or_raise()?.named("DLPack");
    let blob = if read_only { blob.read_only() } else { blob };
    Tensor::from_blob_strided(blob, &shape[..], &strides[..], dtype).or_raise()
}

/// The strides of a row-major array.
fn contiguous(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim].max(1);
    }
    strides
}
