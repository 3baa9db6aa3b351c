//! The Arrow C data interface: arrays of numbers that pyarrow, polars and Keyway share, by the capsules of `__arrow_c_array__`.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html>. Arrays of a primitive type are tensors of one dimension, and
//! lists of a fixed size are a further dimension. Arrow's memory is immutable, so tensors over it are read-only.

use crate::buffer;
use crate::dtype;
use crate::error::OrRaise;
use keyway::storage::Blob;
use keyway::{DType, Device, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
/// The largest number of dimensions, as in NumPy.
const DEEPEST: usize = 64;
/// `ARROW_FLAG_NULLABLE`: the type that other libraries give arrays of numbers, whether or not there are nulls.
const NULLABLE: i64 = 2;
/// The name of the elements of a list.
const ITEM: &CStr = c"item";

/// `struct ArrowSchema`: the type of an array.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`: the buffers of an array.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// The dtype of a format of the interface; booleans are bits and are not among them.
fn dtype_of(format: &str) -> Option<DType> {
    FORMATS.iter().find(|(known, _)| known.to_bytes() == format.as_bytes()).map(|(_, dtype)| *dtype)
}

const FORMATS: [(&CStr, DType); 11] = [
    (c"c", DType::I8),
    (c"C", DType::U8),
    (c"s", DType::I16),
    (c"S", DType::U16),
    (c"i", DType::I32),
    (c"I", DType::U32),
    (c"l", DType::I64),
    (c"L", DType::U64),
    (c"e", DType::F16),
    (c"f", DType::F32),
    (c"g", DType::F64),
];
const BITS: &CStr = c"b";

/// An array that was taken from its capsule, released when this is dropped.
struct Owned(Array);

// SAFETY: the interface allows an array to be released on any thread.
unsafe impl Send for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the array was moved here from its producer's, which is marked as released, so this is its only release.
            unsafe { release(&raw mut self.0) };
        }
    }
}

/// The elements of an array: `count` of them, `first` elements after the address.
struct Elements {
    format: String,
    shape: Vec<usize>,
    address: *const u8,
    first: usize,
    count: usize,
}

fn wrong(text: &str) -> PyErr {
    PyValueError::new_err(format!("expected an Arrow array of numbers, got one {text}"))
}

fn count(value: i64) -> PyResult<usize> {
    usize::try_from(value).map_err(|_| wrong(&format!("with a length or offset of {value}")))
}

/// Refuses nulls among the elements from `first` on.
///
/// # Safety
/// The array is one of the interface, with elements up to `first + count`.
unsafe fn check_nulls(array: &Array, first: usize, count: usize) -> PyResult<()> {
    if array.null_count == 0 || array.n_buffers < 1 || array.buffers.is_null() {
        return Ok(());
    }
    // SAFETY: the array has at least one buffer, the first of which is a bitmap of its elements or null.
    let bitmap = unsafe { (*array.buffers).cast::<u8>() };
    if bitmap.is_null() {
        return Ok(());
    }
    // SAFETY: the bitmap has a bit for each element.
    let nulls = (first..first + count).filter(|&i| unsafe { *bitmap.add(i / 8) } >> (i % 8) & 1 == 0).count();
    if nulls > 0 {
        return Err(wrong(&format!("with {nulls} nulls; a tensor has none: fill or drop them first")));
    }
    Ok(())
}

