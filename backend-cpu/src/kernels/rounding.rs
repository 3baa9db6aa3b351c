//! Rounding to integers. Integers are rounded already.

use super::number::real_functions;
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error};

real_functions! {
    "floor" Floor Cheap (f32::floor, f64::floor);
    "ceil" Ceil Cheap (f32::ceil, f64::ceil);
    "round" Round Cheap (f32::round_ties_even, f64::round_ties_even);
    "trunc" Trunc Cheap (f32::trunc, f64::trunc);
}

fn same<T: Element>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |x: T| x)
}

kernel!("floor", "T>T", same, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("ceil", "T>T", same, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("round", "T>T", same, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("trunc", "T>T", same, [i8, i16, i32, i64, u8, u16, u32, u64]);
