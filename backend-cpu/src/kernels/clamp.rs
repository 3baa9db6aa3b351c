//! `clamp`

use super::maximum::larger;
use super::minimum::smaller;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error};
use keyway_sdk::half::{bf16, f16};

fn clamp<T: Element>(call: &Call) -> Result<(), Error> {
    match (call.is_none(1)?, call.is_none(2)?) {
        (false, false) => {
            let (low, high) = (call.scalar::<T>(1)?, call.scalar::<T>(2)?);
            call.map1(Cost::Cheap, |x: T| smaller(larger(x, low), high))
        }
        (false, true) => {
            let low = call.scalar::<T>(1)?;
            call.map1(Cost::Cheap, |x: T| larger(x, low))
        }
        (true, false) => {
            let high = call.scalar::<T>(2)?;
            call.map1(Cost::Cheap, |x: T| smaller(x, high))
        }
        (true, true) => call.map1(Cost::Cheap, |x: T| x),
    }
}

kernel!("clamp", "Tss>T", clamp, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