/// The elements of an array and its type, after checks of all that the structs state.
///
/// # Safety
/// Both are of the interface and not released.
unsafe fn elements(schema: *const Schema, array: *const Array) -> PyResult<Elements> {
    // SAFETY: by the contract of this function.
    let (mut schema, mut array) = unsafe { (&*schema, &*array) };
    let too_large = || wrong("whose sizes overflow");
    let (mut first, mut number) = (count(array.offset)?, count(array.length)?);
    let mut shape = vec![number];
    loop {
        // SAFETY: the format is a text that ends with a zero byte.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_string_lossy().into_owned();
        if !schema.dictionary.is_null() {
            return Err(wrong("that is dictionary-encoded; decode it first"));
        }
        first.checked_add(number).ok_or_else(too_large)?;
        // SAFETY: the array has elements up to `first + number`: those of its own, or as many as the check below has found.
        unsafe { check_nulls(array, first, number)? };
        let Some(size) = format.strip_prefix("+w:") else {
            let address = match array.n_buffers {
                // SAFETY: an array of a primitive type has two buffers.
                2 if !array.buffers.is_null() => unsafe { (*array.buffers.add(1)).cast::<u8>() },
                _ => ptr::null(),
            };
            return Ok(Elements { format, shape, address, first, count: number });
        };
        let size: usize = size.parse().map_err(|_| wrong(&format!("of the format `{format}`")))?;
        if shape.len() == DEEPEST {
            return Err(wrong(&format!("of more than {DEEPEST} dimensions")));
        }
        if schema.n_children != 1 || array.n_children != 1 {
            return Err(wrong("of lists without elements"));
        }
        // SAFETY: both have one child.
        let (child_schema, child) = unsafe { (&**schema.children, &**array.children) };
        let begin = first.checked_mul(size).ok_or_else(too_large)?;
        number = number.checked_mul(size).ok_or_else(too_large)?;
        let end = begin.checked_add(number).ok_or_else(too_large)?;
        if end > count(child.length)? {
            return Err(wrong(&format!("whose lists need {end} elements and have {}", child.length)));
        }
        first = begin.checked_add(count(child.offset)?).ok_or_else(too_large)?;
        shape.push(size);
        (schema, array) = (child_schema, child);
    }
}

/// The pointer of a capsule of this name.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    // SAFETY: the object is alive; the call checks that it is a capsule of this name with a pointer.
    if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) } != 1 {
        let name = name.to_string_lossy();
        return Err(PyTypeError::new_err(format!(
            "expected a capsule `{name}` from `__arrow_c_array__`, got {capsule}"
        )));
    }
    // SAFETY: the capsule is valid under this name.
    Ok(unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) }.cast())
}

