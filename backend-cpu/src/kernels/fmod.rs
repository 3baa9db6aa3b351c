//! `fmod`

use super::number::map_number;
use super::quotient::Divide;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float, Widen};
use keyway_sdk::half::{bf16, f16};

fn fmod<T: Widen<Wide: Divide>>(call: &Call) -> Result<(), Error> {
    T::Wide::refuse_zeros(call, 1)?;
    call.map2_wide::<T, T, T>(Cost::Medium, |a, b| a.trunc_remainder(b))
}

/// f16 and bf16; a number is not rounded to the dtype.
fn narrow<T: Float<Acc = f32>>(call: &Call) -> Result<(), Error> {
    if map_number::<T>(call, Cost::Medium, |a: f32, b: f32| a.trunc_remainder(b))? {
        Ok(())
    } else {
        fmod::<T>(call)
    }
}

kernel!("fmod", "TT>T", narrow, [f16, bf16]);
kernel!("fmod", "TT>T", fmod, [f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]);
