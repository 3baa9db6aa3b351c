//! `any` and `all`

use super::reduction::{Reducer, reduce, reduced};
use keyway_sdk::author::{Call, Error, Widen, c64, c128};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The reducer by logical or (`ALL` false) or logical and (`ALL` true).
pub struct Truth<T, const ALL: bool>(pub PhantomData<fn() -> T>);

impl<T: Widen, const ALL: bool> Reducer for Truth<T, ALL> {
    type In = T;
    type Acc = u8;
    type Context = ();
    #[inline(always)]
    fn identity(&self) -> u8 {
        u8::from(ALL)
    }
    #[inline(always)]
    fn load(&self, (): (), x: T) -> u8 {
        u8::from(x.widen() != T::Wide::default())
    }
    #[inline(always)]
    fn combine(&self, a: u8, b: u8) -> u8 {
        if ALL { a & b } else { a | b }
    }
}

/// Whether any element, or all elements, are nonzero, for each output.
pub fn truth<T: Widen, const ALL: bool>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    reduce(input, reduced(call, 1, input)?, call.out(0)?, &Truth::<T, ALL>(PhantomData), |acc| acc != 0)
}

fn any<T: Widen>(call: &Call) -> Result<(), Error> {
    truth::<T, false>(call)
}

fn all<T: Widen>(call: &Call) -> Result<(), Error> {
    truth::<T, true>(call)
}

kernel!("any", "TIb>T", any, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]);
kernel!("all", "TIb>T", all, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128]);
