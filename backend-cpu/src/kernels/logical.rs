//! `logical_and`, `logical_or` and `logical_xor` of arguments of one dtype; the host converts others to bool.

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error, Widen, c64, c128};
use keyway_sdk::half::{bf16, f16};

/// Applies `f` to whether each argument is nonzero.
#[inline(always)]
fn logical<T: Widen>(call: &Call, f: impl Fn(bool, bool) -> bool + Sync) -> Result<(), Error> {
    // Bools need no comparison with 0.
    if const { matches!(T::NAME.as_bytes(), b"bool") } {
        return call.map2::<bool, bool, bool>(Cost::Cheap, f);
    }
    let zero = T::Wide::default();
    call.map2_wide::<T, T, bool>(Cost::Cheap, |a, b| f(a != zero, b != zero))
}

fn and<T: Widen>(call: &Call) -> Result<(), Error> {
    logical::<T>(call, |a, b| a & b)
}

fn or<T: Widen>(call: &Call) -> Result<(), Error> {
    logical::<T>(call, |a, b| a | b)
}

fn xor<T: Widen>(call: &Call) -> Result<(), Error> {
    logical::<T>(call, |a, b| a ^ b)
}

kernel!(
    "logical_and",
    "TT>T",
    and,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);
kernel!(
    "logical_or",
    "TT>T",
    or,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);
kernel!(
    "logical_xor",
    "TT>T",
    xor,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);
