//! Devices of plugins: the registry of device types, and safe calls into their tables.

pub mod capture;
#[cfg(test)]
mod device_tests;
mod entry;
pub(crate) mod exercise;
mod extension;
pub mod peer;
pub(crate) mod pinned;
pub mod report;
mod stream;
mod transfer;

pub(crate) use entry::set_server;
pub use entry::{DeviceEntry, is_there, kind_was_used, server, was_used};
pub use pinned::{Stats as PinnedStats, stats as pinned_stats};
pub use stream::{Event, Stream, StreamGuard};
pub(crate) use stream::{
    StreamRef, any_stream, current_stream, current_stream_ref, current_stream_ref_of, raw_of, same_stream,
    streams_in_use, streams_in_use_on,
};
pub(crate) use transfer::{
    copies_async, copy_between, copy_from_host, copy_from_host_async, copy_to_host, copy_to_host_async,
};

use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::base::message::{failure, shown, take_message};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::device::{Queue, RawDeviceProperties, RawMemoryStats};
use std::ptr::NonNull;

pub(super) fn check(
    entry: &'static DeviceEntry,
    device: Device,
    what: &'static str,
    code: i32,
) -> Result<()> {
    if code == status::OK { Ok(()) } else { Err(failure(what, entry.plugin.name, device, code)) }
}

/// The error for a result of a plugin that breaks the contract: function, field, expected and actual value.
#[cold]
fn untrue(
    entry: &DeviceEntry,
    function: &'static str,
    field: &str,
    expected: impl std::fmt::Display,
    got: impl std::fmt::Display,
) -> Error {
    // Clears the message of an earlier error.
    take_message();
    Error::Backend {
        op: function,
        plugin: entry.plugin.name,
        status: status::FAILED,
        message: format!("`{field}` must be {expected}, but is {got}; report this to the plugin's author"),
    }
}

/// The maximum number of devices of one type: an index is a u16.
const MAX_COUNT: u32 = 1 << 16;

/// The number of devices of this type, and the reason if it is 0.
pub fn count(entry: &'static DeviceEntry) -> (u32, String) {
    let mut out = 0;
    // A message of an earlier call must not be used as the reason.
    take_message();
    // SAFETY: `count` writes one u32; the table is valid for the life of the process.
    let code = unsafe { (entry.api.count)(&mut out) };
    if code == status::OK && out > MAX_COUNT {
        return (0, untrue(entry, "count", "out", format_args!("at most {MAX_COUNT}"), out).to_string());
    }
    let reason = if out == 0 || code != status::OK { take_message() } else { String::new() };
    (if code == status::OK { out } else { 0 }, reason)
}

/// Returns an error unless the device exists.
///
/// # Errors
/// `NoSuchDevice`.
pub fn ensure(entry: &'static DeviceEntry, device: Device) -> Result<()> {
    let (count, reason) = count(entry);
    if u32::from(device.index) < count { Ok(()) } else { Err(Error::NoSuchDevice { device, count, reason }) }
}

/// Allocates device memory.
///
/// # Errors
/// `OutOfMemory`, `NoSuchDevice`, `Backend`.
#[inline]
pub(crate) fn allocate(entry: &'static DeviceEntry, device: Device, bytes: usize) -> Result<NonNull<u8>> {
    allocate_on(current_stream(device), entry, device, bytes)
}

/// As [`allocate`], on a stream of the device; null is the default one.
#[inline(always)]
pub(crate) fn allocate_on(
    stream: Queue,
    entry: &'static DeviceEntry,
    device: Device,
    bytes: usize,
) -> Result<NonNull<u8>> {
    entry::note_use(entry, device)?;
    let mut out = std::ptr::null_mut();
    // SAFETY: `allocate` writes one pointer; the table is valid for the life of the process.
    let code = unsafe { (entry.api.allocate)(u32::from(device.index), bytes as u64, stream, &mut out) };
    // A single test for both: a status, and bits that an aligned address does not have.
    match NonNull::new(out.cast::<u8>()) {
        Some(pointer) if code as usize | out.addr() & (ALIGNMENT - 1) == 0 => Ok(pointer),
        None if code == status::OK && bytes == 0 => Ok(NonNull::<u128>::dangling().cast()),
        _ if code == status::OK => {
            if !out.is_null() {
                // SAFETY: the plugin just allocated this memory, for this size and stream, and it is uniquely owned.
                unsafe { (entry.api.free)(u32::from(device.index), out, bytes as u64, stream) };
            }
            Err(misaligned(entry, "allocate", out))
        }
        _ => Err(allocation_failure(entry, device, bytes, code)),
    }
}

/// The alignment of every allocation of a plugin, in bytes.
pub(crate) const ALIGNMENT: usize = 64;

