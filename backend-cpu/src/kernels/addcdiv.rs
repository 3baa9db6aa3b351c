//! `addcdiv`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

fn addcdiv<T: Float>(call: &Call) -> Result<(), Error> {
    let value: T::Acc = call.scalar(3)?;
    call.map3_wide::<T, T, T, T>(Cost::Cheap, |a, b, c| a + value * b / c)
}

kernel!("addcdiv", "TTTs>T", addcdiv, [f32, f64, f16, bf16]);
