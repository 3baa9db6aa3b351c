//! Calls into a device's table, made safe: streams of this thread, sizes and statuses.

use super::{failure, take_message};
use crate::error::{Error, Result};
use crate::key::Device;
use crate::registry::DeviceEntry;
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::device::{DeviceApi, Queue, RawDeviceProperties, RawMemoryStats};
use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static ANY_STREAM: Cell<bool> = const { Cell::new(false) };
    static STREAMS: RefCell<Vec<Arc<Handle>>> = const { RefCell::new(Vec::new()) };
}

/// Whether any thread has ever entered a stream: before that, all work is on the default ones.
static STREAMS_IN_USE: AtomicBool = AtomicBool::new(false);

/// Whether it matters which stream a piece of memory is used on.
#[inline]
pub(crate) fn streams_in_use() -> bool {
    STREAMS_IN_USE.load(Ordering::Relaxed)
}

/// A stream as memory remembers it: alive as long as the memory is; `None` is the default stream.
pub(crate) type StreamRef = Option<Arc<Handle>>;

/// The stream that this thread's work on `device` goes to, kept alive.
#[inline]
pub(crate) fn current_stream_ref(device: Device) -> StreamRef {
    if !ANY_STREAM.get() {
        return None;
    }
    STREAMS.with_borrow(|all| {
        all.iter().rev().find(|h| h.device == device).filter(|h| !h.raw.is_null()).cloned()
    })
}

fn raw_of(stream: &StreamRef) -> Queue {
    stream.as_ref().map_or(std::ptr::null_mut(), |handle| handle.raw)
}

/// Whether both are the same stream.
pub(crate) fn same_stream(a: &StreamRef, b: &StreamRef) -> bool {
    raw_of(a) == raw_of(b)
}

/// The stream that this thread's work on `device` goes to; null is the default one.
#[inline]
pub(crate) fn current_stream(device: Device) -> Queue {
    if !ANY_STREAM.get() {
        return std::ptr::null_mut();
    }
    STREAMS.with_borrow(|all| {
        all.iter().rev().find(|h| h.device == device).map_or(std::ptr::null_mut(), |h| h.raw)
    })
}

/// Whether a field of the device's table is there at all: an older plugin has a shorter table.
macro_rules! optional {
    ($entry:expr, $field:ident) => {
        if $entry.api.struct_size as usize >= offset_of!(DeviceApi, $field) + size_of::<usize>() {
            $entry.api.$field
        } else {
            None
        }
    };
}

fn check(entry: &'static DeviceEntry, device: Device, what: &'static str, code: i32) -> Result<()> {
    if code == status::OK { Ok(()) } else { Err(failure(what, entry.plugin.name, device, code)) }
}

/// How many devices of this kind are there, and if none, why.
pub fn count(entry: &'static DeviceEntry) -> (u32, String) {
    let mut out = 0;
    // A message that an earlier call left is no reason for this one.
    take_message();
    // SAFETY: `count` writes one u32; the table is valid for the life of the process.
    let code = unsafe { (entry.api.count)(&mut out) };
    let reason = if out == 0 || code != status::OK { take_message() } else { String::new() };
    (if code == status::OK { out } else { 0 }, reason)
}

/// Fails unless the device is there.
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
    let mut out = std::ptr::null_mut();
    let stream = current_stream(device);
    // SAFETY: `allocate` writes one pointer; the table is valid for the life of the process.
    let code = unsafe { (entry.api.allocate)(u32::from(device.index), bytes as u64, stream, &mut out) };
    match (code, NonNull::new(out.cast::<u8>())) {
        (status::OK, Some(pointer)) => Ok(pointer),
        (status::OK, None) if bytes == 0 => Ok(NonNull::<u128>::dangling().cast()),
        _ => Err(allocation_failure(entry, device, bytes, code)),
    }
}

#[cold]
fn allocation_failure(entry: &'static DeviceEntry, device: Device, bytes: usize, code: i32) -> Error {
    let message = take_message();
    // A poisoned plugin counts no devices either.
    if code != status::PANICKED
        && let Err(error) = ensure(entry, device)
    {
        return error;
    }
    match code {
        status::OUT_OF_MEMORY | status::OK => {
            Error::OutOfMemory { device, requested: bytes as u64, detail: message }
        }
        _ => Error::Backend { op: "allocate", plugin: entry.plugin.name, status: code, message },
    }
}

