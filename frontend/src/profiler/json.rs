//! A trace as a file: the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open. Data outside
//! the format, the figures of all calls, is in one more member of the outer object, which they ignore.

use super::report::Report;
use super::trace::{CallInfo, Event, EventKind, Thread, Trace};
use crate::error::trace::TraceError;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;

/// Counts up where the member of this program changes its meaning.
const VERSION: u64 = 2;

/// The program's own section of the file.
#[derive(Serialize, Deserialize)]
struct Own<R> {
    version: u64,
    events_dropped: u64,
    report: R,
}

#[derive(Deserialize)]
struct File {
    keyway: Own<Report>,
    #[serde(rename = "traceEvents")]
    events: Vec<Line>,
}

/// The header that identifies a file of this program.
#[derive(Deserialize)]
struct Head {
    keyway: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Arguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    served_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scratch_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<String>,
}

/// An event; times in microseconds.
#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    cat: String,
    ph: String,
    #[serde(default)]
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    pid: u32,
    tid: u32,
    /// Scope of an instant event: thread, process or global.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<String>,
    /// A colour of chrome://tracing.
    #[serde(skip_serializing_if = "Option::is_none")]
    cname: Option<String>,
    #[serde(default)]
    args: Arguments,
}

const OP: &str = "op";
const REORDERING: &str = "reordering";
const FORMAT: &str = "format";
const SCOPE: &str = "scope";

const PROCESS_NAME: &str = "process_name";
const THREAD_NAME: &str = "thread_name";

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn nanoseconds(us: f64) -> u64 {
    // An edited file may hold any number; the cast saturates.
    (us * 1e3).round() as u64
}

impl Line {
    fn new(event: &Event, thread: &Thread) -> Line {
        let call = |info: &CallInfo, caller: Option<&str>| Arguments {
            name: None,
            served_by: Some(info.served_by.clone()),
            key: Some(info.key.clone()),
            inputs: Some(info.inputs.clone()),
            outputs: Some(info.outputs.clone()),
            bytes: Some(info.bytes),
            scratch_bytes: Some(event.scratch_bytes).filter(|bytes| *bytes > 0),
            caller: caller.map(str::to_string),
        };
        let (cat, args) = match &event.kind {
            EventKind::Op(info) => (OP, call(info, None)),
            EventKind::Reordering(info, caller) => (REORDERING, call(info, Some(caller))),
            EventKind::FormatChange(place) => {
                (FORMAT, Arguments { caller: Some(place.to_string()), ..Arguments::default() })
            }
            EventKind::Scope => (SCOPE, Arguments::default()),
        };
        let instant = cat == FORMAT;
        Line {
            name: event.name.to_string(),
            cat: cat.to_string(),
            ph: if instant { "i" } else { "X" }.to_string(),
            ts: microseconds(event.start_ns),
            dur: (!instant).then(|| microseconds(event.duration_ns)),
            pid: thread.process,
            tid: thread.id,
            s: instant.then(|| "t".to_string()),
            cname: (cat == REORDERING || instant).then(|| "terrible".to_string()),
            args,
        }
    }

    /// A metadata event that names the process or the thread.
    fn metadata(what: &str, name: &str, thread: &Thread) -> Line {
        Line {
            name: what.to_string(),
            cat: String::new(),
            ph: "M".to_string(),
            ts: 0.0,
            dur: None,
            pid: thread.process,
            tid: thread.id,
            s: None,
            cname: None,
            args: Arguments { name: Some(name.to_string()), ..Arguments::default() },
        }
    }

    /// A metadata event after the last event with the number of events left out.
    fn dropped(trace: &Trace) -> Option<Line> {
        let last = trace.events.iter().map(|event| event.start_ns.saturating_add(event.duration_ns)).max()?;
        (trace.dropped > 0).then(|| Line {
            name: format!("{} more events left out", trace.dropped),
            ph: "i".to_string(),
            ts: microseconds(last),
            s: Some("p".to_string()),
            args: Arguments::default(),
            ..Line::metadata("", "", &trace.thread)
        })
    }

