//! Element types with the arithmetic of sums and products.

use keyway_sdk::author::{Error, Float, Plain, Real};
use keyway_sdk::half::{bf16, f16};

/// An element type whose sums are accumulated in another: f16 and bf16 in f32, all others in themselves. Integers wrap.
pub trait Number: Plain {
    /// What sums are accumulated in.
    type Acc: Plain + PartialOrd;
    /// 0.
    const ZERO: Self::Acc;
    /// What is greater than no other: of floats minus infinity.
    const LEAST: Self::Acc;
    /// Exactly this number.
    fn widen(self) -> Self::Acc;
    /// The nearest element.
    fn narrow(value: Self::Acc) -> Self;
    /// The sum.
    fn plus(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The product.
    fn times(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The difference.
    fn minus(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The greater; NaN if either is.
    fn greater(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Whether this is the number 0, of either sign.
    fn is_zero(self) -> bool;
    /// Whether this is not a number.
    fn is_nan(value: Self::Acc) -> bool;
    /// Its bits, as the lowest of a number.
    fn to_low_bits(self) -> u64;
    /// The element of these bits; higher ones do not count.
    fn from_low_bits(bits: u64) -> Self;
    /// The number where it is `kept`, else what changes no sum: 0, of floats -0.0. Without a branch.
    fn kept(value: Self::Acc, kept: bool) -> Self::Acc;
}

macro_rules! float {
    ($($t:ty, $bits:ty: $acc:ty),*) => {$(
        impl Number for $t {
            type Acc = $acc;
            const ZERO: $acc = 0.0;
            const LEAST: $acc = <$acc>::NEG_INFINITY;
            #[inline(always)]
            fn widen(self) -> $acc { self.to_acc() }
            #[inline(always)]
            fn narrow(value: $acc) -> Self { Self::from_acc(value) }
            #[inline(always)]
            fn plus(a: $acc, b: $acc) -> $acc { a + b }
            #[inline(always)]
            fn times(a: $acc, b: $acc) -> $acc { a * b }
            #[inline(always)]
            fn minus(a: $acc, b: $acc) -> $acc { a - b }
            #[inline(always)]
            fn greater(a: $acc, b: $acc) -> $acc { if b > a || Real::is_nan(b) { b } else { a } }
            #[inline(always)]
            fn is_zero(self) -> bool { self.to_acc() == 0.0 }
            #[inline(always)]
            fn is_nan(value: $acc) -> bool { Real::is_nan(value) }
            #[inline(always)]
            fn to_low_bits(self) -> u64 { self.to_bits().into() }
            #[inline(always)]
            fn from_low_bits(bits: u64) -> Self { Self::from_bits(bits as $bits) }
            #[inline(always)]
            fn kept(value: $acc, kept: bool) -> $acc {
                let (bits, none) = (value.to_bits(), (-0.0 as $acc).to_bits());
                <$acc>::from_bits(if kept { bits } else { none })
            }
        }
    )*};
}
float!(f16, u16: f32, bf16, u16: f32, f32, u32: f32, f64, u64: f64);

macro_rules! integer {
    ($($t:ty, $bits:ty),*) => {$(
        impl Number for $t {
            type Acc = $t;
            const ZERO: $t = 0;
            const LEAST: $t = <$t>::MIN;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(value: $t) -> $t { value }
            #[inline(always)]
            fn plus(a: $t, b: $t) -> $t { a.wrapping_add(b) }
            #[inline(always)]
            fn times(a: $t, b: $t) -> $t { a.wrapping_mul(b) }
            #[inline(always)]
            fn minus(a: $t, b: $t) -> $t { a.wrapping_sub(b) }
            #[inline(always)]
            fn greater(a: $t, b: $t) -> $t { a.max(b) }
            #[inline(always)]
            fn is_zero(self) -> bool { self == 0 }
            #[inline(always)]
            fn is_nan(_: $t) -> bool { false }
            #[inline(always)]
            fn to_low_bits(self) -> u64 { self as $bits as u64 }
            #[inline(always)]
            fn from_low_bits(bits: u64) -> Self { bits as $t }
            #[inline(always)]
            fn kept(value: $t, kept: bool) -> $t { if kept { value } else { 0 } }
        }
    )*};
}
integer!(i8, u8, i16, u16, i32, u32, i64, u64, u8, u8, u16, u16, u32, u32, u64, u64);

/// Calls `$run::<T>($args)` with the Rust type of a dtype's number.
macro_rules! by_dtype {
    ($dtype:expr, $run:ident($($args:expr),*)) => {{
        use keyway_sdk::abi::codes::dtype;
        use keyway_sdk::half::{bf16, f16};
        match $dtype {
            dtype::F16 => $run::<f16>($($args),*),
            dtype::BF16 => $run::<bf16>($($args),*),
            dtype::F32 => $run::<f32>($($args),*),
            dtype::F64 => $run::<f64>($($args),*),
            dtype::I8 => $run::<i8>($($args),*),
            dtype::I16 => $run::<i16>($($args),*),
            dtype::I32 => $run::<i32>($($args),*),
            dtype::I64 => $run::<i64>($($args),*),
            dtype::U8 => $run::<u8>($($args),*),
            dtype::U16 => $run::<u16>($($args),*),
            dtype::U32 => $run::<u32>($($args),*),
            dtype::U64 => $run::<u64>($($args),*),
            other => Err($crate::number::no_numbers(other)),
        }
    }};
}
pub(crate) use by_dtype;

/// The error for a dtype that is no number of the host's.
#[cold]
pub fn no_numbers(dtype: u16) -> Error {
    let name = keyway_sdk::author::name(keyway_sdk::author::NameKind::Dtype, dtype).unwrap_or("that");
    Error::Unsupported { what: format!("sparse_coo with values of dtype {name}") }
}