/// The tensor over the memory of an object with `__arrow_c_array__`, read-only; over a copy for booleans, which are bits there, and
/// for elements that are not aligned. `copy = Some(false)` makes a needed copy an error.
///
/// # Errors
/// `ValueError` for nulls, dictionaries and damaged sizes; `TypeError` for elements that have no dtype; `BufferError` for a copy that
/// is needed and was refused; what the producer raises.
pub fn import(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
    let (schema, capsule): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
        object.call_method0("__arrow_c_array__")?.extract()?;
    let (schema, array) = (pointer::<Schema>(&schema, SCHEMA)?, pointer::<Array>(&capsule, ARRAY)?);
    // SAFETY: the capsules own structs of the interface, whose `release` says whether they were consumed.
    if unsafe { (*schema).release.is_none() || (*array).release.is_none() } {
        return Err(PyValueError::new_err(
            "the Arrow array was consumed before; ask the producer for a new one",
        ));
    }
    // SAFETY: neither is released.
    let Elements { format, shape, address, first, count } = unsafe { elements(schema, array)? };
    let refused = |reason: &str| {
        Err(PyBufferError::new_err(format!("the memory cannot be shared: {reason}; leave `copy` out")))
    };
    let is_bits = format.as_bytes() == BITS.to_bytes();
    let dtype = dtype_of(&format).or(is_bits.then_some(DType::BOOL)).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "expected an Arrow array of numbers, got the format `{format}`; text, dates and records have no dtype here"
        ))
    })?;
    if count > 0 && address.is_null() {
        return Err(wrong("without a buffer of elements"));
    }
    if is_bits {
        if copy == Some(false) {
            return refused("booleans of Arrow are bits");
        }
        // SAFETY: the buffer has a bit for each element.
        let bit = |i: usize| unsafe { *address.add(i / 8) } >> (i % 8) & 1 == 1;
        let values: Vec<bool> = (first..first + count).map(bit).collect();
        return Tensor::from_vec(values, &shape[..]).or_raise();
    }
    let size = dtype.size();
    let overflow = || wrong("whose sizes overflow");
    let (begin, bytes) = (
        first.checked_mul(size).ok_or_else(overflow)?,
        count.checked_mul(size).filter(|&n| isize::try_from(n).is_ok()).ok_or_else(overflow)?,
    );
    if bytes == 0 {
        return buffer::from_bytes(&[], &shape, dtype);
    }
    // SAFETY: the buffer has `first + count` elements.
    let address = unsafe { address.add(begin) };
    let aligned = address.addr().is_multiple_of(size.min(8));
    if copy == Some(true) || !aligned {
        if copy == Some(false) {
            return refused("its elements are not aligned");
        }
        // SAFETY: as above; the capsule keeps the memory during the call.
        return buffer::from_bytes(unsafe { std::slice::from_raw_parts(address, bytes) }, &shape, dtype);
    }
    // SAFETY: moving a struct of the interface is a copy and a mark of the old one as released, after which its capsule frees
    // nothing.
    let owned = unsafe {
        let owned = Owned(ptr::read(array));
        (*array).release = None;
        owned
    };
    // SAFETY: the producer keeps the buffers until the array is released, which its drop in the deleter does. Nobody writes to
    // them, by the interface, and the blob is read-only.
    let blob = unsafe { Blob::from_raw_parts(address.cast_mut(), bytes, Device::CPU, move |_| drop(owned)) };
    let blob = blob.map_err(keyway::Error::from).or_raise()?.named("arrow").read_only();
    Tensor::from_blob(blob, &shape[..], dtype).or_raise()
}

/// The memory of an exported type.
struct OfSchema {
    format: CString,
    children: Vec<*mut Schema>,
}

/// The memory of an exported array.
struct OfArray {
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
    _memory: Tensor,
}

/// Implements `release` for a struct of the interface.
macro_rules! released {
    ($name:ident, $struct:ty, $private:ty) => {
        /// Frees what an export allocated, and its children that no consumer moved.
        ///
        /// # Safety
        /// The struct is one of an export and not released; its consumer keeps this.
        unsafe extern "C" fn $name(this: *mut $struct) {
            // SAFETY: `private_data` is the box of the export, and this is its only release. A child is a box of the export;
            // a consumer that moves its content marks it as released.
            unsafe {
                let private = Box::from_raw((*this).private_data.cast::<$private>());
                for &child in &private.children {
                    let mut child = Box::from_raw(child);
                    if let Some(release) = child.release {
                        release(&raw mut *child);
                    }
                }
                (*this).release = None;
            }
        }
    };
}

released!(release_schema, Schema, OfSchema);
released!(release_array, Array, OfArray);

/// The type of a tensor from a dimension on.
fn schema_of(format: &CStr, sizes: &[usize]) -> *mut Schema {
    let (own, children) = match sizes {
        [] | [_] => (format.to_owned(), Vec::new()),
        [_, inner @ ..] => {
            let own = CString::new(format!("+w:{}", inner[0])).unwrap_or_default();
            (own, vec![schema_of(format, inner)])
        }
    };
    let mut private = Box::new(OfSchema { format: own, children });
    Box::into_raw(Box::new(Schema {
        format: private.format.as_ptr(),
        name: ITEM.as_ptr(),
        metadata: ptr::null(),
        flags: NULLABLE,
        n_children: private.children.len() as i64,
        children: private.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(private).cast(),
    }))
}

