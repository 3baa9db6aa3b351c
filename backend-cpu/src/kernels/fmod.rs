//! `fmod`

use super::quotient::Divide;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};

fn fmod<T: Divide>(call: &Call) -> Result<(), Error> {
    T::refuse_zeros(call, 1)?;
    call.map2(Cost::Medium, |a: T, b: T| a.trunc_remainder(b))
}

kernel!("fmod", "TT>T", fmod, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
