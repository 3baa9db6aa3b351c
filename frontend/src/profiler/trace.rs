//! The trace: each call as an event in time.

use super::report::Report;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::ThreadId;

/// Description of a call, without its time.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::profiler::EventKind;
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32, -1.0])?;
/// let profile = profiler::trace();
/// x.relu()?;
/// let trace = profile.trace();
/// let EventKind::Op(call) = &trace.events[0].kind else { panic!("an op was called") };
/// assert_eq!((call.inputs[0].as_str(), call.bytes), ("f32[2]", 16));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallInfo {
    /// Like [`OpStats::served_by`](super::OpStats::served_by).
    pub served_by: String,
    /// Like [`OpStats::key`](super::OpStats::key).
    pub key: String,
    /// The tensors among the arguments.
    pub inputs: Vec<String>,
    /// The results.
    pub outputs: Vec<String>,
    /// Bytes of both that the call read and wrote itself.
    pub bytes: u64,
}

/// The subject of an event.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::profiler::EventKind;
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32, -1.0])?;
/// let profile = profiler::trace();
/// x.relu()?;
/// let trace = profile.trace();
/// assert!(matches!(trace.events[0].kind, EventKind::Op(_)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A call.
    Op(Arc<CallInfo>),
    /// A call that copied elements into another order, and its callers in words.
    Reordering(Arc<CallInfo>, Arc<str>),
    /// The first call of an op at a location that changed the format of images, in words.
    FormatChange(Arc<str>),
    /// A module, a derivative, a step of an optimiser, or a part that the program names by [`scope`](super::scope).
    Scope,
}

/// Something that happened at a time.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32, -1.0])?;
/// let profile = profiler::trace();
/// x.relu()?;
/// let trace = profile.trace();
/// let event = &trace.events[0];
/// assert!(event.name.as_ref() == "relu" && event.duration_ns > 0);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The op or the part.
    pub name: Arc<str>,
    /// The subject.
    pub kind: EventKind,
    /// Nanoseconds from the beginning of the profile.
    pub start_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// For a call, as [`OpStats::scratch_bytes`](super::OpStats::scratch_bytes).
    pub scratch_bytes: u64,
}

/// The thread that a profile saw.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let profiled = std::thread::Builder::new().name("loader".into()).spawn(|| {
///     let profile = profiler::trace();
///     let _ = Tensor::new([1.0f32]).and_then(|x| x.relu());
///     profile.trace()
/// });
/// let trace = profiled.expect("a thread").join().expect("no panic");
/// assert_eq!((trace.thread.name.as_str(), trace.thread.process), ("loader", std::process::id()));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The id of its process.
    pub process: u32,
    /// A number that no other profiled thread of the process has: of the main thread the id of the process.
    pub id: u32,
    /// The thread's name; `profiled thread` if it has none.
    pub name: String,
}

impl Thread {
    /// The thread that calls.
    pub(super) fn current() -> Thread {
        static MAIN: OnceLock<ThreadId> = OnceLock::new();
        static OTHERS: AtomicU32 = AtomicU32::new(1);
        thread_local! {
            static NUMBER: u32 = OTHERS.fetch_add(1, Ordering::Relaxed);
        }
        let (process, thread) = (std::process::id(), std::thread::current());
        let name = thread.name().unwrap_or("profiled thread").to_string();
        // Other threads may have the main thread's name, too.
        let is_main = name == "main" && *MAIN.get_or_init(|| thread.id()) == thread.id();
        let number = if is_main { 0 } else { NUMBER.try_with(|number| *number).unwrap_or(0) };
        Thread { process, id: process.wrapping_add(number), name }
    }
}

/// The report of a profile, and the calls ordered by their beginning. A nested event begins later and ends earlier: of two scopes
/// that overlap, since they were not dropped in reverse order, the later one is shortened by the part before or after the other
/// one's end, whichever is shorter.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32, -1.0])?;
/// let profile = profiler::trace();
/// x.relu()?;
/// let trace = profile.trace();
/// assert_eq!((trace.events.len(), trace.dropped), (1, 0));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The figures of all calls, also of those without an event.
    pub report: Report,
    /// The recorded events.
    pub events: Vec<Event>,
    /// Number of events beyond the maximum.
    pub dropped: u64,
    /// The thread that was profiled.
    pub thread: Thread,
}

/// The maximum number of times that the beginning of an event is moved to separate it from events that end before it does.
const MOVES: u32 = 8;

/// Clips events, ordered by their beginning, to the events that enclose them.
pub(super) fn nest(events: Vec<Event>) -> Vec<Event> {
    let end = |event: &Event| event.start_ns.saturating_add(event.duration_ns);
    let mut nested: Vec<Event> = Vec::with_capacity(events.len());
    // When the events end that are around the next one, the innermost last.
    let mut around: Vec<u64> = Vec::new();
    // Events that begin later now, sorted by beginning, with the number of moves.
    let mut moved: BinaryHeap<Reverse<(u64, u32, usize)>> = BinaryHeap::new();
    let mut waiting: Vec<Option<Event>> = Vec::new();
    let mut rest = events.into_iter().peekable();
    loop {
        let next = rest.peek().map_or(u64::MAX, |event| event.start_ns);
        // Before the events that begin at the same time, which are nested in it.
        let (mut event, moves) = match moved.peek() {
            Some(&Reverse((start, moves, at))) if start <= next => {
                moved.pop();
                let Some(event) = waiting[at].take() else { continue };
                (event, moves)
            }
            _ => match rest.next() {
                Some(event) => (event, 0),
                None => return nested,
            },
        };
        let begin = event.start_ns;
        while around.last().is_some_and(|outer| *outer <= begin) {
            around.pop();
        }
        let outer = around.last().copied().filter(|outer| end(&event) > *outer);
        if let Some(outer) = outer {
            // After the last of the events that end before it does.
            let ends = around.partition_point(|outer| *outer >= end(&event));
            let later = around.get(ends).copied().unwrap_or(outer);
            let (within, beyond) = (outer - begin, end(&event) - later);
            if within < beyond && moves < MOVES {
                (event.start_ns, event.duration_ns) = (later, beyond);
                moved.push(Reverse((later, moves + 1, waiting.len())));
                waiting.push(Some(event));
                continue;
            }
            event.duration_ns = within;
        }
        around.push(end(&event));
        nested.push(event);
    }
}
