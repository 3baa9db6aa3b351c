//! The table of `test.keyway/remote`.

use crate::memory::{self, Opened};
use crate::pinned;
use crate::queue::{self, DEVICES, Event};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::device_flag::ASYNCHRONOUS;
use keyway_sdk::abi::device::{DeviceApi, Queue, RawMemoryStats};
use keyway_sdk::abi::extension::{CaptureApi, PeerApi, ReportApi};
use keyway_sdk::author::{Device, Error, Properties, capture_api, device_api, peer_api, report_api};
use keyway_test_faults as faults;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard};

/// The device table that is registered with the host.
pub static API: DeviceApi = device_api::<Remote>();

/// The same devices as another kind of device, without access to the first kind and without pinned memory.
pub static FARTHER: DeviceApi = DeviceApi {
    name: RawStr::new("test.keyway/farther"),
    pinned_allocate: None,
    pinned_free: None,
    copy_from_host_async: None,
    copy_to_host_async: None,
    extension: None,
    ..device_api::<Remote>()
};

/// The device.
pub struct Remote;

const TOTAL: u64 = 1 << 30;

static STATS: Mutex<[RawMemoryStats; DEVICES as usize]> = Mutex::new([EMPTY; DEVICES as usize]);
const EMPTY: RawMemoryStats = RawMemoryStats {
    struct_size: 0,
    reserved: 0,
    in_use: 0,
    held: 0,
    peak_in_use: 0,
    peak_held: 0,
    allocations: 0,
    frees: 0,
    cache_hits: 0,
    limit: TOTAL,
};

fn stats() -> MutexGuard<'static, [RawMemoryStats; DEVICES as usize]> {
    STATS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Fails unless the device exists.
pub fn known(index: u32) -> Result<usize, Error> {
    if index < DEVICES {
        return Ok(index as usize);
    }
    let expected = format!("below {DEVICES}, the number of devices");
    Err(Error::InvalidArgument { argument: "index", expected, got: index.to_string() })
}

/// Reserves `bytes` of the limit; returns the remaining bytes as the error if they do not fit.
fn reserve(index: usize, bytes: u64) -> Result<(), u64> {
    let all = &mut stats()[index];
    let limit = if all.limit == 0 { TOTAL } else { all.limit };
    let left = limit.saturating_sub(all.in_use);
    if bytes > left {
        return Err(left);
    }
    all.in_use += bytes;
    all.held = all.in_use;
    all.peak_in_use = all.peak_in_use.max(all.in_use);
    all.peak_held = all.peak_in_use;
    all.allocations += 1;
    Ok(())
}

fn give_back(index: usize, bytes: u64) {
    if faults::is("device_memory_kept") {
        return;
    }
    let all = &mut stats()[index];
    all.in_use = all.in_use.saturating_sub(bytes);
    all.held = all.in_use;
    all.frees += 1;
}

/// Copies between two addresses, each in device memory or plain memory.
///
/// # Safety
/// Plain memory must be valid for `bytes` bytes; device memory is checked.
unsafe fn copy(to: usize, from: usize, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the caller opened or owns both ranges.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
}

/// # Safety
/// `event` must be one that `event_create` returned and that is not destroyed; the host upholds this.
unsafe fn event_of(event: Queue) -> Arc<Event> {
    let pointer = event.cast_const().cast::<Event>();
    // SAFETY: the caller guarantees a living event.
    unsafe {
        Arc::increment_strong_count(pointer);
        Arc::from_raw(pointer)
    }
}

impl Device for Remote {
    const NAME: &'static str = "test.keyway/remote";
    const FLAGS: u64 = ASYNCHRONOUS;
    const STREAMS: bool = true;
    const STATS: bool = true;
    const PINNED: bool = true;
    const ASYNC_COPIES: bool = true;
    const PEER: Option<&'static PeerApi> = Some(&peer_api::<Self>());
    const CAPTURE: Option<&'static CaptureApi> = Some(&capture_api::<Self>());
    const REPORT: Option<&'static ReportApi> = Some(&report_api::<Self>());

    fn count() -> Result<u32, Error> {
        Ok(DEVICES)
    }

    fn properties(index: u32) -> Result<Properties, Error> {
        known(index)?;
        Ok(Properties { units: 1, total_memory: TOTAL, flags: Self::FLAGS, name: "a far away device" })
    }

