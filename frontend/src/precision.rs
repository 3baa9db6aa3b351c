//! How exactly products and convolutions of f32 are computed.

use keyway_dispatcher::settings;
pub use keyway_dispatcher::settings::MatmulPrecision;

/// How exactly products and convolutions of f32 are computed; [`MatmulPrecision::Highest`] unless
/// [`set_float32_matmul_precision`] said otherwise.
///
/// ```
/// use keyway::MatmulPrecision;
/// assert_eq!(keyway::float32_matmul_precision(), MatmulPrecision::Highest);
/// ```
#[doc(alias = "get_float32_matmul_precision")]
pub fn float32_matmul_precision() -> MatmulPrecision {
    settings::float32_matmul_precision()
}

/// Sets [`float32_matmul_precision`] for the whole process, from the next call on; a backward pass works as is set when it runs.
///
/// With [`MatmulPrecision::High`] a backend may round the factors of products, convolutions and their gradients to TF32, which
/// has the range of f32 and 10 bits behind the leading one; they are summed in f32. A result then differs from the exact one by
/// up to about 1/1000 of the sum of the terms' absolute values. Backends that have nothing faster compute as before. Attention
/// is not concerned, and other dtypes are not.
///
/// The CPU's backends round no factor. They compute convolutions by 3x3 kernels with stride 1, and their gradients, by
/// Winograd's algorithm F(4x4, 3x3) in the place of F(2x2, 3x3) where it is faster, in about two thirds of the time. What a result
/// differs by is then small beside the largest one near it, not beside itself: for numbers of either sign without order about
/// 1.5e-6 of the largest result for 64 channels and 3e-6 for 256, three to five times as much as without the setting.
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
