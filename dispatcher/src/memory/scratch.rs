//! Scratch memory that a kernel allocates and frees within one call.

use super::host;
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::device::capture::Retained;
use crate::device::{self as device_abi, DeviceEntry, StreamRef};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Allocates scratch memory; also returns its owner, for [`free_scratch`]: `None` is the host itself.
pub(crate) fn allocate_scratch(
    device: Device,
    bytes: usize,
) -> Result<(NonNull<u8>, Option<&'static DeviceEntry>)> {
    match device_abi::server(device.kind) {
        Some(entry) => Ok((device_abi::allocate(entry, device, bytes)?, Some(entry))),
        None if device == Device::CPU && bytes == 0 => Ok((NonNull::<u128>::dangling().cast(), None)),
        None if device == Device::CPU => Ok((host::allocate(bytes)?, None)),
        None => Err(Error::NoDevice { device }),
    }
}

/// Frees scratch memory after the work already enqueued on this thread's stream.
///
/// # Safety
/// The memory must be from [`allocate_scratch`] with the same device and size and this owner, and is freed once. The caller
/// upholds this.
pub(crate) unsafe fn free_scratch(
    owner: Option<&'static DeviceEntry>,
    device: Device,
    pointer: NonNull<u8>,
    bytes: usize,
) {
    if bytes == 0 {
        return;
    }
    let Some(entry) = owner else { return host::free(pointer, bytes) };
    let stream = device_abi::current_stream_ref_of(entry, device);
    let scratch = Scratch { entry, device, pointer, bytes, stream, used_on: Mutex::default() };
    match scratch.stream.clone() {
        // Launches of the graph will use it as well.
        Some(handle) if handle.recording().is_active() => {
            handle.recording().keep(pointer.addr().get(), || Box::new(scratch));
        }
        _ => drop(scratch),
    }
}

/// A guard of scratch memory: dropping it frees the memory.
struct Scratch {
    entry: &'static DeviceEntry,
    device: Device,
    pointer: NonNull<u8>,
    bytes: usize,
    stream: StreamRef,
    used_on: Mutex<Vec<StreamRef>>,
}

// SAFETY: the memory is plain bytes that are not read here; the device's contract allows freeing on any thread.
unsafe impl Send for Scratch {}
// SAFETY: as for Send.
unsafe impl Sync for Scratch {}

impl Retained for Scratch {
    fn used_on(&self, _entry: &'static DeviceEntry, _device: Device, stream: &StreamRef) {
        let mut all = self.used_on.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.iter().any(|other| device_abi::same_stream(other, stream)) {
            all.push(stream.clone());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let others = std::mem::take(&mut *self.used_on.lock().unwrap_or_else(PoisonError::into_inner));
        if !others.is_empty() {
            device_abi::order_after(self.entry, self.device, &self.stream, &others);
        }
        device_abi::free(self.entry, self.device, self.pointer, self.bytes, &self.stream);
    }
}