    unsafe fn allocate(index: u32, bytes: u64, _stream: Queue) -> Result<*mut c_void, Error> {
        let device = known(index)?;
        if bytes == 0 {
            return Ok(std::ptr::null_mut());
        }
        if faults::is("device_out_of_memory") && bytes > TOTAL {
            return Err(Error::Failed { detail: "something went wrong".to_string() });
        }
        if reserve(device, bytes).is_err() {
            // Memory that enqueued work holds is freed when the work is complete. An error of that work is stored for the
            // next synchronisation.
            queue::drain(index);
            reserve(device, bytes).map_err(|available| Error::OutOfMemory { requested: bytes, available })?;
        }
        memory::map(bytes as usize).map(|at| at as *mut c_void).inspect_err(|_| give_back(device, bytes))
    }

    unsafe fn free(index: u32, pointer: *mut c_void, bytes: u64, stream: Queue) -> Result<(), Error> {
        let (device, at) = (known(index)?, pointer as usize);
        let work = move || {
            memory::unmap(at).map_err(|e| e.to_string())?;
            give_back(device, bytes);
            Ok(())
        };
        if faults::is("device_freed_early") {
            return work().map_err(|detail: String| Error::Failed { detail });
        }
        queue::submit_uncaptured(index, stream as usize, work);
        Ok(())
    }