/// Frees device memory on the stream that it was allocated on. A failure has nobody to go to and is logged.
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
    // SAFETY: the pointer came from `allocate` of the same table with the same size and is freed once, as
    // `Storage` upholds.
    let code =
        unsafe { (entry.api.free)(u32::from(device.index), pointer.as_ptr().cast(), bytes as u64, stream) };
    if code != status::OK {
        free_failed(device, bytes);
    }
}

#[cold]
fn free_failed(device: Device, bytes: usize) {
    crate::log::warn(&format!("{device}: freeing {bytes} bytes failed: {}", take_message()));
}

/// Makes `stream` wait for the work already given to `others`; where events fail, the host waits itself.
#[cold]
pub(crate) fn order_after(
    entry: &'static DeviceEntry,
    device: Device,
    stream: &StreamRef,
    others: &[StreamRef],
) {
    let functions = (
        optional!(entry, event_create),
        optional!(entry, event_record),
        optional!(entry, event_wait),
        optional!(entry, event_destroy),
    );
    let (Some(create), Some(record), Some(wait), Some(destroy)) = functions else { return };
    let index = u32::from(device.index);
    for other in others {
        let mut event = std::ptr::null_mut();
        // SAFETY: the streams are alive, since the caller holds them; the event is made, used and destroyed
        // here.
        let ordered = unsafe {
            create(index, &mut event) == status::OK && {
                let ordered = record(index, event, raw_of(other)) == status::OK
                    && wait(index, event, raw_of(stream)) == status::OK;
                destroy(index, event);
                ordered
            }
        };
        if !ordered && synchronize(device).is_err() {
            crate::log::warn(&format!("{device}: streams could not be ordered before memory is freed"));
        }
    }
}

/// Copies host memory to a device.
pub(crate) fn copy_from_host(
    entry: &'static DeviceEntry,
    device: Device,
    to: NonNull<u8>,
    from: NonNull<u8>,
    bytes: usize,
) -> Result<()> {
    let stream = current_stream(device);
    // SAFETY: `memory::copy` checked that both ranges hold `bytes` bytes.
    let code = unsafe {
        (entry.api.copy_from_host)(
            u32::from(device.index),
            to.as_ptr().cast(),
            from.as_ptr().cast(),
            bytes as u64,
            stream,
        )
    };
    check(entry, device, "copy_from_host", code)
}

/// Copies device memory to the host and waits.
pub(crate) fn copy_to_host(
    entry: &'static DeviceEntry,
    device: Device,
    to: NonNull<u8>,
    from: NonNull<u8>,
    bytes: usize,
) -> Result<()> {
    let stream = current_stream(device);
    // SAFETY: `memory::copy` checked that both ranges hold `bytes` bytes.
    let code = unsafe {
        (entry.api.copy_to_host)(
            u32::from(device.index),
            to.as_ptr().cast(),
            from.as_ptr().cast(),
            bytes as u64,
            stream,
        )
    };
    check(entry, device, "copy_to_host", code)
}

/// Copies between devices of one kind.
pub(crate) fn copy_between(
    entry: &'static DeviceEntry,
    target: Device,
    to: NonNull<u8>,
    source: Device,
    from: NonNull<u8>,
    bytes: usize,
) -> Result<()> {
    // SAFETY: `memory::copy` checked that both ranges hold `bytes` bytes.
    let code = unsafe {
        (entry.api.copy_between)(
            u32::from(target.index),
            to.as_ptr().cast(),
            current_stream(target),
            u32::from(source.index),
            from.as_ptr().cast(),
            current_stream(source),
            bytes as u64,
        )
    };
    check(entry, target, "copy_between", code)
}

fn entry_of(device: Device) -> Result<&'static DeviceEntry> {
    crate::table::current().device(device.kind).ok_or(Error::NoDevice { device })
}

