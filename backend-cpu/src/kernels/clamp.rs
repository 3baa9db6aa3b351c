//! `clamp`

use super::maximum::larger;
use super::minimum::smaller;
use keyway_sdk::author::{Call, Cost, Element, Error, map1};
use keyway_sdk::half::{bf16, f16};

fn clamp<T: Element>(call: &Call) -> Result<(), Error> {
    let (x, out) = (call.view::<T>(0)?, call.out::<T>(0)?);
    match (call.is_none(1)?, call.is_none(2)?) {
        (false, false) => {
            let (low, high) = (call.scalar::<T>(1)?, call.scalar::<T>(2)?);
            map1(x, out, Cost::Cheap, |x: T| smaller(larger(x, low), high))
        }
        (false, true) => {
            let low = call.scalar::<T>(1)?;
            map1(x, out, Cost::Cheap, |x: T| larger(x, low))
        }
        (true, false) => {
            let high = call.scalar::<T>(2)?;
            map1(x, out, Cost::Cheap, |x: T| smaller(x, high))
        }
        (true, true) => map1(x, out, Cost::Cheap, |x: T| x),
    }
}

kernel!("clamp", "Tss>T", clamp, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
