//! Standard output and standard error. Output is wrapped at 80 columns, except for longer words, such as paths, and for text
//! that is to be copied verbatim.

use crate::failure::Failure;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;
use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// Standard output. A closed reader (`keyway ops | head -1`) is not a failure and does not stop work; any other failure is
/// saved and returned at the end. Text may come from plugins and file names, so control characters are escaped.
#[derive(Default)]
pub struct Screen {
    /// Destination, if not the process's standard output.
    own: Option<&'static File>,
    failed: Option<std::io::Error>,
}

impl Screen {
    /// Takes exclusive use of standard output: plugins' output is redirected to standard error, so that it does not mix
    /// with a report.
    pub fn alone() -> Screen {
        let take = || {
            let copy = |lowest| rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), lowest);
            // Above the lowest descriptors, which other code may close or reuse, if the limit on descriptors allows it.
            let own = copy(100).or_else(|_| copy(3))?;
            rustix::stdio::dup2_stdout(std::io::stderr())?;
            Ok::<_, std::io::Error>(&*Box::leak(Box::new(File::from(own))))
        };
        // If that fails, for example with a closed standard error, both share standard output.
        let own = take().ok();
        own.into_iter().for_each(keyway::dispatcher::host::keep_from_forks);
        Screen { own, failed: None }
    }

    /// Writes text.
    pub fn print(&mut self, text: &str) {
        if self.failed.is_some() {
            return;
        }
        let text = visible(text, |c| format!("\\u{{{:x}}}", u32::from(c)));
        self.failed = match self.own {
            Some(mut file) => file.write_all(text.as_bytes()).err(),
            None => {
                let mut out = std::io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).err()
            }
        };
    }

    /// Writes lines, wrapped if they are too long.
    pub fn line(&mut self, text: impl std::fmt::Display) {
        self.print(&format!("{}\n", wrap(&text.to_string())));
    }

    /// Writes prose, wrapped without an indent.
    pub fn paragraph(&mut self, text: impl std::fmt::Display) {
        self.print(&format!("{}\n", wrap_line(&text.to_string(), 0)));
    }

    /// Writes a line to be copied, such as a command or code, without wrapping.
    pub fn whole_line(&mut self, text: impl std::fmt::Display) {
        self.print(&format!("{text}\n"));
    }

    /// Writes a table.
    pub fn table(&mut self, table: &Table) {
        for line in table.lines() {
            self.whole_line(line.trim_end());
        }
    }

    /// Writes a table whose last column contains paths, passed separately with its header; a path that does not fit is
    /// printed on its own line.
    pub fn table_of_paths(&mut self, mut table: Table, header: &str, paths: &[String]) {
        // Each row is one line.
        table.set_content_arrangement(ContentArrangement::Disabled);
        let rows = table.lines().zip([header].into_iter().chain(paths.iter().map(String::as_str)));
        for (row, path) in rows {
            let fits = row.chars().count() + path.chars().count() <= COLUMNS;
            let between = if fits { "" } else { "\n    " };
            self.whole_line(format!("{}{between}{path}", if fits { &row } else { row.trim_end() }));
        }
    }

    /// Writes a value as JSON.
    pub fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            // The serialiser escapes the characters that JSON requires; other control characters are unchanged in strings.
            Ok(text) => self.whole_line(visible(&text, |c| format!("\\u{:04x}", u32::from(c)))),
            Err(error) => self.failed = Some(error.into()),
        }
    }

    /// Returns an error if output was lost, except output for a closed reader.
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

/// Text with each terminal control character, and each character that changes the direction of text, escaped.
fn visible(text: &str, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if obeyed(c) { escape(c) } else { c.to_string() }).collect::<String>().into()
}

fn stderr(kind: &str, text: &impl std::fmt::Display) {
    let text = text.to_string();
    let text = visible(&text, |c| format!("\\u{{{:x}}}", u32::from(c)));
    // If standard error is closed there is no way to report it.
    let _ = writeln!(std::io::stderr(), "{}", wrap(&format!("keyway: {kind}{text}")));
}