/// The array over a tensor's memory from a dimension of these sizes on, which the outer ones repeat `times` times.
fn array_of(memory: &Tensor, sizes: &[usize], times: usize) -> *mut Array {
    let length = times * sizes.first().copied().unwrap_or(1);
    let (buffers, children) = match sizes {
        [] | [_] => (vec![ptr::null(), memory.data_ptr().cast()], Vec::new()),
        [_, inner @ ..] => (vec![ptr::null()], vec![array_of(memory, inner, length)]),
    };
    let mut private = Box::new(OfArray { buffers, children, _memory: memory.clone() });
    Box::into_raw(Box::new(Array {
        length: length as i64,
        null_count: 0,
        offset: 0,
        n_buffers: private.buffers.len() as i64,
        n_children: private.children.len() as i64,
        buffers: private.buffers.as_mut_ptr(),
        children: private.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(private).cast(),
    }))
}

/// Implements the destructor of a capsule, which frees its struct unless a consumer took the content.
macro_rules! destructor {
    ($name:ident, $struct:ty, $capsule:expr) => {
        /// # Safety
        /// `capsule` is a capsule of an export that is being destroyed; the interpreter keeps this.
        unsafe extern "C" fn $name(capsule: *mut ffi::PyObject) {
            // SAFETY: the capsule is alive during its destructor, and has a box of the export.
            unsafe {
                let mut this =
                    Box::from_raw(ffi::PyCapsule_GetPointer(capsule, $capsule.as_ptr()).cast::<$struct>());
                if let Some(release) = this.release {
                    release(&raw mut *this);
                }
            }
        }
    };
}

destructor!(destroy_schema, Schema, SCHEMA);
destructor!(destroy_array, Array, ARRAY);

/// The elements of a tensor of bools as bits, the first one in the lowest bit.
fn bits(tensor: &Tensor) -> PyResult<Tensor> {
    let values = tensor.to_vec::<bool>().or_raise()?;
    let byte = |eight: &[bool]| eight.iter().enumerate().fold(0, |byte, (i, &bit)| byte | u8::from(bit) << i);
    Tensor::from_vec(values.chunks(8).map(byte).collect::<Vec<u8>>(), values.len().div_ceil(8)).or_raise()
}

/// The capsules of a tensor's type and memory. A tensor that is not contiguous is copied, and so are booleans, as bits.
///
/// # Errors
/// `BufferError` for a tensor without dimensions, on a device, that requires a gradient, or of a dtype that Arrow lacks.
pub fn export<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let refused = |reason: &str| Err(PyBufferError::new_err(format!("no Arrow array can be made: {reason}")));
    if tensor.requires_grad() {
        return refused("the tensor requires a gradient; call `detach()` first");
    }
    if tensor.device() != Device::CPU || tensor.storage().is_err() {
        return refused("it is not a strided tensor in host memory; call `cpu()` or `to_dense()` first");
    }
    if tensor.rank() == 0 {
        return refused("the tensor has no dimension; call `reshape(1)` first");
    }
    let (format, memory) = match FORMATS.iter().find(|(_, dtype)| *dtype == tensor.dtype()) {
        Some((format, _)) => (*format, tensor.contiguous().or_raise()?),
        None if tensor.dtype() == DType::BOOL => (BITS, bits(tensor)?),
        None => {
            let name = dtype::name(tensor.dtype());
            return refused(&format!("Arrow has no {name}; convert it, for example with `float()`"));
        }
    };
    let sizes = tensor.shape();
    let (schema, array) = (schema_of(format, sizes), array_of(&memory, sizes, 1));
    // SAFETY: the pointers are those of boxes, the names live as long as the program, and the destructors free the boxes.
    unsafe {
        let schema = ffi::PyCapsule_New(schema.cast(), SCHEMA.as_ptr(), Some(destroy_schema));
        let schema = Bound::from_owned_ptr_or_err(py, schema)?;
        let array = ffi::PyCapsule_New(array.cast(), ARRAY.as_ptr(), Some(destroy_array));
        Ok((schema, Bound::from_owned_ptr_or_err(py, array)?))
    }
}
