//! Element types with the arithmetic of sums and products.

use keyway_sdk::author::{Element, Error, Float, Plain, Real};
use keyway_sdk::half::{bf16, f16};
use std::hint::select_unpredictable;

/// Maximum number of addends accumulated sequentially in f32; the sums of such blocks are accumulated in f64. So the error of a
/// sum of products is at most `(CHAIN + 2) * 2^-24` of the sum of their absolute values, for any number of them, plus one
/// rounding.
pub const CHAIN: usize = 1024;

/// An element type and its accumulation types: f32 for f16 and bf16, otherwise the type itself. Integers wrap. Sums of more
/// than [`CHAIN`] addends, and of the entries at one index, are accumulated in f64 for all floats.
pub trait Number: Plain {
    /// The accumulation type of sums.
    type Acc: Plain + PartialOrd;
    /// The accumulation type of sums of any number of addends.
    type Total: Plain;
    /// Whether `Acc` is less precise than `Total`.
    const LOSES_DIGITS: bool = size_of::<Self::Acc>() < size_of::<Self::Total>();
    /// Zero.
    const ZERO: Self::Acc;
    /// The zero of totals.
    const NO_TOTAL: Self::Total;
    /// The minimum: for floats minus infinity.
    const LEAST: Self::Acc;
    /// Converts exactly.
    fn widen(self) -> Self::Acc;
    /// Rounds to the nearest element.
    fn narrow(value: Self::Acc) -> Self;
    /// The sum.
    fn plus(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The product.
    fn times(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The difference.
    fn minus(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Whether this is zero, of either sign.
    fn is_zero(self) -> bool;
    /// Whether this is NaN.
    fn is_nan(value: Self::Acc) -> bool;
    /// The bits of the element as the low bits of an integer.
    fn to_low_bits(self) -> u64;
    /// The element with these low bits; higher ones are ignored.
    fn from_low_bits(bits: u64) -> Self;
    /// The value if `kept`, otherwise the neutral element of sums: 0, for floats -0.0. Branchless.
    fn kept(value: Self::Acc, kept: bool) -> Self::Acc;
    /// Converts to an addend of a [`Number::Total`].
    fn addend(self) -> Self::Total;
    /// Converts a partial sum to an addend of a [`Number::Total`].
    fn lengthen(sum: Self::Acc) -> Self::Total;
    /// The product of two addends of a [`Number::Total`].
    fn total_times(a: Self::Total, b: Self::Total) -> Self::Total;
    /// Rounds to the nearest element.
    fn rounded(total: Self::Total) -> Self;
    /// The sum with one more addend.
    fn with(total: Self::Total, addend: Self::Total) -> Self::Total;
    /// As [`Number::kept`].
    fn total_kept(total: Self::Total, kept: bool) -> Self::Total;
}

macro_rules! float {
    ($($t:ty, $bits:ty: $acc:ty),*) => {$(
        impl Number for $t {
            type Acc = $acc;
            type Total = f64;
            const ZERO: $acc = 0.0;
            const NO_TOTAL: f64 = 0.0;
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
                <$acc>::from_bits(select_unpredictable(kept, bits, none))
            }
            #[inline(always)]
            fn addend(self) -> f64 { self.to_f64() }
            #[inline(always)]
            fn lengthen(sum: $acc) -> f64 { sum.into() }
            #[inline(always)]
            fn total_times(a: f64, b: f64) -> f64 { a * b }
            #[inline(always)]
            fn rounded(total: f64) -> Self { Self::from_f64(total) }
            #[inline(always)]
            fn with(total: f64, addend: f64) -> f64 { total + addend }
            #[inline(always)]
            fn total_kept(total: f64, kept: bool) -> f64 {
                f64::from_bits(select_unpredictable(kept, total.to_bits(), (-0.0f64).to_bits()))
            }
        }
    )*};
}
float!(f16, u16: f32, bf16, u16: f32, f32, u32: f32, f64, u64: f64);

macro_rules! integer {
    ($($t:ty, $bits:ty),*) => {$(
        impl Number for $t {
            type Acc = $t;
            type Total = $t;
            const ZERO: $t = 0;
            const NO_TOTAL: $t = 0;
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
            fn is_zero(self) -> bool { self == 0 }
            #[inline(always)]
            fn is_nan(_: $t) -> bool { false }
            #[inline(always)]
            fn to_low_bits(self) -> u64 { self as $bits as u64 }
            #[inline(always)]
            fn from_low_bits(bits: u64) -> Self { bits as $t }
            #[inline(always)]
            fn kept(value: $t, kept: bool) -> $t { select_unpredictable(kept, value, 0) }
            #[inline(always)]
            fn addend(self) -> $t { self }
            #[inline(always)]
            fn lengthen(sum: $t) -> $t { sum }
            #[inline(always)]
            fn total_times(a: $t, b: $t) -> $t { a.wrapping_mul(b) }
            #[inline(always)]
            fn rounded(total: $t) -> $t { total }
            #[inline(always)]
            fn with(total: $t, addend: $t) -> $t { total.wrapping_add(addend) }
            #[inline(always)]
            fn total_kept(total: $t, kept: bool) -> $t { Self::kept(total, kept) }
        }
    )*};
}
integer!(i8, u8, i16, u16, i32, u32, i64, u64, u8, u8, u16, u16, u32, u32, u64, u64);

/// Calls `$run::<T>` with the arguments and the Rust type of a numeric dtype.
macro_rules! by {
    ([$($name:ident => $t:ty),+], $dtype:expr, $run:ident $args:tt) => {{
        #[allow(unused_imports, reason = "the list of sizes has no floats")]
        use keyway_sdk::half::{bf16, f16};
        match $dtype {
            $(keyway_sdk::abi::codes::dtype::$name => $run::<$t> $args,)+
            other => Err($crate::number::no_numbers(other)),
        }
    }};
}

/// Calls `$run::<T>` with the arguments and the Rust type of a dtype's code.
macro_rules! by_dtype {
    ($($call:tt)+) => {
        $crate::number::by!([
            F16 => f16, BF16 => bf16, F32 => f32, F64 => f64, I8 => i8, I16 => i16, I32 => i32, I64 => i64,
            U8 => u8, U16 => u16, U32 => u32, U64 => u64
        ], $($call)+)
    };
}

/// As [`by_dtype`], for floats.
macro_rules! by_float {
    ($($call:tt)+) => {
        $crate::number::by!([F16 => f16, BF16 => bf16, F32 => f32, F64 => f64], $($call)+)
    };
}

/// As [`by_dtype`], for sums and products, which wrap: signed and unsigned results have the same bits. Tensors are read by
/// `view_bits`, since unsigned integers are read as signed ones.
macro_rules! by_sum {
    ($($call:tt)+) => {
        $crate::number::by!([
            F16 => f16, BF16 => bf16, F32 => f32, F64 => f64, I8 => u8, I16 => u16, I32 => u32, I64 => u64,
            U8 => u8, U16 => u16, U32 => u32, U64 => u64
        ], $($call)+)
    };
}

/// As [`by_sum`], for elements that are only moved: one integer type represents all types of its size.
macro_rules! by_size {
    ($($call:tt)+) => {
        $crate::number::by!([
            F16 => u16, BF16 => u16, F32 => u32, F64 => u64, I8 => u8, I16 => u16, I32 => u32, I64 => u64,
            U8 => u8, U16 => u16, U32 => u32, U64 => u64
        ], $($call)+)
    };
}
pub(crate) use {by, by_dtype, by_float, by_size, by_sum};

/// The error for a dtype that is not a numeric type of the host.
#[cold]
pub fn no_numbers(dtype: u16) -> Error {
    let name = keyway_sdk::author::name(keyway_sdk::author::NameKind::Dtype, dtype).unwrap_or("that");
    Error::Unsupported { what: format!("sparse_coo with values of dtype {name}") }
}
