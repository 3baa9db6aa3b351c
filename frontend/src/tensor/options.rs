//! The device and dtype of a new tensor: `DType::F16`, `"cuda:0"`, `(DType::F32, Device::CPU)`.

use super::MemoryFormat;
use super::defaults::{default_device, default_dtype};
use crate::error::Result;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::{DType, Device};
use std::fmt::Debug;

/// Dtype, device and memory format; `None` means the call's default: the program's defaults for a new tensor, the tensor's own in
/// [`Tensor::to`](super::Tensor::to) and in the factories that end in `_like`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let options = TensorOptions { dtype: Some(DType::F64), ..TensorOptions::default() };
/// assert_eq!(Tensor::zeros_with(3, options)?.dtype(), DType::F64);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TensorOptions {
    /// The element type.
    pub dtype: Option<DType>,
    /// The device.
    pub device: Option<Device>,
    /// The memory format.
    pub format: Option<MemoryFormat>,
}

/// Options of a tensor: a [`DType`], a [`Device`] or its name, a [`MemoryFormat`], a tuple of these in any order, or
/// [`TensorOptions`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let x = Tensor::zeros_with((2, 3, 4, 4), (DType::F16, "cpu", MemoryFormat::ChannelsLast))?;
/// assert_eq!((x.dtype(), x.device(), x.strides()), (DType::F16, Device::CPU, &[48, 1, 12, 3][..]));
/// let error = Tensor::zeros_with(3, (DType::F16, DType::F32)).unwrap_err();
/// assert!(error.to_string().contains("one dtype"));
/// # Ok(()) }
/// ```
pub trait IntoOptions {
    /// The options.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::tensor::IntoOptions;
    /// use keyway::prelude::*;
    /// let options = (DType::F16, "cpu").into_options()?;
    /// assert_eq!((options.dtype, options.device, options.format), (Some(DType::F16), Some(Device::CPU), None));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Text that names no device; two of a kind in a tuple.
    fn into_options(self) -> Result<TensorOptions>;
}

impl TensorOptions {
    /// The dtype, or the default one.
    ///
    /// ```
    /// use keyway::prelude::*;
    /// let options = TensorOptions { dtype: Some(DType::F64), ..TensorOptions::default() };
    /// assert_eq!(options.dtype(), DType::F64);
    /// ```
    #[inline]
    pub fn dtype(self) -> DType {
        self.dtype.unwrap_or_else(default_dtype)
    }

    /// The device, or the default one.
    ///
    /// ```
    /// use keyway::prelude::*;
    /// let options = TensorOptions { device: Some(Device::CPU), ..TensorOptions::default() };
    /// assert_eq!(options.device(), Device::CPU);
    /// ```
    #[inline]
    pub fn device(self) -> Device {
        self.device.unwrap_or_else(default_device)
    }

    /// The memory format, or row-major.
    ///
    /// ```
    /// use keyway::prelude::*;
    /// assert_eq!(TensorOptions::default().format(), MemoryFormat::Contiguous);
    /// ```
    #[inline]
    pub fn format(self) -> MemoryFormat {
        self.format.unwrap_or(MemoryFormat::Contiguous)
    }

    fn and(self, other: TensorOptions) -> Result<TensorOptions> {
        Ok(TensorOptions {
            dtype: one("dtype", self.dtype, other.dtype)?,
            device: one("device", self.device, other.device)?,
            format: one("memory format", self.format, other.format)?,
        })
    }
}

fn one<T: Debug>(what: &str, a: Option<T>, b: Option<T>) -> Result<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) => Err(Error::Value {
            op: "options",
            argument: "options",
            expected: format!("one {what}"),
            got: format!("{a:?} and {b:?}"),
        }
        .into()),
        (a, b) => Ok(a.or(b)),
    }
}

impl IntoOptions for TensorOptions {
    #[inline]
    fn into_options(self) -> Result<TensorOptions> {
        Ok(self)
    }
}

impl IntoOptions for () {
    #[inline]
    fn into_options(self) -> Result<TensorOptions> {
        Ok(TensorOptions::default())
    }
}

impl IntoOptions for DType {
    #[inline]
    fn into_options(self) -> Result<TensorOptions> {
        Ok(TensorOptions { dtype: Some(self), ..TensorOptions::default() })
    }
}

impl IntoOptions for Device {
    #[inline]
    fn into_options(self) -> Result<TensorOptions> {
        Ok(TensorOptions { device: Some(self), ..TensorOptions::default() })
    }
}

impl IntoOptions for &Device {
    #[inline]
    fn into_options(self) -> Result<TensorOptions> {
        (*self).into_options()
    }
}

impl IntoOptions for MemoryFormat {
    #[inline]
    fn into_options(self) -> Result<TensorOptions> {
        Ok(TensorOptions { format: Some(self), ..TensorOptions::default() })
    }
}

impl IntoOptions for &str {
    fn into_options(self) -> Result<TensorOptions> {
        if let Some(dtype) = DType::from_name(self).or_else(|| DType::from_other_name(self)) {
            let name = dtype.name().to_uppercase();
            let expected = format!("the name of a device; a dtype is `DType::{name}`");
            let got = format!("`{self}`");
            return Err(Error::Value { op: "device", argument: "device", expected, got }.into());
        }
        Device::parse(self)?.into_options()
    }
}

impl IntoOptions for &String {
    fn into_options(self) -> Result<TensorOptions> {
        self.as_str().into_options()
    }
}

impl<A: IntoOptions, B: IntoOptions> IntoOptions for (A, B) {
    #[inline]
    fn into_options(self) -> Result<TensorOptions> {
        self.0.into_options()?.and(self.1.into_options()?)
    }
}

impl<A: IntoOptions, B: IntoOptions, C: IntoOptions> IntoOptions for (A, B, C) {
    #[inline]
    fn into_options(self) -> Result<TensorOptions> {
        self.0.into_options()?.and(self.1.into_options()?)?.and(self.2.into_options()?)
    }
}
