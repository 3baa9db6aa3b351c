//! Tensors as structs of DLPack, and the C functions of DLPack 1.3 (`DLPackExchangeAPI`), by which libraries exchange tensors
//! without a capsule and a Python call.
//!
//! A type offers them as the capsule `__dlpack_c_exchange_api__`; see <https://dmlc.github.io/dlpack/latest/c_api.html>.

use crate::handle::PyTensor;
use keyway::Tensor;
use keyway::storage::dlpack::{DLManagedTensorVersioned, DLPackVersion, DLTensor, ManagedTensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};
use pyo3::{ffi, intern};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// The name of the capsule.
const NAME: &CStr = c"dlpack_exchange_api";

/// `DLDeviceType` of the host, and of page-locked host memory of CUDA.
pub const HOSTS: [i32; 2] = [1, 3];

/// The tensor as a struct of DLPack.
///
/// # Errors
/// `BufferError` for a tensor that needs a gradient, is not strided in host memory or has a plugin's dtype.
pub fn managed(tensor: &Tensor) -> PyResult<ManagedTensor> {
    tensor.to_dlpack().map_err(refused)
}

/// The exception for a tensor that is not exported.
pub fn refused(error: impl std::fmt::Display) -> PyErr {
    PyBufferError::new_err(format!("the tensor cannot be exported: {error}"))
}

/// The tensor over the memory of a struct, which is freed with it, or at an error.
///
/// # Errors
/// `BufferError` for memory of a device and for negative strides, `TypeError` for types without a dtype here, `ValueError` for
/// other values that no tensor has.
pub fn share(managed: ManagedTensor) -> PyResult<Tensor> {
    let described = *managed.dl_tensor();
    if !HOSTS.contains(&described.device.device_type) {
        return Err(PyBufferError::new_err("expected memory of the host, got that of a device"));
    }
    Tensor::from_dlpack(managed).map_err(|error| match error {
        keyway::Error::Dispatch(keyway::dispatcher::Error::Value { argument: "dtype", .. }) => {
            PyTypeError::new_err(error.to_string())
        }
        error => crate::error::exception(error),
    })
}

/// `DLPackExchangeAPI`, with its header.
#[repr(C)]
struct Api {
    version: DLPackVersion,
    /// The functions of an older version, or null.
    previous: *const c_void,
    allocate: Option<
        unsafe extern "C" fn(
            *mut DLTensor,
            *mut *mut DLManagedTensorVersioned,
            *mut c_void,
            SetError,
        ) -> c_int,
    >,
    from_object: Option<unsafe extern "C" fn(*mut c_void, *mut *mut DLManagedTensorVersioned) -> c_int>,
    to_object: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut c_void) -> c_int>,
    view: Option<unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> c_int>,
    stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

/// Reports an error of `allocate`: context, kind, message.
type SetError = Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>;

// SAFETY: the table is constant.
unsafe impl Sync for Api {}

/// The functions of this package.
static API: Api = Api {
    version: DLPackVersion { major: 1, minor: 3 },
    previous: std::ptr::null(),
    allocate: Some(allocate),
    from_object: Some(from_object),
    to_object: Some(to_object),
    view: Some(view),
    stream: Some(stream),
};

/// The capsule of [`API`].
pub fn capsule(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let table = (&raw const API).cast_mut().cast();
    // SAFETY: the table and the name live as long as the program; there is nothing to destroy.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(table, NAME.as_ptr(), None)) }
        .map(Bound::unbind)
}

/// 0 after success; otherwise -1, with the exception set.
fn status(py: Python<'_>, run: impl FnOnce() -> PyResult<()>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        drop(panic);
        Err(PyBufferError::new_err("a panic in an exchange by DLPack; report it with the call"))
    });
    match result {
        Ok(()) => 0,
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// An uninitialised row-major tensor in host memory, with the shape and dtype of `prototype`.
///
/// # Safety
/// By DLPack: `prototype` has `ndim` sizes, `out` can be written, and `set_error` takes two strings. Any thread may call it.
unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: SetError,
) -> c_int {
    let run = || -> keyway::Result<ManagedTensor> {
        // SAFETY: the caller's prototype.
        let (dtype, sizes, device) = unsafe {
            let rank = usize::try_from((*prototype).ndim).unwrap_or(0);
            let sizes =
                if rank == 0 { &[][..] } else { std::slice::from_raw_parts((*prototype).shape, rank) };
            ((*prototype).dtype, sizes, (*prototype).device)
        };
        keyway::dispatcher::memory::dlpack::empty(device, dtype, sizes).map_err(keyway::Error::from)
    };
    let message = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(managed)) => {
            // SAFETY: the caller's output.
            unsafe { *out = managed.into_raw() };
            return 0;
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "a panic in the allocation".to_string(),
    };
    if let (Some(set_error), Ok(message)) = (set_error, std::ffi::CString::new(message)) {
        // SAFETY: two strings that end with zero, for the call.
        unsafe { set_error(context, c"MemoryError".as_ptr(), message.as_ptr()) };
    }
    -1
}

/// The tensor of an object of [`PyTensor`]'s type.
///
/// # Safety
/// `object` is null or an object that lives as long as `'py`, and this thread is attached to the interpreter; the caller keeps it.
unsafe fn tensor_of<'py>(py: Python<'py>, object: *mut c_void) -> PyResult<Borrowed<'py, 'py, PyTensor>> {
    // SAFETY: the caller's object.
    let object = unsafe { Borrowed::from_ptr_or_err(py, object.cast()) }?;
    Ok(object.cast::<PyTensor>()?)
}

