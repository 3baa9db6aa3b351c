//! Factories in a memory format.

use super::format::strides_in;
use super::{MemoryFormat, Tensor};
use crate::error::Result;
use keyway_dispatcher::op::Arg;
use keyway_dispatcher::{DType, Device};

impl Tensor {
    /// [`Tensor::empty`] in a memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, MemoryFormat, Tensor};
    /// let x = Tensor::empty_in(&[2, 3, 4, 4], DType::F32, Device::CPU, MemoryFormat::ChannelsLast)?;
    /// assert_eq!(x.strides(), [48, 1, 12, 3]);
    /// let error = Tensor::empty_in(&[2, 3], DType::F32, Device::CPU, MemoryFormat::ChannelsLast).unwrap_err();
    /// assert!(error.to_string().contains("of 3, 4 or 5 dimensions for channels_last"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty`]; channels_last of fewer than 3 or more than 5 dimensions; [`MemoryFormat::Preserve`], since there
    /// is nothing to preserve. So for all below that are not `…_like`.
    pub fn empty_in(sizes: &[usize], dtype: DType, device: Device, format: MemoryFormat) -> Result<Tensor> {
        match format {
            MemoryFormat::Contiguous => Tensor::empty(sizes, dtype, device),
            _ => Tensor::empty_strided(sizes, &strides_in("empty_in", sizes, format)?, dtype, device),
        }
    }

    /// [`Tensor::full`] in a memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn full_in<'a>(
        sizes: &[usize],
        value: impl Into<Arg<'a>>,
        dtype: DType,
        device: Device,
        format: MemoryFormat,
    ) -> Result<Tensor> {
        let made = Tensor::empty_in(sizes, dtype, device, format)?;
        crate::ops::memory::fill::DEF.run_in_place(&[(&made).into(), value.into()])
    }

    /// [`Tensor::zeros`] in a memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, MemoryFormat, Tensor};
    /// let volume = Tensor::zeros_in(&[1, 2, 3, 3, 3], DType::F32, Device::CPU, MemoryFormat::ChannelsLast)?;
    /// assert_eq!(volume.strides(), [54, 1, 18, 6, 2]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn zeros_in(sizes: &[usize], dtype: DType, device: Device, format: MemoryFormat) -> Result<Tensor> {
        Tensor::full_in(sizes, 0, dtype, device, format)
    }

    /// [`Tensor::ones`] in a memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn ones_in(sizes: &[usize], dtype: DType, device: Device, format: MemoryFormat) -> Result<Tensor> {
        Tensor::full_in(sizes, 1, dtype, device, format)
    }

    /// [`Tensor::rand`] in a memory format: the same numbers at the same places, whatever the format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, MemoryFormat, Tensor, rng};
    /// rng::manual_seed(1);
    /// let x = Tensor::rand(&[2, 3, 4], DType::F32, Device::CPU)?;
    /// rng::manual_seed(1);
    /// let y = Tensor::rand_in(&[2, 3, 4], DType::F32, Device::CPU, MemoryFormat::ChannelsLast)?;
    /// assert_eq!(x.to_vec::<f32>()?, y.to_vec::<f32>()?);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn rand_in(sizes: &[usize], dtype: DType, device: Device, format: MemoryFormat) -> Result<Tensor> {
        Tensor::empty_in(sizes, dtype, device, format)?.uniform_(0.0, 1.0)
    }

    /// [`Tensor::randn`] in a memory format: the same numbers at the same places, whatever the format.
    #[allow(clippy::missing_errors_doc)]
    pub fn randn_in(sizes: &[usize], dtype: DType, device: Device, format: MemoryFormat) -> Result<Tensor> {
        Tensor::empty_in(sizes, dtype, device, format)?.normal_(0.0, 1.0)
    }

    /// [`Tensor::randint`] in a memory format: the same numbers at the same places, whatever the format.
    #[allow(clippy::missing_errors_doc)]
    pub fn randint_in(
        low: i64,
        high: i64,
        sizes: &[usize],
        dtype: DType,
        device: Device,
        format: MemoryFormat,
    ) -> Result<Tensor> {
        Tensor::empty_in(sizes, dtype, device, format)?.random_int_(low, high)
    }

    /// [`Tensor::empty_like`] in a memory format; [`MemoryFormat::Preserve`] is `empty_like` itself.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, MemoryFormat, Tensor};
    /// let x = Tensor::zeros_in(&[2, 3, 4, 4], DType::F32, Device::CPU, MemoryFormat::ChannelsLast)?;
    /// assert_eq!(x.empty_like_in(MemoryFormat::Preserve)?.strides(), x.strides());
    /// assert_eq!(x.empty_like_in(MemoryFormat::Contiguous)?.strides(), [48, 16, 4, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::empty_like`]; channels_last of fewer than 3 or more than 5 dimensions. So for all below.
    pub fn empty_like_in(&self, format: MemoryFormat) -> Result<Tensor> {
        match format {
            MemoryFormat::Preserve => self.empty_like(),
            _ => Tensor::empty_in(self.sizes(), self.dtype(), self.device(), format),
        }
    }

    /// [`Tensor::full_like`] in a memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn full_like_in<'a>(&self, value: impl Into<Arg<'a>>, format: MemoryFormat) -> Result<Tensor> {
        let made = self.empty_like_in(format)?;
        crate::ops::memory::fill::DEF.run_in_place(&[(&made).into(), value.into()])
    }

    /// [`Tensor::zeros_like`] in a memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn zeros_like_in(&self, format: MemoryFormat) -> Result<Tensor> {
        self.full_like_in(0, format)
    }

    /// [`Tensor::ones_like`] in a memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn ones_like_in(&self, format: MemoryFormat) -> Result<Tensor> {
        self.full_like_in(1, format)
    }

    /// [`Tensor::rand_like`] in a memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn rand_like_in(&self, format: MemoryFormat) -> Result<Tensor> {
        self.empty_like_in(format)?.uniform_(0.0, 1.0)
    }

    /// [`Tensor::randn_like`] in a memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn randn_like_in(&self, format: MemoryFormat) -> Result<Tensor> {
        self.empty_like_in(format)?.normal_(0.0, 1.0)
    }

    /// [`Tensor::randint_like`] in a memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn randint_like_in(&self, low: i64, high: i64, format: MemoryFormat) -> Result<Tensor> {
        self.empty_like_in(format)?.random_int_(low, high)
    }
}
