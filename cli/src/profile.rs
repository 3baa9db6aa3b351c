//! `keyway profile`: prints a profile, of a run that has just ended or of a file.

use crate::failure::Failure;
use crate::screen::{self, COLUMNS, Screen};
use keyway::io::replace;
use keyway::profiler::{
    FormatChange, MemorySnapshot, OpStats, Reordering, Report, Shapes, Trace, TraceError,
};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The default number of rows of the table, and of source locations of reorderings, that are shown.
pub const TOP: usize = 15;
/// The maximum number of tensors of a call that are shown.
const TENSORS: usize = 4;

/// The subcommands of `keyway profile`.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Print the table of a trace that `--profile FILE` wrote.
    Show {
        /// The file.
        file: PathBuf,
        /// How many rows to show, those with most time first.
        #[arg(long, default_value_t = TOP, value_name = "N")]
        rows: usize,
        /// Print the figures of all calls as JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Prints a profile.
///
/// # Errors
/// A file that cannot be read or is no trace.
pub fn run(command: &Command, screen: &mut Screen) -> Result<(), Failure> {
    let Command::Show { file, rows, json } = command;
    let failure = |error: TraceError| Failure::Read {
        what: "the trace",
        path: file.clone(),
        reason: error.to_string(),
    };
    let trace = File::open(file).map_err(TraceError::Read).and_then(Trace::read_json).map_err(failure)?;
    if *json {
        screen.json(&trace.report);
    } else {
        print(&trace.report, *rows, screen);
        report_dropped(&trace, screen);
    }
    Ok(())
}

/// Writes a trace to a file, which is replaced.
///
/// # Errors
/// Errors of the system.
pub fn write(path: &Path, trace: &Trace) -> Result<(), String> {
    replace(path, |file| trace.write_json(file)).map_err(|error| error.to_string())
}

/// Writes the memory by owner: as JSON if the name ends in `.json`, otherwise as a page.
///
/// # Errors
/// Errors of the system.
pub fn write_memory(path: &Path, snapshot: &MemorySnapshot) -> Result<(), String> {
    let json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let write =
        |file: &mut dyn Write| if json { snapshot.write_json(file) } else { snapshot.write_html(file) };
    replace(path, |file| write(file)).map_err(|error| error.to_string())
}

/// Reports the number of calls that the trace lacks.
pub fn report_dropped(trace: &Trace, screen: &mut Screen) {
    let (recorded, dropped) = (trace.events.len(), trace.dropped);
    if dropped > 0 {
        screen
            .line(format!("the trace has the first {recorded} events; {dropped} more are only in the table"));
    }
}

fn ms(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e6)
}

