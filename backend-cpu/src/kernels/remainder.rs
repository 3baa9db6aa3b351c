//! `remainder`

use super::quotient::Divide;
use keyway_sdk::author::{Call, Cost, Error, map2};
use keyway_sdk::half::{bf16, f16};

fn remainder<T: Divide>(call: &Call) -> Result<(), Error> {
    let (a, b, out) = (call.view::<T>(0)?, call.view::<T>(1)?, call.out::<T>(0)?);
    T::refuse_zeros(b)?;
    map2(a, b, out, Cost::Medium, |a: T, b: T| a.floor_remainder(b))
}

kernel!("remainder", "TT>T", remainder, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
