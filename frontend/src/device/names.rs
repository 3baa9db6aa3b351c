//! Names of device kinds that users of other libraries expect: the only module of this crate that names one. Other kinds are
//! selected in the same way by name, `Device::parse("npu:0")` and `x.to("npu:0")`.

use super::present;
use crate::nn::Module;
use crate::{Device, Result, Tensor};

/// The kind of NVIDIA's GPUs.
const GPU: &str = "cuda";

/// Constructors of common devices for [`Device`]: part of the [prelude](crate::prelude).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let device = Device::cuda_if_available(0);
/// assert_eq!(Tensor::zeros_with(3, device)?.device(), device);
/// # Ok(()) }
/// ```
pub trait KnownDevices: Sized {
    /// The GPU of this index.
    ///
    /// ```
    /// use keyway::prelude::*;
    /// assert_eq!(Device::cuda(0).is_ok(), keyway::device::is_available("cuda:0"));
    /// ```
    ///
    /// # Errors
    /// No backend for GPUs, or no GPU of this index.
    #[doc(alias = "new_cuda")]
    fn cuda(index: u16) -> Result<Self>;

    /// candle's GPU of this index.
    #[doc(hidden)]
    #[deprecated(note = "write `Device::cuda(index)`")]
    #[allow(clippy::missing_errors_doc)]
    fn new_cuda(index: u16) -> Result<Self> {
        Self::cuda(index)
    }

    /// The GPU of this index, or the CPU if there is none.
    ///
    /// ```
    /// use keyway::prelude::*;
    /// let device = Device::cuda_if_available(0);
    /// assert_eq!(device.is_cpu(), !keyway::device::is_available("cuda:0"));
    /// ```
    fn cuda_if_available(index: u16) -> Self;

    /// Whether this is a GPU of [`cuda`](KnownDevices::cuda).
    ///
    /// ```
    /// use keyway::prelude::*;
    /// assert!(!Device::CPU.is_cuda());
    /// ```
    fn is_cuda(&self) -> bool;

    /// Whether this is the CPU.
    ///
    /// ```
    /// use keyway::prelude::*;
    /// assert!(Device::CPU.is_cpu());
    /// ```
    fn is_cpu(&self) -> bool;
}

impl KnownDevices for Device {
    fn cuda(index: u16) -> Result<Device> {
        present(GPU, index)
    }

    fn cuda_if_available(index: u16) -> Device {
        Device::cuda(index).unwrap_or(Device::CPU)
    }

    fn is_cuda(&self) -> bool {
        self.name() == GPU
    }

    fn is_cpu(&self) -> bool {
        *self == Device::CPU
    }
}

impl Tensor {
    /// This tensor on the first GPU, a copy if it is on another device; [`Tensor::to`] takes any device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones(3)?;
    /// assert_eq!(x.cuda().is_ok(), keyway::device::is_available("cuda"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No GPU; as [`Tensor::to_device`].
    pub fn cuda(&self) -> Result<Tensor> {
        self.to_device(present(GPU, 0)?)
    }

    /// This tensor in the memory of the host, a copy if it is on another device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones(3)?;
    /// assert!(x.cpu()?.ptr_eq(&x));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_device`].
    pub fn cpu(&self) -> Result<Tensor> {
        self.to_device(Device::CPU)
    }

    /// Whether this tensor is on a GPU of [`cuda`](KnownDevices::cuda).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert!(!Tensor::ones(3)?.cpu()?.is_cuda());
    /// # Ok(()) }
    /// ```
    pub fn is_cuda(&self) -> bool {
        self.device().is_cuda()
    }
}

/// Modules moved to devices of the kinds that most programs use: part of the [prelude](crate::prelude).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let layer = nn::Linear::new(3, 2)?;
/// layer.cpu()?;
/// assert!(layer.weight().device().is_cpu());
/// # Ok(()) }
/// ```
pub trait OnKnownDevices: Module {
    /// Moves the parameters and buffers to the first GPU; see [`Module::to_device`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let layer = nn::Linear::new(3, 2)?;
    /// assert_eq!(layer.cuda().is_ok(), keyway::device::is_available("cuda"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No GPU; as [`Module::to_device`].
    fn cuda(&self) -> Result<()> {
        self.to_device(present(GPU, 0)?)
    }

    /// Moves the parameters and buffers to the memory of the host; see [`Module::to_device`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let layer = nn::Linear::new(3, 2)?;
    /// layer.cpu()?;
    /// assert_eq!(layer.weight().device(), Device::CPU);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Module::to_device`].
    fn cpu(&self) -> Result<()> {
        self.to_device(Device::CPU)
    }
}

impl<M: Module + ?Sized> OnKnownDevices for M {}
