//! Calls without an expected value.

/// The oracle has no expected value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the oracle cannot judge this: {0}")]
pub struct Unknown(pub String);
