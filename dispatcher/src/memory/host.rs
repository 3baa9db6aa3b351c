//! The host's own aligned allocator, for a program whose CPU backend has none.

use super::blocks;
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use std::alloc::Layout;
use std::ptr::NonNull;

pub(super) const ALIGN: usize = 64;

/// An empty vector with capacity for this many values.
///
/// # Errors
/// `OutOfMemory`.
pub fn host_vec<T>(values: usize) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(values).map_err(|_| Error::OutOfMemory {
        device: Device::CPU,
        requested: (values as u64).saturating_mul(size_of::<T>() as u64),
        detail: "for a copy in host memory".to_string(),
    })?;
    Ok(vec)
}

fn layout(bytes: usize) -> Result<Layout> {
    Layout::from_size_align(bytes, ALIGN).map_err(|_| Error::OutOfMemory {
        device: Device::CPU,
        requested: bytes as u64,
        detail: "more than an address can count".to_string(),
    })
}

pub(super) fn allocate(bytes: usize) -> Result<NonNull<u8>> {
    let layout = layout(bytes)?;
    // `Storage::allocate` never asks for 0 bytes.
    NonNull::new(blocks::take_bytes(layout)).ok_or_else(|| Error::OutOfMemory {
        device: Device::CPU,
        requested: bytes as u64,
        detail: "the system has no more".to_string(),
    })
}

pub(super) fn free(pointer: NonNull<u8>, bytes: usize) {
    if let Ok(layout) = layout(bytes) {
        // SAFETY: `Storage` frees once, with the size it allocated by `allocate` above.
        unsafe { blocks::give_bytes(pointer, layout) }
    }
}