/// What a device says of itself.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Properties {
    /// What a person calls it.
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
    // SAFETY: `raw` says its own size; the plugin fills in no more than that.
    let code = unsafe { (entry.api.properties)(u32::from(device.index), &mut raw) };
    check(entry, device, "properties", code)?;
    Ok(Properties {
        // SAFETY: the plugin keeps the name for the life of the process.
        name: unsafe { raw.name.read() }.into_owned(),
        units: raw.units,
        total_memory: raw.total_memory,
        host_accessible: raw.flags & HOST_ACCESSIBLE != 0,
        asynchronous: raw.flags & ASYNCHRONOUS != 0,
    })
}

/// The memory statistics of a device; `None` if it keeps none.
///
/// # Errors
/// `NoDevice`, `Backend`.
pub fn memory_stats(device: Device) -> Result<Option<RawMemoryStats>> {
    let entry = entry_of(device)?;
    let Some(function) = optional!(entry, memory_stats) else { return Ok(None) };
    let mut raw =
        RawMemoryStats { struct_size: size_of::<RawMemoryStats>() as u32, ..RawMemoryStats::default() };
    // SAFETY: `raw` says its own size; the plugin fills in no more than that.
    let code = unsafe { function(u32::from(device.index), &mut raw) };
    check(entry, device, "memory_stats", code)?;
    Ok(Some(raw))
}

macro_rules! simple {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// `NoDevice`, `Backend`. A device without this function answers `Ok`.
        pub fn $name(device: Device) -> Result<()> {
            let entry = entry_of(device)?;
            let Some(function) = optional!(entry, $name) else { return Ok(()) };
            // SAFETY: the function takes an index only.
            let code = unsafe { function(u32::from(device.index)) };
            check(entry, device, stringify!($name), code)
        }
    };
}
simple!(
    /// Waits for all work of a device.
    synchronize
);
simple!(
    /// Gives a device's cached memory back to the system.
    empty_cache
);
simple!(
    /// Resets the peaks of a device's statistics.
    reset_peak
);

/// Limits the bytes that tensors may hold on a device; 0 lifts the limit.
///
/// # Errors
/// `NoDevice`, `Backend`; `Value` when the device has no limit to set.
pub fn set_memory_limit(device: Device, bytes: u64) -> Result<()> {
    let entry = entry_of(device)?;
    let Some(function) = optional!(entry, set_memory_limit) else {
        return Err(Error::Value {
            op: "set_memory_limit",
            argument: "device",
            expected: "a device with a memory limit".to_string(),
            got: device.to_string(),
        });
    };
    // SAFETY: the function takes numbers only.
    let code = unsafe { function(u32::from(device.index), bytes) };
    check(entry, device, "set_memory_limit", code)
}

/// A stream or an event of a device, destroyed when dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    entry: &'static DeviceEntry,
    device: Device,
    raw: Queue,
    event: bool,
}

// SAFETY: the contract of a device lets streams and events be used from any thread.
unsafe impl Send for Handle {}
// SAFETY: as for Send.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        let destroy = if self.event {
            optional!(self.entry, event_destroy)
        } else {
            optional!(self.entry, stream_destroy)
        };
        if let (Some(destroy), false) = (destroy, self.raw.is_null()) {
            // SAFETY: the handle came from the same table and is destroyed once, here.
            unsafe { destroy(u32::from(self.device.index), self.raw) };
        }
    }
}

/// A stream of work. On a synchronous device it is the one order in which everything happens.
#[derive(Debug)]
pub struct Stream(Arc<Handle>);

/// A point in a stream. On a synchronous device it has always happened.
#[derive(Debug)]
pub struct Event(Handle);

/// Sends this thread's work back to the stream of before when dropped.
#[derive(Debug)]
pub struct StreamGuard(std::marker::PhantomData<*const ()>);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        // Dropped outside the borrow: destroying a stream calls into its plugin.
        let _last = STREAMS.with_borrow_mut(|all| {
            let last = all.pop();
            ANY_STREAM.set(!all.is_empty());
            last
        });
    }
}

impl Stream {
    /// Makes a stream.
    ///
    /// # Errors
    /// `NoDevice`, `NoSuchDevice`, `Backend`.
    pub fn new(device: Device) -> Result<Stream> {
        let entry = entry_of(device)?;
        ensure(entry, device)?;
        let mut raw = std::ptr::null_mut();
        if let Some(create) = optional!(entry, stream_create) {
            // SAFETY: `create` writes one pointer.
            let code = unsafe { create(u32::from(device.index), &mut raw) };
            check(entry, device, "stream_create", code)?;
        }
        Ok(Stream(Arc::new(Handle { entry, device, raw, event: false })))
    }

