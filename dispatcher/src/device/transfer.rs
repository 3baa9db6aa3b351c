//! Copies through a device's table.

use super::{DeviceEntry, StreamRef, check, current_stream_ref_of, raw_of};
use crate::base::error::Result;
use crate::base::key::Device;
use keyway_sdk::abi::device::Queue;
use std::ffi::c_void;
use std::ptr::NonNull;

type Copy = unsafe extern "C" fn(u32, *mut c_void, *const c_void, u64, Queue) -> i32;

fn run(
    entry: &'static DeviceEntry,
    device: Device,
    what: &'static str,
    copy: Copy,
    (to, from, bytes): (NonNull<u8>, NonNull<u8>, usize),
    stream: &StreamRef,
) -> Result<()> {
    let (to, from) = (to.as_ptr().cast(), from.as_ptr().cast_const().cast());
    // SAFETY: `memory::copy` checked that both ranges hold `bytes` bytes; the stream is one of this table's.
    let code = unsafe { copy(u32::from(device.index), to, from, bytes as u64, raw_of(stream)) };
    check(entry, device, what, code)
}

/// Copies host memory to a device. The source may change when this returns.
pub(crate) fn copy_from_host(
    entry: &'static DeviceEntry,
    device: Device,
    to: NonNull<u8>,
    from: NonNull<u8>,
    bytes: usize,
) -> Result<()> {
    let stream = current_stream_ref_of(entry, device);
    run(entry, device, "copy_from_host", entry.api.copy_from_host, (to, from, bytes), &stream)
}

/// Copies device memory to the host and waits.
pub(crate) fn copy_to_host(
    entry: &'static DeviceEntry,
    device: Device,
    to: NonNull<u8>,
    from: NonNull<u8>,
    bytes: usize,
) -> Result<()> {
    let stream = current_stream_ref_of(entry, device);
    run(entry, device, "copy_to_host", entry.api.copy_to_host, (to, from, bytes), &stream)
}

/// Whether copies between a device and pinned memory can be queued.
pub(crate) fn copies_async(entry: &DeviceEntry) -> bool {
    entry.api.copy_from_host_async.is_some() && entry.api.copy_to_host_async.is_some()
}

/// Enqueues a copy from pinned memory on a stream; a device without asynchronous copies blocks. The source must not change
/// until the stream's work so far has finished.
pub(crate) fn copy_from_host_async(
    entry: &'static DeviceEntry,
    device: Device,
    range: (NonNull<u8>, NonNull<u8>, usize),
    stream: &StreamRef,
) -> Result<()> {
    let (what, copy) = match entry.api.copy_from_host_async {
        Some(copy) => ("copy_from_host_async", copy),
        None => ("copy_from_host", entry.api.copy_from_host),
    };
    run(entry, device, what, copy, range, stream)
}

/// Queues a copy to pinned memory on a stream; a device without asynchronous copies blocks. The target must not be read
/// until the stream has reached this point.
pub(crate) fn copy_to_host_async(
    entry: &'static DeviceEntry,
    device: Device,
    range: (NonNull<u8>, NonNull<u8>, usize),
    stream: &StreamRef,
) -> Result<()> {
    let (what, copy) = match entry.api.copy_to_host_async {
        Some(copy) => ("copy_to_host_async", copy),
        None => ("copy_to_host", entry.api.copy_to_host),
    };
    run(entry, device, what, copy, range, stream)
}

/// Copies between devices of one type.
pub(crate) fn copy_between(
    entry: &'static DeviceEntry,
    target: Device,
    to: NonNull<u8>,
    source: Device,
    from: NonNull<u8>,
    bytes: usize,
) -> Result<()> {
    let streams = (current_stream_ref_of(entry, target), current_stream_ref_of(entry, source));
    // SAFETY: `memory::copy` checked that both ranges hold `bytes` bytes; the streams are of this table's.
    let code = unsafe {
        (entry.api.copy_between)(
            u32::from(target.index),
            to.as_ptr().cast(),
            raw_of(&streams.0),
            u32::from(source.index),
            from.as_ptr().cast(),
            raw_of(&streams.1),
            bytes as u64,
        )
    };
    check(entry, target, "copy_between", code)
}
