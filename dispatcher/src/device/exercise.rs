//! Calls every function of a device's table once, in a process that was started to find out whether they can be called: a
//! table may be damaged in functions that only some programs call.

use super::{
    DeviceEntry, Event, Stream, allocate, capture, copy_between, copy_from_host, copy_from_host_async,
    copy_to_host, copy_to_host_async, current_stream_ref_of, empty_cache, free, memory_stats, peer, pinned,
    report, reset_peak, server, set_memory_limit, synchronize,
};
use crate::base::error::Result;
use crate::base::key::Device;
use std::ptr::NonNull;

/// Number of bytes that are allocated and copied.
const BYTES: usize = 256;

/// Calls the functions of a device type that work without a device. Any result passes, here and below: only a crash or
/// a hang is a failure; a device that cannot be used is reported to its users.
pub(crate) fn without_device(entry: &'static DeviceEntry) {
    let _ = report::facts(entry);
}

/// Calls the functions of a device that is present.
pub(crate) fn with_device(device: Device) {
    let Some(entry) = server(device.kind) else { return };
    let _ = there_and_back(entry, device);
    let _ = streams(entry, device);
    let _ = synchronize(device);
    let _ = memory_stats(device);
    let _ = reset_peak(device);
    let _ = report::memory(device);
    let _ = peer::can_access(device, device);
    let _ = empty_cache(device);
    // This process has no other use for the device: removing the limit affects no other program.
    let _ = set_memory_limit(device, 0);
}

fn there_and_back(entry: &'static DeviceEntry, device: Device) -> Result<()> {
    let mut host = [0x5a_u8; BYTES];
    let host = NonNull::from(&mut host).cast();
    with_memory(entry, device, |first| {
        copy_from_host(entry, device, first, host, BYTES)?;
        with_memory(entry, device, |second| {
            copy_between(entry, device, second, device, first, BYTES)?;
            copy_to_host(entry, device, host, second, BYTES)
        })
    })
}

fn with_memory(
    entry: &'static DeviceEntry,
    device: Device,
    work: impl FnOnce(NonNull<u8>) -> Result<()>,
) -> Result<()> {
    let stream = current_stream_ref_of(entry, device);
    let pointer = allocate(entry, device, BYTES)?;
    let done = work(pointer);
    free(entry, device, pointer, BYTES, &stream);
    done
}

fn streams(entry: &'static DeviceEntry, device: Device) -> Result<()> {
    let (stream, other) = (Stream::new(device)?, Stream::new(device)?);
    let (first, second) = (Event::new(device)?, Event::new(device)?);
    first.record(&stream)?;
    other.wait(&first)?;
    let _ = pinned_copies(entry, device, &stream);
    second.record(&stream)?;
    second.is_done()?;
    second.synchronize()?;
    second.elapsed_since(&first)?;
    other.synchronize()?;
    stream.synchronize()?;
    drop((first, second));
    let _ = capture::Graph::capture(&stream, || Ok::<_, crate::Error>(()))
        .and_then(|((), graph)| graph.launch(&stream));
    stream.synchronize()
}

fn pinned_copies(entry: &'static DeviceEntry, device: Device, stream: &Stream) -> Result<()> {
    let Some(block) = pinned::allocate(entry, device, BYTES)? else { return Ok(()) };
    let _entered = stream.enter();
    let current = current_stream_ref_of(entry, device);
    with_memory(entry, device, |memory| {
        let there = copy_from_host_async(entry, device, (memory, block.pointer(), BYTES), &current);
        let back = copy_to_host_async(entry, device, (block.pointer(), memory, BYTES), &current);
        // The copies are done before the block is freed, or this process is of no more use.
        let done = stream.synchronize();
        there.and(back).and(done)
    })
}
