//! Quotients and remainders of integers and floats, shared by the division ops.
//!
//! Integers of up to 32 bits are divided in f64, where the quotient is exact. Float remainders are computed in blocks;
//! elements with large quotients one by one.

use super::nest::{Nest, dims};
use keyway_sdk::author::{Call, Error, Int, Plain, Real, View};

/// An integer type with division. Division by 0 returns 0; see [`Divide::refuse_zeros`].
pub trait Divide: Plain {
    /// The quotient, rounded towards zero.
    fn trunc_quotient(self, divisor: Self) -> Self;
    /// The quotient, rounded towards negative infinity.
    fn floor_quotient(self, divisor: Self) -> Self;
    /// The remainder of `trunc_quotient`: it has the sign of the dividend.
    fn trunc_remainder(self, divisor: Self) -> Self;
    /// The remainder of `floor_quotient`: it has the sign of the divisor.
    fn floor_remainder(self, divisor: Self) -> Self;
    /// Returns an error if any element of argument `index` is a divisor without a quotient.
    fn refuse_zeros(call: &Call, index: usize) -> Result<(), Error>;
}

macro_rules! integer {
    ($signed:literal, $trunc:expr, $floor:expr; $($t:ty),*) => {$(
        #[allow(unused_comparisons)]
        impl Divide for $t {
            #[inline(always)]
            fn trunc_quotient(self, divisor: Self) -> Self {
                let quotient: fn($t, $t) -> $t = $trunc;
                if divisor == 0 { 0 } else { quotient(self, divisor) }
            }
            #[inline(always)]
            fn floor_quotient(self, divisor: Self) -> Self {
                let quotient: fn($t, $t) -> $t = $floor;
                if divisor == 0 { 0 } else { quotient(self, divisor) }
            }
            #[inline(always)]
            fn trunc_remainder(self, divisor: Self) -> Self {
                let rest = self.wrapping_sub(self.trunc_quotient(divisor).wrapping_mul(divisor));
                if divisor == 0 { 0 } else { rest }
            }
            #[inline(always)]
            fn floor_remainder(self, divisor: Self) -> Self {
                let rest = self.trunc_remainder(divisor);
                if $signed && rest != 0 && ((rest < 0) != (divisor < 0)) { rest.wrapping_add(divisor) } else { rest }
            }
            fn refuse_zeros(call: &Call, index: usize) -> Result<(), Error> {
                if any(call.view::<$t>(index)?, |d| d == 0) { Err(zero_divisor()) } else { Ok(()) }
            }
        }
    )*};
}

/// A magic constant: its sum with an integer of less than half of it has the integer in the low half of the float's bits.
/// SIMD has no conversion to integers that is defined for every float.
const WHOLE_F32: f32 = 12_582_912.0;
/// See [`WHOLE_F32`].
const WHOLE_F64: f64 = 6_755_399_441_055_744.0;

// SIMD has no integer division. A float with more than twice the bits has a quotient with an exact integer part: its error
// near an integer is less than the distance to any other quotient.
macro_rules! by_float {
    ($signed:literal, $float:ident, $whole:ident; $($t:ty),*) => {
        integer!(
            $signed,
            |a, b| (($float::from(a) / $float::from(b)).trunc() + $whole).to_bits() as _,
            |a, b| (($float::from(a) / $float::from(b)).floor() + $whole).to_bits() as _;
            $($t),*
        );
    };
}
by_float!(true, f32, WHOLE_F32; i8, i16);
by_float!(false, f32, WHOLE_F32; u8, u16);
by_float!(true, f64, WHOLE_F64; i32);
by_float!(false, f64, WHOLE_F64; u32);
integer!(true, |a, b| a.wrapping_div(b), |a, b| {
    let quotient = a.wrapping_div(b);
    let rest = a.wrapping_sub(quotient.wrapping_mul(b));
    quotient.wrapping_sub(i64::from(rest != 0 && ((a < 0) != (b < 0))))
}; i64);
integer!(false, |a, b| a.wrapping_div(b), |a, b| a.wrapping_div(b); u64);

