//! `baddbmm`

use super::product::{Multiply, multiply};
use keyway_sdk::author::{Call, Error, c64, c128};
use keyway_sdk::half::{bf16, f16};

fn baddbmm<T: Multiply>(call: &Call) -> Result<(), Error> {
    let (beta, alpha): (T, T) = (call.scalar(3)?, call.scalar(4)?);
    // With `beta` 0 the input is not read, so that its NaN and infinities do not propagate.
    let input = if beta == T::from_i64(0) { None } else { Some((call.view::<T>(0)?, beta)) };
    multiply(call.view::<T>(1)?, call.view::<T>(2)?, call.out::<T>(0)?, input, alpha)
}

kernel!(
    "baddbmm",
    "TTTss>T",
    baddbmm,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]
);
