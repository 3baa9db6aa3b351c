//! Streams, events, and the thread of each device that does the work.

use keyway_sdk::author::Error;
use keyway_test_faults as faults;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// The number of devices.
pub const DEVICES: u32 = 2;

/// Queued work. Captured work is repeated by each launch.
pub type Work = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// An event: a counter of records, each of which is reached when the stream executes it.
#[derive(Default)]
pub struct Event {
    state: Mutex<EventState>,
}

#[derive(Default, Clone, Copy)]
struct EventState {
    recorded: u64,
    reached: u64,
    at: Option<Instant>,
}

impl Event {
    fn state(&self) -> MutexGuard<'_, EventState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn has(&self, ticket: u64) -> bool {
        self.state().reached >= ticket
    }

    /// Reports the event as reached before it is.
    pub fn reach(&self) {
        let mut state = self.state();
        state.reached = state.recorded;
        state.at = Some(Instant::now());
    }

    /// Whether the last record has been reached.
    pub fn is_reached(&self) -> bool {
        let state = self.state();
        state.reached >= state.recorded
    }

    /// When it was reached last.
    pub fn time(&self) -> Option<Instant> {
        self.state().at
    }
}

#[derive(Clone)]
enum Task {
    Work(Work),
    Record(Arc<Event>, u64),
    Wait(Arc<Event>, u64),
}

#[derive(Default)]
struct Device {
    streams: BTreeMap<usize, VecDeque<Task>>,
    /// The stream whose task is being executed.
    busy: Option<usize>,
    /// The stream whose task was executed last, for round-robin scheduling.
    last: usize,
    error: Option<String>,
    /// The streams whose tasks are captured instead of executed.
    captured: BTreeMap<usize, Vec<Task>>,
}

/// Captured tasks.
pub struct Graph(Vec<Task>);

#[derive(Default)]
struct State {
    devices: [Device; DEVICES as usize],
    next_stream: usize,
}

static STATE: OnceLock<Mutex<State>> = OnceLock::new();
static CHANGED: Condvar = Condvar::new();

/// The state; the first use starts the threads.
fn state() -> MutexGuard<'static, State> {
    let state = STATE.get_or_init(|| {
        for index in 0..DEVICES {
            std::thread::spawn(move || work_forever(index as usize));
        }
        Mutex::default()
    });
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Device {
    /// The next task of a stream that is not blocked, with its stream; round-robin.
    fn next(&mut self) -> Option<(usize, Task)> {
        let ready = |(_, tasks): &(&usize, &VecDeque<Task>)| match tasks.front() {
            Some(Task::Wait(event, ticket)) => event.has(*ticket),
            other => other.is_some(),
        };
        let later = self.streams.range(self.last + 1..).find(ready);
        let stream = *later.or_else(|| self.streams.range(..=self.last).find(ready))?.0;
        self.last = stream;
        let tasks = self.streams.get_mut(&stream)?;
        let task = tasks.pop_front()?;
        if tasks.is_empty() {
            self.streams.remove(&stream);
        }
        Some((stream, task))
    }

    fn has_work(&self, stream: Option<usize>) -> bool {
        match stream {
            Some(stream) => self.busy == Some(stream) || self.streams.contains_key(&stream),
            None => self.busy.is_some() || !self.streams.is_empty(),
        }
    }
}

fn work_forever(index: usize) {
    loop {
        let mut all = state();
        let task = loop {
            match all.devices[index].next() {
                Some((stream, task)) => {
                    all.devices[index].busy = Some(stream);
                    break task;
                }
                None => all = CHANGED.wait(all).unwrap_or_else(|poisoned| poisoned.into_inner()),
            }
        };
        drop(all);
        let result = match task {
            Task::Work(work) => match catch_unwind(AssertUnwindSafe(|| work())) {
                Ok(result) => result,
                Err(_) => Err("the device's thread panicked".to_string()),
            },
            Task::Record(event, ticket) => {
                let mut state = event.state();
                state.reached = state.reached.max(ticket);
                state.at = Some(Instant::now());
                Ok(())
            }
            Task::Wait(..) => Ok(()),
        };
        let mut all = state();
        all.devices[index].busy = None;
        if let Err(error) = result {
            all.devices[index].error.get_or_insert(error);
        }
        drop(all);
        CHANGED.notify_all();
    }
}