fn count(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// A line of the table: names on the left, numbers on the right.
struct Line {
    op: String,
    served_by: String,
    numbers: [String; 4],
    detail: String,
}

impl Line {
    fn new(op: String, served_by: &str, (calls, ns, bytes): (u64, u64, u64), whole: u64) -> Line {
        let share = format!("{:.1}", 100.0 * ns as f64 / whole.max(1) as f64);
        let numbers = [calls.to_string(), ms(ns), share, screen::bytes(bytes)];
        Line { op, served_by: served_by.to_string(), numbers, detail: String::new() }
    }

    fn of(row: &OpStats, whole: u64) -> Line {
        let figures = (row.calls, row.self_ns, row.bytes);
        Line { detail: detail(row), ..Line::new(row.op.clone(), &row.served_by, figures, whole) }
    }
}

/// `f32[32,16,8,8] channels_last, f32[8,16,3,3]`.
fn tensors(list: &[String]) -> String {
    let mut text = list.iter().take(TENSORS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if list.len() > TENSORS {
        text += &format!(", and {} more", list.len() - TENSORS);
    }
    text
}

/// The key of a row, and the most frequent shapes of its arguments.
fn detail(row: &OpStats) -> String {
    let mut text = row.key.clone();
    if let Some(Shapes { inputs, calls, .. }) = row.shapes.first().filter(|shapes| !shapes.inputs.is_empty())
    {
        text += &format!(": {}", tensors(inputs));
        if row.shapes.len() > 1 {
            let others = count(row.shapes.len() as u64 - 1, "other shape");
            text += &format!(" ({calls} calls; {others})");
        }
    }
    text
}

fn print_line(line: &Line, widths: (usize, usize), screen: &mut Screen) {
    let numbers =
        |[calls, ms, share, bytes]: &[String; 4]| format!("{calls:>7} {ms:>9} {share:>5} {bytes:>8}");
    let names = format!("{:<op$}  {:<by$}", line.op, line.served_by, op = widths.0, by = widths.1);
    let numbers = numbers(&line.numbers);
    // Names that leave no space are printed on a separate line.
    if names.chars().count() + 1 + numbers.len() > COLUMNS {
        screen.line(names.trim_end());
        screen.whole_line(format!("{numbers:>COLUMNS$}"));
    } else {
        screen.whole_line(format!("{names} {numbers}"));
    }
}

/// The ops in descending order of time with the totals, and the memory figures.
pub fn print(report: &Report, top: usize, screen: &mut Screen) {
    let whole = report.op_ns();
    let shown = &report.rows[..report.rows.len().min(top)];
    let mut lines: Vec<Line> = shown.iter().map(|row| Line::of(row, whole)).collect();
    let rest = &report.rows[shown.len()..];
    if !rest.is_empty() {
        let add = |(calls, ns, bytes): (u64, u64, u64), row: &OpStats| {
            (calls + row.calls, ns + row.self_ns, bytes + row.bytes)
        };
        let name = count(rest.len() as u64, "other");
        lines.push(Line::new(name, "", rest.iter().fold((0, 0, 0), add), whole));
    }
    lines.push(Line::new("total".to_string(), "", (report.calls(), whole, report.bytes()), whole));
    let width = |name: fn(&Line) -> &str, least: usize, most: usize| {
        lines.iter().map(|line| name(line).chars().count()).max().unwrap_or(0).clamp(least, most)
    };
    let widths = (width(|line| &line.op, 2, 24), width(|line| &line.served_by, 9, 20));
    let [op, by, calls, own, share, bytes] =
        ["OP", "SERVED BY", "CALLS", "SELF ms", "%", "BYTES"].map(String::from);
    let header = Line { op, served_by: by, numbers: [calls, own, share, bytes], detail: String::new() };
    print_line(&header, widths, screen);
    for line in &lines {
        print_line(line, widths, screen);
        if !line.detail.is_empty() {
            screen.line(format!("    {}", line.detail));
        }
    }
    screen.line("");
    print_scratch(report, top, screen);
    print_memory(report, top, screen);
    screen.line("");
}

/// Reorderings of one op at one source location, over all shapes.
fn by_location(found: &[Reordering]) -> Vec<(String, Reordering)> {
    let mut locations: Vec<(String, Reordering)> = Vec::new();
    for one in found {
        let name = format!("{} by {}", one.op, one.location());
        match locations.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => {
                sum.calls += one.calls;
                sum.bytes += one.bytes;
                sum.ns = sum.ns.saturating_add(one.ns);
            }
            None => locations.push((name, one.clone())),
        }
    }
    locations.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.ns));
    locations
}

/// The scratch memory of kernels.
fn print_scratch(report: &Report, top: usize, screen: &mut Screen) {
    let mut rows: Vec<&OpStats> = report.rows.iter().filter(|row| row.scratch_bytes > 0).collect();
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.scratch_bytes));
    screen.line(format!(
        "scratch memory that kernels took (packed weights, transposed rows, sums): {}",
        screen::bytes(report.scratch_bytes())
    ));
    for OpStats { op, served_by, key, calls, scratch_bytes, .. } in rows.iter().take(top) {
        let (calls, taken) = (count(*calls, "call"), screen::bytes(*scratch_bytes));
        screen.line(format!("  {op} by {served_by} ({key}): {calls}, {taken}"));
    }
    if rows.len() > top {
        screen.line(format!("  ... and by {}", count((rows.len() - top) as u64, "more kernel")));
    }
}

fn print_memory(report: &Report, top: usize, screen: &mut Screen) {
    if report.reorderings.is_empty() && report.format_changes.is_empty() {
        screen.line("no copy reordered memory, and no op changed the format of images");
        return;
    }
    let locations = by_location(&report.reorderings);
    let figures = |calls: u64, bytes: u64, ns: u64| {
        format!("{}, {}, {} ms", count(calls, "call"), screen::bytes(bytes), ms(ns))
    };
    if !locations.is_empty() {
        let sum = |of: fn(&Reordering) -> u64| locations.iter().map(|(_, one)| of(one)).sum();
        let all = figures(sum(|one| one.calls), sum(|one| one.bytes), sum(|one| one.ns));
        screen.line(format!("copies that reorder memory: {all}"));
    }
    for (name, one) in locations.iter().take(top) {
        screen.line(format!("  {name}: {}", figures(one.calls, one.bytes, one.ns)));
        screen.line(format!("      {} -> {}", one.from, one.to));
    }
    let more = |all: usize, screen: &mut Screen| {
        if all > top {
            screen.line(format!("  ... and at {}", count((all - top) as u64, "more location")));
        }
    };
    more(locations.len(), screen);
    for change in report.format_changes.iter().take(top) {
        let FormatChange { op, served_by, from, to, inputs, calls, .. } = change;
        screen.line(format!(
            "warning: {op} by {} makes {to} of {from}: {} of {}, served by {served_by}",
            change.location(),
            count(*calls, "call"),
            tensors(inputs)
        ));
    }
    more(report.format_changes.len(), screen);
}
