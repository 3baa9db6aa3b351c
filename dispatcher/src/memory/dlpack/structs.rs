//! The structs of `dlpack.h` (<https://dmlc.github.io/dlpack/latest/c_api.html>).

use std::ffi::c_void;

/// `DLPackVersion`. A consumer refuses another major version.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLPackVersion {
    /// Changes where the structs change.
    pub major: u32,
    /// Changes where codes or flags are added.
    pub minor: u32,
}

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLDevice {
    /// `DLDeviceType`: 1 for the CPU.
    pub device_type: i32,
    /// The index among the devices of the type.
    pub device_id: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLDataType {
    /// `DLDataTypeCode`: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool.
    pub code: u8,
    /// Bits of one element.
    pub bits: u8,
    /// Elements of a vector type; 1 otherwise.
    pub lanes: u16,
}

/// `DLTensor`: a strided tensor without its owner.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The memory; the first element is `byte_offset` bytes after it.
    pub data: *mut c_void,
    /// The device of the memory.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of an element.
    pub dtype: DLDataType,
    /// `ndim` sizes.
    pub shape: *mut i64,
    /// `ndim` strides in elements; null for a row-major tensor, in versions before 1.2.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensorVersioned`: a tensor with the function that frees it.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of the producer.
    pub version: DLPackVersion,
    /// For the producer alone.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor; called once, on any thread.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Bit 0: read-only. Bit 1: copied by the producer.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// `DLManagedTensor`, the struct of DLPack before 1.0, which has neither version nor flags.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// For the producer alone.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor; called once, on any thread.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}
