//! The functions with which the host manages the device's memory.

use crate::arena::{self, TOTAL};
use keyway_sdk::abi::device::{DeviceApi, Queue, RawMemoryStats};
use keyway_sdk::author::{Device, Error, Properties, device_api};
use std::ffi::c_void;

/// The table of these functions.
pub static API: DeviceApi = device_api::<ArenaDevice>();

/// The device: there is one, and it has no streams, because a call's work is done when the call returns.
pub struct ArenaDevice;

fn known(index: u32) -> Result<(), Error> {
    match index {
        0 => Ok(()),
        _ => Err(Error::InvalidArgument {
            argument: "index",
            expected: "0, the only device".into(),
            got: index.to_string(),
        }),
    }
}

fn size(bytes: u64) -> Result<usize, Error> {
    usize::try_from(bytes).map_err(|_| Error::Failed { detail: format!("{bytes} bytes are no size here") })
}

impl Device for ArenaDevice {
    const NAME: &'static str = "example.org/arena";
    // Neither `HOST_ACCESSIBLE` nor `ASYNCHRONOUS`.
    const FLAGS: u64 = 0;
    const STATS: bool = true;

    fn count() -> Result<u32, Error> {
        Ok(1)
    }

    fn properties(index: u32) -> Result<Properties, Error> {
        known(index)?;
        Ok(Properties { units: 1, total_memory: TOTAL, flags: Self::FLAGS, name: "an arena" })
    }

    unsafe fn allocate(index: u32, bytes: u64, _stream: Queue) -> Result<*mut c_void, Error> {
        known(index)?;
        if bytes == 0 {
            return Ok(std::ptr::null_mut());
        }
        arena::lock().allocate(bytes).map(std::ptr::without_provenance_mut)
    }

    unsafe fn free(index: u32, pointer: *mut c_void, _bytes: u64, _stream: Queue) -> Result<(), Error> {
        known(index)?;
        if pointer.is_null() {
            return Ok(());
        }
        arena::lock().free(pointer.addr())
    }

    unsafe fn copy_from_host(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        _stream: Queue,
    ) -> Result<(), Error> {
        known(index)?;
        let (mut memory, bytes) = (arena::lock(), size(bytes)?);
        let to = memory.locate(target.addr(), bytes)?;
        if bytes > 0 {
            // SAFETY: the host passes `bytes` readable bytes of its own memory, valid until this returns.
            let source = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), bytes) };
            memory.bytes(to, bytes).copy_from_slice(source);
        }
        Ok(())
    }

    unsafe fn copy_to_host(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        _stream: Queue,
    ) -> Result<(), Error> {
        known(index)?;
        let (mut memory, bytes) = (arena::lock(), size(bytes)?);
        let from = memory.locate(source.addr(), bytes)?;
        let values = memory.bytes(from, bytes);
        // SAFETY: the host passes `bytes` writable bytes of its own memory, which is never the arena's.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), target.cast::<u8>(), bytes) };
        Ok(())
    }

    unsafe fn copy_between(
        to: (u32, *mut c_void, Queue),
        from: (u32, *const c_void, Queue),
        bytes: u64,
    ) -> Result<(), Error> {
        known(to.0)?;
        known(from.0)?;
        let (mut memory, bytes) = (arena::lock(), size(bytes)?);
        let (target, source) = (memory.locate(to.1.addr(), bytes)?, memory.locate(from.1.addr(), bytes)?);
        memory.copy(target, source, bytes);
        Ok(())
    }

    fn memory_stats(index: u32) -> Result<RawMemoryStats, Error> {
        known(index)?;
        Ok(*arena::lock().stats())
    }

    fn empty_cache(index: u32) -> Result<(), Error> {
        known(index)
    }

    fn reset_peak(index: u32) -> Result<(), Error> {
        known(index)?;
        let mut memory = arena::lock();
        let stats = memory.stats();
        (stats.peak_in_use, stats.peak_held) = (stats.in_use, stats.held);
        Ok(())
    }

    fn set_memory_limit(index: u32, bytes: u64) -> Result<(), Error> {
        known(index)?;
        arena::lock().stats().limit = if bytes == 0 { TOTAL } else { bytes.min(TOTAL) };
        Ok(())
    }
}
