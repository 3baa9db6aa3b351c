//! The dtype, the device and the memory format of tensors whose options name none.

use super::{IntoOptions, MemoryFormat, Tensor, TensorOptions};
use crate::chosen::Chosen;
use crate::error::Result;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::{DType, Device};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

/// The code of the dtype.
static DTYPE: AtomicU32 = AtomicU32::new(DType::F32.code() as u32);

/// Kind and index of the device.
static DEVICE: AtomicU32 = AtomicU32::new(packed(Device::CPU));

const fn packed(device: Device) -> u32 {
    (device.kind as u32) << 16 | device.index as u32
}

/// The default floating-point dtype of new tensors; f32 unless changed by [`set_default_dtype`].
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// assert_eq!(keyway::default_dtype(), DType::F32);
/// keyway::set_default_dtype(DType::F64)?;
/// assert_eq!(keyway::default_dtype(), DType::F64);
/// # Ok(()) }
/// ```
#[doc(alias = "get_default_dtype")]
pub fn default_dtype() -> DType {
    let code = DTYPE.load(Ordering::Relaxed) as u16;
    DType::from_code(code).unwrap_or(DType::F32)
}

/// Sets [`default_dtype`] for the whole process.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// keyway::set_default_dtype(DType::F64)?;
/// assert_eq!(Tensor::zeros(2)?.dtype(), DType::F64);
/// assert!(keyway::set_default_dtype(DType::I64).is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// A dtype that is no floating-point number.
pub fn set_default_dtype(dtype: DType) -> Result<()> {
    if !dtype.is_float() {
        return Err(Error::Value {
            op: "set_default_dtype",
            argument: "dtype",
            expected: "a floating-point dtype".into(),
            got: dtype.to_string(),
        }
        .into());
    }
    DTYPE.store(dtype.code().into(), Ordering::Relaxed);
    Ok(())
}

/// The default device of new tensors; the CPU unless changed by [`set_default_device`].
///
/// ```
/// assert_eq!(keyway::default_device(), keyway::Device::CPU);
/// ```
#[doc(alias = "get_default_device")]
#[inline]
pub fn default_device() -> Device {
    let packed = DEVICE.load(Ordering::Relaxed);
    Device { kind: (packed >> 16) as u16, index: packed as u16 }
}

/// Sets [`default_device`] for the whole process: `set_default_device("cuda:0")`. Tensors over memory of the program, as of
/// [`Tensor::from_vec`](crate::Tensor::from_vec), remain on the host.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// keyway::set_default_device("cpu")?;
/// assert_eq!(Tensor::zeros(2)?.device(), Device::CPU);
/// assert!(keyway::set_default_device(DType::F32).is_err(), "no device");
/// # Ok(()) }
/// ```
///
/// # Errors
/// A device that does not exist, or text that is not a device.
pub fn set_default_device(device: impl IntoOptions) -> Result<()> {
    let TensorOptions { device: Some(device), .. } = device.into_options()? else {
        return Err(Error::Value {
            op: "set_default_device",
            argument: "device",
            expected: "a device".into(),
            got: "none".into(),
        }
        .into());
    };
    // An empty tensor checks that the device exists.
    Tensor::uninit(0, device)?;
    DEVICE.store(packed(device), Ordering::Relaxed);
    Ok(())
}

thread_local! {
    /// The formats of the live guards.
    static FORMATS: Chosen<MemoryFormat> = const { Chosen::new() };
}

/// The memory format of new tensors of 4 and 5 dimensions whose options name none: row-major, unless a guard of
/// [`memory_format_guard`] lives on this thread.
///
/// ```
/// assert_eq!(keyway::default_memory_format(), keyway::MemoryFormat::Contiguous);
/// ```
pub fn default_memory_format() -> MemoryFormat {
    FORMATS.try_with(Chosen::last).ok().flatten().unwrap_or(MemoryFormat::Contiguous)
}

/// A guard: restores the previous format when dropped; the most recent live guard is effective.
///
/// ```
/// use keyway::{MemoryFormat, MemoryFormatGuard};
/// let guard: MemoryFormatGuard = keyway::memory_format_guard(MemoryFormat::ChannelsLast)?;
/// assert_eq!(keyway::default_memory_format(), MemoryFormat::ChannelsLast);
/// drop(guard);
/// assert_eq!(keyway::default_memory_format(), MemoryFormat::Contiguous);
/// # Ok::<(), keyway::Error>(())
/// ```
#[must_use = "the format is the default only while the guard lives"]
#[derive(Debug)]
pub struct MemoryFormatGuard {
    number: u64,
    _thread: PhantomData<*const ()>,
}

impl Drop for MemoryFormatGuard {
    fn drop(&mut self) {
        // A thread that ends may have dropped its list.
        let _ = FORMATS.try_with(|all| all.remove(self.number));
    }
}

/// Sets [`default_memory_format`] of this thread while the guard lives. Tensors over memory of the program, as of
/// [`Tensor::from_vec`](crate::Tensor::from_vec), remain row-major.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let guard = keyway::memory_format_guard(MemoryFormat::ChannelsLast)?;
/// assert_eq!(Tensor::zeros((2, 3, 4, 4))?.strides(), [48, 1, 12, 3]);
/// assert_eq!(Tensor::zeros((2, 3, 4))?.strides(), [12, 4, 1]);
/// drop(guard);
/// assert_eq!(Tensor::zeros((2, 3, 4, 4))?.strides(), [48, 16, 4, 1]);
/// assert!(keyway::memory_format_guard(MemoryFormat::Preserve).is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`MemoryFormat::Preserve`], as there is no input to preserve.
pub fn memory_format_guard(format: MemoryFormat) -> Result<MemoryFormatGuard> {
    if format == MemoryFormat::Preserve {
        return Err(Error::Value {
            op: "memory_format_guard",
            argument: "format",
            expected: "contiguous or channels_last".into(),
            got: format.to_string(),
        }
        .into());
    }
    Ok(MemoryFormatGuard { number: FORMATS.with(|all| all.push(format)), _thread: PhantomData })
}
