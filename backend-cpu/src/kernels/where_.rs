//! `where`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, c64, c128};
use keyway_sdk::half::{bf16, f16};

fn where_<T: Element>(call: &Call) -> Result<(), Error> {
    call.map3(Cost::Cheap, |c: bool, a: T, b: T| if c { a } else { b })
}

kernel!(
    "where",
    "TTT>T",
    where_,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);
