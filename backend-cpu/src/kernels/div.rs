//! `div`

use super::quotient::Divide;
use keyway_sdk::author::{Call, Cost, Error, Float, map2};
use keyway_sdk::half::{bf16, f16};

/// The rounded modes, which all numbers have.
fn rounded<T: Divide>(call: &Call) -> Result<(), Error> {
    let (a, b, out) = (call.view::<T>(0)?, call.view::<T>(1)?, call.out::<T>(0)?);
    T::refuse_zeros(b)?;
    match call.str(2)? {
        "floor" => map2(a, b, out, Cost::Medium, |a: T, b: T| a.floor_quotient(b)),
        _ => map2(a, b, out, Cost::Medium, |a: T, b: T| a.trunc_quotient(b)),
    }
}

fn real<T: Float + Divide>(call: &Call) -> Result<(), Error> {
    if !call.is_none(2)? {
        return rounded::<T>(call);
    }
    let (a, b, out) = (call.view::<T>(0)?, call.view::<T>(1)?, call.out::<T>(0)?);
    map2(a, b, out, Cost::Cheap, |a: T, b: T| T::from_acc(a.to_acc() / b.to_acc()))
}

kernel!("div", "TTS>T", real, [f32, f64, f16, bf16]);
kernel!("div", "TTS>T", rounded, [i8, i16, i32, i64, u8, u16, u32, u64]);
