//! Streams and events, and the current stream of a thread.

use super::capture::Recording;
use super::{DeviceEntry, check, ensure, entry_of, server};
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use keyway_sdk::abi::device::Queue;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

thread_local! {
    static ANY_STREAM: Cell<bool> = const { Cell::new(false) };
    /// The streams that this thread has entered, the current one last, each with the number of its guard.
    static STREAMS: RefCell<Vec<(u64, Arc<Handle>)>> = const { RefCell::new(Vec::new()) };
    static NEXT_GUARD: Cell<u64> = const { Cell::new(0) };
}

/// Whether any thread has ever entered a stream: before that, all work is on the default ones.
static STREAMS_IN_USE: AtomicBool = AtomicBool::new(false);

/// Whether the streams that use a piece of memory must be recorded.
#[inline]
pub(crate) fn streams_in_use() -> bool {
    STREAMS_IN_USE.load(Ordering::Relaxed)
}

/// Bit `kind % 64` is set once a stream of a device of that type was entered.
static KINDS_IN_USE: AtomicU64 = AtomicU64::new(0);

/// Whether streams of this kind of device may be in use.
pub(crate) fn streams_in_use_on(device: Device) -> bool {
    KINDS_IN_USE.load(Ordering::Relaxed) >> (device.kind % 64) & 1 != 0
}

/// A stream that memory refers to: alive as long as the memory is; `None` is the default stream.
pub(crate) type StreamRef = Option<Arc<Handle>>;

/// The current stream of this thread on `device`, retained.
#[inline]
pub(crate) fn current_stream_ref(device: Device) -> StreamRef {
    if !ANY_STREAM.get() {
        return None;
    }
    server(device.kind).and_then(|entry| current_stream_ref_of(entry, device))
}

/// [`current_stream_ref`] for the plugin of `entry`: streams of another plugin that provides or provided the device are not
/// valid for it.
#[inline]
pub(crate) fn current_stream_ref_of(entry: &DeviceEntry, device: Device) -> StreamRef {
    if !ANY_STREAM.get() {
        return None;
    }
    STREAMS.with_borrow(|all| innermost(all, entry, device).filter(|h| !h.raw.is_null()).cloned())
}

fn innermost<'a>(
    all: &'a [(u64, Arc<Handle>)],
    entry: &DeviceEntry,
    device: Device,
) -> Option<&'a Arc<Handle>> {
    let mut entered = all.iter().rev().map(|(_, handle)| handle);
    entered.find(|h| h.device == device && h.entry.is_same_table(entry))
}

pub(crate) fn raw_of(stream: &StreamRef) -> Queue {
    stream.as_ref().map_or(std::ptr::null_mut(), |handle| handle.raw)
}

/// Whether both are the same stream.
pub(crate) fn same_stream(a: &StreamRef, b: &StreamRef) -> bool {
    raw_of(a) == raw_of(b)
}

/// Whether this thread has entered a stream of any device.
#[inline(always)]
pub(crate) fn any_stream() -> bool {
    ANY_STREAM.with(Cell::get)
}

/// The current stream of this thread on `device`; null is the default stream.
#[inline(always)]
pub(crate) fn current_stream(device: Device) -> Queue {
    if ANY_STREAM.with(Cell::get) { entered_stream(device) } else { std::ptr::null_mut() }
}

#[cold]
fn entered_stream(device: Device) -> Queue {
    let Some(entry) = server(device.kind) else { return std::ptr::null_mut() };
    STREAMS.with_borrow(|all| innermost(all, entry, device).map_or(std::ptr::null_mut(), |h| h.raw))
}

/// The kind of object behind a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Stream,
    /// A stream of another library, which destroys it.
    ForeignStream,
    Event,
}

/// A stream or an event of a device, destroyed when dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(super) entry: &'static DeviceEntry,
    pub(super) device: Device,
    pub(super) raw: Queue,
    what: What,
    /// The graph into which the stream is captured, if any.
    pub(super) recording: Recording,
}

