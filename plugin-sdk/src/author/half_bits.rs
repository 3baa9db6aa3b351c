//! Conversions between `f32` and the 16-bit floats, in forms that the compiler vectorises.
//!
//! Results are bit-identical to those of the `half` crate: rounded to nearest even, with subnormals, the sign of zero and
//! the first bits of NaN, which becomes quiet (except from bf16 to `f32`). Without processor support they are branchless,
//! so that a loop over elements is vectorised. Conversions to `f32` vectorise with support as well, since the compiler uses
//! the instruction for a cast. Conversions back do not, since that instruction takes a rounding mode, so there is a
//! function for chunks.

use half::{bf16, f16};

/// The F16C instructions, if the build's level has them.
#[cfg(all(target_arch = "x86_64", target_feature = "f16c"))]
mod f16c {
    use half::f16;
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_cvtph_ps, _mm_cvtps_ph, _mm_cvtsi32_si128, _mm_cvtsi128_si32,
        _mm_cvtss_f32, _mm_set_ss, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps,
    };

    #[inline(always)]
    pub(super) fn widen(x: f16) -> f32 {
        // SAFETY: the build's level has the instruction.
        unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(x.to_bits())))) }
    }

    #[inline(always)]
    pub(super) fn narrow(x: f32) -> f16 {
        // SAFETY: as above.
        let lanes = unsafe { _mm_cvtsi128_si32(_mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_set_ss(x))) };
        f16::from_bits(lanes as u16)
    }

    /// Converts eight elements at a time: loops are vectorised to at least eight, and a load that is wider than the
    /// preceding stores would wait for them. Indexed, since iterators over chunks are not fully inlined here.
    #[inline(always)]
    pub(super) fn narrow_chunk<const N: usize>(from: &[f32; N]) -> [f16; N] {
        let mut to = [f16::ZERO; N];
        let mut i = 0;
        while i + 8 <= N {
            // SAFETY: as above; both arrays have eight elements from `i` on, and `f16` has the layout of `u16`.
            unsafe {
                let eight = _mm256_loadu_ps(from.as_ptr().add(i));
                let eight = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(eight);
                _mm_storeu_si128(to.as_mut_ptr().add(i).cast(), eight);
            }
            i += 8;
        }
        while i < N {
            to[i] = narrow(from[i]);
            i += 1;
        }
        to
    }
}

/// Widens, exactly.
#[inline(always)]
pub(super) fn f16_to_f32(x: f16) -> f32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "f16c"))]
    return f16c::widen(x);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "f16c")))]
    f16_to_f32_by_bits(x)
}

/// Rounds to nearest even.
#[inline(always)]
pub(super) fn f32_to_f16(x: f32) -> f16 {
    #[cfg(all(target_arch = "x86_64", target_feature = "f16c"))]
    return f16c::narrow(x);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "f16c")))]
    f32_to_f16_by_bits(x)
}

/// [`f32_to_f16`] of each element.
#[inline(always)]
pub(super) fn f32_to_f16_chunk<const N: usize>(from: &[f32; N]) -> [f16; N] {
    #[cfg(all(target_arch = "x86_64", target_feature = "f16c"))]
    return f16c::narrow_chunk(from);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "f16c")))]
    {
        let mut to = [f16::ZERO; N];
        for (k, to) in to.iter_mut().enumerate() {
            *to = f32_to_f16_by_bits(from[k]);
        }
        to
    }
}

/// The bit of an `f32` that marks NaN as quiet.
const QUIET: u32 = 1 << 22;
/// The difference of the exponent biases of `f32` and `f16`, shifted to the exponent field.
const REBIAS: u32 = (127 - 15) << 23;

/// The fallback of [`f16_to_f32`].
#[inline(always)]
#[cfg_attr(all(target_arch = "x86_64", target_feature = "f16c", not(test)), allow(dead_code))]
fn f16_to_f32_by_bits(x: f16) -> f32 {
    let bits = u32::from(x.to_bits());
    let (sign, magnitude) = ((bits & 0x8000) << 16, (bits & 0x7fff) << 13);
    // `(2^-14 + x) - 2^-14`: no operand is subnormal, which would take a processor a hundred cycles.
    let least = REBIAS + (1 << 23);
    let subnormal = (f32::from_bits(magnitude + least) - f32::from_bits(least)).to_bits();
    let special = magnitude | f32::INFINITY.to_bits() | if bits & 0x3ff == 0 { 0 } else { QUIET };
    let value = match bits & 0x7c00 {
        0 => subnormal,
        0x7c00 => special,
        _ => magnitude + REBIAS,
    };
    f32::from_bits(sign | value)
}

