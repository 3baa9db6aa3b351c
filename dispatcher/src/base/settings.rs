//! Settings of the program for all of its threads, read by kernels.

use keyway_sdk::abi::codes::matmul_precision;
use std::sync::atomic::{AtomicU32, Ordering};

/// The precision of f32 matrix products and convolutions.
///
/// ```
/// use keyway_dispatcher::settings::{self, MatmulPrecision};
/// assert_eq!(MatmulPrecision::default(), MatmulPrecision::Highest);
/// assert_eq!(settings::float32_matmul_precision(), MatmulPrecision::Highest);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum MatmulPrecision {
    /// Computed in f32, the default.
    #[default]
    Highest = matmul_precision::HIGHEST,
    /// A backend may round the factors to TF32 (10 fraction bits), or use an algorithm whose error relative to the
    /// largest result is no larger, if that is faster; accumulation is in f32.
    High = matmul_precision::HIGH,
}

static PRECISION: AtomicU32 = AtomicU32::new(MatmulPrecision::Highest as u32);

/// The precision of f32 matrix products and convolutions.
pub fn float32_matmul_precision() -> MatmulPrecision {
    match PRECISION.load(Ordering::Relaxed) {
        matmul_precision::HIGH => MatmulPrecision::High,
        _ => MatmulPrecision::Highest,
    }
}

/// Sets the precision for the next calls of all threads.
pub fn set_float32_matmul_precision(precision: MatmulPrecision) {
    PRECISION.store(precision as u32, Ordering::Relaxed);
}
