//! `bitwise_xor`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error};
use std::ops::BitXor;

fn bitwise_xor<T: Element + BitXor<Output = T>>(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, |a: T, b: T| a ^ b)
}

kernel!("bitwise_xor", "TT>T", bitwise_xor, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
