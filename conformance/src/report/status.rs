//! Statuses of cases.

use serde::{Deserialize, Serialize};

/// Status of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The result is as expected.
    Passed,
    /// The result is as expected, but the tested library ran no part of it: it counts neither for nor against the library.
    ByOthers,
    /// The result is not as expected.
    Failed,
    /// The worker died.
    Died,
    /// The case fails, as listed in the known failures.
    KnownFailure,
    /// The case is in the list of known failures, but it passed.
    UnexpectedPass,
    /// The backend does not claim it, and reports it as unsupported.
    Unsupported,
    /// There is no verdict.
    Skipped,
    /// The case was not run after time-outs of its kernel, or of many kernels.
    NotRun,
}

impl Status {
    /// Whether the status makes the run a failure.
    pub fn is_bad(self) -> bool {
        matches!(self, Status::Failed | Status::Died | Status::UnexpectedPass | Status::NotRun)
    }

    /// Whether the case is evidence about the tested library: the library ran a part of it, or was not asked to after
    /// time-outs, and there is a verdict.
    pub fn is_judged(self) -> bool {
        !matches!(self, Status::ByOthers | Status::Unsupported | Status::Skipped)
    }
}
