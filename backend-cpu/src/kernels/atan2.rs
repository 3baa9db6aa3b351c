//! `atan2`

use super::number::{map_number, map_real2};
use crate::math;
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

fn single<T: Float<Acc = f32>>(call: &Call) -> Result<(), Error> {
    if map_number::<T>(call, Cost::Heavy, math::atan2_f32)? {
        return Ok(());
    }
    map_real2::<T>(call, Cost::Heavy, math::atan2_f32)
}

fn double<T: Float<Acc = f64>>(call: &Call) -> Result<(), Error> {
    map_real2::<T>(call, Cost::Heavy, math::atan2_f64)
}

kernel!("atan2", "TT>T", single, [f32, f16, bf16]);
kernel!("atan2", "TT>T", double, [f64]);
