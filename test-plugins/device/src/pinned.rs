//! Pinned host memory: plain memory whose ranges are recorded, so that a copy that uses other memory, or memory that was
//! freed too early, is an error.

use keyway_sdk::author::Error;
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

static RANGES: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn ranges() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn layout(bytes: u64) -> Result<Layout, Error> {
    let size = usize::try_from(bytes).ok().filter(|size| (1..=1 << 28).contains(size));
    size.and_then(|size| Layout::from_size_align(size, 64).ok())
        .ok_or(Error::OutOfMemory { requested: bytes, available: 1 << 28 })
}

/// Allocates.
pub fn allocate(bytes: u64) -> Result<*mut u8, Error> {
    let layout = layout(bytes)?;
    // SAFETY: the layout is not empty.
    let at = unsafe { std::alloc::alloc(layout) };
    if at.is_null() {
        return Err(Error::OutOfMemory { requested: bytes, available: 0 });
    }
    ranges().insert(at.addr(), layout.size());
    Ok(at)
}

/// Frees memory of [`allocate`] with this size.
///
/// # Safety
/// The memory must no longer be in use; the host upholds this.
pub unsafe fn free(at: *mut u8, bytes: u64) -> Result<(), Error> {
    let layout = layout(bytes)?;
    if ranges().remove(&at.addr()) != Some(layout.size()) {
        return Err(Error::Failed { detail: format!("{at:p} is no pinned memory of {bytes} bytes") });
    }
    // SAFETY: it was in the list with this size, and is out of it now.
    unsafe { std::alloc::dealloc(at, layout) };
    Ok(())
}

/// Fails unless the range is in pinned memory.
pub fn check(at: usize, bytes: u64) -> Result<(), String> {
    let inside = |(&start, &size): (&usize, &usize)| at as u64 + bytes <= (start + size) as u64;
    match ranges().range(..=at).next_back().is_some_and(inside) {
        true => Ok(()),
        false => Err(format!("{bytes} bytes at {at:#x} are no pinned memory, or were freed too early")),
    }
}