/// The error for an allocation that a plugin reported as a success with an unusable pointer.
#[cold]
fn misaligned(entry: &DeviceEntry, function: &'static str, out: *mut std::ffi::c_void) -> Error {
    let expected = format_args!("an address that is not null and a multiple of {ALIGNMENT}");
    untrue(entry, function, "out", expected, format_args!("{:#x}", out.addr()))
}

#[cold]
fn allocation_failure(entry: &'static DeviceEntry, device: Device, bytes: usize, code: i32) -> Error {
    let message = take_message();
    // A poisoned plugin cannot count its devices either.
    if code != status::PANICKED
        && let Err(error) = ensure(entry, device)
    {
        return error;
    }
    match code {
        status::OUT_OF_MEMORY => {
            let parts = [message, what_is_held(device)].into_iter().filter(|part| !part.is_empty());
            let detail = parts.collect::<Vec<_>>().join("; ");
            Error::OutOfMemory { device, requested: bytes as u64, detail }
        }
        _ => Error::Backend { op: "allocate", plugin: entry.plugin.name, status: code, message },
    }
}

/// The clause about a device's memory in use and cached; empty if the device does not report it.
fn what_is_held(device: Device) -> String {
    match memory_stats(device) {
        Ok(Some(stats)) => {
            let cached = stats.held.saturating_sub(stats.in_use);
            format!("{} bytes are in use, {cached} cached", stats.in_use)
        }
        _ => String::new(),
    }
}

/// Frees device memory on the stream that it was allocated on. A failure cannot be returned and is logged.
#[inline]
pub(crate) fn free(
    entry: &'static DeviceEntry,
    device: Device,
    pointer: NonNull<u8>,
    bytes: usize,
    stream: &StreamRef,
) {
    if bytes == 0 {
        return;
    }
    let stream = raw_of(stream);
    // SAFETY: the pointer is from `allocate` of the same table with the same size and is freed once, as `Storage` upholds.
    let code =
        unsafe { (entry.api.free)(u32::from(device.index), pointer.as_ptr().cast(), bytes as u64, stream) };
    if code != status::OK {
        free_failed(device, bytes);
    }
}

#[cold]
fn free_failed(device: Device, bytes: usize) {
    crate::base::log::warn(&format!("{device}: freeing {bytes} bytes failed: {}", take_message()));
}

/// Makes `stream` wait for the work already submitted to `others`; if events fail, the host waits itself.
#[cold]
pub(crate) fn order_after(
    entry: &'static DeviceEntry,
    device: Device,
    stream: &StreamRef,
    others: &[StreamRef],
) {
    let functions =
        (entry.api.event_create, entry.api.event_record, entry.api.event_wait, entry.api.event_destroy);
    let (Some(create), Some(record), Some(wait), Some(destroy)) = functions else { return };
    let index = u32::from(device.index);
    for other in others {
        let mut event = std::ptr::null_mut();
        // SAFETY: the streams are alive, since the caller holds them; the event is created, used and destroyed here.
        let ordered = unsafe {
            create(index, &mut event) == status::OK && {
                let ordered = record(index, event, raw_of(other)) == status::OK
                    && wait(index, event, raw_of(stream)) == status::OK;
                destroy(index, event);
                ordered
            }
        };
        if !ordered && synchronize_with(entry, device).is_err() {
            crate::base::log::warn(&format!("{device}: streams could not be ordered before memory is freed"));
        }
    }
}

fn entry_of(device: Device) -> Result<&'static DeviceEntry> {
    server(device.kind).ok_or(Error::NoDevice { device })
}

/// The properties that a device reports.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Properties {
    /// The display name.
    pub name: String,
    /// Processing units.
    pub units: u32,
    /// Bytes of memory in all; 0 if unknown.
    pub total_memory: u64,
    /// Whether the host can read its memory.
    pub host_accessible: bool,
    /// Whether its work finishes later.
    pub asynchronous: bool,
}

/// Longer names mean a structure that was not filled in.
const MAX_NAME: usize = 1 << 16;

/// The properties of a device.
///
/// # Errors
/// `NoDevice`, `NoSuchDevice`, `Backend`.
pub fn properties(device: Device) -> Result<Properties> {
    use keyway_sdk::abi::codes::device_flag::{ASYNCHRONOUS, HOST_ACCESSIBLE};
    let entry = entry_of(device)?;
    ensure(entry, device)?;
    let mut raw = RawDeviceProperties {
        struct_size: size_of::<RawDeviceProperties>() as u32,
        units: 0,
        total_memory: 0,
        flags: 0,
        name: keyway_sdk::abi::RawStr::EMPTY,
    };
    // SAFETY: `raw` contains its own size; the plugin fills in at most that many bytes.
    let code = unsafe { (entry.api.properties)(u32::from(device.index), &mut raw) };
    check(entry, device, "properties", code)?;
    let RawStr { ptr, len } = raw.name;
    if len > MAX_NAME || (ptr.is_null() && len > 0) {
        let got = format_args!("{len} bytes at {:#x}", ptr.addr());
        return Err(untrue(
            entry,
            "properties",
            "name",
            format_args!("a text of at most {MAX_NAME} bytes"),
            got,
        ));
    }
    Ok(Properties {
        // SAFETY: not null where it has a length, which was checked; the plugin keeps the name alive for the life of the
        // process.
        name: shown(&unsafe { raw.name.read() }).into_owned(),
        units: raw.units,
        total_memory: raw.total_memory,
        host_accessible: raw.flags & HOST_ACCESSIBLE != 0,
        asynchronous: raw.flags & ASYNCHRONOUS != 0,
    })
}

