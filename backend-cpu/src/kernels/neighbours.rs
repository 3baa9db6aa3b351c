//! `copysign` and `nextafter`: integer operations on the bits of a float.

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error};
use keyway_sdk::half::{bf16, f16};

/// A float with access to its bits.
pub(super) trait Bits: Element {
    /// This magnitude with the sign of `other`.
    fn with_sign_of(self, other: Self) -> Self;
    /// The negated value.
    fn negated(self) -> Self;
    /// The next representable value towards `other`.
    fn next_to(self, other: Self) -> Self;
}

macro_rules! bits {
    ($($t:ident $bits:ident;)+) => {$(
        impl Bits for $t {
            #[inline(always)]
            fn with_sign_of(self, other: Self) -> Self {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                $t::from_bits(self.to_bits() & !SIGN | other.to_bits() & SIGN)
            }

            #[inline(always)]
            fn negated(self) -> Self {
                $t::from_bits(self.to_bits() ^ 1 << ($bits::BITS - 1))
            }

            #[inline(always)]
            fn next_to(self, other: Self) -> Self {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let bits = self.to_bits();
                let zero = bits & !SIGN == 0;
                // For floats of one sign, the bits are ordered as the magnitudes.
                let away = (other > self) == (bits & SIGN == 0);
                let near = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
                let near = if zero { other.to_bits() & SIGN | 1 } else { near };
                let made = if self == other { other } else { $t::from_bits(near) };
                if self.is_nan() || other.is_nan() { $t::NAN } else { made }
            }
        }
    )+};
}
bits! { f32 u32; f64 u64; f16 u16; bf16 u16; }

fn copysign<T: Bits>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, T::with_sign_of)
}

fn nextafter<T: Bits>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Medium, T::next_to)
}

kernel!("copysign", "TT>T", copysign, [f32, f64, f16, bf16]);
kernel!("nextafter", "TT>T", nextafter, [f32, f64, f16, bf16]);
