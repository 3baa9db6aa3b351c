//! Floating-point element types, and the types that their sums are accumulated in.

use super::element::{Element, Plain};
use super::widen::Widen;
use crate::abi::codes::dtype;
use half::{bf16, f16};
use std::fmt::Display;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// A floating-point element type with its accumulation type.
pub trait Float: Plain + PartialOrd + Display + Widen<Wide = <Self as Float>::Acc> {
    /// `f32` for `f16`, `bf16` and `f32`; `f64` for `f64`.
    type Acc: Real;
    /// Widens, exactly.
    #[inline(always)]
    fn to_acc(self) -> Self::Acc {
        self.widen()
    }
    /// Rounds to nearest even.
    #[inline(always)]
    fn from_acc(value: Self::Acc) -> Self {
        Self::narrow(value)
    }
}

/// `f32` and `f64`: the types that the processor computes in.
pub trait Real:
    Float<Acc = Self>
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The smallest value of all.
    const NEG_INFINITY: Self;
    /// The largest value of all.
    const INFINITY: Self;
    /// NaN.
    const NAN: Self;
    /// The square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// e to the power of `self`, by the platform's library.
    fn exp(self) -> Self;
    /// The natural logarithm, by the platform's library.
    fn ln(self) -> Self;
    /// The hyperbolic tangent, by the platform's library.
    fn tanh(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// `self * a + b` with one rounding.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Whether this is NaN.
    fn is_nan(self) -> bool;
}

macro_rules! real {
    ($($t:ident),+) => {$(
        impl Float for $t {
            type Acc = $t;
        }
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = $t::NEG_INFINITY;
            const INFINITY: Self = $t::INFINITY;
            const NAN: Self = $t::NAN;
            #[inline(always)]
            fn sqrt(self) -> Self { $t::sqrt(self) }
            #[inline(always)]
            fn exp(self) -> Self { $t::exp(self) }
            #[inline(always)]
            fn ln(self) -> Self { $t::ln(self) }
            #[inline(always)]
            fn tanh(self) -> Self { $t::tanh(self) }
            #[inline(always)]
            fn abs(self) -> Self { $t::abs(self) }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self { $t::mul_add(self, a, b) }
            #[inline(always)]
            fn is_nan(self) -> bool { $t::is_nan(self) }
        }
    )+};
}
real!(f32, f64);

macro_rules! half_float {
    ($($t:ident $code:ident),+) => {$(
        // SAFETY: every bit pattern of a number is a value.
        unsafe impl Plain for $t {}
        // SAFETY: a value of 1 to 8 bytes, aligned to its size, for which every bit pattern is valid; the code is that of the
        // name.
        unsafe impl Element for $t {
            const NAME: &'static str = stringify!($t);
            #[inline(always)]
            fn dtype() -> u16 { dtype::$code }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { Self::narrow(value as f32) }
            #[inline(always)]
            fn from_f32(value: f32) -> Self { Self::narrow(value) }
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from(self.widen()) }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { Self::narrow(value as f32) }
            #[inline(always)]
            fn to_i64(self) -> i64 { self.widen() as i64 }
        }
        impl Float for $t {
            type Acc = f32;
        }
    )+};
}
half_float!(f16 F16, bf16 BF16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_beside_a_tie_is_rounded_to_its_side() {
        // The midpoint of two bf16, the lower one even, and the next float above and below.
        let tie = f32::from_bits(0x3f80_8000);
        for (x, bits) in [(tie, 0x3f80), (tie.next_up(), 0x3f81), (tie.next_down(), 0x3f80)] {
            assert_eq!(bf16::from_f32(x).to_bits(), bits);
            assert_eq!(<bf16 as Element>::from_f32(x).to_bits(), bits, "{x}");
            assert_eq!(<bf16 as Element>::from_f64(f64::from(x)).to_bits(), bits, "{x} as f64");
        }
    }

    #[test]
    fn half_types_accumulate_in_f32() {
        assert_eq!(f16::from_acc(bf16::from_f64(1.5).to_acc()).to_f64(), 1.5);
        fn acc<T: Float>() -> u16 {
            T::Acc::dtype()
        }
        assert_eq!(
            [acc::<f16>(), acc::<bf16>(), acc::<f32>(), acc::<f64>()],
            [dtype::F32, dtype::F32, dtype::F32, dtype::F64]
        );
    }
}
