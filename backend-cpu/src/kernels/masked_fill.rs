//! `masked_fill`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, c64, c128};
use keyway_sdk::half::{bf16, f16};

fn masked_fill<T: Element>(call: &Call) -> Result<(), Error> {
    call.map3(Cost::Cheap, |x: T, m: bool, v: T| if m { v } else { x })
}

kernel!(
    "masked_fill",
    "TTT>T",
    masked_fill,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);
