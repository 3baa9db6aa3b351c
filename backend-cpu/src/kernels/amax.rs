//! `amax` and `amin`: NaN wins.

use super::any::truth;
use super::reduction::{Reducer, reduce, reduced};
use keyway_sdk::author::{Call, Element, Error};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The largest (`MAX`) or smallest element, NaN if there is one.
pub struct Extreme<T, const MAX: bool>(pub PhantomData<fn() -> T>);

impl<T: Element, const MAX: bool> Reducer for Extreme<T, MAX> {
    type In = T;
    type Acc = T;
    type Context = ();
    #[inline(always)]
    fn identity(&self) -> T {
        T::from_f64(if MAX { f64::NEG_INFINITY } else { f64::INFINITY })
    }
    #[inline(always)]
    fn load(&self, (): (), x: T) -> T {
        x
    }
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn combine(&self, a: T, b: T) -> T {
        let keep = if MAX { a >= b } else { a <= b };
        if keep | (a != a) { a } else { b }
    }
}

fn extreme<T: Element, const MAX: bool>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    reduce(input, reduced(call, 1, input)?, call.out(0)?, &Extreme::<T, MAX>(PhantomData), |acc: T| acc)
}

fn amax<T: Element>(call: &Call) -> Result<(), Error> {
    extreme::<T, true>(call)
}

fn amin<T: Element>(call: &Call) -> Result<(), Error> {
    extreme::<T, false>(call)
}

fn amax_bool<T: Element>(call: &Call) -> Result<(), Error> {
    truth::<T, false>(call)
}

fn amin_bool<T: Element>(call: &Call) -> Result<(), Error> {
    truth::<T, true>(call)
}

kernel!("amax", "TIb>T", amax, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("amin", "TIb>T", amin, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("amax", "TIb>T", amax_bool, [bool]);
kernel!("amin", "TIb>T", amin_bool, [bool]);
