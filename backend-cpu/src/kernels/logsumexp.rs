//! `logsumexp`, in two passes: the maximum, then the sum of `exp(x - max)`.

use super::amax::Extreme;
use super::exponential::{Exp, Log};
use super::number::Apply;
use super::reduction::{Reducer, reduce_twice, reduced};
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The reducer by the sum of `exp(x - max)`; the context is the maximum.
struct Exponentials<T>(PhantomData<fn() -> T>);

impl<T: Float<Acc: Apply>> Reducer for Exponentials<T> {
    type In = T;
    type Acc = T::Acc;
    type Context = T::Acc;
    #[inline(always)]
    fn identity(&self) -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn load(&self, largest: T::Acc, x: T) -> T::Acc {
        (x.to_acc() - largest).apply::<Exp>()
    }
    #[inline(always)]
    fn combine(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a + b
    }
}

fn logsumexp<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    let passes = (&Extreme::<T, true>(PhantomData), &Exponentials::<T>(PhantomData));
    // An infinite maximum would become NaN in the difference from itself.
    let finite = |largest: T::Acc| if largest.abs() == T::Acc::INFINITY { T::Acc::ZERO } else { largest };
    reduce_twice(input, reduced(call, 1, input)?, call.out(0)?, passes, finite, |largest, sum| {
        T::from_acc(sum.apply::<Log>() + largest)
    })
}

kernel!("logsumexp", "TIb>T", logsumexp, [f32, f64, f16, bf16]);