    unsafe fn copy_from_host(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        known(index)?;
        queue::check_not_captured(index, stream as usize)?;
        // SAFETY: the host passes `bytes` readable bytes; they are copied before this returns.
        let staged = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), bytes as usize) }.to_vec();
        if faults::is("device_copy_kept") {
            std::mem::forget(staged.clone());
        }
        let to = target as usize;
        let work = move || {
            let _open = Opened::new(to)?;
            let short = usize::from(faults::is("device_copy_short"));
            // SAFETY: the target's pages are open; the host checked the range.
            unsafe { copy(to, staged.as_ptr() as usize, staged.len().saturating_sub(short)) };
            Ok(())
        };
        queue::submit(index, stream as usize, work);
        Ok(())
    }

    unsafe fn copy_to_host(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        known(index)?;
        queue::check_not_captured(index, stream as usize)?;
        let (to, from) = (target as usize, source as usize);
        let work = move || {
            let _open = Opened::new(from)?;
            // SAFETY: the source's pages are open; the host keeps the target until this function returns,
            // which waits for the work.
            unsafe { copy(to, from, bytes as usize) };
            Ok(())
        };
        if faults::is("device_copy_lost") {
            return Ok(());
        }
        queue::submit(index, stream as usize, work);
        queue::synchronize(index, Some(stream as usize))
    }

    unsafe fn copy_between(
        to: (u32, *mut c_void, Queue),
        from: (u32, *const c_void, Queue),
        bytes: u64,
    ) -> Result<(), Error> {
        known(to.0)?;
        known(from.0)?;
        let (target, source) = (to.1 as usize, from.1 as usize);
        let work = move || {
            let (_to, _from) = (Opened::new(target)?, Opened::new(source)?);
            let late = usize::from(faults::is("device_copy_offset")).min(bytes as usize);
            // SAFETY: both ranges are open; the host checked them.
            unsafe { copy(target + late, source + late, bytes as usize - late) };
            Ok(())
        };
        let (before, after) = (Arc::new(Event::default()), Arc::new(Event::default()));
        queue::record(from.0, from.2 as usize, &before);
        queue::wait(to.0, to.2 as usize, &before);
        queue::submit(to.0, to.2 as usize, work);
        queue::record(to.0, to.2 as usize, &after);
        queue::wait(from.0, from.2 as usize, &after);
        Ok(())
    }

    fn stream_create(index: u32) -> Result<Queue, Error> {
        known(index)?;
        Ok(queue::new_stream() as Queue)
    }

    unsafe fn stream_destroy(_index: u32, _stream: Queue) -> Result<(), Error> {
        // A stream is only a number; work enqueued on it is executed nevertheless.
        Ok(())
    }

    unsafe fn stream_synchronize(index: u32, stream: Queue) -> Result<(), Error> {
        known(index)?;
        if faults::is("device_stream_unwaited") {
            return Ok(());
        }
        queue::synchronize(index, Some(stream as usize))
    }

    fn event_create(_index: u32) -> Result<Queue, Error> {
        Ok(Arc::into_raw(Arc::new(Event::default())).cast_mut().cast())
    }

    unsafe fn event_destroy(_index: u32, event: Queue) -> Result<(), Error> {
        // SAFETY: the host destroys each result of `event_create` once.
        drop(unsafe { Arc::from_raw(event.cast_const().cast::<Event>()) });
        Ok(())
    }

    unsafe fn event_record(index: u32, event: Queue, stream: Queue) -> Result<(), Error> {
        known(index)?;
        // SAFETY: the host passes a living event.
        let event = unsafe { event_of(event) };
        queue::record(index, stream as usize, &event);
        if faults::is("device_event_early") {
            event.reach();
        }
        Ok(())
    }

    unsafe fn event_wait(index: u32, event: Queue, stream: Queue) -> Result<(), Error> {
        known(index)?;
        if faults::is("device_wait_ignored") {
            return Ok(());
        }
        // SAFETY: the host passes a living event.
        queue::wait(index, stream as usize, &unsafe { event_of(event) });
        Ok(())
    }

    unsafe fn event_query(_index: u32, event: Queue) -> Result<bool, Error> {
        // SAFETY: the host passes a living event.
        Ok(unsafe { event_of(event) }.is_reached() && !faults::is("device_event_never"))
    }

    unsafe fn event_synchronize(index: u32, event: Queue) -> Result<(), Error> {
        known(index)?;
        // SAFETY: the host passes a living event.
        let event = unsafe { event_of(event) };
        queue::synchronize_event(index, &event)
    }

    unsafe fn event_elapsed(_index: u32, from: Queue, to: Queue) -> Result<u64, Error> {
        // SAFETY: the host passes two living events.
        let times = unsafe { (event_of(from).time(), event_of(to).time()) };
        match times {
            (Some(from), Some(to)) => Ok(to.saturating_duration_since(from).as_nanos() as u64),
            _ => Err(Error::InvalidArgument {
                argument: "event",
                expected: "two events that have happened".to_string(),
                got: "one that was not recorded or not reached".to_string(),
            }),
        }
    }

    fn synchronize(index: u32) -> Result<(), Error> {
        known(index)?;
        if faults::is("device_unwaited") {
            return Ok(());
        }
        queue::synchronize(index, None)
    }

    fn memory_stats(index: u32) -> Result<RawMemoryStats, Error> {
        Ok(stats()[known(index)?])
    }

    fn empty_cache(index: u32) -> Result<(), Error> {
        known(index).map(|_| ())
    }

    fn reset_peak(index: u32) -> Result<(), Error> {
        let all = &mut stats()[known(index)?];
        (all.peak_in_use, all.peak_held) = (all.in_use, all.held);
        Ok(())
    }

    fn pinned_allocate(index: u32, bytes: u64) -> Result<*mut c_void, Error> {
        known(index)?;
        pinned::allocate(bytes).map(<*mut u8>::cast)
    }

    unsafe fn pinned_free(index: u32, pointer: *mut c_void, bytes: u64) -> Result<(), Error> {
        known(index)?;
        // SAFETY: the host frees each result of `pinned_allocate` once it is no longer used.
        unsafe { pinned::free(pointer.cast(), bytes) }
    }

    unsafe fn copy_from_host_async(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        known(index)?;
        let (to, from) = (target as usize, source as usize);
        let work = move || {
            pinned::check(from, bytes)?;
            let _open = Opened::new(to)?;
            let short = usize::from(faults::is("device_async_short"));
            // SAFETY: the target's pages are open; the source is pinned memory that the host keeps until this is done.
            unsafe { copy(to, from, (bytes as usize).saturating_sub(short)) };
            Ok(())
        };
        queue::submit(index, stream as usize, work);
        Ok(())
    }

    unsafe fn copy_to_host_async(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        known(index)?;
        let (to, from) = (target as usize, source as usize);
        let work = move || {
            pinned::check(to, bytes)?;
            let _open = Opened::new(from)?;
            // SAFETY: the source's pages are open; the target is pinned memory that the host keeps until this is done.
            unsafe { copy(to, from, bytes as usize) };
            Ok(())
        };
        queue::submit(index, stream as usize, work);
        Ok(())
    }

    fn set_memory_limit(index: u32, bytes: u64) -> Result<(), Error> {
        stats()[known(index)?].limit = if bytes == 0 { TOTAL } else { bytes };
        Ok(())
    }
}
