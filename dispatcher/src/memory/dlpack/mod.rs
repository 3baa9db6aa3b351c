//! DLPack 1.x: tensors in host memory that libraries share without a copy.
//!
//! [`ManagedTensor`] owns a struct; `structs` has those of `dlpack.h`.

mod structs;
#[cfg(test)]
mod tests;

pub use structs::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};

use super::{Blob, Storage};
use crate::base::dims::{Dims, contiguous_strides, numel};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use smallvec::SmallVec;
use std::ptr::{self, NonNull};

/// The version of DLPack that these structs have.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 1 };

const CPU: i32 = 1;
/// Page-locked host memory, DLPack's `kDLCUDAHost`.
const PINNED: i32 = 3;
/// Of [`DLManagedTensorVersioned::flags`]: the memory must not be written.
const READ_ONLY: u64 = 1;
/// Of [`DLManagedTensorVersioned::flags`]: the producer copied the elements for this exchange.
const IS_COPIED: u64 = 2;

/// The largest rank that an imported tensor may have: that of NumPy.
const MAX_RANK: usize = 64;

/// `DLDataTypeCode` of each dtype.
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

/// A strided tensor as a storage and its geometry.
#[derive(Clone, Debug)]
pub struct Strided {
    /// The memory.
    pub storage: Storage,
    /// The element of the storage at which the tensor begins.
    pub offset: usize,
    /// The size of each dimension.
    pub sizes: Dims,
    /// The stride of each dimension in elements.
    pub strides: Dims,
    /// The type of an element.
    pub dtype: DType,
}

/// An owned `DLManagedTensorVersioned`, whose deleter runs on drop.
///
/// ```
/// # fn main() -> keyway_dispatcher::Result<()> {
/// use keyway_dispatcher::memory::{Storage, dlpack::{ManagedTensor, Strided}};
/// use keyway_dispatcher::DType;
/// let storage = Storage::from_vec(vec![1.0f32, 2.0, 3.0]);
/// let (sizes, strides) = ([2].into_iter().collect(), [1].into_iter().collect());
/// let tail = Strided { storage: storage.clone(), offset: 1, sizes, strides, dtype: DType::F32 };
/// let exported = ManagedTensor::new(tail)?;
/// assert_eq!(storage.strong_count(), 2);
/// let pointer = exported.into_raw();
/// // SAFETY: the pointer is that of `into_raw`, which is taken back once.
/// let imported = unsafe { ManagedTensor::from_raw(pointer)? }.into_strided("example")?;
/// assert!(imported.storage.same_as(&storage) && imported.offset == 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ManagedTensor(NonNull<DLManagedTensorVersioned>);

// SAFETY: DLPack's memory may be used, and its deleter called, on any thread; `from_raw` asks for it.
unsafe impl Send for ManagedTensor {}
// SAFETY: as for Send; a shared one only returns fields.
unsafe impl Sync for ManagedTensor {}

impl Drop for ManagedTensor {
    fn drop(&mut self) {
        // SAFETY: the struct is owned, so its deleter was not called yet.
        unsafe {
            if let Some(deleter) = self.0.as_ref().deleter {
                deleter(self.0.as_ptr());
            }
        }
    }
}

/// An exported tensor with the arrays that its struct points to.
struct Exported {
    managed: DLManagedTensorVersioned,
    /// Sizes, then strides.
    dims: SmallVec<[i64; 10]>,
    tensor: Strided,
}

/// Frees an exported tensor.
///
/// # Safety
/// `managed` is of [`ManagedTensor::new`] and is freed once; the consumer keeps this.
unsafe extern "C" fn free_exported(managed: *mut DLManagedTensorVersioned) {
    if !managed.is_null() {
        // SAFETY: `manager_ctx` is the box of `new`, which is freed here alone.
        drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Exported>()) });
    }
}

fn value(op: &'static str, expected: &str, got: impl Into<String>) -> Error {
    Error::Value { op, argument: "tensor", expected: expected.to_string(), got: got.into() }
}

