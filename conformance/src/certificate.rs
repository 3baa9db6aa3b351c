//! Certificates: the result of a run, bound to the library's hash, the suite's version and the machine, beside
//! the library.

use crate::report::{Machine, Report, SUITE_VERSION, Status};
use keyway::dispatcher::loader::side;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The version of the suite.
    pub suite: String,
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub plugin_version: String,
    /// The SHA-256 of the library that was judged.
    pub sha256: String,
    /// The machine.
    pub machine: Machine,
    /// Whether every case of the suite was to be run.
    pub everything: bool,
    /// Whether every case that was run is as expected.
    pub green: bool,
    /// Cases that passed.
    pub passed: usize,
    /// Cases that were judged: all but those that the backend does not claim, and those without an oracle.
    pub judged: usize,
    /// Cases that fail as the list of known failures says; they count as judged, not as passed.
    pub known: usize,
}

/// What a certificate says of a library now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A whole run, every case as expected.
    Certified {
        /// Cases that passed.
        passed: usize,
        /// Cases that were judged.
        judged: usize,
    },
    /// A part of the cases, or not all as expected.
    Partly {
        /// Cases that passed.
        passed: usize,
        /// Cases that were judged.
        judged: usize,
    },
    /// Of another build of the library, another suite or another machine.
    Stale,
    /// The suite was never run on this library.
    NeverRun,
}

/// With a comma at each thousand.
fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Certified { passed, judged } => {
                write!(f, "certified {}/{}", grouped(*passed), grouped(*judged))
            }
            Standing::Partly { passed, judged } => {
                write!(f, "partly {}/{}", grouped(*passed), grouped(*judged))
            }
            Standing::Stale => f.write_str("stale"),
            Standing::NeverRun => f.write_str("never run"),
        }
    }
}

impl Certificate {
    /// The certificate of a run.
    pub fn of(report: &Report) -> Certificate {
        let count = |status| report.counts.of(status);
        let unjudged = count(Status::Unsupported) + count(Status::Skipped);
        Certificate {
            suite: report.suite.clone(),
            plugin: report.plugin.clone(),
            plugin_version: report.plugin_version.clone(),
            sha256: report.sha256.clone(),
            machine: report.machine.clone(),
            everything: report.selection.is_everything() && !report.interrupted,
            green: report.is_green(),
            passed: count(Status::Passed),
            judged: report.counts.total() - unjudged,
            known: count(Status::KnownFailure),
        }
    }

    /// Where the certificate of a library lies: `libx.so` with `libx.so.certificate.json`.
    pub fn beside(library: &Path) -> PathBuf {
        let mut name = library.as_os_str().to_os_string();
        name.push(".certificate.json");
        PathBuf::from(name)
    }

    /// The certificate beside a library, if there is a readable one.
    pub fn read(library: &Path) -> Option<Certificate> {
        // A pipe or a device in its place must not keep a listing waiting.
        serde_json::from_slice(&side::read(&Certificate::beside(library)).ok()?).ok()
    }

    /// Writes it beside the library, unless a part of the cases would take the place of a whole run of the same
    /// library. Gives the file, or `None` for one that was left as it is.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn store(&self, library: &Path) -> std::io::Result<Option<PathBuf>> {
        let same = |old: &Certificate| old.sha256 == self.sha256 && old.suite == self.suite;
        if !self.everything && Certificate::read(library).is_some_and(|old| same(&old) && old.everything) {
            return Ok(None);
        }
        let path = Certificate::beside(library);
        let text = serde_json::to_string_pretty(self)?;
        let part = path.with_extension("part");
        std::fs::write(&part, text)?;
        std::fs::rename(&part, &path)?;
        Ok(Some(path))
    }

    /// What it says of a library of this hash on this machine.
    pub fn standing(&self, sha256: &str) -> Standing {
        let (passed, judged) = (self.passed, self.judged);
        if self.sha256 != sha256 || self.suite != SUITE_VERSION || self.machine != Machine::this() {
            Standing::Stale
        } else if self.everything && self.green {
            Standing::Certified { passed, judged }
        } else {
            Standing::Partly { passed, judged }
        }
    }
}

/// What is known of a library.
pub fn standing(library: &Path, sha256: impl FnOnce() -> Option<String>) -> Standing {
    match (Certificate::read(library), sha256) {
        (None, _) => Standing::NeverRun,
        (Some(certificate), sha256) => match sha256() {
            Some(hash) => certificate.standing(&hash),
            None => Standing::Stale,
        },
    }
}
