//! The device `cuda`.

use crate::driver::is_forked;
use crate::gpu::{self, Gpu, gpu};
use crate::memory::{Mode, mode};
use keyway_sdk::abi::codes::device_flag::ASYNCHRONOUS;
use keyway_sdk::abi::device::{DeviceApi, Queue, RawMemoryStats};
use keyway_sdk::abi::extension::{CaptureApi, PeerApi, ReportApi};
use keyway_sdk::author::{Device, Error, Peer, Properties, capture_api, device_api, peer_api, report_api};
use std::ffi::c_void;

/// The device table that is registered with the host.
pub static API: DeviceApi = device_api::<Cuda>();

/// The device `cuda`, NVIDIA GPUs. A stream is the driver's own handle; the default stream is the driver's legacy default
/// stream, with which other streams of this library do not synchronise.
pub struct Cuda;

/// Orders the later work of one stream after the current work of another.
fn order(after: (&Gpu, Queue), before: (&Gpu, Queue)) -> Result<(), Error> {
    let event = before.0.context.new_event()?;
    let ordered =
        before.0.context.record(event, before.1).and_then(|()| after.0.context.wait(event, after.1));
    before.0.context.destroy_event(event).and(ordered)
}

/// Completes a synchronisation of the program: checks that failed until then become its error.
fn waited(gpu: &Gpu, result: Result<(), Error>) -> Result<(), Error> {
    result.and_then(|()| gpu.checks.raise())
}

fn address(pointer: *const c_void) -> u64 {
    pointer.addr() as u64
}

impl Device for Cuda {
    const NAME: &'static str = "cuda";
    const FLAGS: u64 = ASYNCHRONOUS;
    const STREAMS: bool = true;
    const STATS: bool = true;
    const PINNED: bool = true;
    const ASYNC_COPIES: bool = true;
    const PEER: Option<&'static PeerApi> = Some(&peer_api::<Self>());
    const CAPTURE: Option<&'static CaptureApi> = Some(&capture_api::<Self>());
    const REPORT: Option<&'static ReportApi> = Some(&report_api::<Self>());

    fn count() -> Result<u32, Error> {
        gpu::count()
    }

    fn properties(index: u32) -> Result<Properties, Error> {
        let gpu = gpu(index)?;
        Ok(Properties {
            units: gpu.units,
            total_memory: gpu.total_memory,
            flags: Self::FLAGS,
            name: &gpu.name,
        })
    }

    unsafe fn allocate(index: u32, bytes: u64, stream: Queue) -> Result<*mut c_void, Error> {
        let gpu = gpu(index)?;
        if bytes == 0 {
            return Ok(std::ptr::null_mut());
        }
        let at = gpu.memory.allocate(&gpu.context, bytes, stream)?;
        Ok(std::ptr::with_exposed_provenance_mut(at as usize))
    }

    unsafe fn free(index: u32, pointer: *mut c_void, bytes: u64, stream: Queue) -> Result<(), Error> {
        // A forked child must not free memory of its parent.
        if pointer.is_null() || is_forked() {
            return Ok(());
        }
        let gpu = gpu(index)?;
        gpu.memory.free(&gpu.context, address(pointer), bytes, stream)
    }

    unsafe fn copy_from_host(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        let gpu = gpu(index)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the host passes `bytes` readable bytes for the call, and the stream is synchronised below: page-locked
        // bytes are read until then.
        unsafe { gpu.context.copy_in(address(target), source, bytes, stream)? };
        waited(gpu, gpu.context.synchronize_stream(stream))
    }

    unsafe fn copy_to_host(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        let gpu = gpu(index)?;
        if bytes > 0 {
            // SAFETY: the host passes `bytes` writable bytes for the call, and the stream is synchronised below.
            unsafe { gpu.context.copy_out(target, address(source), bytes, stream)? };
        }
        waited(gpu, gpu.context.synchronize_stream(stream))
    }

    unsafe fn copy_between(
        to: (u32, *mut c_void, Queue),
        from: (u32, *const c_void, Queue),
        bytes: u64,
    ) -> Result<(), Error> {
        let (target, source) = (gpu(to.0)?, gpu(from.0)?);
        if bytes == 0 {
            return Ok(());
        }
        let same = to.0 == from.0;
        let apart = !same || to.2 != from.2;
        if apart {
            order((target, to.2), (source, from.2))?;
        }
        match same {
            true => target.context.copy_within(address(to.1), address(from.1), bytes, to.2)?,
            false => {
                target.context.copy_across(address(to.1), (&source.context, address(from.1)), bytes, to.2)?;
            }
        }
        if apart { order((source, from.2), (target, to.2)) } else { Ok(()) }
    }

