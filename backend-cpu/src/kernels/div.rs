//! `div`

use super::number::{map_blocks2, map_number, map_real2};
use super::quotient::{Divide, DivideReal};
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

fn real<T: Float<Acc: DivideReal>>(call: &Call) -> Result<(), Error> {
    if call.is_none(2)? {
        return match map_number::<T>(call, Cost::Cheap, |a, b| a / b)? {
            true => Ok(()),
            false => map_real2::<T>(call, Cost::Cheap, |a, b| a / b),
        };
    }
    if call.str(2)? == "floor" {
        return map_blocks2::<T>(call, Cost::Medium, T::Acc::floor_quotients);
    }
    // The scalar is not rounded to a narrower dtype here either.
    match map_number::<T>(call, Cost::Medium, |a, b| a.trunc_quotient(b))? {
        true => Ok(()),
        false => map_real2::<T>(call, Cost::Medium, |a, b| a.trunc_quotient(b)),
    }
}

/// The rounded modes for integers.
fn integer<T: Divide>(call: &Call) -> Result<(), Error> {
    T::refuse_zeros(call, 1)?;
    match call.str(2)? {
        "floor" => call.map2(Cost::Medium, |a: T, b: T| a.floor_quotient(b)),
        _ => call.map2(Cost::Medium, |a: T, b: T| a.trunc_quotient(b)),
    }
}

kernel!("div", "TTS>T", real, [f32, f64, f16, bf16]);
kernel!("div", "TTS>T", integer, [i8, i16, i32, i64, u8, u16, u32, u64]);
