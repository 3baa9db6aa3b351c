//! `mul`

use super::number::{Number, map_number};
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float, Widen, c64, c128};
use keyway_sdk::half::{bf16, f16};

fn mul<T: Widen<Wide: Number>>(call: &Call) -> Result<(), Error> {
    call.map2_wide::<T, T, T>(Cost::Cheap, |a, b| a.times(b))
}

/// The kernel of f16 and bf16: a product with a scalar is rounded once.
fn narrow<T: Float<Acc: Number>>(call: &Call) -> Result<(), Error> {
    if map_number::<T>(call, Cost::Cheap, |a, b| a * b)? { Ok(()) } else { mul::<T>(call) }
}

kernel!("mul", "TT>T", narrow, [f16, bf16]);
kernel!("mul", "TT>T", mul, [f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]);
