//! `minimum`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Widen};
use keyway_sdk::half::{bf16, f16};

/// The smaller argument; NaN if either is NaN, as NaN alone differs from itself.
#[inline(always)]
#[allow(clippy::eq_op)]
pub fn smaller<T: Element + PartialOrd>(a: T, b: T) -> T {
    if a < b || a != a { a } else { b }
}

fn minimum<T: Widen<Wide: PartialOrd>>(call: &Call) -> Result<(), Error> {
    call.map2_wide::<T, T, T>(Cost::Cheap, smaller::<T::Wide>)
}

kernel!("minimum", "TT>T", minimum, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
