//! What the program has set for all of its threads, and kernels ask for.

use keyway_sdk::abi::codes::matmul_precision;
use std::sync::atomic::{AtomicU32, Ordering};

/// How exactly products and convolutions of f32 are computed.
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
    /// In f32: what is wanted where nothing else was set.
    #[default]
    Highest = matmul_precision::HIGHEST,
    /// A backend may round the factors to 10 bits behind the leading one, as TF32 has them, or take an algorithm that errs no
    /// more beside the largest result, where that is faster; sums are in f32.
    High = matmul_precision::HIGH,
}

static PRECISION: AtomicU32 = AtomicU32::new(MatmulPrecision::Highest as u32);

/// How exactly products and convolutions of f32 are computed.
pub fn float32_matmul_precision() -> MatmulPrecision {
    match PRECISION.load(Ordering::Relaxed) {
        matmul_precision::HIGH => MatmulPrecision::High,
        _ => MatmulPrecision::Highest,
    }
}

/// Sets it for all threads, from their next calls on.
pub fn set_float32_matmul_precision(precision: MatmulPrecision) {
    PRECISION.store(precision as u32, Ordering::Relaxed);
}