/// Prints the error of the command.
pub fn error(text: &impl std::fmt::Display) {
    stderr("error: ", text);
}

/// Prints a warning.
pub fn warning(text: &impl std::fmt::Display) {
    stderr("warning: ", text);
}

/// Destination of the host's log: warnings and errors.
pub fn log(severity: u32, text: &str) {
    use keyway::dispatcher::log::{ERROR, WARN};
    match severity {
        ERROR => error(&text),
        WARN => warning(&text),
        _ => {}
    }
}

/// Prints a note.
pub fn note(text: &impl std::fmt::Display) {
    stderr("", text);
}

/// Columns of a line.
pub const COLUMNS: usize = 80;
/// Indentation of the continuation of a wrapped line, relative to its beginning.
const INDENT: usize = 4;

/// Wraps lines at spaces.
fn wrap(text: &str) -> String {
    text.split('\n').map(|line| wrap_line(line, INDENT)).collect::<Vec<_>>().join("\n")
}

/// Wraps a line; further lines have this indent in addition to the first one's.
fn wrap_line(line: &str, further: usize) -> String {
    if line.chars().count() <= COLUMNS {
        return line.to_string();
    }
    let begin = line.chars().take_while(|c| *c == ' ').count();
    let indent = " ".repeat(begin + further);
    let (mut out, mut column) = (String::new(), 0);
    // Words retain the spaces before them, except at a line break.
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if column > begin && column + width > COLUMNS {
            out.truncate(out.trim_end().len());
            out += "\n";
            out += &indent;
            column = indent.len();
        }
        out += word;
        column += word.chars().count();
    }
    out
}

/// A table without borders, in which long cells are wrapped; the columns in `right` are right-aligned.
pub fn table(header: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().copied());
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS as u16);
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

/// A progress bar on standard error, `None` if it is not a terminal; `count` is the position in indicatif's placeholders.
/// The remaining time is shown from 3 % on; earlier estimates are meaningless.
pub fn bar(count: &str) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let template = format!("{{bar:32}} {count}  {{msg}}  {{rest}}");
    let write_rest = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        // A bar whose template is invalid still works.
        let _ = text.write_str(&rest(state.fraction(), state.eta()));
    };
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style.with_key("rest", write_rest));
    Some(bar)
}

/// The remaining time, in words; empty before 3 % are done.
fn rest(done: f32, left: Duration) -> String {
    if done < 0.03 { String::new() } else { format!("{:#} left", HumanDuration(left)) }
}

/// A human-readable size: `12.3 MB`.
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
    fn what_a_terminal_obeys_is_written_out() {
        let escape = |c: char| format!("<{:x}>", u32::from(c));
        assert_eq!(visible("plain\n\ttext é 日", escape), "plain\n\ttext é 日");
        assert_eq!(visible("\u{1b}[31m\r\u{9b}2J\u{202e}", escape), "<1b>[31m<d><9b>2J<202e>");
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        let long = ["word"; 20].join(" ");
        let broken = wrap(&format!("  first: {long}\nshort\n"));
        assert!(broken.lines().all(|line| line.len() <= COLUMNS), "{broken}");
        assert_eq!(broken.lines().nth(1), Some("      word word word word word word"));
        assert!(broken.ends_with("\nshort\n"), "{broken}");
        let path = "/x".repeat(60);
        assert_eq!(wrap(&format!("see {path} there")), format!("see\n    {path}\n    there"));
        assert_eq!(wrap(&path), path);
        assert_eq!(wrap("é".repeat(80).as_str()), "é".repeat(80));
    }

    #[test]
    fn the_rest_is_shown_once_it_can_be_known() {
        let minute = Duration::from_secs(60);
        assert_eq!([0.0, 0.029].map(|done| rest(done, minute)), ["", ""]);
        assert_eq!(rest(0.03, minute), "60s left");
    }
}
