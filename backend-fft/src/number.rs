//! The types of real and imaginary parts: f32 and f64.

use crate::plans::Cache;
use keyway_sdk::author::{Element, Plain};
use realfft::{ComplexToReal, RealToComplex};
use rustfft::{Fft, FftNum};

/// A real number, with the plans of its transforms.
pub trait Number: FftNum + Plain + Element {
    /// Rounds to the nearest.
    fn nearest(value: f64) -> Self;
    /// Plans of transforms of complex numbers.
    fn complex() -> &'static Cache<dyn Fft<Self>>;
    /// Plans of transforms of real numbers.
    fn forward() -> &'static Cache<dyn RealToComplex<Self>>;
    /// Plans of transforms to real numbers.
    fn inverse() -> &'static Cache<dyn ComplexToReal<Self>>;
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            fn nearest(value: f64) -> Self {
                value as $t
            }

            fn complex() -> &'static Cache<dyn Fft<Self>> {
                static CACHE: Cache<dyn Fft<$t>> = Cache::new();
                &CACHE
            }

            fn forward() -> &'static Cache<dyn RealToComplex<Self>> {
                static CACHE: Cache<dyn RealToComplex<$t>> = Cache::new();
                &CACHE
            }

            fn inverse() -> &'static Cache<dyn ComplexToReal<Self>> {
                static CACHE: Cache<dyn ComplexToReal<$t>> = Cache::new();
                &CACHE
            }
        }
    )*};
}

numbers!(f32, f64);