/// The first device with pinned host memory, in the order of the names' ids.
pub fn first_with_pinned_memory() -> Option<Device> {
    let kinds = (0..crate::base::intern::DEVICES.len() as u16).filter_map(|kind| Some((kind, server(kind)?)));
    let mut offering = kinds.filter(|(_, entry)| entry.api.pinned_allocate.is_some());
    offering.find(|(_, entry)| count(entry).0 > 0).map(|(kind, _)| Device { kind, index: 0 })
}

/// The memory statistics of a device; `None` if it has none, such as host memory if no backend provides `cpu` as a device.
///
/// # Errors
/// `NoDevice`, `Backend`.
pub fn memory_stats(device: Device) -> Result<Option<RawMemoryStats>> {
    if device == Device::CPU && server(device.kind).is_none() {
        return Ok(None);
    }
    let entry = entry_of(device)?;
    let Some(function) = entry.api.memory_stats else { return Ok(None) };
    let mut raw =
        RawMemoryStats { struct_size: size_of::<RawMemoryStats>() as u32, ..RawMemoryStats::default() };
    // SAFETY: `raw` contains its own size; the plugin fills in at most that many bytes.
    let code = unsafe { function(u32::from(device.index), &mut raw) };
    check(entry, device, "memory_stats", code)?;
    Ok(Some(raw))
}

macro_rules! simple {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// `NoDevice`, `Backend`. A device without this function returns `Ok`.
        pub fn $name(device: Device) -> Result<()> {
            let entry = entry_of(device)?;
            let Some(function) = entry.api.$name else { return Ok(()) };
            // SAFETY: the function takes an index only.
            let code = unsafe { function(u32::from(device.index)) };
            check(entry, device, stringify!($name), code)
        }
    };
}
simple!(
    /// Resets the peaks of a device's statistics.
    reset_peak
);

/// Waits for all work of a device.
///
/// ```
/// # fn main() -> keyway_dispatcher::Result<()> {
/// use keyway_dispatcher::{Device, device};
/// device::synchronize(Device::CPU)?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// `NoDevice`, `Backend`. A device without this function returns `Ok`.
pub fn synchronize(device: Device) -> Result<()> {
    if device == Device::CPU && server(device.kind).is_none() {
        // Host memory, on which no work is queued.
        return Ok(());
    }
    synchronize_with(entry_of(device)?, device)
}

/// As [`synchronize`], for the plugin that provided the device when the work was submitted.
pub(crate) fn synchronize_with(entry: &'static DeviceEntry, device: Device) -> Result<()> {
    let Some(function) = entry.api.synchronize else { return Ok(()) };
    // SAFETY: the function takes an index only.
    let code = unsafe { function(u32::from(device.index)) };
    check(entry, device, "synchronize", code)
}

/// Returns a device's cached memory to the system, and the pinned host memory that is cached for it.
///
/// # Errors
/// `NoDevice`, `Backend`. A device without a cache returns `Ok`.
pub fn empty_cache(device: Device) -> Result<()> {
    let entry = entry_of(device)?;
    pinned::empty(entry, device);
    let Some(function) = entry.api.empty_cache else { return Ok(()) };
    // SAFETY: the function takes an index only.
    let code = unsafe { function(u32::from(device.index)) };
    check(entry, device, "empty_cache", code)
}
/// Limits the bytes of allocated memory on a device; 0 removes the limit.
///
/// # Errors
/// `NoDevice`, `Backend`; `Value` if the device does not support a limit.
pub fn set_memory_limit(device: Device, bytes: u64) -> Result<()> {
    let entry = entry_of(device)?;
    let Some(function) = entry.api.set_memory_limit else {
        return Err(Error::Value {
            op: "set_memory_limit",
            argument: "device",
            expected: "a device with a memory limit".to_string(),
            got: device.to_string(),
        });
    };
    // SAFETY: the function takes integers only.
    let code = unsafe { function(u32::from(device.index), bytes) };
    check(entry, device, "set_memory_limit", code)
}
