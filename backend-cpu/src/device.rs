//! The device `cpu`: host memory behind a caching allocator, and one in-order stream.

use crate::memory;
use keyway_sdk::abi::codes::device_flag::HOST_ACCESSIBLE;
use keyway_sdk::abi::device::{DeviceApi, Queue, RawMemoryStats};
use keyway_sdk::author::{Device, Error, Properties, device_api};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// The device table that is registered with the host.
pub static API: DeviceApi = device_api::<Cpu>();

/// Implements [`Device`] for host memory.
pub struct Cpu;

fn total_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn model_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name =
            text.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':').map(|(_, n)| n.trim()));
        name.unwrap_or(std::env::consts::ARCH).to_string()
    })
}

impl Device for Cpu {
    const NAME: &'static str = "cpu";
    const FLAGS: u64 = HOST_ACCESSIBLE;
    const STATS: bool = true;

    fn count() -> Result<u32, Error> {
        Ok(1)
    }

    fn properties(_index: u32) -> Result<Properties, Error> {
        Ok(Properties {
            units: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            total_memory: total_memory(),
            flags: Self::FLAGS,
            name: model_name(),
        })
    }

    unsafe fn allocate(_index: u32, bytes: u64, _stream: Queue) -> Result<*mut c_void, Error> {
        match memory::allocate(usize::try_from(bytes).unwrap_or(usize::MAX), memory::ALIGNMENT) {
            Ok(pointer) => Ok(pointer.as_ptr().cast()),
            Err(full) => {
                let available = full.limit.map_or(0, |limit| limit.saturating_sub(full.in_use));
                Err(Error::OutOfMemory { requested: bytes, available: available as u64 })
            }
        }
    }

    unsafe fn free(_index: u32, pointer: *mut c_void, bytes: u64, _stream: Queue) -> Result<(), Error> {
        if let Some(pointer) = NonNull::new(pointer.cast::<u8>()) {
            // SAFETY: the host frees each result of `allocate` once, with the same size.
            unsafe { memory::free(pointer, bytes as usize) };
        }
        Ok(())
    }

    unsafe fn copy_from_host(
        _index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        _stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: the host passes two ranges of at least `bytes` bytes, and memory of this device is host memory.
        unsafe { std::ptr::copy(source.cast::<u8>(), target.cast::<u8>(), bytes as usize) };
        Ok(())
    }

    unsafe fn copy_to_host(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: as for `copy_from_host`; the two directions are the same copy.
        unsafe { Self::copy_from_host(index, target, source, bytes, stream) }
    }

    unsafe fn copy_between(
        to: (u32, *mut c_void, Queue),
        from: (u32, *const c_void, Queue),
        bytes: u64,
    ) -> Result<(), Error> {
        // SAFETY: as for `copy_from_host`.
        unsafe { Self::copy_from_host(to.0, to.1, from.1, bytes, to.2) }
    }

    fn memory_stats(_index: u32) -> Result<RawMemoryStats, Error> {
        let stats = memory::stats();
        Ok(RawMemoryStats {
            in_use: stats.in_use as u64,
            held: stats.reserved as u64,
            peak_in_use: stats.peak_in_use as u64,
            peak_held: stats.peak_reserved as u64,
            allocations: stats.allocations as u64,
            frees: stats.frees as u64,
            cache_hits: stats.cache_hits as u64,
            limit: stats.limit.unwrap_or(0) as u64,
            ..RawMemoryStats::default()
        })
    }

    fn empty_cache(_index: u32) -> Result<(), Error> {
        memory::empty_cache();
        Ok(())
    }

    fn reset_peak(_index: u32) -> Result<(), Error> {
        memory::reset_peak();
        Ok(())
    }

    fn set_memory_limit(_index: u32, bytes: u64) -> Result<(), Error> {
        memory::set_memory_limit((bytes > 0).then_some(bytes as usize));
        Ok(())
    }
}
