//! The device `test.keyway/twin`, in host memory. Two test plugins provide one each, so that a host has to choose.

use keyway_sdk::abi::codes::device_flag;
use keyway_sdk::abi::device::{Queue, RawMemoryStats};
use keyway_sdk::author::{Device, Error, Properties};
use std::alloc::Layout;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The differences between the twins.
pub trait Own: 'static {
    /// The device's name.
    const NAME: &'static str = "test.keyway/twin";
    /// Which of the two owns the device.
    const PRIORITY: u32;
    /// The number of devices.
    const COUNT: u32;
    /// The display name of each device.
    const TITLE: &'static str;

    /// Called before each allocation.
    fn before_allocation(_index: u32, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }
}

/// The device.
pub struct Twin<O>(PhantomData<O>);

/// The live addresses; each library has a separate list.
static GIVEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

fn given() -> MutexGuard<'static, BTreeSet<usize>> {
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn layout(bytes: u64) -> Result<Layout, Error> {
    Layout::from_size_align(bytes as usize, 64)
        .map_err(|_| Error::OutOfMemory { requested: bytes, available: 0 })
}

/// # Safety
/// Both must be ranges of `bytes` bytes of host memory; the host upholds this.
unsafe fn copy(to: *mut c_void, from: *const c_void, bytes: u64) -> Result<(), Error> {
    // SAFETY: as the caller guarantees; they may overlap.
    unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), bytes as usize) };
    Ok(())
}

impl<O: Own> Device for Twin<O> {
    const NAME: &'static str = O::NAME;
    const FLAGS: u64 = device_flag::HOST_ACCESSIBLE;
    const PRIORITY: u32 = O::PRIORITY;
    const STATS: bool = true;

    fn count() -> Result<u32, Error> {
        Ok(O::COUNT)
    }

    fn properties(_index: u32) -> Result<Properties, Error> {
        Ok(Properties { units: 1, total_memory: 0, flags: Self::FLAGS, name: O::TITLE })
    }

    unsafe fn allocate(index: u32, bytes: u64, _stream: Queue) -> Result<*mut c_void, Error> {
        O::before_allocation(index, bytes)?;
        if bytes == 0 {
            return Ok(std::ptr::null_mut());
        }
        // SAFETY: the layout is not empty.
        let at = unsafe { std::alloc::alloc(layout(bytes)?) };
        given().insert(at.addr());
        Ok(at.cast())
    }

    unsafe fn free(_index: u32, pointer: *mut c_void, bytes: u64, _stream: Queue) -> Result<(), Error> {
        if !given().remove(&pointer.addr()) {
            return Err(Error::Failed { detail: format!("{} did not give {pointer:p}", O::TITLE) });
        }
        // SAFETY: the host frees each result of `allocate` once, with the same size.
        unsafe { std::alloc::dealloc(pointer.cast(), layout(bytes)?) };
        Ok(())
    }

    /// Statistics in allocations, not in bytes.
    fn memory_stats(_index: u32) -> Result<RawMemoryStats, Error> {
        Ok(RawMemoryStats { in_use: given().len() as u64, ..RawMemoryStats::default() })
    }

    unsafe fn copy_from_host(
        _index: u32,
        to: *mut c_void,
        from: *const c_void,
        bytes: u64,
        _stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: the host passes two areas of at least `bytes` bytes, and all memory here is the host's.
        unsafe { copy(to, from, bytes) }
    }

    unsafe fn copy_to_host(
        _index: u32,
        to: *mut c_void,
        from: *const c_void,
        bytes: u64,
        _stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: as for `copy_from_host`.
        unsafe { copy(to, from, bytes) }
    }

    unsafe fn copy_between(
        to: (u32, *mut c_void, Queue),
        from: (u32, *const c_void, Queue),
        bytes: u64,
    ) -> Result<(), Error> {
        // SAFETY: as for `copy_from_host`.
        unsafe { copy(to.1, from.1, bytes) }
    }
}
