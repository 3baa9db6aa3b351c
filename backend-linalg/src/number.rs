//! The element types: f32 and f64.

use faer::traits::RealField;
use keyway_sdk::author::Plain;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An element of a matrix.
pub trait Number:
    Plain
    + RealField
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// 0.5.
    const HALF: Self;
    /// 2^-10, the size of a negligible component relative to the largest one.
    const NEGLIGIBLE: Self;

    /// The absolute value.
    fn magnitude(self) -> Self;

    /// Whether the value is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const HALF: Self = 0.5;
            const NEGLIGIBLE: Self = 1.0 / 1024.0;

            fn magnitude(self) -> Self {
                self.abs()
            }

            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }
        }
    )*};
}

numbers!(f32, f64);
