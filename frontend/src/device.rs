//! The devices of this machine, and the streams of their work.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::prelude::*;
//! let place = if keyway::device::is_available("cuda") { "cuda" } else { "cpu" };
//! let x = Tensor::ones_with(3, place)?;
//! keyway::device::synchronize(x.device())?;
//! # Ok(()) }
//! ```

use crate::Device;
pub use keyway_dispatcher::device::{
    Event, Stream, StreamGuard, empty_cache, memory_stats, properties, reset_peak, set_memory_limit,
    synchronize,
};

/// How many devices of a kind are there, such as `cuda`: 0 where no backend brings it, or where it finds none.
///
/// ```
/// assert_eq!(keyway::device::count("cpu"), 1);
/// assert_eq!(keyway::device::count("abacus"), 0);
/// ```
#[doc(alias = "device_count")]
pub fn count(kind: &str) -> usize {
    // Without a runtime no backend has brought anything.
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

/// Whether tensors can be on a device, such as `cuda` (its first one) or `cuda:1`.
///
/// ```
/// assert!(keyway::device::is_available("cpu"));
/// assert!(!keyway::device::is_available("abacus:0"));
/// ```
#[doc(alias = "cuda_if_available")]
pub fn is_available(device: &str) -> bool {
    // The name is known once its backend is loaded.
    let _started = crate::runtime::start();
    Device::parse(device).is_ok_and(|device| usize::from(device.index) < count(device.name()))
}
