//! `div`

use super::number::{map_number, map_real2};
use super::quotient::Divide;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float, Widen};
use keyway_sdk::half::{bf16, f16};

/// The rounded modes, which all numbers have.
fn rounded<T: Widen<Wide: Divide>>(call: &Call) -> Result<(), Error> {
    T::Wide::refuse_zeros(call, 1)?;
    match call.str(2)? {
        "floor" => call.map2_wide::<T, T, T>(Cost::Medium, |a, b| a.floor_quotient(b)),
        _ => call.map2_wide::<T, T, T>(Cost::Medium, |a, b| a.trunc_quotient(b)),
    }
}

fn real<T: Float<Acc: Divide>>(call: &Call) -> Result<(), Error> {
    if !call.is_none(2)? {
        return rounded::<T>(call);
    }
    if map_number::<T>(call, Cost::Cheap, |a, b| a / b)? {
        return Ok(());
    }
    map_real2::<T>(call, Cost::Cheap, |a, b| a / b)
}

/// As [`real`], of f16 and bf16: a number is not rounded to the dtype in the rounded modes either.
fn narrow<T: Float<Acc = f32>>(call: &Call) -> Result<(), Error> {
    let number = match call.is_none(2)? {
        true => false,
        false if call.str(2)? == "floor" => {
            map_number::<T>(call, Cost::Medium, |a: f32, b: f32| a.floor_quotient(b))?
        }
        false => map_number::<T>(call, Cost::Medium, |a: f32, b: f32| a.trunc_quotient(b))?,
    };
    if number { Ok(()) } else { real::<T>(call) }
}

kernel!("div", "TTS>T", real, [f32, f64]);
kernel!("div", "TTS>T", narrow, [f16, bf16]);
kernel!("div", "TTS>T", rounded, [i8, i16, i32, i64, u8, u16, u32, u64]);
