//! DLPack 1.x: tensors that other libraries and Keyway share without a copy, by capsules.

use crate::exchange;
use keyway::Tensor;
use keyway::storage::dlpack::{DLManagedTensor, DLManagedTensorVersioned, ManagedTensor, VERSION};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::ffi::{CStr, c_void};

const OLD: &CStr = c"dltensor";
const OLD_USED: &CStr = c"used_dltensor";
const NEW: &CStr = c"dltensor_versioned";
const NEW_USED: &CStr = c"used_dltensor_versioned";

/// Frees a capsule's tensor unless a consumer took it, which renames the capsule.
///
/// # Safety
/// `capsule` is a capsule that is being destroyed; the interpreter keeps this.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is alive during its destructor. A pointer under one of the two names is one of `export`, and was not
    // consumed.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NEW.as_ptr()) == 1 {
            drop(ManagedTensor::from_raw(ffi::PyCapsule_GetPointer(capsule, NEW.as_ptr()).cast()));
        } else if ffi::PyCapsule_IsValid(capsule, OLD.as_ptr()) == 1 {
            drop(ManagedTensor::from_raw_unversioned(
                ffi::PyCapsule_GetPointer(capsule, OLD.as_ptr()).cast(),
            ));
        }
    }
}

/// A capsule of the tensor, in the form with a version if `versioned`. `copied` sets DLPack's flag for elements that were copied.
///
/// # Errors
/// As [`exchange::managed`]; a read-only tensor in the form without a version.
pub fn export(py: Python<'_>, tensor: &Tensor, versioned: bool, copied: bool) -> PyResult<Py<PyAny>> {
    let managed = exchange::managed(tensor)?.with_copied(copied);
    let (pointer, name): (*mut c_void, &CStr) = if versioned {
        (managed.into_raw().cast(), NEW)
    } else {
        (managed.into_raw_unversioned().map_err(exchange::refused)?.cast(), OLD)
    };
    // SAFETY: the pointer is not null, the name lives as long as the program, and the destructor frees what no consumer took.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destroy))) }
        .map(Bound::unbind)
}

/// The tensor over the memory of an object with `__dlpack__`, which calls the producer's deleter when the last tensor is dropped.
/// A type with DLPack's C functions is asked through these, unless `copy` is given.
///
/// # Errors
/// `BufferError` for memory of a device, `TypeError` for types without a dtype here, `ValueError` for a capsule that was consumed
/// before or is of a later major version; what the producer raises.
pub fn import(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    if let Some(managed) = exchange::take(object, copy)? {
        return exchange::share(managed);
    }
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
        if !exchange::HOSTS.contains(&kind) {
            return Err(PyBufferError::new_err(format!(
                "expected memory of the host, got that of DLPack device type {kind}; copy the tensor to the host first"
            )));
        }
        let keywords = PyDict::new(py);
        keywords.set_item("max_version", (VERSION.major, VERSION.minor))?;
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
        // ownership, and the deleter is called once; a struct of another version stays the capsule's.
        unsafe {
            let struct_: *mut DLManagedTensorVersioned =
                ffi::PyCapsule_GetPointer(pointer, NEW.as_ptr()).cast();
            let managed =
                ManagedTensor::from_raw(struct_).map_err(|error| PyValueError::new_err(error.to_string()))?;
            ffi::PyCapsule_SetName(pointer, NEW_USED.as_ptr());
            exchange::share(managed)
        }
    } else if named(OLD) {
        // SAFETY: as above, in the form without a version.
        unsafe {
            let struct_: *mut DLManagedTensor = ffi::PyCapsule_GetPointer(pointer, OLD.as_ptr()).cast();
            let managed = ManagedTensor::from_raw_unversioned(struct_)
                .map_err(|error| PyValueError::new_err(error.to_string()))?;
            ffi::PyCapsule_SetName(pointer, OLD_USED.as_ptr());
            exchange::share(managed)
        }
    } else if named(OLD_USED) || named(NEW_USED) {
        Err(PyValueError::new_err("the DLPack capsule was consumed before; ask the producer for a new one"))
    } else {
        Err(PyTypeError::new_err(format!(
            "expected an object with `__dlpack__` or its capsule, got {object}"
        )))
    }
}