impl ManagedTensor {
    /// Exports a tensor in host memory.
    ///
    /// # Errors
    /// `NotOnHost` for memory of a device; `Value` for a dtype without a code in DLPack.
    pub fn new(tensor: Strided) -> Result<ManagedTensor> {
        const OP: &str = "to_dlpack";
        let device = tensor.storage.device();
        if device != Device::CPU {
            return Err(Error::NotOnHost { op: OP, device });
        }
        let Some((_, code)) = CODES.iter().find(|(dtype, _)| *dtype == tensor.dtype) else {
            return Err(value(OP, "a dtype with a code in DLPack", tensor.dtype.to_string()));
        };
        let rank = tensor.sizes.len();
        let read_only = tensor.storage.is_read_only();
        let described = DLTensor {
            data: tensor
                .storage
                .data_ptr()
                .wrapping_add(tensor.offset.wrapping_mul(tensor.dtype.size()))
                .cast_mut()
                .cast(),
            device: DLDevice { device_type: CPU, device_id: 0 },
            ndim: rank as i32,
            dtype: DLDataType { code: *code, bits: (tensor.dtype.size() * 8) as u8, lanes: 1 },
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        };
        let managed = DLManagedTensorVersioned {
            version: VERSION,
            manager_ctx: ptr::null_mut(),
            deleter: Some(free_exported),
            flags: u64::from(read_only) * READ_ONLY,
            dl_tensor: described,
        };
        let dims = tensor.sizes.iter().chain(&tensor.strides).map(|&value| value as i64).collect();
        let exported = Box::into_raw(Box::new(Exported { managed, dims, tensor }));
        // SAFETY: the box was just given up and is used here alone; the arrays do not move as long as it lives.
        unsafe {
            let dims = (*exported).dims.as_mut_ptr();
            (*exported).managed.dl_tensor.shape = dims;
            (*exported).managed.dl_tensor.strides = dims.add(rank);
            (*exported).managed.manager_ctx = exported.cast();
            Ok(ManagedTensor(NonNull::new_unchecked(&raw mut (*exported).managed)))
        }
    }

    /// Takes over a producer's struct.
    ///
    /// # Safety
    /// `managed` is null or a struct of DLPack that the caller owns: its arrays have `ndim` elements, its memory is valid for
    /// reads, and without the read-only flag for writes, of all its elements from every thread until the deleter is called, which
    /// happens once, on any thread. Unless the struct is one of [`ManagedTensor::into_raw`], nobody holds a reference to the
    /// memory meanwhile. The producer and the caller keep this.
    ///
    /// # Errors
    /// `Value` for a null pointer and for another major version; the struct is not freed then, since its fields are unknown.
    pub unsafe fn from_raw(managed: *mut DLManagedTensorVersioned) -> Result<ManagedTensor> {
        const OP: &str = "from_dlpack";
        let Some(managed) = NonNull::new(managed) else {
            return Err(value(OP, "the address of a struct", "a null pointer"));
        };
        // SAFETY: the version is the first field in every version of the struct.
        let version = unsafe { (*managed.as_ptr()).version };
        if version.major != VERSION.major {
            let got = format!("version {}.{}", version.major, version.minor);
            return Err(value(OP, "DLPack version 1", got));
        }
        Ok(ManagedTensor(managed))
    }

