//! The error of a kernel or of a plugin's set-up.

use crate::abi::codes::status;
use std::fmt;

/// The error of a kernel, an allocator or a plugin's set-up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// These arguments are not supported; the host may try another candidate.
    Unsupported {
        /// The unsupported property.
        what: String,
    },
    /// An allocation did not fit.
    OutOfMemory {
        /// The requested size in bytes.
        requested: u64,
        /// Bytes that were available; 0 if unknown.
        available: u64,
    },
    /// An argument is wrong in a way that the host could not detect.
    InvalidArgument {
        /// The argument's name.
        argument: &'static str,
        /// The expected value.
        expected: String,
        /// The actual value.
        got: String,
    },
    /// The device is lost.
    DeviceLost {
        /// The device and its message.
        detail: String,
    },
    /// The work failed.
    Failed {
        /// A description of the failure.
        detail: String,
    },
    /// A host service answered with this status; its message is already set.
    Host {
        /// See [`crate::abi::codes::status`].
        status: i32,
    },
}

impl Error {
    /// The status code that crosses the boundary.
    pub fn status(&self) -> i32 {
        match self {
            Error::Unsupported { .. } => status::UNSUPPORTED,
            Error::OutOfMemory { .. } => status::OUT_OF_MEMORY,
            Error::InvalidArgument { .. } => status::INVALID_ARGUMENT,
            Error::DeviceLost { .. } => status::DEVICE_LOST,
            Error::Failed { .. } => status::FAILED,
            Error::Host { status } => *status,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unsupported { what } => write!(f, "{what} is not supported"),
            Error::OutOfMemory { requested, available } => {
                write!(f, "out of memory: {requested} bytes asked for")?;
                if *available > 0 { write!(f, ", {available} bytes can be had") } else { Ok(()) }
            }
            Error::InvalidArgument { argument, expected, got } => {
                write!(f, "argument `{argument}`: expected {expected}, got {got}")
            }
            Error::DeviceLost { detail } => write!(f, "device lost: {detail}"),
            Error::Failed { detail } => f.write_str(detail),
            Error::Host { status } => write!(f, "a host service answered with status {status}"),
        }
    }
}

impl std::error::Error for Error {}
