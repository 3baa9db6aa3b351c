//! Standard output and standard error.

use crate::failure::Failure;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// Standard output. A reader that has gone away (`keyway ops | head -1`) is no failure and stops no work; any other
/// failure is kept for the end.
#[derive(Default)]
pub struct Screen {
    failed: Option<std::io::Error>,
}

impl Screen {
    /// Writes text as it is.
    pub fn print(&mut self, text: &str) {
        if self.failed.is_none() {
            let mut out = std::io::stdout().lock();
            self.failed = out.write_all(text.as_bytes()).and_then(|()| out.flush()).err();
        }
    }

    /// Writes a line.
    pub fn line(&mut self, text: impl std::fmt::Display) {
        self.print(&format!("{text}\n"));
    }

    /// Writes a table.
    pub fn table(&mut self, table: &Table) {
        for line in table.lines() {
            self.line(line.trim_end());
        }
    }

    /// Writes a value as JSON.
    pub fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.line(text),
            Err(error) => self.failed = Some(error.into()),
        }
    }

    /// Whether everything reached a reader that wanted it.
    ///
    /// # Errors
    /// Output that could not be written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        match self.failed.take() {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::write("output", Path::new("standard output"), error))
            }
            _ => Ok(()),
        }
    }
}

fn stderr(kind: &str, text: &impl std::fmt::Display) {
    // A standard error that is closed leaves nobody to tell.
    let _ = writeln!(std::io::stderr(), "keyway: {kind}{text}");
}

/// Says why the command failed.
pub fn error(text: &impl std::fmt::Display) {
    stderr("error: ", text);
}

/// Says what is odd, but does not stop the command.
pub fn warning(text: &impl std::fmt::Display) {
    stderr("warning: ", text);
}

/// Says what a person may want to know.
pub fn note(text: &impl std::fmt::Display) {
    stderr("", text);
}

/// A table without lines; the columns named in `right` hold numbers.
pub fn table(header: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().copied());
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for &index in right {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A bar on standard error, `None` where that is no terminal; `count` says how far the work is, as indicatif's
/// placeholders. How long the rest takes is shown from 3 % on, since before that it says nothing.
pub fn bar(count: &str) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let template = format!("{{bar:32}} {count}  {{msg}}  {{rest}}");
    let tell = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        // A bar that lacks a text is still a bar.
        let _ = text.write_str(&rest(state.fraction(), state.eta()));
    };
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style.with_key("rest", tell));
    Some(bar)
}

/// How long the rest takes, in words; none before 3 % are done.
fn rest(done: f32, left: Duration) -> String {
    if done < 0.03 { String::new() } else { format!("{:#} left", HumanDuration(left)) }
}

/// Bytes for people: `12.3 MB`.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_told_once_it_can_be_known() {
        let minute = Duration::from_secs(60);
        assert_eq!([0.0, 0.029].map(|done| rest(done, minute)), ["", ""]);
        assert_eq!(rest(0.03, minute), "60s left");
    }
}
