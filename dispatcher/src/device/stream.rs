//! Streams and events, and the stream that a thread's work goes to.

use super::{DeviceEntry, check, ensure, entry_of};
use crate::base::error::Result;
use crate::base::key::Device;
use keyway_sdk::abi::device::Queue;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// Bit `kind % 64` is set once a stream of a device of that kind was entered.
static KINDS_IN_USE: AtomicU64 = AtomicU64::new(0);

/// Whether streams of this kind of device may be in use.
pub(crate) fn streams_in_use_on(device: Device) -> bool {
    KINDS_IN_USE.load(Ordering::Relaxed) >> (device.kind % 64) & 1 != 0
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

pub(crate) fn raw_of(stream: &StreamRef) -> Queue {
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
        let destroy = if self.event { self.entry.api.event_destroy } else { self.entry.api.stream_destroy };
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
        if let Some(create) = entry.api.stream_create {
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
        KINDS_IN_USE.fetch_or(1 << (self.0.device.kind % 64), Ordering::Relaxed);
        STREAMS_IN_USE.store(true, Ordering::Relaxed);
        StreamGuard(std::marker::PhantomData)
    }

    /// Waits for all work of the stream.
    ///
    /// # Errors
    /// `Backend`.
    pub fn synchronize(&self) -> Result<()> {
        let Some(wait) = self.0.entry.api.stream_synchronize else { return Ok(()) };
        // SAFETY: the stream came from the same table and lives.
        let code = unsafe { wait(u32::from(self.0.device.index), self.0.raw) };
        check(self.0.entry, self.0.device, "stream_synchronize", code)
    }

    /// Makes later work of this stream wait for `event`.
    ///
    /// # Errors
    /// `Backend`.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let Some(wait) = self.0.entry.api.event_wait else { return Ok(()) };
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
        if let Some(create) = entry.api.event_create {
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
        let Some(record) = self.0.entry.api.event_record else { return Ok(()) };
        // SAFETY: both came from the same kind of table and live.
        let code = unsafe { record(u32::from(self.0.device.index), self.0.raw, stream.0.raw) };
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
        // SAFETY: the event came from the same table and lives.
        let code = unsafe { wait(u32::from(self.0.device.index), self.0.raw) };
        check(self.0.entry, self.0.device, "event_synchronize", code)
    }

    /// Nanoseconds from `earlier` to this event; `None` if the device does not measure.
    ///
    /// # Errors
    /// `Backend`.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Option<u64>> {
        let Some(elapsed) = self.0.entry.api.event_elapsed else { return Ok(None) };
        let mut nanoseconds = 0;
        // SAFETY: both events live; `elapsed` writes one u64.
        let code =
            unsafe { elapsed(u32::from(self.0.device.index), earlier.0.raw, self.0.raw, &mut nanoseconds) };
        check(self.0.entry, self.0.device, "event_elapsed", code)?;
        Ok(Some(nanoseconds))
    }
}
