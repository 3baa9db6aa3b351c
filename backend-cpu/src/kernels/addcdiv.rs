//! `addcdiv`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

fn addcdiv<T: Float>(call: &Call) -> Result<(), Error> {
    let value: T::Acc = call.scalar(3)?;
    call.map3(Cost::Cheap, |a: T, b: T, c: T| T::from_acc(a.to_acc() + value * b.to_acc() / c.to_acc()))
}

kernel!("addcdiv", "TTTs>T", addcdiv, [f32, f64, f16, bf16]);