/// Exports a tensor.
///
/// # Safety
/// By DLPack: `object` is an object, `out` can be written, and the thread is attached to the interpreter.
unsafe extern "C" fn from_object(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int {
    // SAFETY: DLPack calls this function only while attached.
    let py = unsafe { Python::assume_attached() };
    status(py, || {
        // SAFETY: the caller's object and output.
        unsafe { *out = managed(&tensor_of(py, object)?.get().0)?.into_raw() };
        Ok(())
    })
}

/// Imports a tensor.
///
/// # Safety
/// By DLPack: `managed` is owned by the caller, who gives it up, `out` can be written, and the thread is attached to the interpreter.
unsafe extern "C" fn to_object(managed: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    // SAFETY: DLPack calls this function only while attached.
    let py = unsafe { Python::assume_attached() };
    status(py, || {
        // SAFETY: the caller's struct and output.
        unsafe {
            let managed = ManagedTensor::from_raw(managed)
                .map_err(|error| PyBufferError::new_err(error.to_string()))?;
            *out = Py::new(py, PyTensor(share(managed)?))?.into_ptr().cast();
        }
        Ok(())
    })
}

/// Describes a tensor without owning it; its arrays are valid as long as the object.
///
/// # Safety
/// By DLPack: `object` is an object, `out` can be written, and the thread is attached to the interpreter.
unsafe extern "C" fn view(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: DLPack calls this function only while attached.
    let py = unsafe { Python::assume_attached() };
    status(py, || {
        // SAFETY: the caller's object.
        let tensor = unsafe { tensor_of(py, object)? };
        let tensor = &tensor.get().0;
        let mut described = *managed(tensor)?.dl_tensor();
        described.shape = dims(tensor.shape());
        described.strides = dims(tensor.strides());
        // SAFETY: the caller's output.
        unsafe { *out = described };
        Ok(())
    })
}

/// Sizes or strides as DLPack's arrays: each is at most `isize::MAX`, so its bytes are those of an `i64`.
fn dims(values: &[usize]) -> *mut i64 {
    const { assert!(size_of::<usize>() == size_of::<i64>(), "DLPack's sizes have 64 bits") };
    values.as_ptr().cast_mut().cast()
}

/// The stream of the device: work on host memory has ended.
///
/// # Safety
/// By DLPack: `out` can be written.
unsafe extern "C" fn stream(_device_type: i32, _device: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's output.
    unsafe { *out = std::ptr::null_mut() };
    0
}

/// A type whose tensors are exchanged by C functions.
struct Peer {
    class: Py<PyType>,
    from_object: unsafe extern "C" fn(*mut c_void, *mut *mut DLManagedTensorVersioned) -> c_int,
    /// Whether its tensors have lazy conjugation and negation, as PyTorch's have: its functions export the elements before them.
    has_lazy_bits: bool,
}

/// The functions of a type, where it has some of version 1.
fn peer(class: &Bound<'_, PyType>) -> PyResult<Option<Peer>> {
    let py = class.py();
    let Some(capsule) = class.getattr_opt(intern!(py, "__dlpack_c_exchange_api__"))? else { return Ok(None) };
    if !capsule.is_instance_of::<PyCapsule>() {
        return Ok(None);
    }
    // SAFETY: the call checks that it is a capsule of this name; DLPack says that its table lives as long as the program, and begins
    // with the version.
    let from_object = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) != 1 {
            return Ok(None);
        }
        let table: *const Api = ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()).cast();
        if (*table).version.major != API.version.major {
            return Ok(None);
        }
        (*table).from_object
    };
    let has_lazy_bits = class.hasattr(intern!(py, "is_conj"))? && class.hasattr(intern!(py, "is_neg"))?;
    Ok(from_object.map(|from_object| Peer { class: class.clone().unbind(), from_object, has_lazy_bits }))
}

/// The first type that was met, which the next calls need not look up.
static FIRST: OnceLock<Peer> = OnceLock::new();

/// A tensor of another library by the C functions of its type, which are not asked with `copy`; none where the type has no such
/// functions.
///
/// # Errors
/// A tensor that requires a gradient, or with a lazy conjugation or negation; what the producer raises.
pub fn take(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Option<ManagedTensor>> {
    let class = object.get_type();
    let found;
    let peer = match FIRST.get() {
        Some(first) if first.class.as_ptr() == class.as_ptr() => first,
        first => {
            let Some(new) = peer(&class)? else { return Ok(None) };
            if first.is_none() {
                FIRST.get_or_init(|| new)
            } else {
                found = new;
                &found
            }
        }
    };
    let py = object.py();
    if peer.has_lazy_bits {
        let refused =
            |expected: &str| Err(PyBufferError::new_err(format!("expected a tensor {expected} first")));
        if object.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
            return refused("that requires no gradient, which would be lost; call `detach()`");
        }
        if object.call_method0(intern!(py, "is_conj"))?.is_truthy()? {
            return refused("without a lazy conjugation, which DLPack cannot express; call `resolve_conj()`");
        }
        if object.call_method0(intern!(py, "is_neg"))?.is_truthy()? {
            return refused("without a lazy negation, which DLPack cannot express; call `resolve_neg()`");
        }
    }
    if copy.is_some() {
        return Ok(None);
    }
    let mut out = std::ptr::null_mut();
    // SAFETY: the object is of the type whose function this is, and this thread is attached; a struct is ours after 0.
    unsafe {
        if (peer.from_object)(object.as_ptr().cast(), &raw mut out) != 0 {
            return Err(PyErr::take(py).unwrap_or_else(|| {
                PyBufferError::new_err("the producer refused its tensor, without an exception that says why")
            }));
        }
        ManagedTensor::from_raw(out).map(Some).map_err(|error| PyBufferError::new_err(error.to_string()))
    }
}
