//! The format: E4M3 of the OCP 8-bit Floating Point Specification (OFP8), revision 1.0.
//!
//! One sign bit, four exponent bits with bias 7, three mantissa bits. There are no infinities: the largest exponent has values
//! up to 448, and only S.1111.111 is NaN.

use std::cmp::Ordering;

/// One element.
#[derive(Clone, Copy, Default, Debug)]
#[repr(transparent)]
pub struct E4m3(u8);

const SIGN: u8 = 0x80;
const NAN: u8 = 0x7f;
const MANTISSA_BITS: i32 = 3;
/// The exponent of the smallest normal value; the spacing of subnormal values is the same.
const MIN_EXPONENT: i32 = -6;

impl E4m3 {
    /// The largest finite value.
    pub const MAX: f64 = 448.0;

    /// The exact value.
    pub fn value(self) -> f64 {
        let magnitude = self.0 & !SIGN;
        let (exponent, mantissa) = (i32::from(magnitude >> MANTISSA_BITS), f64::from(magnitude & 7));
        let value = match exponent {
            _ if magnitude == NAN => f64::NAN,
            0 => mantissa / 8.0 * power(MIN_EXPONENT),
            _ => (1.0 + mantissa / 8.0) * power(exponent - 7),
        };
        if self.0 & SIGN != 0 { -value } else { value }
    }

    /// The nearest element, ties to even. Saturating: values beyond 448, including infinities, become ±448. NaN keeps its sign.
    pub fn round(value: f64) -> E4m3 {
        let sign = if value.is_sign_negative() { SIGN } else { 0 };
        let magnitude = value.abs();
        if magnitude.is_nan() {
            return E4m3(sign | NAN);
        }
        if magnitude >= Self::MAX {
            return E4m3(sign | (NAN - 1));
        }
        // For 0 and f64's subnormals this is far below the smallest exponent, as intended.
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(MIN_EXPONENT);
        // Elements with the same exponent are integer multiples of the spacing, so the codes of consecutive elements are
        // consecutive.
        let steps = (magnitude / power(exponent - MANTISSA_BITS)).round_ties_even() as i32;
        let code = steps + ((exponent - MIN_EXPONENT) << MANTISSA_BITS);
        // Rounded beyond the largest value: 464 is halfway to 480, which would be next.
        E4m3(sign | (code as u8).min(NAN - 1))
    }
}

/// 2 to the power of a small exponent, exactly.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

impl PartialEq for E4m3 {
    fn eq(&self, other: &E4m3) -> bool {
        self.value() == other.value()
    }
}

impl PartialOrd for E4m3 {
    fn partial_cmp(&self, other: &E4m3) -> Option<Ordering> {
        self.value().partial_cmp(&other.value())
    }
}
