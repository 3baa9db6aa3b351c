//! `atan2`

use crate::math;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

fn single<T: Float<Acc = f32>>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Heavy, |y: T, x: T| T::from_acc(math::atan2_f32(y.to_acc(), x.to_acc())))
}

fn double<T: Float<Acc = f64>>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Heavy, |y: T, x: T| T::from_acc(math::atan2_f64(y.to_acc(), x.to_acc())))
}

kernel!("atan2", "TT>T", single, [f32, f16, bf16]);
kernel!("atan2", "TT>T", double, [f64]);
