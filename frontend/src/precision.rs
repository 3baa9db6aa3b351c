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