/// The fallback of [`f32_to_f16`].
#[inline(always)]
#[cfg_attr(all(target_arch = "x86_64", target_feature = "f16c", not(test)), allow(dead_code))]
fn f32_to_f16_by_bits(x: f32) -> f16 {
    let bits = x.to_bits();
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    // Rounds to nearest even: adds half a ULP, minus one if the retained part is even. Values from 65520 become infinity.
    let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
    // The ULP of 0.5 is the smallest f16: the sum is rounded to a multiple of it.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let special = if magnitude > f32::INFINITY.to_bits() { 0x7e00 | magnitude >> 13 & 0x3ff } else { 0x7c00 };
    let value = if magnitude < REBIAS + (1 << 23) {
        subnormal
    } else if magnitude < REBIAS + (31 << 23) {
        normal
    } else {
        special
    };
    f16::from_bits((sign | value) as u16)
}

/// Widens exactly. A signalling NaN stays signalling.
#[inline(always)]
pub(super) fn bf16_to_f32(x: bf16) -> f32 {
    f32::from_bits(u32::from(x.to_bits()) << 16)
}

/// Rounds to nearest even. The instruction of AVX512-BF16 is not used, since it treats subnormal values as 0.
#[inline(always)]
pub(super) fn f32_to_bf16(x: f32) -> bf16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    bf16::from_bits(((if x.is_nan() { bits | QUIET } else { rounded }) >> 16) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sign, exponent and leading fraction bits of an `f32`, with trailing bits that determine rounding: none, the
    /// lowest, all, and those around a tie at each possible last bit of a result.
    fn floats() -> impl Iterator<Item = f32> {
        let near = |tie: u32| [tie - 1, tie, tie + 1];
        let rests: Vec<u32> =
            [0, 1, 0xffff].into_iter().chain((1..16).flat_map(|place| near(1 << place))).collect();
        (0..=0xffffu32).flat_map(move |high| {
            rests.clone().into_iter().map(move |low| f32::from_bits(high << 16 | low & 0xffff))
        })
    }

    #[test]
    fn every_f16_is_widened_as_the_half_crate_does() {
        for x in (0..=u16::MAX).map(f16::from_bits) {
            let expected = x.to_f32().to_bits();
            assert_eq!(f16_to_f32(x).to_bits(), expected, "{:#06x}", x.to_bits());
            assert_eq!(f16_to_f32_by_bits(x).to_bits(), expected, "{:#06x} by bits", x.to_bits());
        }
    }

    #[test]
    fn every_bf16_is_widened_as_the_half_crate_does() {
        for x in (0..=u16::MAX).map(bf16::from_bits) {
            let (made, expected) = (bf16_to_f32(x), x.to_f32());
            let quiet = if made.is_nan() { QUIET } else { 0 };
            assert_eq!(made.to_bits() | quiet, expected.to_bits(), "{:#06x}", x.to_bits());
        }
    }

    #[test]
    fn floats_are_rounded_as_the_half_crate_does() {
        for x in floats() {
            let (expected, bits) = (f16::from_f32(x).to_bits(), x.to_bits());
            assert_eq!(f32_to_f16(x).to_bits(), expected, "{bits:#010x} to f16");
            assert_eq!(f32_to_f16_by_bits(x).to_bits(), expected, "{bits:#010x} to f16 by bits");
            assert_eq!(f32_to_bf16(x).to_bits(), bf16::from_f32(x).to_bits(), "{bits:#010x} to bf16");
        }
    }

    fn chunks<const N: usize>() {
        let all: Vec<f32> = floats().collect();
        for from in all.as_chunks::<N>().0 {
            for (x, to) in from.iter().zip(f32_to_f16_chunk(from)) {
                assert_eq!(to.to_bits(), f32_to_f16(*x).to_bits(), "{:#010x} among {N}", x.to_bits());
            }
        }
    }

    #[test]
    fn chunks_are_rounded_as_their_elements_are() {
        // With and without a tail.
        chunks::<1>();
        chunks::<8>();
        chunks::<13>();
        chunks::<64>();
    }
}
