//! Exponentials, logarithms, hyperbolic functions, `erf`, its complement and its inverse.

use super::number::real_functions;
use crate::math;

real_functions! {
    "exp" Exp Medium (math::exp_f32, math::exp_f64);
    "expm1" Expm1 Medium (math::expm1_f32, math::expm1_f64);
    "log" Log Medium (math::log_f32, math::log_f64);
    "log2" Log2 Medium (math::log2_f32, math::log2_f64);
    "log10" Log10 Medium (math::log10_f32, math::log10_f64);
    "log1p" Log1p Medium (math::log1p_f32, math::log1p_f64);
    "sinh" Sinh Medium (math::sinh_f32, math::sinh_f64);
    "cosh" Cosh Medium (math::cosh_f32, math::cosh_f64);
    "tanh" Tanh Medium (math::tanh_f32, math::tanh_f64);
    "asinh" Asinh Medium (math::asinh_f32, math::asinh_f64);
    "acosh" Acosh Medium (math::acosh_f32, math::acosh_f64);
    "atanh" Atanh Medium (math::atanh_f32, math::atanh_f64);
    "erf" Erf Medium (math::erf_f32, math::erf_f64);
    "erfc" Erfc Medium (math::erfc_f32, math::erfc_f64);
    "erfinv" Erfinv Medium (math::erfinv_f32, math::erfinv_f64);
}
