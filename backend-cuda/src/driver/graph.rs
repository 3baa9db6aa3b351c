//! Stream capture to CUDA graphs.

use super::context::Context;
use super::failed;
use cudarc::driver::sys::{CUgraph, CUgraphExec, CUstream};
use keyway_sdk::Error;
use keyway_sdk::abi::device::Queue;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// An executable graph.
#[derive(Debug)]
pub struct Executable(CUgraphExec);

// SAFETY: the driver's handle may be used from any thread, one at a time, as the host upholds.
unsafe impl Send for Executable {}
// SAFETY: as for Send.
unsafe impl Sync for Executable {}

/// The streams of a device that are being captured.
#[derive(Default)]
pub(super) struct Capturing {
    count: AtomicUsize,
    streams: Mutex<BTreeSet<usize>>,
}

impl Capturing {
    fn change(&self, change: impl FnOnce(&mut BTreeSet<usize>)) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut streams);
        self.count.store(streams.len(), Ordering::Release);
    }

    /// Whether a stream is being captured.
    pub(super) fn has(&self, stream: Queue) -> bool {
        self.count.load(Ordering::Acquire) > 0
            && self.streams.lock().unwrap_or_else(PoisonError::into_inner).contains(&stream.addr())
    }

    /// Whether any stream is being captured.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Refuses an operation that is not allowed while a stream is being captured.
    pub(super) fn refuse(&self, stream: Queue, what: &str) -> Result<(), Error> {
        if self.has(stream) { Err(refusal(what)) } else { Ok(()) }
    }

    /// Refuses an operation that is not allowed while any stream is being captured.
    pub(super) fn refuse_all(&self, what: &str) -> Result<(), Error> {
        if self.any() { Err(refusal(what)) } else { Ok(()) }
    }
}

#[cold]
fn refusal(what: &str) -> Error {
    failed(format!(
        "the stream is being captured: {what} waits for work that is recorded and not done; do it before the capture, or \
         after it from what the captured work leaves on the device"
    ))
}

impl Context {
    /// Whether any stream is being captured.
    pub fn is_capturing(&self) -> bool {
        self.capturing.any()
    }

    /// Starts to capture a stream's work instead of running it. Other threads, and other calls of this one, are unaffected.
    pub fn begin_capture(&self, stream: Queue) -> Result<(), Error> {
        // Only the stream itself is captured: memory may be allocated and modules loaded meanwhile.
        const RELAXED: u32 = 2;
        // SAFETY: the stream lives, as the host upholds.
        self.call(|l| unsafe { l.cuStreamBeginCapture_v2(stream.cast(), RELAXED) })?;
        self.capturing.change(|streams| {
            streams.insert(stream.addr());
        });
        Ok(())
    }

    /// Ends the capture, also if it fails, and instantiates the graph.
    pub fn end_capture(&self, stream: Queue) -> Result<Executable, Error> {
        self.capturing.change(|streams| {
            streams.remove(&stream.addr());
        });
        let mut graph: CUgraph = std::ptr::null_mut();
        let mut executable: CUgraphExec = std::ptr::null_mut();
        let raw: CUstream = stream.cast();
        // SAFETY: the out-pointer is valid, and the stream lives.
        let ended = self.call(|l| unsafe { l.cuStreamEndCapture(raw, &mut graph) });
        if ended.is_err() && graph.is_null() {
            return Err(ended.err().unwrap_or_else(|| failed("the capture gave no graph".into())));
        }
        let made = ended.and_then(|()| {
            // SAFETY: the out-pointer is valid, and the graph was just created.
            self.call(|l| unsafe { l.cuGraphInstantiateWithFlags(&mut executable, graph, 0) })
        });
        // SAFETY: the graph was just created, and launches use a copy of it.
        let destroyed = self.call(|l| unsafe { l.cuGraphDestroy(graph) });
        made?;
        let executable = Executable(executable);
        match destroyed {
            Ok(()) => Ok(executable),
            Err(error) => self.destroy_graph(executable).and(Err(error)),
        }
    }

    /// Launches a graph on a stream.
    pub fn launch_graph(&self, executable: &Executable, stream: Queue) -> Result<(), Error> {
        // SAFETY: the graph lives, and so does the stream.
        self.call(|l| unsafe { l.cuGraphLaunch(executable.0, stream.cast()) })
    }

    /// Destroys a graph; running launches still complete.
    pub fn destroy_graph(&self, executable: Executable) -> Result<(), Error> {
        // SAFETY: ownership of the graph is passed here.
        self.call(|l| unsafe { l.cuGraphExecDestroy(executable.0) })
    }
}