/// The capacity of a stream in tasks, under the fault of a queue that drops tasks when it is full.
const ROOM: usize = 4096;

fn push(index: u32, stream: usize, task: Task) {
    let device = &mut state().devices[index as usize];
    match device.captured.get_mut(&stream) {
        Some(tasks) => tasks.push(task),
        None => {
            let tasks = device.streams.entry(stream).or_default();
            let dropped = tasks.len() >= ROOM && faults::is("device_queue_drops");
            if !(dropped && matches!(task, Task::Work(_))) {
                tasks.push_back(task);
            }
        }
    }
    CHANGED.notify_all();
}

/// Starts the capture of a stream's work.
pub fn begin_capture(index: u32, stream: usize) -> Result<(), Error> {
    let device = &mut state().devices[index as usize];
    if stream == 0 || device.captured.contains_key(&stream) {
        let expected = "a stream that is not the default one and is not captured".to_string();
        return Err(Error::InvalidArgument { argument: "stream", expected, got: stream.to_string() });
    }
    device.captured.insert(stream, Vec::new());
    Ok(())
}

/// Ends the capture of a stream and returns the work since [`begin_capture`].
pub fn end_capture(index: u32, stream: usize) -> Result<Graph, Error> {
    state().devices[index as usize].captured.remove(&stream).map(Graph).ok_or_else(|| {
        let expected = "a stream that is captured".to_string();
        Error::InvalidArgument { argument: "stream", expected, got: stream.to_string() }
    })
}

/// Enqueues captured tasks on a stream.
pub fn launch(index: u32, graph: &Graph, stream: usize) {
    graph.0.iter().for_each(|task| push(index, stream, task.clone()));
}

/// Fails if a stream is being captured: for functions that synchronize.
pub fn check_not_captured(index: u32, stream: usize) -> Result<(), Error> {
    match state().devices[index as usize].captured.contains_key(&stream) {
        true => Err(Error::Failed {
            detail: "the stream is being captured, and this would wait for it".to_string(),
        }),
        false => Ok(()),
    }
}

/// Creates a stream; 0 is the default stream.
pub fn new_stream() -> usize {
    let mut all = state();
    all.next_stream += 1;
    all.next_stream
}

/// Queues work.
pub fn submit(index: u32, stream: usize, work: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
    push(index, stream, Task::Work(Arc::new(work)));
}

/// Enqueues work even if the stream is captured: it is not part of the graph.
pub fn submit_uncaptured(
    index: u32,
    stream: usize,
    work: impl Fn() -> Result<(), String> + Send + Sync + 'static,
) {
    let task = Task::Work(Arc::new(work));
    state().devices[index as usize].streams.entry(stream).or_default().push_back(task);
    CHANGED.notify_all();
}

/// Records an event on a stream.
pub fn record(index: u32, stream: usize, event: &Arc<Event>) {
    let ticket = {
        let mut state = event.state();
        state.recorded += 1;
        state.recorded
    };
    push(index, stream, Task::Record(event.clone(), ticket));
}

/// Blocks a stream until an event's last record so far is reached.
pub fn wait(index: u32, stream: usize, event: &Arc<Event>) {
    let ticket = event.state().recorded;
    push(index, stream, Task::Wait(event.clone(), ticket));
}

/// Returns and clears the device's stored error.
fn take_error(device: &mut Device) -> Result<(), Error> {
    match device.error.take() {
        Some(detail) => Err(Error::Failed { detail: format!("earlier work failed: {detail}") }),
        None => Ok(()),
    }
}

fn idle(index: u32, stream: Option<usize>) -> MutexGuard<'static, State> {
    let mut all = state();
    while all.devices[index as usize].has_work(stream) {
        all = CHANGED.wait(all).unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    all
}

/// Synchronizes a stream, or all of a device, and returns its error.
pub fn synchronize(index: u32, stream: Option<usize>) -> Result<(), Error> {
    take_error(&mut idle(index, stream).devices[index as usize])
}

/// Synchronizes all of a device, and leaves its error for the next synchronization.
pub fn drain(index: u32) {
    drop(idle(index, None));
}

/// Synchronizes an event and returns the device's error.
pub fn synchronize_event(index: u32, event: &Event) -> Result<(), Error> {
    let mut all = state();
    while !event.is_reached() {
        all = CHANGED.wait(all).unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    take_error(&mut all.devices[index as usize])
}
