//! Element types: the Rust types of tensor elements.

use super::dtype_size::known_size;
use crate::abi::codes::dtype;
use num_complex::Complex;
use std::fmt::{Debug, Display};
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A Rust type of tensor elements: the types of the built-in dtypes, and a plugin's own types for dtypes that it defines
/// (see [`DType`](super::DType)).
///
/// The host aligns elements to their size: those of `Complex<f32>` to 8 bytes, those of `Complex<f64>` to 16.
///
/// # Safety
/// - The size is 1, 2, 4, 8 or 16 bytes, the alignment divides it, and there is no padding.
/// - [`Element::dtype`] returns the code of the dtype named [`Element::NAME`], whose elements have this size.
/// - [`Element::load`] may be called on memory that another library wrote: its default is right only if every bit pattern
///   is a value of the type.
pub unsafe trait Element: Copy + Send + Sync + PartialEq + Default + Debug + 'static {
    /// The dtype's name in `register_kernel!` and the schema.
    const NAME: &'static str;
    /// The dtype's code: a constant for a built-in dtype, otherwise the value of a [`DTypeNumber`](super::DTypeNumber).
    fn dtype() -> u16;

    /// Converts as `as` does: saturating for integers, rounding to nearest for floats (`f16` and `bf16` through `f32`),
    /// `x != 0` for bool. The imaginary part of a complex number is 0.
    fn from_f64(value: f64) -> Self;
    /// [`Element::from_f64`] of an `f32`.
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Self::from_f64(f64::from(value))
    }
    /// Converts to the nearest `f64`; a complex number to its real part.
    fn to_f64(self) -> f64;
    /// Converts as `as` does: wrapping for integers, rounding to nearest for floats (`f16` and `bf16` through `f32`),
    /// `x != 0` for bool.
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Self::from_f64(value as f64)
    }
    /// Rounds both parts to the nearest; a type that is not complex is converted from the real part, and `bool` is true if
    /// either part is nonzero.
    #[inline(always)]
    fn from_complex(value: Complex<f64>) -> Self {
        Self::from_f64(value.re)
    }
    /// Converts as `as` does: wrapping for integers, truncating and saturating for floats.
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.to_f64() as i64
    }

    /// Reads one element. For `bool` any nonzero byte reads as true.
    ///
    /// # Safety
    /// `at` must be valid for a read of `Self` and aligned; the caller upholds this.
    #[inline(always)]
    unsafe fn load(at: *const Self) -> Self {
        // SAFETY: the caller guarantees a readable, aligned address; every bit pattern is a value of the types that use this
        // default (`bool` overrides it).
        unsafe { at.read() }
    }
}

/// A complex number of two `f32`: the element of dtype `c64`, as NumPy's `complex64`.
#[allow(non_camel_case_types)]
pub type c64 = Complex<f32>;
/// A complex number of two `f64`: the element of dtype `c128`, as NumPy's `complex128`.
#[allow(non_camel_case_types)]
pub type c128 = Complex<f64>;

/// An element type as a value: its dtype and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementType {
    dtype: u16,
    bytes: u16,
}

impl ElementType {
    /// The element type of a Rust type.
    #[inline(always)]
    pub fn of<T: Element>() -> ElementType {
        const {
            assert!(
                matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16)
                    && size_of::<T>().is_multiple_of(align_of::<T>())
            );
        };
        ElementType { dtype: T::dtype(), bytes: size_of::<T>() as u16 }
    }

    /// This dtype if its elements have the size of `T`; otherwise the dtype of `T`, with which a tensor of this dtype
    /// fails the check.
    pub(crate) fn bits_of<T: Plain>(dtype: u16) -> ElementType {
        let own = ElementType::of::<T>();
        if known_size(dtype) == Some(own.bytes()) { ElementType { dtype, ..own } } else { own }
    }

    /// The dtype's code.
    #[inline(always)]
    pub const fn dtype(self) -> u16 {
        self.dtype
    }

    /// The size of an element in bytes, to which its address is aligned.
    #[inline(always)]
    pub const fn bytes(self) -> usize {
        self.bytes as usize
    }
}

