//! The devices of this machine, and the streams of their work.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::prelude::*;
//! let x = Tensor::ones_with(3, Device::cuda_if_available(0))?;
//! keyway::device::synchronize(x.device())?;
//! # Ok(()) }
//! ```

mod names;

pub use names::{KnownDevices, OnKnownDevices};

use crate::Device;
use crate::error::Result;
/// A marker in the work of a stream, which other streams and the host can wait for; as `torch.cuda.Event`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::device::{Event, Stream};
/// use keyway::prelude::*;
/// keyway::runtime::start()?; // Loads the backends, as a first use of a tensor does.
/// let x = Tensor::new([1.0f32, 2.0])?;
/// let (first, second) = (Stream::new(x.device())?, Stream::new(x.device())?);
/// let (begin, end) = (Event::new(x.device())?, Event::new(x.device())?);
/// begin.record(&first)?;
/// let y = {
///     let _on = first.enter();
///     x.exp()?
/// };
/// end.record(&first)?;
/// second.wait(&end)?; // What is given to `second` from here on may read `y`.
/// end.synchronize()?;
/// assert!(end.is_done()? && y.elem_count() == 2);
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::device::Event;
/// A queue of work on a device, run in order; as `torch.cuda.Stream`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::device::Stream;
/// use keyway::prelude::*;
/// keyway::runtime::start()?; // Loads the backends, as a first use of a tensor does.
/// let stream = Stream::new(Device::CPU)?;
/// let y = {
///     let _on = stream.enter();
///     Tensor::new([1.0f32])?.add(1.0)?
/// };
/// stream.synchronize()?;
/// assert_eq!((stream.device(), y.item::<f32>()?), (Device::CPU, 2.0));
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::device::Stream;
/// A guard: while it lives, a stream is the current one of its device; returned by [`Stream::enter`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::device::Stream;
/// use keyway::prelude::*;
/// keyway::runtime::start()?; // Loads the backends, as a first use of a tensor does.
/// let stream = Stream::new(Device::CPU)?;
/// let guard = stream.enter();
/// Tensor::new([1.0f32])?.exp()?; // On `stream`.
/// drop(guard);
/// Tensor::new([1.0f32])?.exp()?; // On the default stream again.
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::device::StreamGuard;
/// Frees the cached memory of a device; as `torch.cuda.empty_cache`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Device, Tensor, device};
/// drop(Tensor::zeros(1 << 20)?);
/// device::empty_cache(Device::CPU)?;
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::device::empty_cache;
/// The bytes in use and reserved on a device, now and at the peak; as `torch.cuda.memory_stats`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Device, Tensor, device};
/// let _held = Tensor::zeros(1 << 20)?;
/// let stats = device::memory_stats(Device::CPU)?.expect("the backend keeps an account");
/// assert!(stats.in_use >= 4 << 20 && stats.held >= stats.in_use);
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::device::memory_stats;
/// The name, memory size and capabilities of a device; as `torch.cuda.get_device_properties`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Device, Tensor, device};
/// keyway::runtime::start()?; // Loads the backends, as a first use of a tensor does.
/// let properties = device::properties(Device::CPU)?;
/// assert!(properties.host_accessible && !properties.name.is_empty());
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::device::properties;
/// Resets the peaks of [`memory_stats`] to the bytes in use; as `torch.cuda.reset_peak_memory_stats`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Device, Tensor, device};
/// drop(Tensor::zeros(1 << 20)?);
/// device::reset_peak(Device::CPU)?;
/// let stats = device::memory_stats(Device::CPU)?.expect("the backend keeps an account");
/// assert!(stats.peak_in_use < 4 << 20);
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::device::reset_peak;
/// Limits the memory of tensors on a device; as `torch.cuda.set_per_process_memory_fraction`, in bytes.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Device, Tensor, device};
/// keyway::runtime::start()?; // Loads the backends, as a first use of a tensor does.
/// device::set_memory_limit(Device::CPU, 1 << 20)?;
/// let error = Tensor::zeros(1 << 20).unwrap_err().to_string();
/// assert!(error.contains("memory"), "{error}");
/// device::set_memory_limit(Device::CPU, 0)?;
/// Tensor::zeros(1 << 20)?;
/// # Ok(()) }
/// ```
pub use keyway_dispatcher::device::set_memory_limit;
pub use keyway_dispatcher::device::synchronize;

/// Number of devices of a kind, such as `cuda`: 0 if no backend provides it, or if it finds none.
///
/// ```
/// assert_eq!(keyway::device::count("cpu"), 1);
/// assert_eq!(keyway::device::count("abacus"), 0);
/// ```
#[doc(alias = "device_count")]
pub fn count(kind: &str) -> usize {
    // Without a runtime no backend was loaded.
    let _started = crate::runtime::start();
    match Device::new(kind, 0) {
        Ok(Device::CPU) => 1,
        Ok(device) => {
            let server = keyway_dispatcher::device::server(device.kind);
            server.map_or(0, |entry| keyway_dispatcher::device::count(entry).0 as usize)
        }
        Err(_) => 0,
    }
}

/// Whether tensors can be created on a device, such as `cuda` (its first one) or `cuda:1`.
///
/// ```
/// assert!(keyway::device::is_available("cpu"));
/// assert!(!keyway::device::is_available("abacus:0"));
/// ```
pub fn is_available(device: &str) -> bool {
    // The name is known once its backend is loaded.
    let _started = crate::runtime::start();
    Device::parse(device).is_ok_and(|device| usize::from(device.index) < count(device.name()))
}

/// The device of this kind and index, which must exist.
///
/// # Errors
/// No backend that provides it, or fewer devices of that kind.
pub(crate) fn present(kind: &str, index: u16) -> Result<Device> {
    let device = Device::new(kind, index)?;
    // A tensor without elements checks that the device exists.
    crate::Tensor::uninit(0, device)?;
    Ok(device)
}
