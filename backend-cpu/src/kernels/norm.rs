//! `norm`

use super::number::Apply;
use super::reduction::{Reducer, reduce, reduced};
use crate::math;
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

/// The norms that have loops of their own.
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

/// Powers of numbers that are not negative.
trait Power: Apply {
    fn power(self, exponent: Self) -> Self;
}

impl Power for f32 {
    #[inline(always)]
    fn power(self, exponent: f32) -> f32 {
        math::pow_f32(self, exponent)
    }
}

impl Power for f64 {
    #[inline(always)]
    fn power(self, exponent: f64) -> f64 {
        math::pow_f64(self, exponent)
    }
}

fn norm<T: Float<Acc: Power>>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    let p: f64 = call.scalar(1)?;
    let mask = reduced(call, 2, input)?;
    let out = call.out(0)?;
    let exact = T::Acc::from_f64(p);
    macro_rules! kind {
        ($kind:expr, $finish:expr) => {
            reduce(input, mask, out, &Norm::<T, { $kind }>(exact, PhantomData), $finish)
        };
    }
    if p == 0.0 {
        kind!(ZERO, T::from_acc)
    } else if p == 1.0 {
        kind!(ONE, T::from_acc)
    } else if p == 2.0 {
        kind!(TWO, |acc: T::Acc| T::from_acc(acc.sqrt()))
    } else if p == f64::INFINITY {
        kind!(LARGEST, T::from_acc)
    } else if p == f64::NEG_INFINITY {
        kind!(SMALLEST, T::from_acc)
    } else {
        let root = T::Acc::from_f64(1.0 / p);
        kind!(GENERAL, |acc: T::Acc| T::from_acc(acc.power(root)))
    }
}

kernel!("norm", "TsIb>T", norm, [f32, f64, f16, bf16]);
