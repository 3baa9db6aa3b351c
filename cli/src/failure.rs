//! Why a command did not do what it was asked.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// It was asked for something that does not exist.
    Usage(String),
    /// The run failed.
    Run(keyway::Error),
    /// Nothing serves the device that the run needs.
    NoBackend(String),
    /// The training came to no result.
    Diverged {
        /// The epoch, counted from 1.
        epoch: usize,
        /// Its loss.
        loss: f64,
        /// The learning rate.
        lr: f64,
    },
    /// A file could not be written.
    Write {
        /// What was to be written.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Several of these.
    Several(Vec<Failure>),
}

impl Failure {
    /// `write` for one file, with its path.
    pub fn write(what: &'static str, path: &Path, reason: impl std::fmt::Display) -> Failure {
        Failure::Write { what, path: path.to_path_buf(), reason: reason.to_string() }
    }

    /// All failures as one; `Ok` if there are none.
    pub fn all(mut failures: Vec<Failure>) -> Result<(), Failure> {
        match failures.len() {
            0 => Ok(()),
            1 => Err(failures.swap_remove(0)),
            _ => Err(Failure::Several(failures)),
        }
    }

    /// 2 for wrong usage, else 1.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(if matches!(self, Failure::Usage(_)) { 2 } else { 1 })
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Usage(text) | Failure::NoBackend(text) => f.write_str(text),
            Failure::Run(error) => write!(f, "{error}"),
            Failure::Diverged { epoch, loss, lr } => {
                write!(
                    f,
                    "the loss of epoch {epoch} is {loss}: the training diverged; use a lower `--lr` than {lr:?}"
                )
            }
            Failure::Write { what, path, reason } => {
                write!(f, "cannot write {what} to {}: {reason}", path.display())
            }
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