/// An element type for which every bit pattern is valid: all but `bool`. Only these may be borrowed as slices of tensor
/// memory, since another library may have written any byte there.
///
/// # Safety
/// Every bit pattern of the type's size is a value of it.
pub unsafe trait Plain: Element {}

/// An integer element type; `bool` is not one.
pub trait Int:
    Plain
    + Display
    + Ord
    + Eq
    + std::hash::Hash
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
{
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;
    /// Adds modulo 2^bits.
    fn wrapping_add(self, other: Self) -> Self;
    /// Subtracts modulo 2^bits.
    fn wrapping_sub(self, other: Self) -> Self;
    /// Multiplies modulo 2^bits.
    fn wrapping_mul(self, other: Self) -> Self;
}

/// `value as $int`, in a form that the compiler vectorises.
macro_rules! saturate {
    ($value:ident, $float:ident, $int:ident) => {{
        const LOW: $float = $int::MIN as $float;
        // The largest float that is at most the largest integer, which would be rounded up as a float.
        const HIGH: $float = {
            let nearest = $int::MAX as $float;
            let above = nearest as i128 > $int::MAX as i128;
            if above { $float::from_bits(nearest.to_bits() - 1) } else { nearest }
        };
        // NaN fails both comparisons and becomes 0.
        let held = if $value >= LOW { $value } else { LOW };
        let held = if $value > HIGH { HIGH } else { held };
        let held = if $value.is_nan() { 0.0 } else { held };
        // SAFETY: `held` is not NaN, and is within the range of the integers.
        let whole = unsafe { held.to_int_unchecked::<$int>() };
        if $value > HIGH { $int::MAX } else { whole }
    }};
}

macro_rules! int {
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
            fn from_f64(value: f64) -> Self { saturate!(value, f64, $t) }
            #[inline(always)]
            fn from_f32(value: f32) -> Self { saturate!(value, f32, $t) }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { value as $t }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
        }
        impl Int for $t {
            const MIN: Self = $t::MIN;
            const MAX: Self = $t::MAX;
            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self { $t::wrapping_add(self, other) }
            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self { $t::wrapping_sub(self, other) }
            #[inline(always)]
            fn wrapping_mul(self, other: Self) -> Self { $t::wrapping_mul(self, other) }
        }
    )+};
}
int!(u8 U8, i8 I8, i16 I16, i32 I32, i64 I64, u16 U16, u32 U32, u64 U64);

macro_rules! real {
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
            fn from_f64(value: f64) -> Self { value as $t }
            #[inline(always)]
            fn from_f32(value: f32) -> Self { value as $t }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { value as $t }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
        }
    )+};
}
real!(f32 F32, f64 F64);

macro_rules! complex {
    ($($part:ident $code:ident $name:literal),+) => {$(
        // SAFETY: two numbers, for which every bit pattern is a value.
        unsafe impl Plain for Complex<$part> {}
        // SAFETY: `Complex` is `repr(C)`: two numbers without padding, for which every bit pattern is valid; the code is that
        // of the name.
        unsafe impl Element for Complex<$part> {
            const NAME: &'static str = $name;
            #[inline(always)]
            fn dtype() -> u16 { dtype::$code }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { Complex::new(value as $part, 0.0) }
            #[inline(always)]
            fn to_f64(self) -> f64 { self.re as f64 }
            #[inline(always)]
            fn from_complex(value: Complex<f64>) -> Self {
                Complex::new(value.re as $part, value.im as $part)
            }
        }
    )+};
}
complex!(f32 C64 "c64", f64 C128 "c128");

