//! `addcmul`

use super::number::Number;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float, c64, c128};
use keyway_sdk::half::{bf16, f16};

fn real<T: Float>(call: &Call) -> Result<(), Error> {
    let value: T::Acc = call.scalar(3)?;
    call.map3_wide::<T, T, T, T>(Cost::Cheap, |a, b, c| a + value * b * c)
}

/// The kernel of integers and complex numbers, which have no wider accumulation type.
fn unwidened<T: Number + Element>(call: &Call) -> Result<(), Error> {
    let value: T = call.scalar(3)?;
    call.map3(Cost::Cheap, |a: T, b: T, c: T| a.plus(b.scaled(value).times(c)))
}

kernel!("addcmul", "TTTs>T", real, [f32, f64, f16, bf16]);
kernel!("addcmul", "TTTs>T", unwidened, [i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]);