    /// Takes over a struct of DLPack before 1.0.
    ///
    /// # Safety
    /// As [`ManagedTensor::from_raw`], for the older struct.
    ///
    /// # Errors
    /// `Value` for a null pointer.
    pub unsafe fn from_raw_unversioned(managed: *mut DLManagedTensor) -> Result<ManagedTensor> {
        /// Frees the older struct and the one around it.
        ///
        /// # Safety
        /// `managed` is of this function and is freed once.
        unsafe extern "C" fn free(managed: *mut DLManagedTensorVersioned) {
            // SAFETY: the box was given up below, and the context is the older struct, whose deleter was not called.
            unsafe {
                let old = Box::from_raw(managed).manager_ctx.cast::<DLManagedTensor>();
                if let Some(deleter) = (*old).deleter {
                    deleter(old);
                }
            }
        }
        let Some(old) = NonNull::new(managed) else {
            return Err(value("from_dlpack", "the address of a struct", "a null pointer"));
        };
        // SAFETY: the caller passes a struct of DLPack.
        let dl_tensor = unsafe { (*old.as_ptr()).dl_tensor };
        let new = Box::new(DLManagedTensorVersioned {
            version: VERSION,
            manager_ctx: old.as_ptr().cast(),
            deleter: Some(free),
            flags: 0,
            dl_tensor,
        });
        Ok(ManagedTensor(NonNull::from(Box::leak(new))))
    }

    /// Sets the flag for elements that were copied for this exchange.
    #[must_use]
    pub fn with_copied(mut self, copied: bool) -> ManagedTensor {
        // SAFETY: the struct is owned.
        let flags = unsafe { &mut self.0.as_mut().flags };
        *flags = if copied { *flags | IS_COPIED } else { *flags & !IS_COPIED };
        self
    }

    /// The tensor of the struct. Its arrays are valid as long as `self`.
    pub fn dl_tensor(&self) -> &DLTensor {
        // SAFETY: the struct is owned.
        unsafe { &self.0.as_ref().dl_tensor }
    }

    /// Whether the memory must not be written.
    pub fn is_read_only(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.as_ref().flags & READ_ONLY != 0 }
    }

    /// Gives up the struct: who takes it calls its deleter, once.
    #[must_use = "the tensor is freed by the deleter alone"]
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        let pointer = self.0.as_ptr();
        std::mem::forget(self);
        pointer
    }

    /// As [`ManagedTensor::into_raw`], as the struct of DLPack before 1.0.
    ///
    /// # Errors
    /// `Value` for read-only memory: the older struct has no flag for it.
    pub fn into_raw_unversioned(self) -> Result<*mut DLManagedTensor> {
        /// Frees the struct and the one inside it.
        ///
        /// # Safety
        /// `managed` is of this function and is freed once.
        unsafe extern "C" fn free(managed: *mut DLManagedTensor) {
            if !managed.is_null() {
                // SAFETY: both were given up below, and are freed here alone.
                unsafe {
                    let old = Box::from_raw(managed);
                    drop(ManagedTensor(NonNull::new_unchecked(old.manager_ctx.cast())));
                }
            }
        }
        if self.is_read_only() {
            return Err(value(
                "to_dlpack",
                "writable: only DLPack 1.0 has a flag for read-only memory, and the consumer asked for an older version",
                "a read-only tensor",
            ));
        }
        let dl_tensor = *self.dl_tensor();
        let old = DLManagedTensor { dl_tensor, manager_ctx: self.into_raw().cast(), deleter: Some(free) };
        Ok(Box::into_raw(Box::new(old)))
    }

    /// The storage and geometry of the tensor, without a copy. A struct of [`ManagedTensor::new`] yields its own storage again; of
    /// another producer's, the storage calls the deleter when it is dropped.
    ///
    /// # Errors
    /// `Value` for memory of a device, a dtype that Keyway lacks, more than 64 dimensions, negative
    /// sizes or strides, sizes whose bytes overflow, and unaligned memory.
    pub fn into_strided(self, op: &'static str) -> Result<Strided> {
        // SAFETY: the struct is owned; if its deleter is ours, its context is the box of `new`.
        unsafe {
            let managed = self.0.as_ref();
            let free: unsafe extern "C" fn(*mut DLManagedTensorVersioned) = free_exported;
            if managed.deleter.is_some_and(|deleter| ptr::fn_addr_eq(deleter, free)) {
                return Ok((*managed.manager_ctx.cast::<Exported>()).tensor.clone());
            }
        }
        let described = *self.dl_tensor();
        let kind = described.device.device_type;
        if kind != CPU && kind != PINNED {
            let got = format!("memory of a device, DLPack type {kind}; copy the tensor to the host first");
            return Err(value(op, "memory of the host", got));
        }
        let dtype = dtype_of(op, described.dtype)?;
        let rank = usize::try_from(described.ndim).ok().filter(|rank| *rank <= MAX_RANK);
        let Some(rank) = rank else {
            let got = format!("{} dimensions", described.ndim);
            return Err(value(op, "at most 64 dimensions", got));
        };
        let list = |start: *mut i64| -> Result<Dims> {
            // SAFETY: the struct's arrays have `ndim` elements; without dimensions nothing is read.
            let values = if rank == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(start, rank) } };
            let negative = |_| {
                value(op, "sizes and strides of at least 0; copy the tensor first", format!("{values:?}"))
            };
            values.iter().map(|&value| usize::try_from(value)).collect::<Result<_, _>>().map_err(negative)
        };
        let sizes = list(described.shape)?;
        let strides =
            if described.strides.is_null() { contiguous_strides(&sizes) } else { list(described.strides)? };
        let empty = sizes.contains(&0);
        let last = sizes.iter().zip(&strides).try_fold(0usize, |sum, (&size, &stride)| {
            size.saturating_sub(1).checked_mul(stride)?.checked_add(sum)
        });
        let bytes = if empty {
            Some(0)
        } else {
            last.and_then(|last| last.checked_add(1)?.checked_mul(dtype.size()))
        };
        let Some(bytes) = bytes else {
            return Err(value(op, "sizes whose bytes fit the address space", format!("{sizes:?}")));
        };
        let read_only = self.is_read_only();
        let data = described.data.cast::<u8>().wrapping_add(described.byte_offset as usize);
        // SAFETY: the producer keeps the memory valid until its deleter is called, which dropping `self` does; the bytes end with
        // the last element of its own sizes and strides.
        let blob =
            unsafe { Blob::from_raw_parts(data, bytes, Device::CPU, move |_| drop(self))? }.named("DLPack");
        let blob = if read_only { blob.read_only() } else { blob };
        let storage = Storage::from_blob(op, blob, dtype)?;
        Ok(Strided { storage, offset: 0, sizes, strides, dtype })
    }
}