// SAFETY: one byte; `load` accepts any; the code is that of the name.
unsafe impl Element for bool {
    const NAME: &'static str = "bool";
    #[inline(always)]
    fn dtype() -> u16 {
        dtype::BOOL
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value != 0.0
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value != 0.0
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as u8 as f64
    }
    #[inline(always)]
    fn from_complex(value: Complex<f64>) -> Self {
        value.re != 0.0 || value.im != 0.0
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        value != 0
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self as i64
    }
    #[inline(always)]
    unsafe fn load(at: *const Self) -> Self {
        // SAFETY: the caller guarantees a readable byte; it is read as `u8`, for which every bit pattern is a value.
        unsafe { at.cast::<u8>().read() != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::author::{dtype_name, dtype_size};
    use half::{bf16, f16};

    fn agrees<T: Element>() {
        assert_eq!(dtype_name(T::dtype()), T::NAME);
        assert_eq!(dtype_size(T::dtype()), Some(size_of::<T>()));
        assert_eq!(T::from_i64(1).to_f64(), 1.0);
        assert_eq!(T::from_f64(1.0).to_i64(), 1);
        assert_eq!(T::from_f64(0.0), T::default());
    }

    #[test]
    fn names_sizes_and_conversions_agree() {
        agrees::<bool>();
        agrees::<u8>();
        agrees::<i8>();
        agrees::<i16>();
        agrees::<i32>();
        agrees::<i64>();
        agrees::<u16>();
        agrees::<u32>();
        agrees::<u64>();
        agrees::<f16>();
        agrees::<bf16>();
        agrees::<f32>();
        agrees::<f64>();
        agrees::<Complex<f32>>();
        agrees::<Complex<f64>>();
    }

    #[test]
    fn complex_numbers_keep_both_parts() {
        let z = Complex::new(0.1, -2.0);
        assert_eq!((c64::from_complex(z), c128::from_complex(z)), (Complex::new(0.1, -2.0), z));
        assert_eq!((f32::from_complex(z), bool::from_complex(Complex::new(0.0, 1.0))), (0.1, true));
        assert_eq!((c64::from_f64(2.0), z.to_f64()), (Complex::new(2.0, 0.0), 0.1));
    }

    #[test]
    fn integers_saturate_from_floats_and_wrap_from_integers() {
        assert_eq!(u8::from_f64(300.0), 255);
        assert_eq!(u8::from_f64(-1.0), 0);
        assert_eq!(i8::from_f64(f64::NAN), 0);
        assert_eq!(u8::from_i64(257), 1);
        assert_eq!(u64::from_i64(-1), u64::MAX);
    }

    fn casts<T: Int>(expected: fn(f64) -> T) {
        let ends = [T::MIN.to_f64(), T::MAX.to_f64(), 0.0, 128.0];
        let near = [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5];
        let around = ends.iter().flat_map(|end| near.map(|d| end + d));
        let special = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-310, 1e300, -1e300];
        for x in around.chain(special).chain(ends.map(f64::next_up)).chain(ends.map(f64::next_down)) {
            assert_eq!(T::from_f64(x), expected(x), "{} of {x}", T::NAME);
            for x in [(x as f32).next_down(), x as f32, (x as f32).next_up()] {
                assert_eq!(T::from_f32(x), expected(f64::from(x)), "{} of {x}", T::NAME);
            }
        }
    }

    #[test]
    fn floats_become_integers_as_by_a_cast() {
        casts(|x| x as u8);
        casts(|x| x as i8);
        casts(|x| x as u16);
        casts(|x| x as i16);
        casts(|x| x as u32);
        casts(|x| x as i32);
        casts(|x| x as u64);
        casts(|x| x as i64);
    }

    #[test]
    fn a_bool_byte_other_than_one_reads_as_true() {
        let bytes = [0u8, 1, 2, 255];
        let read: Vec<bool> = bytes
            .iter()
            // SAFETY: each reference is a readable byte.
            .map(|b| unsafe { bool::load(std::ptr::from_ref(b).cast()) })
            .collect();
        assert_eq!(read, [false, true, true, true]);
    }
}
