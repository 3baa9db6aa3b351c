//! The error of a command.

use std::path::{Path, PathBuf};

/// The error of a command.
#[derive(Debug)]
pub enum Failure {
    /// Wrong usage, such as an unknown name.
    Usage(String),
    /// An error of the run.
    Run(keyway::Error),
    /// No backend serves the device that the run needs.
    NoBackend(String),
    /// The training diverged.
    Diverged {
        /// The epoch, counted from 1.
        epoch: usize,
        /// The loss of the epoch.
        loss: f64,
        /// The learning rate.
        lr: f64,
    },
    /// A given file cannot be used.
    Read {
        /// The expected content.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A file could not be written.
    Write {
        /// The content of the file.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// Cases with unexpected results.
    NotAsExpected {
        /// The number of cases with unexpected results.
        bad: usize,
        /// Number of cases that ran.
        of: usize,
        /// The plugin.
        plugin: String,
    },
    /// No case was served by the backend.
    NothingJudged {
        /// The plugin.
        plugin: String,
        /// Number of cases that ran.
        of: usize,
    },
    /// The run was interrupted; its results until then were written.
    Interrupted {
        /// The number of cases that ended.
        done: usize,
        /// The total number of cases.
        of: usize,
    },
    /// Some of the libraries that were found cannot be used.
    Rejected {
        /// The number of libraries that cannot be used.
        count: usize,
    },
    /// An installed backend could not be changed or examined.
    Backend(String),
    /// Several errors.
    Several(Vec<Failure>),
}

impl Failure {
    /// `write` for one file, with its path.
    pub fn write(what: &'static str, path: &Path, reason: impl std::fmt::Display) -> Failure {
        Failure::Write { what, path: path.to_path_buf(), reason: reason.to_string() }
    }

    /// Combines all failures into one; `Ok` if there are none.
    pub fn all(mut failures: Vec<Failure>) -> Result<(), Failure> {
        match failures.len() {
            0 => Ok(()),
            1 => Err(failures.swap_remove(0)),
            _ => Err(Failure::Several(failures)),
        }
    }

    /// The exit code: 2 for wrong usage, 130 for an interrupted run, otherwise 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Interrupted { .. } => 130,
            Failure::Several(all) if all.iter().any(|f| matches!(f, Failure::Interrupted { .. })) => 130,
            _ => 1,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Usage(text) | Failure::NoBackend(text) | Failure::Backend(text) => f.write_str(text),
            Failure::Run(error) => write!(f, "{error}"),
            Failure::Diverged { epoch, loss, lr } => {
                write!(
                    f,
                    "the loss of epoch {epoch} is {loss}: the training diverged; use a lower `--lr` than {lr:?}"
                )
            }
            Failure::Read { what, path, reason } => {
                write!(f, "cannot use {what} in {}: {reason}", path.display())
            }
            Failure::Write { what, path, reason } => {
                write!(f, "cannot write {what} to {}: {reason}", path.display())
            }
            Failure::NotAsExpected { bad, of, plugin } => {
                write!(f, "{plugin}: {bad} of {of} cases are not as expected")
            }
            Failure::NothingJudged { plugin, of } => write!(
                f,
                "no case was served by {plugin}: this run of {of} cases does not test it; narrow it less, and see with \
                 `keyway explain OP` what serves an op"
            ),
            Failure::Rejected { count: 1 } => {
                f.write_str("1 library cannot be used, for the reason given with it")
            }
            Failure::Rejected { count } => {
                write!(f, "{count} libraries cannot be used, for the reasons given with them")
            }
            Failure::Interrupted { done, of } => write!(f, "interrupted after {done} of {of} cases"),
            Failure::Several(failures) => {
                let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

impl From<keyway::Error> for Failure {
    fn from(error: keyway::Error) -> Failure {
        Failure::Run(error)
    }
}

impl From<keyway::dispatcher::Error> for Failure {
    fn from(error: keyway::dispatcher::Error) -> Failure {
        Failure::Run(error.into())
    }
}
