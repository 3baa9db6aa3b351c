//! `gcd` and `lcm`: Stein's binary algorithm on the magnitudes. Results wrap to the range of the dtype.

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Int};

trait Divisors: Int {
    fn gcd(self, other: Self) -> Self;
    fn lcm(self, other: Self) -> Self;
}

macro_rules! divisors {
    ($wide:ty, $name:ident, $($t:ty => $magnitude:ident),*) => {
        /// The greatest common divisor; that of 0 and `x` is `x`.
        #[inline(always)]
        fn $name(mut a: $wide, mut b: $wide) -> $wide {
            if a == 0 || b == 0 {
                return a | b;
            }
            let twos = (a | b).trailing_zeros();
            a >>= a.trailing_zeros();
            while b != 0 {
                b >>= b.trailing_zeros();
                (a, b) = (a.min(b), a.abs_diff(b));
            }
            a << twos
        }

        $(impl Divisors for $t {
            #[inline(always)]
            fn gcd(self, other: Self) -> Self {
                $name(<$wide>::from(magnitude!($magnitude, self)), <$wide>::from(magnitude!($magnitude, other))) as $t
            }
            #[inline(always)]
            fn lcm(self, other: Self) -> Self {
                let a = <$wide>::from(magnitude!($magnitude, self));
                let b = <$wide>::from(magnitude!($magnitude, other));
                // Both are 0 if their divisor is.
                (a / $name(a, b).max(1)).wrapping_mul(b) as $t
            }
        })*
    };
}

macro_rules! magnitude {
    (signed, $x:expr) => {
        $x.unsigned_abs()
    };
    (unsigned, $x:expr) => {
        $x
    };
}

divisors!(u32, gcd32, i8 => signed, i16 => signed, i32 => signed, u8 => unsigned, u16 => unsigned, u32 => unsigned);
divisors!(u64, gcd64, i64 => signed, u64 => unsigned);

fn gcd<T: Divisors>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Heavy, |a: T, b: T| a.gcd(b))
}

fn lcm<T: Divisors>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Heavy, |a: T, b: T| a.lcm(b))
}

kernel!("gcd", "TT>T", gcd, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("lcm", "TT>T", lcm, [i8, i16, i32, i64, u8, u16, u32, u64]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_integer_has_divisors() {
        assert_eq!((i64::MIN.gcd(6), i64::MIN.gcd(0), 0i64.gcd(i64::MIN)), (2, i64::MIN, i64::MIN));
        assert_eq!((i8::MIN.gcd(-128), i8::MIN.lcm(1), (-128i8).lcm(64)), (-128, -128, -128));
        assert_eq!((u64::MAX.gcd(5), 0u64.gcd(0), 0u64.lcm(7)), (5, 0, 0));
        assert_eq!((12i32.gcd(-18), 12i32.lcm(-18), 1i32.lcm(0)), (6, 36, 0));
    }
}
