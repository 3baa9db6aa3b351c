//! Rounding to integers. Integer tensors are unchanged.

use super::number::{Apply, RealFunction, map_real, name_functions};
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Float};
use keyway_sdk::half::{bf16, f16};
use std::hint::black_box;

macro_rules! rounding {
    ($($op:literal $name:ident $f:ident ($f32:expr, $f64:expr);)+) => {$(
        name_functions! { $name ($f32, $f64); }

        fn $f<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
            rounded::<T, $name>(call)
        }

        kernel!($op, "T>T", $f, [f32, f64, f16, bf16]);
        kernel!($op, "T>T", same, [i8, i16, i32, i64, u8, u16, u32, u64]);
    )+};
}

rounding! {
    "floor" Floor floor (f32::floor, f64::floor);
    "ceil" Ceil ceil (f32::ceil, f64::ceil);
    "round" Round round (f32::round_ties_even, f64::round_ties_even);
    "trunc" Trunc trunc (f32::trunc, f64::trunc);
}

/// Computes `f(x - zero)` with a zero that the compiler cannot see through. Otherwise it would round a widened f16 in f16,
/// one element at a time for lack of an instruction. The subtraction preserves each `x`, including -0.
fn rounded<T: Float<Acc: Apply>, F: RealFunction>(call: &Call) -> Result<(), Error> {
    let nothing = black_box(T::Acc::from_f64(0.0));
    map_real::<T>(call, Cost::Cheap, move |x| (x - nothing).apply::<F>())
}

fn same<T: Element>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |x: T| x)
}