    fn stream_create(index: u32) -> Result<Queue, Error> {
        gpu(index)?.context.new_stream()
    }

    unsafe fn stream_destroy(index: u32, stream: Queue) -> Result<(), Error> {
        let gpu = gpu(index)?;
        // Other streams may use its cached blocks, and must not overlap its work.
        gpu.context.synchronize_stream(stream)?;
        gpu.memory.retire(stream);
        gpu.context.destroy_stream(stream)
    }

    unsafe fn stream_synchronize(index: u32, stream: Queue) -> Result<(), Error> {
        let gpu = gpu(index)?;
        waited(gpu, gpu.context.synchronize_stream(stream))
    }

    fn event_create(index: u32) -> Result<Queue, Error> {
        gpu(index)?.context.new_event()
    }

    unsafe fn event_destroy(index: u32, event: Queue) -> Result<(), Error> {
        gpu(index)?.context.destroy_event(event)
    }

    unsafe fn event_record(index: u32, event: Queue, stream: Queue) -> Result<(), Error> {
        gpu(index)?.context.record(event, stream)
    }

    unsafe fn event_wait(index: u32, event: Queue, stream: Queue) -> Result<(), Error> {
        gpu(index)?.context.wait(event, stream)
    }

    unsafe fn event_query(index: u32, event: Queue) -> Result<bool, Error> {
        gpu(index)?.context.query(event)
    }

    unsafe fn event_synchronize(index: u32, event: Queue) -> Result<(), Error> {
        let gpu = gpu(index)?;
        waited(gpu, gpu.context.synchronize_event(event))
    }

    unsafe fn event_elapsed(index: u32, from: Queue, to: Queue) -> Result<u64, Error> {
        let milliseconds = gpu(index)?.context.elapsed(from, to)?;
        Ok((f64::from(milliseconds.max(0.0)) * 1e6) as u64)
    }

    fn synchronize(index: u32) -> Result<(), Error> {
        let gpu = gpu(index)?;
        waited(gpu, gpu.context.synchronize())
    }

    fn memory_stats(index: u32) -> Result<RawMemoryStats, Error> {
        Ok(gpu(index)?.memory.stats())
    }

    fn empty_cache(index: u32) -> Result<(), Error> {
        let gpu = gpu(index)?;
        gpu.memory.empty(&gpu.context)
    }

    fn reset_peak(index: u32) -> Result<(), Error> {
        gpu(index)?.memory.reset_peak();
        Ok(())
    }

    fn set_memory_limit(index: u32, bytes: u64) -> Result<(), Error> {
        gpu(index)?.memory.set_limit(bytes);
        Ok(())
    }

    fn pinned_allocate(index: u32, bytes: u64) -> Result<*mut c_void, Error> {
        gpu(index)?.context.allocate_pinned(bytes).map_err(|error| match error {
            Error::OutOfMemory { .. } => Error::OutOfMemory { requested: bytes, available: 0 },
            other => other,
        })
    }

    unsafe fn pinned_free(index: u32, pointer: *mut c_void, _bytes: u64) -> Result<(), Error> {
        if is_forked() {
            return Ok(());
        }
        // SAFETY: the host passes a pointer of `pinned_allocate`, once it is unused.
        unsafe { gpu(index)?.context.free_pinned(pointer) }
    }

    unsafe fn copy_from_host_async(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: pinned memory, which the host retains until the stream's work so far is done.
        unsafe { gpu(index)?.context.copy_in_pinned(address(target), source, bytes, stream) }
    }

    unsafe fn copy_to_host_async(
        index: u32,
        target: *mut c_void,
        source: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: pinned memory, which the host retains, and which is not read, until the stream's work so far is done.
        unsafe { gpu(index)?.context.copy_out_pinned(target, address(source), bytes, stream) }
    }
}

impl Peer for Cuda {
    fn can_access(index: u32, peer: u32) -> Result<bool, Error> {
        // Mapped memory is accessible from one device alone.
        if mode() == Mode::Expandable {
            return Ok(false);
        }
        gpu(index)?.context.can_access(&gpu(peer)?.context)
    }

    fn enable(index: u32, peer: u32) -> Result<(), Error> {
        if mode() == Mode::Expandable {
            let what = "direct access between devices whose memory grows in place (KEYWAY_CUDA_ALLOCATOR)";
            return Err(Error::Unsupported { what: what.into() });
        }
        gpu(index)?.context.set_access(&gpu(peer)?.context, true)
    }

    fn disable(index: u32, peer: u32) -> Result<(), Error> {
        gpu(index)?.context.set_access(&gpu(peer)?.context, false)
    }
}