/// A float type with quotients and remainders, for blocks of equal length.
pub trait DivideReal: Real {
    /// The quotient, rounded towards zero.
    fn trunc_quotient(self, divisor: Self) -> Self;
    /// The quotients, rounded towards negative infinity.
    fn floor_quotients(a: &[Self], b: &[Self], out: &mut [Self]);
    /// The remainders of quotients rounded towards zero: exact, with the sign of the dividend.
    fn trunc_remainders(a: &[Self], b: &[Self], out: &mut [Self]);
    /// The remainders of `floor_quotients`: with the sign of the divisor.
    fn floor_remainders(a: &[Self], b: &[Self], out: &mut [Self]);
}

/// Whether the processor has fused multiply-add; without it, `mul_add` is a library call.
const HAS_FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

macro_rules! real {
    ($($t:ident, $moderate:expr);*) => {$(
        impl DivideReal for $t {
            #[inline(always)]
            fn trunc_quotient(self, divisor: Self) -> Self {
                (self / divisor).trunc()
            }

            #[inline(always)]
            fn floor_quotients(a: &[Self], b: &[Self], out: &mut [Self]) {
                Self::trunc_remainders(a, b, out);
                for ((&a, &b), out) in a.iter().zip(b).zip(out) {
                    let rest = *out;
                    let down = (rest != 0.0) & ((rest < 0.0) != (b < 0.0));
                    // An exact multiple up to one rounding, so that the nearest integer is the quotient.
                    let near = (a - rest) / b - if down { 1.0 } else { 0.0 };
                    let floor = near.floor();
                    let whole = if near - floor > 0.5 { floor + 1.0 } else { floor };
                    let plain = a / b;
                    let whole = if near == 0.0 { (0.0 * plain).copysign(plain) } else { whole };
                    *out = if b == 0.0 { plain } else { whole };
                }
            }

            #[inline(always)]
            fn trunc_remainders(a: &[Self], b: &[Self], out: &mut [Self]) {
                let mut unsure = !HAS_FMA;
                if HAS_FMA {
                    for ((&a, &b), out) in a.iter().zip(b).zip(out.iter_mut()) {
                        let (dividend, divisor) = (a.abs(), b.abs());
                        let quotient = (dividend / divisor).trunc();
                        // One rounding, of a representable value: the remainder plus at most one divisor.
                        let rest = (-quotient).mul_add(divisor, dividend);
                        let rest = if rest < 0.0 { rest + divisor } else { rest };
                        let rest = if rest >= divisor { rest - divisor } else { rest };
                        *out = if quotient < $moderate { rest.copysign(a) } else { $t::NAN };
                        unsure |= out.is_nan();
                    }
                }
                if unsure {
                    for ((&a, &b), out) in a.iter().zip(b).zip(out) {
                        *out = if HAS_FMA && !out.is_nan() { *out } else { a % b };
                    }
                }
            }

            #[inline(always)]
            fn floor_remainders(a: &[Self], b: &[Self], out: &mut [Self]) {
                Self::trunc_remainders(a, b, out);
                for (&b, out) in b.iter().zip(out) {
                    *out = if (*out != 0.0) & ((*out < 0.0) != (b < 0.0)) { *out + b } else { *out };
                }
            }
        }
    )*};
}
// The largest quotients with an error below 1.
real!(f32, (1u32 << 22) as f32; f64, (1u64 << 51) as f64);

/// Elements that are tested between checks for an early exit.
const LOOKED_AT: usize = 1024;

/// Whether `test` holds for any element. A broadcast element is tested once.
pub fn any<T: Plain>(view: View<'_, T>, test: impl Fn(T) -> bool) -> bool {
    // Without an early exit the loop is vectorised.
    let any_of = |some: &[T]| some.iter().fold(false, |found, &x| found | test(x));
    if let Some(slice) = view.as_dense_slice() {
        return slice.chunks(LOOKED_AT).any(any_of);
    }
    let size = |(&n, &stride): (&i64, &i64)| if stride == 0 { n.min(1) as usize } else { n as usize };
    let sizes: Vec<usize> = view.sizes().iter().zip(view.strides()).map(size).collect();
    let strides: Vec<isize> = view.strides().iter().map(|&s| s as isize).collect();
    let mut found = false;
    Nest::sorted(dims(&sizes, [&strides])).for_each_row_here(|[begin], len, [step]| {
        let mut room = [T::default(); LOOKED_AT];
        let mut first = 0;
        while first < len && !found {
            let some = LOOKED_AT.min(len - first);
            for (k, slot) in room[..some].iter_mut().enumerate() {
                // SAFETY: the offset is that of an element, by the view's own sizes and strides, and each bit pattern is a
                // value.
                *slot = unsafe { view.as_ptr().offset(begin + (first + k) as isize * step).read() };
            }
            found = any_of(&room[..some]);
            first += some;
        }
    });
    found
}