    /// The event; `None` for metadata and counters.
    fn event(self) -> Option<Event> {
        let Arguments { served_by, key, inputs, outputs, bytes, scratch_bytes, caller, .. } = self.args;
        let caller: Arc<str> = caller.unwrap_or_default().into();
        let info = CallInfo {
            served_by: served_by.unwrap_or_default(),
            key: key.unwrap_or_default(),
            inputs: inputs.unwrap_or_default(),
            outputs: outputs.unwrap_or_default(),
            bytes: bytes.unwrap_or_default(),
        };
        let kind = match self.cat.as_str() {
            OP => EventKind::Op(Arc::new(info)),
            REORDERING => EventKind::Reordering(Arc::new(info), caller),
            FORMAT => EventKind::FormatChange(caller),
            SCOPE => EventKind::Scope,
            _ => return None,
        };
        let duration_ns = nanoseconds(self.dur.unwrap_or_default());
        let scratch_bytes = scratch_bytes.unwrap_or_default();
        Some(Event {
            name: self.name.into(),
            kind,
            start_ns: nanoseconds(self.ts),
            duration_ns,
            scratch_bytes,
        })
    }
}

fn damaged(reason: impl std::fmt::Display) -> TraceError {
    TraceError::Damaged { reason: reason.to_string() }
}

impl Trace {
    /// Writes the trace in the Trace Event Format, one event per line.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use keyway::{Tensor, profiler};
    /// let x = Tensor::new([1.0f32, -1.0])?;
    /// let profile = profiler::trace();
    /// x.relu()?;
    /// let trace = profile.trace();
    /// let mut file = Vec::new();
    /// trace.write_json(&mut file)?;
    /// assert!(String::from_utf8(file)?.contains("\"relu\""));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_json(&self, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        let own = Own { version: VERSION, events_dropped: self.dropped, report: &self.report };
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"keyway\":")?;
        // A byte of 0x7f can only be in a text. Perfetto refuses it there unless it is escaped.
        for (i, part) in serde_json::to_vec(&own)?.split(|byte| *byte == 0x7f).enumerate() {
            out.write_all(if i > 0 { b"\\u007f" } else { b"" })?;
            out.write_all(part)?;
        }
        out.write_all(b",\"traceEvents\":[\n")?;
        let names = [(PROCESS_NAME, "keyway"), (THREAD_NAME, &self.thread.name)];
        let names = names.map(|(what, name)| Line::metadata(what, name, &self.thread));
        let events = self.events.iter().map(|event| Line::new(event, &self.thread));
        for (i, line) in names.into_iter().chain(events).chain(Line::dropped(self)).enumerate() {
            out.write_all(if i > 0 { b",\n" } else { b"" })?;
            serde_json::to_writer(&mut out, &line)?;
        }
        out.write_all(b"\n]}\n")?;
        out.flush()
    }

    /// Reads a trace written by [`write_json`](Self::write_json).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use keyway::{Tensor, profiler};
    /// let x = Tensor::new([1.0f32, -1.0])?;
    /// let profile = profiler::trace();
    /// x.relu()?;
    /// let trace = profile.trace();
    /// let mut file = Vec::new();
    /// trace.write_json(&mut file)?;
    /// assert_eq!(profiler::Trace::read_json(&file[..])?.events.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn read_json(mut from: impl Read) -> Result<Trace, TraceError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map_err(TraceError::Read)?;
        // The whole text is parsed first: invalid JSON is reported as damaged, for any program's file.
        serde_json::from_slice::<IgnoredAny>(&bytes).map_err(damaged)?;
        let head = serde_json::from_slice::<Head>(&bytes).map_err(|error| match error.classify() {
            Category::Data => TraceError::Foreign,
            _ => damaged(error),
        })?;
        let got = head.keyway.ok_or(TraceError::Foreign)?.version;
        if got != VERSION {
            return Err(TraceError::Version { expected: VERSION, got });
        }
        let file: File = serde_json::from_slice(&bytes).map_err(damaged)?;
        let name = file.events.iter().find(|line| line.name == THREAD_NAME && line.cat.is_empty());
        let name = name.ok_or_else(|| damaged("it names no thread"))?;
        let thread =
            Thread { process: name.pid, id: name.tid, name: name.args.name.clone().unwrap_or_default() };
        Ok(Trace {
            thread,
            report: file.keyway.report,
            events: file.events.into_iter().filter_map(Line::event).collect(),
            dropped: file.keyway.events_dropped,
        })
    }
}