/// An uninitialised row-major tensor in host memory.
///
/// # Errors
/// `Value` for another device, a dtype that Keyway lacks and negative sizes; sizes whose bytes overflow; too little memory.
pub fn empty(device: DLDevice, dtype: DLDataType, sizes: &[i64]) -> Result<ManagedTensor> {
    const OP: &str = "empty";
    if device.device_type != CPU {
        return Err(value(
            OP,
            "a tensor in memory of the host",
            format!("DLPack device type {}", device.device_type),
        ));
    }
    let dtype = dtype_of(OP, dtype)?;
    let sizes: Dims = sizes
        .iter()
        .map(|&size| usize::try_from(size))
        .collect::<Result<_, _>>()
        .map_err(|_| value(OP, "sizes of at least 0", format!("{sizes:?}")))?;
    let bytes = numel(OP, &sizes)?
        .checked_mul(dtype.size())
        .ok_or_else(|| Error::SizeOverflow { op: OP, sizes: sizes.as_slice().into() })?;
    let storage = Storage::allocate(Device::CPU, bytes)?;
    let strides = contiguous_strides(&sizes);
    ManagedTensor::new(Strided { storage, offset: 0, sizes, strides, dtype })
}

/// The dtype of a DLPack type.
fn dtype_of(op: &'static str, dtype: DLDataType) -> Result<DType> {
    let DLDataType { code, bits, lanes } = dtype;
    let found =
        CODES.iter().find(|(known, known_code)| *known_code == code && known.size() * 8 == usize::from(bits));
    found.filter(|_| lanes == 1).map(|(dtype, _)| *dtype).ok_or_else(|| Error::Value {
        op,
        argument: "dtype",
        expected: "elements that a dtype here has".to_string(),
        got: format!("DLPack code {code} of {bits} bits, {lanes} lanes"),
    })
}
