//! Outcomes of cases.

use serde::{Deserialize, Serialize};

/// The worst element of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Index of the output.
    pub output: usize,
    /// The element's index.
    pub element: Vec<usize>,
    /// The number of wrong elements.
    pub wrong: usize,
    /// The number of elements.
    pub of: usize,
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
}

/// The reason why a case failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The error.
    pub what: String,
    /// The expected value or behaviour.
    pub expected: String,
    /// The actual value or behaviour.
    pub got: String,
    /// The worst element, if values are wrong.
    pub mismatch: Option<Mismatch>,
}

impl Failure {
    /// A failure that is not about an element.
    pub fn new(what: impl Into<String>, expected: impl Into<String>, got: impl Into<String>) -> Failure {
        Failure { what: what.into(), expected: expected.into(), got: got.into(), mismatch: None }
    }
}

impl From<keyway::Error> for Failure {
    fn from(error: keyway::Error) -> Failure {
        Failure::new("a call failed", "a result", error.to_string())
    }
}

impl From<keyway::dispatcher::Error> for Failure {
    fn from(error: keyway::dispatcher::Error) -> Failure {
        keyway::Error::from(error).into()
    }
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The result is as expected.
    Passed,
    /// The result is as expected, but the tested library ran no part of it.
    ByOthers {
        /// The plugins that ran it.
        by: String,
    },
    /// The result is not as expected.
    Failed(Failure),
    /// The backend reports that it does not support this, and does not claim to.
    Unsupported {
        /// The backend's reason.
        reason: String,
    },
    /// There is no verdict.
    Skipped {
        /// The reason.
        reason: String,
    },
    /// The worker process ended.
    Died {
        /// Signal or exit code, or that it ran out of time or memory.
        how: String,
    },
    /// The case was not run after time-outs of other cases, and counts as failed.
    NotRun {
        /// The cases that timed out.
        reason: String,
    },
}

impl Outcome {
    /// Whether the outcome is a fault of the backend.
    pub fn is_failure(&self) -> bool {
        matches!(self, Outcome::Failed(_) | Outcome::Died { .. } | Outcome::NotRun { .. })
    }
}

impl From<Result<(), Stop>> for Outcome {
    fn from(result: Result<(), Stop>) -> Outcome {
        match result {
            Ok(()) => Outcome::Passed,
            Err(Stop::Agreed) => Outcome::Passed,
            Err(Stop::Failed(failure)) => Outcome::Failed(failure),
            Err(Stop::Unsupported(reason)) => Outcome::Unsupported { reason },
            Err(Stop::Skipped(reason)) => Outcome::Skipped { reason },
        }
    }
}

/// The reason why a case stopped early.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The oracle refuses the call, and so does the backend.
    Agreed,
    /// The case failed.
    Failed(Failure),
    /// The backend does not support this, and does not claim to.
    Unsupported(String),
    /// There is no verdict.
    Skipped(String),
}

impl<F: Into<Failure>> From<F> for Stop {
    fn from(failure: F) -> Stop {
        Stop::Failed(failure.into())
    }
}

/// The result of a case's steps.
pub type Steps<T = ()> = Result<T, Stop>;

/// Separates the plugins that ran a case instead of the tested library from the error.
pub const AND_WRONG: &str = ", and not as expected: ";
