//! `var` and `std`, in two passes: the mean, then the squares of what differs from it.
//!
//! The mean is that of the distances from the first element, so that equal numbers have no variance at all, and what it is
//! off by rounding is found in the second pass and taken from the squares.

use super::reduction::{Reducer, reduce_around, reduced};
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The sum of distances from the first element, which is the context.
struct Distances<T>(PhantomData<fn() -> T>);

impl<T: Float> Reducer for Distances<T> {
    type In = T;
    type Acc = T::Acc;
    type Context = T;
    #[inline(always)]
    fn identity(&self) -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn load(&self, first: T, x: T) -> T::Acc {
        x.to_acc() - first.to_acc()
    }
    #[inline(always)]
    fn combine(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a + b
    }
}

/// The sums of distances from the mean, which is the context, and of their squares.
struct Squares<T>(PhantomData<fn() -> T>);

impl<T: Float> Reducer for Squares<T> {
    type In = T;
    type Acc = [T::Acc; 2];
    type Context = T::Acc;
    #[inline(always)]
    fn identity(&self) -> [T::Acc; 2] {
        [T::Acc::ZERO; 2]
    }
    #[inline(always)]
    fn load(&self, mean: T::Acc, x: T) -> [T::Acc; 2] {
        let d = x.to_acc() - mean;
        [d, d * d]
    }
    #[inline(always)]
    fn combine(&self, [a, aa]: [T::Acc; 2], [b, bb]: [T::Acc; 2]) -> [T::Acc; 2] {
        [a + b, aa + bb]
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
    let passes = (&Distances::<T>(PhantomData), &Squares::<T>(PhantomData));
    reduce_around(
        input,
        mask,
        call.out(0)?,
        passes,
        |first, sum| first.to_acc() + sum / count,
        |_, [sum, squares]| {
            // Squares that the type does not hold are infinite, whatever would be taken from them.
            let whole = sum == T::Acc::ZERO || squares.to_f64() == f64::INFINITY;
            let around = if whole { squares } else { squares - sum * (sum / count) };
            T::from_acc(finish((if around < T::Acc::ZERO { T::Acc::ZERO } else { around }) / divisor))
        },
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