impl Handle {
    fn new(entry: &'static DeviceEntry, device: Device, raw: Queue, what: What) -> Handle {
        Handle { entry, device, raw, what, recording: Recording::default() }
    }

    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns an error unless both belong to one plugin: a handle of another plugin is invalid for it.
    fn check_goes_with(&self, other: &Handle, op: &'static str) -> Result<()> {
        if self.entry.is_same_table(other.entry) {
            return Ok(());
        }
        Err(Error::Value {
            op,
            argument: "event",
            expected: format!("one of {}, as `{}` serves it", self.device, self.entry.plugin.name),
            got: format!("one of {}, as `{}` serves it", other.device, other.entry.plugin.name),
        })
    }
}

// SAFETY: the contract of a device lets streams and events be used from any thread.
unsafe impl Send for Handle {}
// SAFETY: as for Send.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        let destroy = match self.what {
            What::Event => self.entry.api.event_destroy,
            What::Stream => self.entry.api.stream_destroy,
            What::ForeignStream => None,
        };
        if let (Some(destroy), false) = (destroy, self.raw.is_null()) {
            // SAFETY: the handle is from the same table and is destroyed once, here.
            unsafe { destroy(u32::from(self.device.index), self.raw) };
        }
    }
}

/// A stream of work. A synchronous device has a single one, in which all work runs in order.
#[derive(Debug)]
pub struct Stream(Arc<Handle>);

/// A point in a stream. On a synchronous device it has always happened.
#[derive(Debug)]
pub struct Event(Handle);

/// Reverts [`Stream::enter`] on drop: the current stream is then the most recently entered one whose guard is alive; guards
/// may be dropped in any order.
#[derive(Debug)]
pub struct StreamGuard {
    number: u64,
    /// A guard stays on its thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        // Dropped outside the borrow: destroying a stream calls into its plugin.
        let _own = STREAMS.with_borrow_mut(|all| {
            let own = all.iter().rposition(|(number, _)| *number == self.number).map(|at| all.remove(at));
            ANY_STREAM.set(!all.is_empty());
            own
        });
    }
}

impl Stream {
    /// Creates a stream.
    ///
    /// # Errors
    /// `NoDevice`, `NoSuchDevice`, `Backend`.
    pub fn new(device: Device) -> Result<Stream> {
        let entry = entry_of(device)?;
        ensure(entry, device)?;
        let mut raw = std::ptr::null_mut();
        if let Some(create) = entry.api.stream_create {
            // SAFETY: `create` writes one pointer.
            let code = unsafe { create(u32::from(device.index), &mut raw) };
            check(entry, device, "stream_create", code)?;
        }
        Ok(Stream(Arc::new(Handle::new(entry, device, raw, What::Stream))))
    }

    /// The current stream of this thread on a device: the one entered last, or the default one.
    ///
    /// # Errors
    /// `NoDevice`, `NoSuchDevice`.
    pub fn current(device: Device) -> Result<Stream> {
        let entry = entry_of(device)?;
        ensure(entry, device)?;
        let handle = current_stream_ref_of(entry, device);
        let default = || Arc::new(Handle::new(entry, device, std::ptr::null_mut(), What::ForeignStream));
        Ok(Stream(handle.unwrap_or_else(default)))
    }

    /// Wraps a stream of another library: `raw` is the handle in the device's native programming interface, such as a
    /// `CUstream` on CUDA; null is the default stream. It is not destroyed on drop.
    ///
    /// # Errors
    /// `NoDevice`, `NoSuchDevice`.
    ///
    /// # Safety
    /// `raw` must be null or a stream of this device, and remain valid until this and all memory that was created or used
    /// while it was entered are released. The caller upholds this.
    pub unsafe fn from_raw(device: Device, raw: *mut c_void) -> Result<Stream> {
        let entry = entry_of(device)?;
        ensure(entry, device)?;
        Ok(Stream(Arc::new(Handle::new(entry, device, raw, What::ForeignStream))))
    }

    /// The handle in the device's native programming interface, for other libraries; null is the default stream. It is
    /// valid during the lifetime of this stream.
    pub fn as_raw(&self) -> *mut c_void {
        self.0.raw
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.0.device
    }

    pub(super) fn handle(&self) -> &Arc<Handle> {
        &self.0
    }

