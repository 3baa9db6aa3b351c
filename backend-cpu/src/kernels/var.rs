//! `var` and `std`, in two passes: the mean, then the squares of what differs from it.

use super::reduction::{Reducer, reduce_twice, reduced};
use super::sum::FloatSum;
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The sum of squares around the mean, which is the context.
struct Squares<T>(PhantomData<fn() -> T>);

impl<T: Float> Reducer for Squares<T> {
    type In = T;
    type Acc = T::Acc;
    type Context = T::Acc;
    #[inline(always)]
    fn identity(&self) -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn load(&self, mean: T::Acc, x: T) -> T::Acc {
        let d = x.to_acc() - mean;
        d * d
    }
    #[inline(always)]
    fn combine(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a + b
    }
}

fn variance<T: Float>(call: &Call, finish: impl Fn(T::Acc) -> T::Acc + Sync) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    let mask = reduced(call, 1, input)?;
    let count: usize = input
        .sizes()
        .iter()
        .enumerate()
        .filter(|(i, _)| mask >> i & 1 != 0)
        .map(|(_, n)| *n as usize)
        .product();
    let divisor = T::Acc::from_f64((count as f64 - call.scalar::<f64>(2)?).max(0.0));
    let count = T::Acc::from_f64(count as f64);
    let passes = (&FloatSum::<T>(PhantomData), &Squares::<T>(PhantomData));
    reduce_twice(
        input,
        mask,
        call.out(0)?,
        passes,
        |sum| sum / count,
        |_, squares| T::from_acc(finish(squares / divisor)),
    )
}

fn var<T: Float>(call: &Call) -> Result<(), Error> {
    variance::<T>(call, |v| v)
}

fn std<T: Float>(call: &Call) -> Result<(), Error> {
    variance::<T>(call, |v| v.sqrt())
}

kernel!("var", "TIsb>T", var, [f32, f64, f16, bf16]);
kernel!("std", "TIsb>T", std, [f32, f64, f16, bf16]);
