//! Tensors of one value.

use super::{MemoryFormat, Tensor};
use crate::error::Result;
use keyway_dispatcher::op::Arg;
use keyway_dispatcher::{DType, Device};

impl Tensor {
    /// A new tensor whose elements are all `value`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, Tensor};
    /// let a = Tensor::full(&[2], 1.5, DType::F32, Device::CPU)?;
    /// assert_eq!(a.to_vec::<f32>()?, [1.5, 1.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes whose product overflows, a device that is not there, memory that does not suffice; so for all
    /// below.
    pub fn full<'a>(
        sizes: &[usize],
        value: impl Into<Arg<'a>>,
        dtype: DType,
        device: Device,
    ) -> Result<Tensor> {
        let made = Tensor::empty(sizes, dtype, device)?;
        crate::ops::memory::fill::DEF.run_in_place(&[(&made).into(), value.into()])
    }

    /// A new tensor of zeros.
    #[allow(clippy::missing_errors_doc)]
    pub fn zeros(sizes: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::full(sizes, 0, dtype, device)
    }

    /// A new tensor of ones.
    #[allow(clippy::missing_errors_doc)]
    pub fn ones(sizes: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::full(sizes, 1, dtype, device)
    }

    /// `value` in this tensor's sizes, dtype, device and memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn full_like<'a>(&self, value: impl Into<Arg<'a>>) -> Result<Tensor> {
        let made = self.empty_like()?;
        crate::ops::memory::fill::DEF.run_in_place(&[(&made).into(), value.into()])
    }

    /// Ones in this tensor's sizes, dtype, device and memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn ones_like(&self) -> Result<Tensor> {
        self.full_like(1)
    }

    /// A new tensor of this one's dtype and device, its elements undefined; channels_last where this one is and has as many
    /// dimensions.
    #[allow(clippy::missing_errors_doc)]
    pub fn new_empty(&self, sizes: &[usize]) -> Result<Tensor> {
        let last = sizes.len() == self.ndim() && self.inner.is_in_channels_last_order();
        let format = if last { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous };
        Tensor::empty_in(sizes, self.dtype(), self.device(), format)
    }

    /// [`Tensor::new_empty`] whose elements are all `value`.
    #[allow(clippy::missing_errors_doc)]
    pub fn new_full<'a>(&self, sizes: &[usize], value: impl Into<Arg<'a>>) -> Result<Tensor> {
        let made = self.new_empty(sizes)?;
        crate::ops::memory::fill::DEF.run_in_place(&[(&made).into(), value.into()])
    }

    /// [`Tensor::new_empty`] of zeros.
    #[allow(clippy::missing_errors_doc)]
    pub fn new_zeros(&self, sizes: &[usize]) -> Result<Tensor> {
        self.new_full(sizes, 0)
    }

    /// [`Tensor::new_empty`] of ones.
    #[allow(clippy::missing_errors_doc)]
    pub fn new_ones(&self, sizes: &[usize]) -> Result<Tensor> {
        self.new_full(sizes, 1)
    }
}