    /// Sends this thread's work on the stream's device to it while the guard lives.
    pub fn enter(&self) -> StreamGuard {
        STREAMS.with_borrow_mut(|all| all.push(self.0.clone()));
        ANY_STREAM.set(true);
        STREAMS_IN_USE.store(true, Ordering::Relaxed);
        StreamGuard(std::marker::PhantomData)
    }

    /// Waits for all work of the stream.
    ///
    /// # Errors
    /// `Backend`.
    pub fn synchronize(&self) -> Result<()> {
        let Some(wait) = optional!(self.0.entry, stream_synchronize) else { return Ok(()) };
        // SAFETY: the stream came from the same table and lives.
        let code = unsafe { wait(u32::from(self.0.device.index), self.0.raw) };
        check(self.0.entry, self.0.device, "stream_synchronize", code)
    }

    /// Makes later work of this stream wait for `event`.
    ///
    /// # Errors
    /// `Backend`.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let Some(wait) = optional!(self.0.entry, event_wait) else { return Ok(()) };
        // SAFETY: both came from the same kind of table and live.
        let code = unsafe { wait(u32::from(self.0.device.index), event.0.raw, self.0.raw) };
        check(self.0.entry, self.0.device, "event_wait", code)
    }
}

impl Event {
    /// Makes an event.
    ///
    /// # Errors
    /// `NoDevice`, `NoSuchDevice`, `Backend`.
    pub fn new(device: Device) -> Result<Event> {
        let entry = entry_of(device)?;
        ensure(entry, device)?;
        let mut raw = std::ptr::null_mut();
        if let Some(create) = optional!(entry, event_create) {
            // SAFETY: `create` writes one pointer.
            let code = unsafe { create(u32::from(device.index), &mut raw) };
            check(entry, device, "event_create", code)?;
        }
        Ok(Event(Handle { entry, device, raw, event: true }))
    }

    /// Marks the present end of a stream.
    ///
    /// # Errors
    /// `Backend`.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        let Some(record) = optional!(self.0.entry, event_record) else { return Ok(()) };
        // SAFETY: both came from the same kind of table and live.
        let code = unsafe { record(u32::from(self.0.device.index), self.0.raw, stream.0.raw) };
        check(self.0.entry, self.0.device, "event_record", code)
    }

    /// Whether the work before the event is done.
    ///
    /// # Errors
    /// `Backend`.
    pub fn is_done(&self) -> Result<bool> {
        let Some(query) = optional!(self.0.entry, event_query) else { return Ok(true) };
        let mut done = 0;
        // SAFETY: the event lives; `query` writes one u32.
        let code = unsafe { query(u32::from(self.0.device.index), self.0.raw, &mut done) };
        check(self.0.entry, self.0.device, "event_query", code)?;
        Ok(done != 0)
    }

    /// Waits for the work before the event.
    ///
    /// # Errors
    /// `Backend`.
    pub fn synchronize(&self) -> Result<()> {
        let Some(wait) = optional!(self.0.entry, event_synchronize) else { return Ok(()) };
        // SAFETY: the event came from the same table and lives.
        let code = unsafe { wait(u32::from(self.0.device.index), self.0.raw) };
        check(self.0.entry, self.0.device, "event_synchronize", code)
    }

    /// Nanoseconds from `earlier` to this event; `None` if the device does not measure.
    ///
    /// # Errors
    /// `Backend`.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Option<u64>> {
        let Some(elapsed) = optional!(self.0.entry, event_elapsed) else { return Ok(None) };
        let mut nanoseconds = 0;
        // SAFETY: both events live; `elapsed` writes one u64.
        let code =
            unsafe { elapsed(u32::from(self.0.device.index), earlier.0.raw, self.0.raw, &mut nanoseconds) };
        check(self.0.entry, self.0.device, "event_elapsed", code)?;
        Ok(Some(nanoseconds))
    }
}
