//! `bitwise_or`

use keyway_sdk::author::{Call, Cost, Element, Error, map2};
use std::ops::BitOr;

fn bitwise_or<T: Element + BitOr<Output = T>>(call: &Call) -> Result<(), Error> {
    map2(call.view::<T>(0)?, call.view::<T>(1)?, call.out::<T>(0)?, Cost::Cheap, |a: T, b: T| a | b)
}

kernel!("bitwise_or", "TT>T", bitwise_or, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