    /// Makes this the current stream of this thread on the stream's device while the guard lives.
    pub fn enter(&self) -> StreamGuard {
        let number = NEXT_GUARD.replace(NEXT_GUARD.get() + 1);
        STREAMS.with_borrow_mut(|all| all.push((number, self.0.clone())));
        ANY_STREAM.set(true);
        KINDS_IN_USE.fetch_or(1 << (self.0.device.kind % 64), Ordering::Relaxed);
        STREAMS_IN_USE.store(true, Ordering::Relaxed);
        StreamGuard { number, _thread: std::marker::PhantomData }
    }

    /// Waits for all work of the stream.
    ///
    /// # Errors
    /// `Backend`.
    pub fn synchronize(&self) -> Result<()> {
        let Some(wait) = self.0.entry.api.stream_synchronize else { return Ok(()) };
        // SAFETY: the stream is from the same table and lives.
        let code = unsafe { wait(u32::from(self.0.device.index), self.0.raw) };
        check(self.0.entry, self.0.device, "stream_synchronize", code)
    }

    /// Makes later work of this stream wait for `event`.
    ///
    /// # Errors
    /// `Backend`; `Value` for an event of another plugin's device.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.0.check_goes_with(&event.0, "Stream::wait")?;
        let Some(wait) = self.0.entry.api.event_wait else { return Ok(()) };
        // SAFETY: both are from the same kind of table and live.
        let code = unsafe { wait(u32::from(self.0.device.index), event.0.raw, self.0.raw) };
        check(self.0.entry, self.0.device, "event_wait", code)
    }
}

impl Event {
    /// Creates an event.
    ///
    /// # Errors
    /// `NoDevice`, `NoSuchDevice`, `Backend`.
    pub fn new(device: Device) -> Result<Event> {
        let entry = entry_of(device)?;
        ensure(entry, device)?;
        Event::of(entry, device)
    }

    fn of(entry: &'static DeviceEntry, device: Device) -> Result<Event> {
        let mut raw = std::ptr::null_mut();
        if let Some(create) = entry.api.event_create {
            // SAFETY: `create` writes one pointer.
            let code = unsafe { create(u32::from(device.index), &mut raw) };
            check(entry, device, "event_create", code)?;
        }
        Ok(Event(Handle::new(entry, device, raw, What::Event)))
    }

    /// Creates an event and records it at the current end of a stream.
    pub(crate) fn at_end_of(
        entry: &'static DeviceEntry,
        device: Device,
        stream: &StreamRef,
    ) -> Result<Event> {
        let event = Event::of(entry, device)?;
        event.record_raw(raw_of(stream))?;
        Ok(event)
    }

    /// Records the event at the current end of a stream.
    ///
    /// # Errors
    /// `Backend`; `Value` for a stream of another plugin's device.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        stream.0.check_goes_with(&self.0, "Event::record")?;
        self.record_raw(stream.0.raw)
    }

    fn record_raw(&self, stream: Queue) -> Result<()> {
        let Some(record) = self.0.entry.api.event_record else { return Ok(()) };
        // SAFETY: both are from the same kind of table and live.
        let code = unsafe { record(u32::from(self.0.device.index), self.0.raw, stream) };
        check(self.0.entry, self.0.device, "event_record", code)
    }

    /// Whether the work before the event is done.
    ///
    /// # Errors
    /// `Backend`.
    pub fn is_done(&self) -> Result<bool> {
        let Some(query) = self.0.entry.api.event_query else { return Ok(true) };
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
        let Some(wait) = self.0.entry.api.event_synchronize else { return Ok(()) };
        // SAFETY: the event is from the same table and lives.
        let code = unsafe { wait(u32::from(self.0.device.index), self.0.raw) };
        check(self.0.entry, self.0.device, "event_synchronize", code)
    }

    /// Nanoseconds between `earlier` and this event; `None` if the device does not measure.
    ///
    /// # Errors
    /// `Backend`; `Value` for an event of another plugin's device.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Option<u64>> {
        self.0.check_goes_with(&earlier.0, "Event::elapsed_since")?;
        let Some(elapsed) = self.0.entry.api.event_elapsed else { return Ok(None) };
        let mut nanoseconds = 0;
        // SAFETY: both events live; `elapsed` writes one u64.
        let code =
            unsafe { elapsed(u32::from(self.0.device.index), earlier.0.raw, self.0.raw, &mut nanoseconds) };
        check(self.0.entry, self.0.device, "event_elapsed", code)?;
        Ok(Some(nanoseconds))
    }
}
