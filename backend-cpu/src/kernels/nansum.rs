//! `nansum`

use super::reduction::{Reducer, reduce, reduced};
use super::sum::sum_int;
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The sum of floats in their accumulation type, of which NaN counts as 0.
struct NumberSum<T>(PhantomData<fn() -> T>);

impl<T: Float> Reducer for NumberSum<T> {
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
        if x.is_nan() { T::Acc::ZERO } else { x }
    }
    #[inline(always)]
    fn combine(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a + b
    }
}

fn nansum<T: Float>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    reduce(input, reduced(call, 1, input)?, call.out(0)?, &NumberSum(PhantomData), T::from_acc)
}

kernel!("nansum", "TIb>T", nansum, [f32, f64, f16, bf16]);
kernel!("nansum", "TIb>T", sum_int, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
