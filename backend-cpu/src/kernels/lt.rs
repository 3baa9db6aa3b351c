//! `lt`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Widen};
use keyway_sdk::half::{bf16, f16};

fn lt<T: Widen<Wide: PartialOrd>>(call: &Call) -> Result<(), Error> {
    call.map2_wide::<T, T, bool>(Cost::Cheap, |a, b| a < b)
}

kernel!("lt", "TT>T", lt, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
