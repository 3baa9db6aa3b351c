//! What a profile found, as data and as a table.

use super::Tally;
use keyway_dispatcher::ledger::Fallback;
use keyway_dispatcher::{Device, registry};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The calls of one op that were served in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The op.
    pub op: String,
    /// The plugin that served the calls; `(view)`, `(decomposition)`, `(fallback)` or `(failed)` where none did.
    pub served_by: String,
    /// How many calls.
    pub calls: u64,
    /// Nanoseconds in these calls alone, without the ops that they called.
    pub self_ns: u64,
    /// Nanoseconds in these calls with all that they called.
    pub total_ns: u64,
}

/// The memory that tensors took on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceMemory {
    /// The device.
    pub device: String,
    /// Bytes that tensors hold now.
    pub in_use: u64,
    /// Most bytes that tensors held at a time, since the program began or the device's peaks were reset.
    pub peak_in_use: u64,
    /// Most bytes taken from the system at a time, caches included.
    pub peak_held: u64,
}

/// What a profile found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// One row for each op and who served it, the one with most time of its own first.
    pub rows: Vec<Row>,
    /// Seconds since the profile began, between calls included.
    pub seconds: f64,
    /// Memory of each device that keeps statistics.
    pub memory: Vec<DeviceMemory>,
    /// Calls that ran on another device than they asked for.
    pub fallbacks: Vec<Fallback>,
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Row {
    pub(super) fn new(op: &str, served_by: &str, tally: &Tally) -> Row {
        Row {
            op: op.to_string(),
            served_by: served_by.to_string(),
            calls: tally.calls,
            self_ns: nanoseconds(tally.own),
            total_ns: nanoseconds(tally.total),
        }
    }
}

impl Report {
    pub(super) fn new(mut rows: Vec<Row>, time: Duration, fallbacks: Vec<Fallback>) -> Report {
        rows.sort_by(|a, b| {
            b.self_ns.cmp(&a.self_ns).then_with(|| (&a.op, &a.served_by).cmp(&(&b.op, &b.served_by)))
        });
        Report { rows, seconds: time.as_secs_f64(), memory: device_memory(), fallbacks }
    }

    /// Calls of all rows.
    pub fn calls(&self) -> u64 {
        self.rows.iter().map(|row| row.calls).sum()
    }

    /// Nanoseconds spent in ops: the own times of all rows.
    pub fn op_ns(&self) -> u64 {
        self.rows.iter().map(|row| row.self_ns).sum()
    }
}

/// The memory of every device that keeps statistics.
pub fn device_memory() -> Vec<DeviceMemory> {
    let mut memory = Vec::new();
    for entry in registry::devices() {
        let (count, _) = keyway_dispatcher::device::count(entry);
        for index in 0..u16::try_from(count).unwrap_or(u16::MAX) {
            let device = Device { kind: entry.kind, index };
            if let Ok(Some(stats)) = keyway_dispatcher::device::memory_stats(device) {
                memory.push(DeviceMemory {
                    device: device.to_string(),
                    in_use: stats.in_use,
                    peak_in_use: stats.peak_in_use,
                    peak_held: stats.peak_held,
                });
            }
        }
    }
    memory
}

/// A table of all rows; `{report:.15}` shows the first 15 only.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = f.precision().unwrap_or(self.rows.len());
        writeln!(f, "{:<24} {:<20} {:>10} {:>12} {:>12}", "op", "served by", "calls", "self ms", "total ms")?;
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        for row in self.rows.iter().take(shown) {
            let (own, total) = (ms(row.self_ns), ms(row.total_ns));
            writeln!(f, "{:<24} {:<20} {:>10} {own:>12} {total:>12}", row.op, row.served_by, row.calls)?;
        }
        let more = self.rows.len().saturating_sub(shown);
        if more > 0 {
            writeln!(f, "... and {more} more")?;
        }
        writeln!(f, "{} calls, {} ms in ops of {:.3} s", self.calls(), ms(self.op_ns()), self.seconds)?;
        for memory in &self.memory {
            writeln!(f, "{}: peak {} bytes in tensors", memory.device, memory.peak_in_use)?;
        }
        for fallback in &self.fallbacks {
            let Fallback { op, from, to, calls } = fallback;
            writeln!(f, "{op}: {calls} calls for {from} ran on {to}")?;
        }
        Ok(())
    }
}
