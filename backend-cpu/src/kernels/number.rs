//! Arithmetic that every element type has: integers wrap, f16 and bf16 go through f32, bool is
//! or (sum) and and (product).

use keyway_sdk::author::{Element, Float, Real};
use keyway_sdk::half::{bf16, f16};

/// An element type with sums and products.
pub trait Number: Element {
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The difference.
    fn minus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
}

macro_rules! wrapping {
    ($($t:ty),*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
        }
    )*};
}
wrapping!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! real {
    ($($t:ty),*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { Self::from_acc(self.to_acc() + other.to_acc()) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { Self::from_acc(self.to_acc() - other.to_acc()) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { Self::from_acc(self.to_acc() * other.to_acc()) }
        }
    )*};
}
real!(f32, f64, f16, bf16);

impl Number for bool {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self & other
    }
}

/// A function of real numbers applied to any float type: f16 and bf16 through f32.
pub trait RealFunction {
    /// In f32.
    fn f32(x: f32) -> f32;
    /// In f64.
    fn f64(x: f64) -> f64;
}

/// Applies a [`RealFunction`] in the accumulation type.
pub trait Apply: Real {
    /// `F` of this value.
    fn apply<F: RealFunction>(self) -> Self;
}

impl Apply for f32 {
    #[inline(always)]
    fn apply<F: RealFunction>(self) -> Self {
        F::f32(self)
    }
}

impl Apply for f64 {
    #[inline(always)]
    fn apply<F: RealFunction>(self) -> Self {
        F::f64(self)
    }
}
