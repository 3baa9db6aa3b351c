//! `norm`
//!
//! Sums of squares or other powers may overflow or underflow although the norm is finite, as for 1e20 in f32. The first
//! pass adds plain powers; for lines whose sum is close to the limits of the range, a second pass finds the largest element
//! and adds powers of quotients by the power of two below it, as LAPACK's `nrm2` does. Scaling by a power of two is exact
//! for squares, so that a line has the same norm from either pass, independent of other lines.

use super::number::Apply;
use super::reduction::{Reducer, reduce, reduce_twice, reduce_within, reduced};
use crate::math;
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The norms with loops of their own; `GENERAL` is any other order.
const ZERO: u8 = 0;
const ONE: u8 = 1;
const TWO: u8 = 2;
const LARGEST: u8 = 3;
const SMALLEST: u8 = 4;
const GENERAL: u8 = 5;

struct Norm<T: Float, const KIND: u8>(T::Acc, PhantomData<fn() -> T>);

impl<T: Float<Acc: Power>, const KIND: u8> Reducer for Norm<T, KIND> {
    type In = T;
    type Acc = T::Acc;
    type Context = ();
    #[inline(always)]
    fn identity(&self) -> T::Acc {
        if KIND == SMALLEST { T::Acc::INFINITY } else { T::Acc::ZERO }
    }
    #[inline(always)]
    fn load(&self, (): (), x: T) -> T::Acc {
        let x = x.to_acc();
        match KIND {
            ZERO => {
                if x == T::Acc::ZERO {
                    T::Acc::ZERO
                } else {
                    T::Acc::ONE
                }
            }
            TWO => x * x,
            GENERAL => x.abs().power(self.0),
            _ => x.abs(),
        }
    }
    #[inline(always)]
    fn combine(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        match KIND {
            LARGEST => {
                if (a >= b) | a.is_nan() {
                    a
                } else {
                    b
                }
            }
            SMALLEST => {
                if (a <= b) | a.is_nan() {
                    a
                } else {
                    b
                }
            }
            _ => a + b,
        }
    }
}

/// The reducer by the sum of powers of elements times a factor, the same for a whole line.
struct Scaled<T: Float, const KIND: u8>(T::Acc, PhantomData<fn() -> T>);

impl<T: Float<Acc: Power>, const KIND: u8> Reducer for Scaled<T, KIND> {
    type In = T;
    type Acc = T::Acc;
    type Context = T::Acc;
    #[inline(always)]
    fn identity(&self) -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn load(&self, factor: T::Acc, x: T) -> T::Acc {
        let x = x.to_acc() * factor;
        if KIND == TWO { x * x } else { x.abs().power(self.0) }
    }
    #[inline(always)]
    fn combine(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a + b
    }
}

/// Powers of non-negative values.
trait Power: Apply {
    /// The smallest positive normal value.
    const LEAST_NORMAL: Self;
    /// The exponent of the largest power of two whose reciprocal is normal.
    const LARGEST_EXPONENT: i64;
    fn power(self, exponent: Self) -> Self;
}

impl Power for f32 {
    const LEAST_NORMAL: f32 = f32::MIN_POSITIVE;
    const LARGEST_EXPONENT: i64 = 126;
    #[inline(always)]
    fn power(self, exponent: f32) -> f32 {
        math::pow_f32(self, exponent)
    }
}

impl Power for f64 {
    const LEAST_NORMAL: f64 = f64::MIN_POSITIVE;
    const LARGEST_EXPONENT: i64 = 1022;
    #[inline(always)]
    fn power(self, exponent: f64) -> f64 {
        math::pow_f64(self, exponent)
    }
}

/// The power of two that scales a value to the range 1 to 2, clamped to the valid factors; 1 for 0, infinity and NaN.
fn factor<A: Power>(size: A) -> A {
    let size = size.to_f64();
    if !(size > 0.0 && size < f64::INFINITY) {
        return A::ONE;
    }
    let exponent = (size.to_bits() >> 52) as i64 - 1023;
    let exponent = (-exponent).clamp(-A::LARGEST_EXPONENT, A::LARGEST_EXPONENT);
    A::from_f64(f64::from_bits(((exponent + 1023) as u64) << 52))
}

/// The norms that are roots of sums of powers, for `TWO` and `GENERAL`.
fn by_powers<T: Float<Acc: Power>, const KIND: u8>(
    call: &Call,
    mask: u64,
    exact: T::Acc,
    root: impl Fn(T::Acc) -> T::Acc + Sync,
) -> Result<(), Error> {
    let (input, mut out) = (call.view::<T>(0)?, call.out::<T>(0)?);
    let lines = out.sizes().iter().product::<i64>().max(1);
    let count = input.sizes().iter().product::<i64>() / lines;
    // Each subnormal power has an error of up to half of the subnormal spacing.
    let least = T::Acc::LEAST_NORMAL * T::Acc::from_f64(count.max(1) as f64);
    let is_within = |sum: T::Acc| sum.is_nan() | (sum >= least) & (sum < T::Acc::INFINITY);
    let plain = Norm::<T, KIND>(exact, PhantomData);
    if KIND == TWO && T::NAME == f16::NAME {
        // All squares of f16 are normal values of f32.
        return reduce(input, mask, out, &plain, |sum| T::from_acc(root(sum)));
    }
    if reduce_within(input, mask, &mut out, &plain, |sum| T::from_acc(root(sum)), is_within)? {
        return Ok(());
    }
    let scaled = Scaled::<T, KIND>(exact, PhantomData);
    let finish = |factor: T::Acc, sum: T::Acc| T::from_acc(root(sum) / factor);
    if KIND == TWO || exact > T::Acc::ZERO {
        let extreme = Norm::<T, LARGEST>(exact, PhantomData);
        reduce_twice(input, mask, out, (&extreme, &scaled), factor::<T::Acc>, finish)
    } else {
        // For negative orders, the power of the smallest element is the largest.
        let extreme = Norm::<T, SMALLEST>(exact, PhantomData);
        reduce_twice(input, mask, out, (&extreme, &scaled), factor::<T::Acc>, finish)
    }
}

fn norm<T: Float<Acc: Power>>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    let p: f64 = call.scalar(1)?;
    let mask = reduced(call, 2, input)?;
    let exact = T::Acc::from_f64(p);
    macro_rules! kind {
        ($kind:expr, $finish:expr) => {
            reduce(input, mask, call.out(0)?, &Norm::<T, { $kind }>(exact, PhantomData), $finish)
        };
    }
    if p == 0.0 {
        kind!(ZERO, T::from_acc)
    } else if p == 1.0 {
        kind!(ONE, T::from_acc)
    } else if p == 2.0 {
        by_powers::<T, TWO>(call, mask, exact, |sum| sum.sqrt())
    } else if p == f64::INFINITY {
        kind!(LARGEST, T::from_acc)
    } else if p == f64::NEG_INFINITY {
        kind!(SMALLEST, T::from_acc)
    } else {
        let root = T::Acc::from_f64(1.0 / p);
        by_powers::<T, GENERAL>(call, mask, exact, move |sum| sum.power(root))
    }
}

kernel!("norm", "TsIb>T", norm, [f32, f64, f16, bf16]);
