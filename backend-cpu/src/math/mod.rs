//! Elementary functions whose plain loops vectorise.
//!
//! Each function is branch free: both sides of every condition are computed and one is selected, so that the compiler
//! vectorises `for i in 0..n { out[i] = exp_f32(x[i]) }` for the SIMD level of the library. The result depends on the
//! element alone, never on its position in the slice, and therefore not on how work is split between threads.
//!
//! Rejected alternatives: the system's libm (one call per element, five to twenty times slower), intrinsics (one copy of
//! the source per SIMD level), and table lookups (gathers are slow, and the tables compete with the data for L1).
//!
//! Polynomials are Chebyshev fits computed at 70 digits and rounded coefficient by coefficient, except where a function's doc
//! names another source. Bounds in the docs are in ULP of the exact result, hold with and without fused multiply-add, and are
//! asserted by the tests. The sign of a NaN result is not specified.
//!
//! Only `sin`, `cos` and `tan` of huge arguments call the system's functions; [`sin_slice_f32`] and its siblings vectorise
//! blocks without a huge argument. [`pow_slice_f32`] skips special cases in blocks without them.

mod asin;
mod atan;
pub mod complex;
mod erf;
mod erfinv;
mod exp;
mod gamma;
mod gelu;
mod hyperbolic;
mod inverse_hyperbolic;
mod log;
mod normal;
mod pow;
mod sigmoid;
mod trig;
mod trig_slice;

#[cfg(test)]
mod tests;

pub use asin::{acos_f32, acos_f64, asin_f32, asin_f64};
pub use atan::{atan_f32, atan_f64, atan2_f32, atan2_f64};
pub use erf::{erf_f32, erf_f64, erfc_f32, erfc_f64};
pub use erfinv::{erfinv_f32, erfinv_f64};
pub use exp::{exp_f32, exp_f64, exp_share_f32, exp_share_f64, expm1_f32, expm1_f64};
pub use gamma::{digamma_f32, digamma_f64, lgamma_f32, lgamma_f64, trigamma_f32, trigamma_f64};
pub use gelu::{gelu_slope_f32, gelu_slope_f64};
pub use hyperbolic::{cosh_f32, cosh_f64, sinh_f32, sinh_f64, tanh_f32, tanh_f64};
pub use inverse_hyperbolic::{acosh_f32, acosh_f64, asinh_f32, asinh_f64, atanh_f32, atanh_f64};
pub use log::{log_f32, log_f64, log1p_f32, log1p_f64, log2_f32, log2_f64, log10_f32, log10_f64};
pub use normal::{normal_f32, normal_f64};
pub use pow::{pow_f32, pow_f64, pow_slice_f32, pow_slice_f64};
pub use sigmoid::{sigmoid_f32, sigmoid_f64};
pub use trig::sin_cos_fast_f64;
#[cfg(test)]
pub use trig::{cos_f32, cos_f64, sin_f32, sin_f64, tan_f32, tan_f64};
pub use trig_slice::{
    cos_slice_f32, cos_slice_f64, sin_slice_f32, sin_slice_f64, tan_slice_f32, tan_slice_f64,
};

/// `a * b + c`, fused if the SIMD level has FMA.
#[inline(always)]
fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_feature = "fma") { a.mul_add(b, c) } else { a * b + c }
}

/// `a * b + c`, fused if the SIMD level has FMA.
#[inline(always)]
fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    if cfg!(target_feature = "fma") { a.mul_add(b, c) } else { a * b + c }
}

/// Rounds coefficients to f32.
const fn short<const N: usize>(of: [f64; N]) -> [f32; N] {
    let mut to = [0.0; N];
    let mut i = 0;
    while i < N {
        to[i] = of[i] as f32;
        i += 1;
    }
    to
}

/// `c[0] + c[1] x + c[2] x^2 + ...`
#[inline(always)]
fn polynomial_f32<const N: usize>(x: f32, c: &[f32; N]) -> f32 {
    let mut value = c[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        value = fma_f32(value, x, c[i]);
    }
    value
}

/// `c[0] + c[1] x + c[2] x^2 + ...`
#[inline(always)]
fn polynomial_f64<const N: usize>(x: f64, c: &[f64; N]) -> f64 {
    let mut value = c[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        value = fma_f64(value, x, c[i]);
    }
    value
}
