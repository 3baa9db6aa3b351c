//! Errors of reading a trace from a file.

/// A file that cannot be read as a trace; the message names the expected and actual content and what to do.
///
/// ```
/// use keyway::profiler::{Trace, TraceError};
/// assert!(matches!(Trace::read_json(&b"{}"[..]), Err(TraceError::Foreign)));
/// assert!(matches!(Trace::read_json(&b"{"[..]), Err(TraceError::Damaged { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Text that is no JSON, or ends too early.
    #[error("expected a trace that `--profile FILE` wrote, got damaged text: {reason}; record it again")]
    Damaged {
        /// The error, with its position.
        reason: String,
    },
    /// JSON that is no such trace.
    #[error(
        "expected a trace that `--profile FILE` wrote, got other JSON, of memory or of another program: it has no member \
         `keyway` with the figures of all calls"
    )]
    Foreign,
    /// A trace of another version.
    #[error("expected a trace of version {expected}, got version {got}; record it again with this program")]
    Version {
        /// The version that can be read.
        expected: u64,
        /// The version of the file.
        got: u64,
    },
    /// A file that cannot be read.
    #[error("the trace cannot be read: {0}")]
    Read(std::io::Error),
}
