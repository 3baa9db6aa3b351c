//! Counts and times the calls of a thread, by op and by plugin, and finds reordering copies of memory: a dispatch key above all
//! others.
//!
//! Decisions:
//! - the time of a row is self time: the ops inside a composite op have rows of their own, so the times of all rows add up to the
//!   time spent in ops;
//! - a profile covers the thread that started it and everything that this thread calls: the ops of a backward pass, which runs on
//!   the calling thread, and the casts and copies that a call needs;
//! - the overhead of the profiler, some hundred nanoseconds per call, is part of the self time of the enclosing op;
//! - without a running profile no call is routed through the key, so it costs nothing;
//! - memory is bounded: all calls are counted, but the number of trace events, of argument kinds per row, and of source locations
//!   per reordering is limited;
//! - bytes are those of the arguments and results of calls that read or write memory themselves. A view counts none, and neither
//!   does an op that calls others, whose bytes are counted instead;
//! - copies inside a kernel are measured by the scratch memory that it requests from the host, on any thread. Reports by the
//!   kernels themselves would be one more service, and could be forgotten.

mod display;
mod json;
mod kind;
mod memory;
mod merge;
mod profile;
mod record;
mod report;
mod scope;
mod stack;
mod state;
mod summary;
mod tensors;
mod trace;

pub use crate::error::trace::TraceError;
pub(crate) use kind::Copies;
pub use memory::{
    DeviceUsage, MemoryProfile, MemorySnapshot, MemoryUsage, OpMemory, Owner, TimelinePoint, memory,
};
pub(crate) use profile::install;
pub use profile::{MAX_EVENTS, Profile, profile, trace, trace_at_most};
pub use report::{DeviceMemory, FormatChange, OpStats, Reordering, Report, Shapes, device_memory};
pub(crate) use scope::{ModulePaths, backward_scope, module_path, module_scope};
pub use scope::{Scope, scope};
pub use trace::{CallInfo, Event, EventKind, Thread, Trace};
