//! Unary predicates, and the negation of bits and bools.

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float, Real, Widen, c64, c128};
use keyway_sdk::half::{bf16, f16};
use std::ops::Not;

fn ask<T: Widen>(call: &Call, question: impl Fn(T::Wide) -> bool + Sync) -> Result<(), Error> {
    call.map1_wide::<T, bool>(Cost::Cheap, question)
}

fn isnan<T: Float>(call: &Call) -> Result<(), Error> {
    ask::<T>(call, |x| x.is_nan())
}

fn isinf<T: Float>(call: &Call) -> Result<(), Error> {
    ask::<T>(call, |x| x.abs() == T::Acc::INFINITY)
}

fn isfinite<T: Float>(call: &Call) -> Result<(), Error> {
    ask::<T>(call, |x| x.abs() < T::Acc::INFINITY)
}

// The constant result of predicates about NaN and infinities, for types that have neither.
#[allow(clippy::extra_unused_type_parameters)]
fn never<T: Element>(call: &Call) -> Result<(), Error> {
    call.map0(Cost::Cheap, || false)
}

#[allow(clippy::extra_unused_type_parameters)]
fn always<T: Element>(call: &Call) -> Result<(), Error> {
    call.map0(Cost::Cheap, || true)
}

fn logical_not<T: Widen>(call: &Call) -> Result<(), Error> {
    ask::<T>(call, |x| x == T::Wide::default())
}

fn bitwise_not<T: Element + Not<Output = T>>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |x: T| !x)
}

kernel!("isnan", "T>T", isnan, [f32, f64, f16, bf16]);
kernel!("isinf", "T>T", isinf, [f32, f64, f16, bf16]);
kernel!("isfinite", "T>T", isfinite, [f32, f64, f16, bf16]);
kernel!("isnan", "T>T", never, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("isinf", "T>T", never, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("isfinite", "T>T", always, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!(
    "logical_not",
    "T>T",
    logical_not,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]
);
kernel!("bitwise_not", "T>T", bitwise_not, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
