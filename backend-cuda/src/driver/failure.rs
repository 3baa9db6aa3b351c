//! A failed driver call.

use super::failed;
use keyway_sdk::Error;
use std::fmt;

/// `CUDA_ERROR_OUT_OF_MEMORY`
pub const OUT_OF_MEMORY: u32 = 2;
/// `CUDA_ERROR_NO_DEVICE`
pub const NO_DEVICE: u32 = 100;
/// `CUDA_ERROR_NOT_READY`
pub const NOT_READY: u32 = 600;
/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`
pub const PEER_ALREADY: u32 = 704;
/// `CUDA_ERROR_PEER_ACCESS_NOT_ENABLED`
pub const PEER_NOT: u32 = 705;

/// The function that failed, and its error code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The driver's function.
    pub call: &'static str,
    /// The driver's code.
    pub code: u32,
    /// The code's name.
    pub name: String,
    /// The driver's description.
    pub text: String,
}

impl Failure {
    /// Whether the device's context is permanently unusable.
    pub fn is_lost(&self) -> bool {
        // ECC and link errors; then kernel errors: addresses, time limits, assertions, instructions, the stack.
        matches!(self.code, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719)
    }

    /// The error without a device.
    pub fn plain(self) -> Error {
        failed(self.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answered {} ({}): {}", self.call, self.name, self.code, self.text)
    }
}
