//! `div`

use super::quotient::Divide;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

/// The rounded modes, which all numbers have.
fn rounded<T: Divide>(call: &Call) -> Result<(), Error> {
    T::refuse_zeros(call, 1)?;
    match call.str(2)? {
        "floor" => call.map2(Cost::Medium, |a: T, b: T| a.floor_quotient(b)),
        _ => call.map2(Cost::Medium, |a: T, b: T| a.trunc_quotient(b)),
    }
}

fn real<T: Float + Divide>(call: &Call) -> Result<(), Error> {
    if !call.is_none(2)? {
        return rounded::<T>(call);
    }
    call.map2(Cost::Cheap, |a: T, b: T| T::from_acc(a.to_acc() / b.to_acc()))
}

kernel!("div", "TTS>T", real, [f32, f64, f16, bf16]);
kernel!("div", "TTS>T", rounded, [i8, i16, i32, i64, u8, u16, u32, u64]);
