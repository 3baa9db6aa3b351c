//! `nansum`

use super::sum::{sum_float, sum_int};
use keyway_sdk::author::{Call, Error, Float};
use keyway_sdk::half::{bf16, f16};

fn nansum<T: Float>(call: &Call) -> Result<(), Error> {
    sum_float::<T, false>(call)
}

kernel!("nansum", "TIb>T", nansum, [f32, f64, f16, bf16]);
kernel!("nansum", "TIb>T", sum_int, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
