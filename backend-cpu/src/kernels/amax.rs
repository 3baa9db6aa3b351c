//! `amax` and `amin`; NaN propagates.

use super::any::truth;
use super::reduction::{Reducer, reduce, reduced};
use keyway_sdk::author::{Call, Element, Error, Widen};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The reducer to the largest (`MAX`) or smallest element, or to NaN if there is one.
pub struct Extreme<T, const MAX: bool>(pub PhantomData<fn() -> T>);

impl<T: Widen<Wide: PartialOrd>, const MAX: bool> Reducer for Extreme<T, MAX> {
    type In = T;
    type Acc = T::Wide;
    type Context = ();
    /// Only integers: with floats, zeros of both signs and NaN depend on the order.
    const ANY_ORDER: bool = matches!(T::NAME.as_bytes()[0], b'i' | b'u');
    #[inline(always)]
    fn identity(&self) -> T::Wide {
        T::Wide::from_f64(if MAX { f64::NEG_INFINITY } else { f64::INFINITY })
    }
    #[inline(always)]
    fn load(&self, (): (), x: T) -> T::Wide {
        x.widen()
    }
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn combine(&self, a: T::Wide, b: T::Wide) -> T::Wide {
        let keep = if MAX { a >= b } else { a <= b };
        if keep | (a != a) { a } else { b }
    }
}

fn extreme<T: Widen<Wide: PartialOrd>, const MAX: bool>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    reduce(input, reduced(call, 1, input)?, call.out(0)?, &Extreme::<T, MAX>(PhantomData), T::narrow)
}

fn amax<T: Widen<Wide: PartialOrd>>(call: &Call) -> Result<(), Error> {
    extreme::<T, true>(call)
}

fn amin<T: Widen<Wide: PartialOrd>>(call: &Call) -> Result<(), Error> {
    extreme::<T, false>(call)
}

fn amax_bool<T: Widen<Wide: PartialOrd>>(call: &Call) -> Result<(), Error> {
    truth::<T, false>(call)
}

fn amin_bool<T: Widen<Wide: PartialOrd>>(call: &Call) -> Result<(), Error> {
    truth::<T, true>(call)
}

kernel!("amax", "TIb>T", amax, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("amin", "TIb>T", amin, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("amax", "TIb>T", amax_bool, [bool]);
kernel!("amin", "TIb>T", amin_bool, [bool]);
