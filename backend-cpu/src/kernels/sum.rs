//! `sum`

use super::reduction::{Reducer, reduce, reduced};
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The sum of floats in their accumulation type; without `NAN`, NaN elements are skipped.
pub struct FloatSum<T, const NAN: bool>(PhantomData<fn() -> T>);

impl<T, const NAN: bool> FloatSum<T, NAN> {
    pub const NEW: Self = FloatSum(PhantomData);
}

impl<T: Float, const NAN: bool> Reducer for FloatSum<T, NAN> {
    type In = T;
    type Acc = T::Acc;
    type Context = ();
    #[inline(always)]
    fn identity(&self) -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn load(&self, (): (), x: T) -> T::Acc {
        let x = x.to_acc();
        if NAN || !x.is_nan() { x } else { T::Acc::ZERO }
    }
    #[inline(always)]
    fn combine(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a + b
    }
}

/// The sum of integers or bools, modulo 2^64.
struct IntSum<T>(PhantomData<fn() -> T>);

impl<T: Element> Reducer for IntSum<T> {
    type In = T;
    type Acc = i64;
    type Context = ();
    const ANY_ORDER: bool = true;
    #[inline(always)]
    fn identity(&self) -> i64 {
        0
    }
    #[inline(always)]
    fn load(&self, (): (), x: T) -> i64 {
        x.to_i64()
    }
    #[inline(always)]
    fn combine(&self, a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
}

/// `sum` of floats, or `nansum`.
pub(super) fn sum_float<T: Float, const NAN: bool>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    reduce(input, reduced(call, 1, input)?, call.out(0)?, &FloatSum::<T, NAN>::NEW, T::from_acc)
}

fn sum<T: Float>(call: &Call) -> Result<(), Error> {
    sum_float::<T, true>(call)
}

pub(super) fn sum_int<T: Element>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    reduce(input, reduced(call, 1, input)?, call.out(0)?, &IntSum::<T>(PhantomData), |acc: i64| acc)
}

kernel!("sum", "TIb>T", sum, [f32, f64, f16, bf16]);
kernel!("sum", "TIb>T", sum_int, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
