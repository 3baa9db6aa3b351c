//! `bitwise_or`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error};
use std::ops::BitOr;

fn bitwise_or<T: Element + BitOr<Output = T>>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, |a: T, b: T| a | b)
}

kernel!("bitwise_or", "TT>T", bitwise_or, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
