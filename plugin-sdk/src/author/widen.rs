//! The types that arithmetic on elements is done in.

use super::element::Element;
use super::half_bits::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, f32_to_f16_chunk};
use half::{bf16, f16};
use num_complex::Complex;

/// An element type with its arithmetic type (PyTorch's `opmath` type): `f32` for `f16` and `bf16`, the type itself for all
/// other built-in dtypes.
///
/// A plugin's own narrow float may implement it, too. Loops that compute in the wide type then support it.
pub trait Widen: Element {
    /// The type that arithmetic is done in.
    type Wide: Widen<Wide = Self::Wide>;

    /// Converts exactly.
    fn widen(self) -> Self::Wide;
    /// Rounds to nearest even.
    fn narrow(wide: Self::Wide) -> Self;

    /// [`Widen::narrow`] of each element, with vector instructions if a plain loop is not vectorised.
    #[inline(always)]
    fn narrow_chunk<const N: usize>(wide: &[Self::Wide; N]) -> [Self; N] {
        let mut narrow = [Self::default(); N];
        for (k, to) in narrow.iter_mut().enumerate() {
            *to = Self::narrow(wide[k]);
        }
        narrow
    }
}

macro_rules! itself {
    ($($t:ty),+) => {$(
        impl Widen for $t {
            type Wide = $t;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(wide: $t) -> $t { wide }
            #[inline(always)]
            fn narrow_chunk<const N: usize>(wide: &[$t; N]) -> [$t; N] { *wide }
        }
    )+};
}
itself!(bool, u8, i8, i16, i32, i64, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);

impl Widen for f16 {
    type Wide = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        f16_to_f32(self)
    }
    #[inline(always)]
    fn narrow(wide: f32) -> f16 {
        f32_to_f16(wide)
    }
    #[inline(always)]
    fn narrow_chunk<const N: usize>(wide: &[f32; N]) -> [f16; N] {
        f32_to_f16_chunk(wide)
    }
}

impl Widen for bf16 {
    type Wide = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        bf16_to_f32(self)
    }
    #[inline(always)]
    fn narrow(wide: f32) -> bf16 {
        f32_to_bf16(wide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree<T: Widen>() {
        let values: [f64; 9] = [0.0, -1.0, 0.1, 3.0, 100.7, 65519.9, 1.0e6, -1.0e-7, f64::INFINITY];
        let wide = values.map(T::Wide::from_f64);
        for (x, narrow) in wide.into_iter().zip(T::narrow_chunk(&wide)) {
            assert_eq!(narrow, T::narrow(x), "{} of {x:?}", T::NAME);
            assert_eq!(T::narrow(narrow.widen()), narrow, "{} there and back", T::NAME);
        }
        for x in values {
            assert_eq!(T::narrow(T::Wide::from_f64(x)), T::from_f64(x), "{} of {x}", T::NAME);
        }
    }

    #[test]
    fn chunks_and_elements_agree_for_every_type() {
        agree::<bool>();
        agree::<u8>();
        agree::<i8>();
        agree::<i16>();
        agree::<i32>();
        agree::<i64>();
        agree::<u16>();
        agree::<u32>();
        agree::<u64>();
        agree::<f16>();
        agree::<bf16>();
        agree::<f32>();
        agree::<f64>();
        agree::<Complex<f32>>();
        agree::<Complex<f64>>();
    }
}
