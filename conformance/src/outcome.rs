//! What came of a case.

use serde::{Deserialize, Serialize};

/// The worst element of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Which output.
    pub output: usize,
    /// The element's index.
    pub element: Vec<usize>,
    /// How many elements are wrong.
    pub wrong: usize,
    /// How many there are.
    pub of: usize,
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
}

/// Why a case failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What is wrong.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What came.
    pub got: String,
    /// The worst element, where values are wrong.
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

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// As expected.
    Passed,
    /// As expected, but nothing of the judged library took part.
    ByOthers {
        /// Who did.
        by: String,
    },
    /// Not as expected.
    Failed(Failure),
    /// The backend says that it does not support this, and it does not claim to.
    Unsupported {
        /// In its own words.
        reason: String,
    },
    /// It could not be judged.
    Skipped {
        /// Why.
        reason: String,
    },
    /// The worker process ended.
    Died {
        /// By which signal or exit code, or that it ran out of time or memory.
        how: String,
    },
}

impl Outcome {
    /// Whether the backend did something wrong.
    pub fn is_failure(&self) -> bool {
        matches!(self, Outcome::Failed(_) | Outcome::Died { .. })
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

/// Why a case ended before its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The oracle refuses the call, and so does the backend.
    Agreed,
    /// It failed.
    Failed(Failure),
    /// The backend does not support this, and does not claim to.
    Unsupported(String),
    /// It cannot be judged.
    Skipped(String),
}

impl<F: Into<Failure>> From<F> for Stop {
    fn from(failure: F) -> Stop {
        Stop::Failed(failure.into())
    }
}

/// The result of a case's steps.
pub type Steps<T = ()> = Result<T, Stop>;
