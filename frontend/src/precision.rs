//! The precision of f32 matrix products and convolutions.

use keyway_dispatcher::settings;
pub use keyway_dispatcher::settings::MatmulPrecision;

/// The precision of f32 matrix products and convolutions; [`MatmulPrecision::Highest`] unless changed by
/// [`set_float32_matmul_precision`].
///
/// ```
/// use keyway::MatmulPrecision;
/// assert_eq!(keyway::float32_matmul_precision(), MatmulPrecision::Highest);
/// ```
#[doc(alias = "get_float32_matmul_precision")]
pub fn float32_matmul_precision() -> MatmulPrecision {
    settings::float32_matmul_precision()
}

/// Sets [`float32_matmul_precision`] for the whole process, from the next call on; a backward pass uses the setting at its own
/// time.
///
/// With [`MatmulPrecision::High`] a backend may round the factors of products, convolutions and their gradients to TF32, which
/// has the range of f32 and 10 mantissa bits; they are accumulated in f32. A result then differs from the exact one by up to
/// about 1/1000 of the sum of the addends' absolute values. Backends without a faster kernel are unaffected, as are attention and
/// other dtypes.
///
/// The CPU backends round no factor. They compute 3x3 convolutions with stride 1, and their gradients, by Winograd F(4x4, 3x3)
/// instead of F(2x2, 3x3) where it is faster, in about two thirds of the time. The error is then small relative to the largest
/// result nearby, not to each result: for random values of either sign about 1.5e-6 of the largest result for 64 channels and
/// 3e-6 for 256, three to five times the error without the setting.
///
/// ```
/// use keyway::MatmulPrecision;
/// assert_eq!(keyway::float32_matmul_precision(), MatmulPrecision::Highest);
/// keyway::set_float32_matmul_precision(MatmulPrecision::High);
/// assert_eq!(keyway::float32_matmul_precision(), MatmulPrecision::High);
/// ```
#[doc(alias = "allow_tf32")]
pub fn set_float32_matmul_precision(precision: MatmulPrecision) {
    settings::set_float32_matmul_precision(precision);
}
