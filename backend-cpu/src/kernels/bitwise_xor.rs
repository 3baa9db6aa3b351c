//! `bitwise_xor`

use keyway_sdk::author::{Call, Cost, Element, Error, map2};
use std::ops::BitXor;

fn bitwise_xor<T: Element + BitXor<Output = T>>(call: &Call) -> Result<(), Error> {
    map2(call.view::<T>(0)?, call.view::<T>(1)?, call.out::<T>(0)?, Cost::Cheap, |a: T, b: T| a ^ b)
}

kernel!("bitwise_xor", "TT>T", bitwise_xor, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
