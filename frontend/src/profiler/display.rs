//! Text form of a profile's report.

use super::report::{OpStats, Report};
use keyway_dispatcher::ledger::Fallback;
use std::fmt;

/// A table of all rows; `{report:.15}` shows the first 15 only.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = f.precision().unwrap_or(self.rows.len());
        let header = ("op", "served by", "calls", "self ms", "total ms", "bytes");
        let line = |f: &mut fmt::Formatter<'_>, cells: (&str, &str, &str, &str, &str, &str)| {
            let (op, served, calls, own, total, bytes) = cells;
            writeln!(f, "{op:<24} {served:<20} {calls:>10} {own:>12} {total:>12} {bytes:>14}")
        };
        line(f, header)?;
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        for row in self.rows.iter().take(shown) {
            let (calls, bytes) = (row.calls.to_string(), row.bytes.to_string());
            line(f, (&row.op, &row.served_by, &calls, &ms(row.self_ns), &ms(row.total_ns), &bytes))?;
        }
        let more = self.rows.len().saturating_sub(shown);
        if more > 0 {
            writeln!(f, "... and {more} more")?;
        }
        writeln!(f, "{} calls, {} ms in ops of {:.3} s", self.calls(), ms(self.op_ns()), self.seconds)?;
        let taken = self.rows.iter().filter(|row| row.scratch_bytes > 0);
        for OpStats { op, served_by, scratch_bytes, .. } in taken.take(shown) {
            writeln!(f, "scratch memory: {op} by {served_by}: {scratch_bytes} bytes")?;
        }
        for memory in &self.memory {
            writeln!(f, "{}: peak {} bytes in tensors", memory.device, memory.peak_in_use)?;
        }
        for found in &self.reorderings {
            let (location, calls, bytes) = (found.location(), found.calls, found.bytes);
            let (op, from, to, ms) = (&found.op, &found.from, &found.to, ms(found.ns));
            writeln!(
                f,
                "reordered: {op} by {location}: {from} -> {to}, {calls} calls, {bytes} bytes, {ms} ms"
            )?;
        }
        for change in &self.format_changes {
            let (op, from, to, location) = (&change.op, &change.from, &change.to, change.location());
            writeln!(f, "format changed: {op} by {location}: {from} -> {to}, {} calls", change.calls)?;
        }
        for fallback in &self.fallbacks {
            let Fallback { op, from, to, calls, moves } = fallback;
            writeln!(f, "{op}: {calls} calls for {from} ran on {to}, {moves} tensors moved")?;
        }
        Ok(())
    }
}
