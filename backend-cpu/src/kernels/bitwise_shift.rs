//! `bitwise_left_shift` and `bitwise_right_shift`. A count that is negative, or at least the number of bits, shifts every
//! bit out.

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Int};

trait Shift: Int {
    fn left(self, count: Self) -> Self;
    fn right(self, count: Self) -> Self;
}

macro_rules! shift {
    ($($t:ty),*) => {$(
        impl Shift for $t {
            #[inline(always)]
            fn left(self, count: Self) -> Self {
                let inside = (count as u64) < <$t>::BITS as u64;
                if inside { self << (count as u32 & (<$t>::BITS - 1)) } else { 0 }
            }
            #[inline(always)]
            fn right(self, count: Self) -> Self {
                let inside = (count as u64) < <$t>::BITS as u64;
                let step = (if inside { count as u32 } else { 0 }) & (<$t>::BITS - 1);
                // All bits are shifted out in two steps, which leave the sign of a signed type and 0 of an unsigned one.
                if inside { self >> step } else { (self >> (<$t>::BITS - 1)) >> (<$t>::MIN == 0) as u32 }
            }
        }
    )*};
}
shift!(i8, i16, i32, i64, u8, u16, u32, u64);

fn left<T: Shift>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, |a: T, b: T| a.left(b))
}

fn right<T: Shift>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, |a: T, b: T| a.right(b))
}

kernel!("bitwise_left_shift", "TT>T", left, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("bitwise_right_shift", "TT>T", right, [i8, i16, i32, i64, u8, u16, u32, u64]);
