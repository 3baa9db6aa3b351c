//! `remainder`

use super::quotient::Divide;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};

fn remainder<T: Divide>(call: &Call) -> Result<(), Error> {
    T::refuse_zeros(call, 1)?;
    call.map2(Cost::Medium, |a: T, b: T| a.floor_remainder(b))
}

kernel!("remainder", "TT>T", remainder, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
