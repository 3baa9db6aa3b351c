//! Unary arithmetic: signs, squares, roots and reciprocals. Integers wrap.

use super::neighbours::Bits;
use super::number::{Number, real_functions};
use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Element, Error, Widen, c64, c128};
use keyway_sdk::half::{bf16, f16};

real_functions! {
    "sqrt" Sqrt Medium (f32::sqrt, f64::sqrt);
    "rsqrt" Rsqrt Medium (|x: f32| 1.0 / x.sqrt(), |x: f64| 1.0 / x.sqrt());
    "reciprocal" Reciprocal Medium (|x: f32| 1.0 / x, |x: f64| 1.0 / x);
}

fn neg_float<T: Bits>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, T::negated)
}

fn abs_float<T: Bits>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |x: T| x.with_sign_of(T::default()))
}

fn neg<T: Number>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |x: T| T::default().minus(x))
}

fn abs<T: Number + PartialOrd>(call: &Call) -> Result<(), Error> {
    let zero = T::default();
    call.map1(Cost::Cheap, |x: T| if x < zero { zero.minus(x) } else { x })
}

fn square<T: Widen<Wide: Number>>(call: &Call) -> Result<(), Error> {
    call.map1_wide::<T, T>(Cost::Cheap, |x| x.times(x))
}

fn sign<T: Widen<Wide: Number + PartialOrd>>(call: &Call) -> Result<(), Error> {
    call.map1_wide::<T, T>(Cost::Cheap, |x| {
        let (zero, one) = (T::Wide::default(), T::Wide::from_i64(1));
        let (positive, negative) = (if x > zero { one } else { zero }, if x < zero { one } else { zero });
        positive.minus(negative)
    })
}

/// `sign` of unsigned integers and bool.
fn sign_unsigned<T: Element>(call: &Call) -> Result<(), Error> {
    call.map1(Cost::Cheap, |x: T| if x == T::default() { x } else { T::from_i64(1) })
}

kernel!("neg", "T>T", neg_float, [f32, f64, f16, bf16]);
kernel!("neg", "T>T", neg, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("abs", "T>T", abs_float, [f32, f64, f16, bf16]);
kernel!("abs", "T>T", abs, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("square", "T>T", square, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]);
kernel!("sign", "T>T", sign, [f32, f64, f16, bf16, i8, i16, i32, i64]);
kernel!("sign", "T>T", sign_unsigned, [u8, u16, u32, u64, bool]);