#[cold]
fn zero_divisor() -> Error {
    Error::InvalidArgument {
        argument: "other",
        expected: "integers other than 0".into(),
        got: "a 0: an integer divided by zero is none; divide floats, or replace the zeros first".into(),
    }
}

/// Whether any exponent of an integer power is negative.
pub fn any_negative<T: Int>(view: View<'_, T>) -> bool {
    T::MIN != T::from_i64(0) && any(view, |x| x < T::from_i64(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at which quotients change: around each power of two, some others, and their negatives.
    fn corners(bits: u32, signed: bool) -> Vec<i128> {
        let powers = (0..=bits).map(|bit| 1i128 << bit);
        let mut all: Vec<i128> = powers.flat_map(|p| [p - 1, p, p + 1, -p, -p + 1, -p - 1]).collect();
        all.extend([3, 5, 7, 10, 100, 255, 641, 1_000_003, -3, -7, -10]);
        let (low, high) =
            if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        all.retain(|v| (low..=high).contains(v));
        all
    }

    #[test]
    fn whole_quotients_are_exact() {
        macro_rules! check {
            ($($t:ident),*) => {$(
                let all = corners($t::BITS, $t::MIN != 0);
                for (a, b) in all.iter().flat_map(|&a| all.iter().map(move |&b| (a as $t, b as $t))) {
                    if b == 0 {
                        continue;
                    }
                    let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
                    let down = rest != 0 && ((a as i128) < 0) != ((b as i128) < 0);
                    let (floor, modulo) =
                        if down { (quotient.wrapping_sub(1), rest.wrapping_add(b)) } else { (quotient, rest) };
                    let got = (
                        a.trunc_quotient(b), a.trunc_remainder(b), a.floor_quotient(b), a.floor_remainder(b),
                    );
                    assert_eq!(got, (quotient, rest, floor, modulo), "{a} by {b}");
                }
            )*};
        }
        check!(i8, i16, i32, i64, u8, u16, u32, u64);
    }

    #[test]
    fn remainders_of_floats_are_exact() {
        macro_rules! check {
            ($($t:ident),*) => {$(
                let mut all: Vec<$t> = vec![0.0, -0.0, 1.0, 3.0, 0.1, 1.1, 5.5, 7.25, 1e-3, 1e10, 123_456_789.0];
                all.extend([$t::MAX, $t::MIN_POSITIVE, $t::MIN_POSITIVE / 3.0, $t::INFINITY, $t::NAN, $t::EPSILON]);
                // Dividends next to a multiple, whose quotient rounds to it.
                all.extend((1u8..40).flat_map(|n| [1.1, 0.7, 3.3].map(|b: $t| (b * $t::from(n)).next_down())));
                all.extend(all.clone().iter().map(|x| -x));
                for &b in &all {
                    let divisors = vec![b; all.len()];
                    let mut rests = vec![0.0; all.len()];
                    $t::trunc_remainders(&all, &divisors, &mut rests);
                    let mut floors = vec![0.0; all.len()];
                    $t::floor_remainders(&all, &divisors, &mut floors);
                    for ((&a, &rest), &floor) in all.iter().zip(&rests).zip(&floors) {
                        let expected = a % b;
                        let same = rest == expected && rest.is_sign_negative() == expected.is_sign_negative();
                        assert!(same || rest.is_nan() && expected.is_nan(), "{a} by {b}: {rest}, not {expected}");
                        let modulo = if expected != 0.0 && (expected < 0.0) != (b < 0.0) { expected + b } else { expected };
                        assert!(floor == modulo || floor.is_nan() && modulo.is_nan(), "{a} by {b}: {floor}, not {modulo}");
                    }
                }
            )*};
        }
        check!(f32, f64);
    }
}
