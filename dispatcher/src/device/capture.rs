//! Graph capture: work that is captured once and launched many times. **Experimental**: see `keyway_sdk::abi::extension`.

use super::stream::Handle;
use super::{DeviceEntry, Stream, StreamRef, check, extension};
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use keyway_sdk::abi::codes::status;
use keyway_sdk::abi::device::Queue;
use keyway_sdk::abi::extension::CaptureApi;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory that recorded work uses: alive as long as the graph.
pub(crate) trait Retained: Send + Sync {
    /// Records that work on this memory was submitted to a stream.
    fn used_on(&self, entry: &'static DeviceEntry, device: Device, stream: &StreamRef);
}

/// The memory that captured work uses, by a number that identifies each allocation.
type Memory = BTreeMap<usize, Box<dyn Retained>>;

/// The capture of a stream's work, if it is being captured.
#[derive(Default)]
pub(crate) struct Recording {
    active: AtomicBool,
    memory: Mutex<Memory>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recording({})", self.is_active())
    }
}

impl Recording {
    /// Whether the stream's work is recorded now.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// Retains memory for the graph.
    pub(crate) fn keep(&self, number: usize, memory: impl FnOnce() -> Box<dyn Retained>) {
        let mut all = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(number).or_insert_with(memory);
    }

    fn stop(&self) -> Memory {
        self.active.store(false, Ordering::Release);
        std::mem::take(&mut *self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A guard that ends a capture also if the captured function panics.
struct Recorder {
    api: &'static CaptureApi,
    handle: Arc<Handle>,
    ended: bool,
}

impl Recorder {
    fn begin(api: &'static CaptureApi, handle: &Arc<Handle>) -> Result<Recorder> {
        if handle.recording.active.swap(true, Ordering::AcqRel) {
            let got = "one that is being captured already".to_string();
            return Err(wrong_stream("a stream whose work is not recorded", got));
        }
        // SAFETY: the stream is of the plugin that the table is of, and lives.
        let code = unsafe { (api.begin)(u32::from(handle.device.index), handle.raw) };
        if let Err(error) = check(handle.entry, handle.device, "capture begin", code) {
            drop(handle.recording.stop());
            return Err(error);
        }
        Ok(Recorder { api, handle: handle.clone(), ended: false })
    }

    fn end(&mut self) -> Result<Graph> {
        self.ended = true;
        let Handle { entry, device, raw: stream, .. } = *self.handle;
        let mut raw: Queue = std::ptr::null_mut();
        // SAFETY: the recording was begun on this stream and is ended once; `end` writes one pointer.
        let code = unsafe { (self.api.end)(u32::from(device.index), stream, &mut raw) };
        let memory = self.handle.recording.stop();
        check(entry, device, "capture end", code)?;
        Ok(Graph { entry, device, api: self.api, raw, launching: Mutex::new(()), memory })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.ended {
            // The graph is no longer needed.
            drop(self.end());
        }
    }
}

#[cold]
fn wrong_stream(expected: &str, got: String) -> Error {
    Error::Value { op: "Graph", argument: "stream", expected: expected.to_string(), got }
}

/// Whether this thread's work on a device is being recorded.
pub fn is_captured(device: Device) -> bool {
    super::stream::current_stream_ref(device).is_some_and(|handle| handle.recording().is_active())
}

/// Captured work of one stream, which can be launched repeatedly.
///
/// A launch uses the memory of the captured calls: write new values into their inputs with `copy_`, launch, and read their
/// outputs. The graph retains all of that memory. Work of the captured function on the host, such as recording versions for
/// autograd, is not repeated, so capture no calls that need a gradient.
pub struct Graph {
    entry: &'static DeviceEntry,
    device: Device,
    api: &'static CaptureApi,
    raw: Queue,
    launching: Mutex<()>,
    memory: Memory,
}

// SAFETY: the contract of a device lets graphs be used from any thread, one at a time, which `launching` sees to.
unsafe impl Send for Graph {}
// SAFETY: as for Send.
unsafe impl Sync for Graph {}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({}, {} pieces of memory)", self.device, self.memory.len())
    }
}

impl Graph {
    /// Runs `work` with `stream` entered, capturing the work submitted to the stream instead of running it. Calls that
    /// would synchronize with the stream, such as reading a value, fail during capture.
    ///
    /// # Errors
    /// `Value` for a device without this interface, the default stream, or a stream that is being captured; errors of
    /// `work` and of the device.
    pub fn capture<T, E: From<Error>>(
        stream: &Stream,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, Graph), E> {
        let handle = stream.handle();
        let Some(api) = extension::find::<CaptureApi>(handle.entry)? else {
            let got = format!("one of {}", handle.device);
            return Err(wrong_stream("a stream of a device that can capture work", got).into());
        };
        if handle.raw.is_null() {
            return Err(wrong_stream("a stream of `Stream::new`", "the default stream".to_string()).into());
        }
        let mut recorder = Recorder::begin(api, handle)?;
        let made = {
            let _entered = stream.enter();
            work()
        };
        let graph = recorder.end();
        Ok((made?, graph?))
    }

    /// Launches the captured work on a stream, any of the same device.
    ///
    /// # Errors
    /// `Value` for a stream of another device; the device's error.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let handle = stream.handle();
        if handle.device != self.device || !handle.entry.is_same_table(self.entry) {
            let got = format!("one of {}", handle.device);
            return Err(wrong_stream(&format!("a stream of {}", self.device), got));
        }
        let _one = self.launching.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: graph and stream are of this table and live; the graph's memory does as well.
        let code = unsafe { (self.api.launch)(u32::from(self.device.index), self.raw, handle.raw) };
        // Also after a failure: part of the work may have been submitted to the stream.
        let used_on: StreamRef = (!handle.raw.is_null()).then(|| handle.clone());
        self.memory.values().for_each(|memory| memory.used_on(self.entry, self.device, &used_on));
        check(self.entry, self.device, "capture launch", code)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph is from this table and is destroyed once, here.
        let code = unsafe { (self.api.destroy)(u32::from(self.device.index), self.raw) };
        if code != status::OK {
            let reason = crate::base::message::take_message();
            crate::base::log::warn(&format!("{}: a graph could not be destroyed: {reason}", self.device));
        }
    }
}
