//! Causes of failed trials.

use serde::{Deserialize, Serialize};

/// The kind of failure of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// A signal ended the process: abort, stack overflow, illegal instruction, invalid access.
    Crash,
    /// The library ended the process with `exit`.
    Exit,
    /// The library did not finish within the time limit.
    Hang,
    /// The library's tables cannot be used or registered, or loading it changes process state.
    Refused,
    /// The cause was not recorded.
    #[default]
    Unknown,
}
