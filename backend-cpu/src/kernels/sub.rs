//! `sub`

use super::number::{Number, map_number};
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float, Widen, c64, c128};
use keyway_sdk::half::{bf16, f16};

fn sub<T: Widen<Wide: Number>>(call: &Call) -> Result<(), Error> {
    let alpha: T::Wide = call.scalar(2)?;
    if alpha == T::Wide::from_i64(1) {
        call.map2_wide::<T, T, T>(Cost::Cheap, |a, b| a.minus(b))
    } else {
        call.map2_wide::<T, T, T>(Cost::Cheap, |a, b| a.minus(b.scaled(alpha)))
    }
}

/// The kernel of f16 and bf16: a difference with a scalar is rounded once.
fn narrow<T: Float<Acc: Number>>(call: &Call) -> Result<(), Error> {
    let alpha: T::Acc = call.scalar(2)?;
    if map_number::<T>(call, Cost::Cheap, |a, b| a - alpha * b)? { Ok(()) } else { sub::<T>(call) }
}

kernel!("sub", "TTs>T", narrow, [f16, bf16]);
kernel!("sub", "TTs>T", sub, [f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]);
