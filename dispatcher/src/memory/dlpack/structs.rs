//! The structs of `dlpack.h` (<https://dmlc.github.io/dlpack/latest/c_api.html>).

use std::ffi::c_void;

/// `DLPackVersion`. A consumer refuses another major version.
///
/// ```
/// assert_eq!(keyway_dispatcher::memory::dlpack::VERSION.major, 1);
/// ```
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLPackVersion {
    /// Changes where the structs change.
    pub major: u32,
    /// Changes where codes or flags are added.
    pub minor: u32,
}

/// `DLDevice`.
///
/// ```
/// use keyway_dispatcher::memory::dlpack::DLDevice;
/// let host = DLDevice { device_type: 1, device_id: 0 };
/// assert_eq!(size_of_val(&host), 8);
/// ```
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLDevice {
    /// `DLDeviceType`: 1 for the CPU.
    pub device_type: i32,
    /// The index among the devices of the type.
    pub device_id: i32,
}

/// `DLDataType`.
///
/// ```
/// use keyway_dispatcher::memory::dlpack::DLDataType;
/// let float = DLDataType { code: 2, bits: 32, lanes: 1 };
/// assert_eq!(size_of_val(&float), 4);
/// ```
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
///
/// ```
/// # fn main() -> keyway_dispatcher::Result<()> {
/// use keyway_dispatcher::memory::dlpack::{DLDataType, DLDevice, DLTensor, empty};
/// let device = DLDevice { device_type: 1, device_id: 0 };
/// let managed = empty(device, DLDataType { code: 2, bits: 32, lanes: 1 }, &[2, 3])?;
/// let described: &DLTensor = managed.dl_tensor();
/// assert_eq!((described.ndim, described.byte_offset), (2, 0));
/// # Ok(()) }
/// ```
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
///
/// ```
/// use keyway_dispatcher::memory::dlpack::{DLManagedTensorVersioned, ManagedTensor};
/// /// The address for a C interface, which calls the deleter.
/// fn give(tensor: ManagedTensor) -> *mut DLManagedTensorVersioned {
///     tensor.into_raw()
/// }
/// ```
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
///
/// ```
/// use keyway_dispatcher::memory::dlpack::{DLManagedTensor, ManagedTensor};
/// /// The address for a C interface, which calls the deleter.
/// fn give(tensor: ManagedTensor) -> keyway_dispatcher::Result<*mut DLManagedTensor> {
///     tensor.into_raw_unversioned()
/// }
/// ```
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
