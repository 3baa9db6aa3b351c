//! `remainder`

use super::number::map_blocks2;
use super::quotient::{Divide, DivideReal};
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

fn real<T: Float<Acc: DivideReal>>(call: &Call) -> Result<(), Error> {
    map_blocks2::<T>(call, Cost::Medium, T::Acc::floor_remainders)
}

fn integer<T: Divide>(call: &Call) -> Result<(), Error> {
    T::refuse_zeros(call, 1)?;
    call.map2(Cost::Medium, |a: T, b: T| a.floor_remainder(b))
}

kernel!("remainder", "TT>T", real, [f32, f64, f16, bf16]);
kernel!("remainder", "TT>T", integer, [i8, i16, i32, i64, u8, u16, u32, u64]);
