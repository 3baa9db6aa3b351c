//! The protocol between `keyway-probe` and the program that starts it: the library is passed as standard input and its name
//! in an environment variable; the report is written as lines.

use crate::loader::machine;
use crate::loader::manifest::excerpt;
use std::io::Write;

/// The environment variable with the library's path, for messages and `$ORIGIN`.
pub(crate) const LIBRARY_VARIABLE: &str = "KEYWAY_PROBE_LIBRARY";

/// The exit code of a process whose report is complete. It is set after the exit handlers of a library, and is not one that
/// a library would use.
pub(crate) const COMPLETE: u8 = 93;

/// The prefix of each line of the report, which separates it from a plugin's own output.
const MARK: &str = "\u{1}keyway-probe ";
/// Longest reason of a refusal.
const MAX_REASON: usize = 600;

/// The stage of a trial. Each stage is reported before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Opening,
    Registering,
    Devices,
    Using,
    Ending,
    /// The trial is over; the process exits next.
    Ended,
}

const STAGES: [(Stage, &str, &str); 6] = [
    (Stage::Opening, "opening", "it was opened and set up"),
    (Stage::Registering, "registering", "its contents were registered"),
    (Stage::Devices, "devices", "its devices were counted"),
    (Stage::Using, "using", "the functions of its devices were called"),
    (Stage::Ending, "ending", "it was left to itself for a moment"),
    (Stage::Ended, "ended", "the process ended"),
];

impl Stage {
    fn row(self) -> &'static (Stage, &'static str, &'static str) {
        STAGES.iter().find(|(stage, ..)| *stage == self).unwrap_or(&STAGES[0])
    }

    /// The stage as a clause.
    pub(super) fn describe(self) -> &'static str {
        self.row().2
    }
}

/// A line of the report.
pub(super) fn line(text: &str) -> String {
    format!("{MARK}{text}\n")
}

/// The first line: a probe of another version is not used.
pub(super) fn greeting() -> String {
    line(&machine::host())
}

/// The report of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub(super) stage: Stage,
    /// Whether the library is refused independent of the machine's state, and why.
    pub(super) refused: Option<(bool, String)>,
}

impl Report {
    /// Parses a report; an error is the greeting of another version, if there is any.
    pub(super) fn read(output: &[u8]) -> Result<Report, Option<String>> {
        let text = String::from_utf8_lossy(output);
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(MARK));
        match lines.next() {
            Some(first) if first == machine::host() => {}
            Some(first) => return Err(Some(excerpt(first, 80))),
            None => return Err(None),
        }
        let mut report = Report { stage: Stage::Opening, refused: None };
        for line in lines {
            let reason = |always, text: &str| Some((always, excerpt(&text.replace("\\n", " "), MAX_REASON)));
            if let Some(text) = line.strip_prefix("refused always ") {
                report.refused = reason(true, text);
            } else if let Some(text) = line.strip_prefix("refused now ") {
                report.refused = reason(false, text);
            } else if let Some((stage, ..)) = STAGES.iter().find(|(_, name, _)| *name == line) {
                report.stage = *stage;
            }
        }
        Ok(report)
    }

    /// Writes the greeting.
    pub(crate) fn greet(to: &mut impl Write) -> std::io::Result<()> {
        to.write_all(greeting().as_bytes())
    }

    /// Reports the stage that is about to begin.
    pub(crate) fn begin(to: &mut impl Write, stage: Stage) -> std::io::Result<()> {
        to.write_all(line(stage.row().1).as_bytes())
    }

    /// Reports that the library is refused.
    pub(crate) fn refuse(to: &mut impl Write, always: bool, reason: &str) -> std::io::Result<()> {
        let when = if always { "always" } else { "now" };
        to.write_all(line(&format!("refused {when} {}", reason.replace('\n', "\\n"))).as_bytes())
    }
}
