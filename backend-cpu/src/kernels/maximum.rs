//! `maximum`

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Widen};
use keyway_sdk::half::{bf16, f16};

/// The larger argument; NaN if either is NaN, as NaN alone differs from itself.
#[inline(always)]
#[allow(clippy::eq_op)]
pub fn larger<T: Element + PartialOrd>(a: T, b: T) -> T {
    if a > b || a != a { a } else { b }
}

fn maximum<T: Widen<Wide: PartialOrd>>(call: &Call) -> Result<(), Error> {
    call.map2_wide::<T, T, T>(Cost::Cheap, larger::<T::Wide>)
}

kernel!("maximum", "TT>T", maximum, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
