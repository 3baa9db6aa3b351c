//! `var` and `std`, in two passes: the mean, then the squared differences from it.
//!
//! The mean is computed from the differences from the first element, so that equal elements have variance 0; its rounding error
//! is accumulated in the second pass and subtracted from the squares (corrected two-pass algorithm).

use super::reduction::{Reducer, reduce_around, reduced, reduced_count};
use keyway_sdk::author::{Call, Element, Error, Float, Real, ViewMut};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// An element in the accumulation type.
#[inline(always)]
fn wide<T: Float, A: Real>(x: T) -> A {
    A::from_f64(x.to_f64())
}

/// The reducer by the sum of differences from the first element, the context.
struct Distances<T, A>(PhantomData<fn() -> (T, A)>);

impl<T: Float, A: Real> Reducer for Distances<T, A> {
    type In = T;
    type Acc = A;
    type Context = T;
    #[inline(always)]
    fn identity(&self) -> A {
        A::ZERO
    }
    #[inline(always)]
    fn load(&self, first: T, x: T) -> A {
        wide::<T, A>(x) - wide(first)
    }
    #[inline(always)]
    fn combine(&self, a: A, b: A) -> A {
        a + b
    }
}

/// The reducer by the sums of the deviations from the mean, the context, and of their squares.
struct Squares<T, A>(PhantomData<fn() -> (T, A)>);

impl<T: Float, A: Real> Reducer for Squares<T, A> {
    type In = T;
    type Acc = [A; 2];
    type Context = A;
    #[inline(always)]
    fn identity(&self) -> [A; 2] {
        [A::ZERO; 2]
    }
    #[inline(always)]
    fn load(&self, mean: A, x: T) -> [A; 2] {
        let d = wide::<T, A>(x) - mean;
        [d, d * d]
    }
    #[inline(always)]
    fn combine(&self, [a, aa]: [A; 2], [b, bb]: [A; 2]) -> [A; 2] {
        [a + b, aa + bb]
    }
}

/// Accumulates in `A`; `finish` computes the result from the mean square.
fn spread<T: Float, A: Real>(
    call: &Call,
    out: ViewMut<'_, T>,
    finish: impl Fn(A) -> T + Sync,
) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    let mask = reduced(call, 1, input)?;
    let count = reduced_count(input.sizes(), mask);
    let divisor = A::from_f64((count as f64 - call.scalar::<f64>(2)?).max(0.0));
    let count = A::from_f64(count as f64);
    let passes = (&Distances::<T, A>(PhantomData), &Squares::<T, A>(PhantomData));
    reduce_around(
        input,
        mask,
        out,
        passes,
        |first, sum| wide::<T, A>(first) + sum / count,
        |_, [sum, squares]| {
            // An overflowing sum of squares stays infinite, without the correction.
            let whole = sum == A::ZERO || squares.to_f64() == f64::INFINITY;
            let around = if whole { squares } else { squares - sum * (sum / count) };
            finish((if around < A::ZERO { A::ZERO } else { around }) / divisor)
        },
    )
}

fn var<T: Float>(call: &Call) -> Result<(), Error> {
    spread::<T, T::Acc>(call, call.out(0)?, T::from_acc)
}

/// Squares may overflow f32 although the deviations do not: then the sums are computed again in f64.
fn std<T: Float>(call: &Call) -> Result<(), Error> {
    let is_short = size_of::<T::Acc>() < size_of::<f64>();
    let (mut out, beyond) = (call.out::<T>(0)?, AtomicBool::new(false));
    spread::<T, T::Acc>(call, out.reborrow(), |square| {
        if is_short && !(MEAN_SQUARES.contains(&square.to_f64()) || square.is_nan()) {
            beyond.store(true, Ordering::Relaxed);
        }
        T::from_acc(square.sqrt())
    })?;
    if beyond.into_inner() {
        return spread::<T, f64>(call, out, |square| T::from_f64(square.sqrt()));
    }
    Ok(())
}

/// The range of mean squares that are accurate in f32, even if most squares are subnormal.
const MEAN_SQUARES: Range<f64> = 1e-30..f32::MAX as f64;

kernel!("var", "TIsb>T", var, [f32, f64, f16, bf16]);
kernel!("std", "TIsb>T", std, [f32, f64, f16, bf16]);
