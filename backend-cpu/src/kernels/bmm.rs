//! `bmm`

use super::product::{Multiply, multiply};
use keyway_sdk::author::{Call, Error, c64, c128};
use keyway_sdk::half::{bf16, f16};

fn bmm<T: Multiply>(call: &Call) -> Result<(), Error> {
    multiply(call.view::<T>(0)?, call.view::<T>(1)?, call.out::<T>(0)?, None, T::from_i64(1))
}

kernel!("bmm", "TT>T", bmm, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]);
