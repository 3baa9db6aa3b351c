//! `prod`

use super::reduction::{LANES, Reducer, reduce, reduced};
use keyway_cpu_loops::vectors::halves;
use keyway_sdk::author::{Call, Element, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};
use std::marker::PhantomData;

struct FloatProduct<T>(PhantomData<fn() -> T>);

impl<T: Float> Reducer for FloatProduct<T> {
    type In = T;
    type Acc = T::Acc;
    type Context = ();
    /// Products of many fractions become subnormal, and then slow, before they underflow to 0: so blocks are large.
    const BLOCK: usize = 1024 * 1024;
    #[inline(always)]
    fn identity(&self) -> T::Acc {
        T::Acc::ONE
    }
    #[inline(always)]
    fn load(&self, (): (), x: T) -> T::Acc {
        x.to_acc()
    }
    #[inline(always)]
    fn combine(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a * b
    }
    /// The lanes are combined in f64, where fewer products are subnormal.
    #[inline(always)]
    fn total(&self, lanes: &mut [T::Acc; LANES]) -> T::Acc {
        let mut wide = [1.0; LANES / 2];
        for k in 0..LANES / 2 {
            wide[k] = lanes[k].to_f64() * lanes[k + LANES / 2].to_f64();
        }
        T::Acc::from_f64(halves(&mut wide, |a, b| a * b))
    }
}

/// The reducer by integer products modulo 2^64.
struct IntProduct<T>(PhantomData<fn() -> T>);

impl<T: Element> Reducer for IntProduct<T> {
    type In = T;
    type Acc = i64;
    type Context = ();
    const ANY_ORDER: bool = true;
    #[inline(always)]
    fn identity(&self) -> i64 {
        1
    }
    #[inline(always)]
    fn load(&self, (): (), x: T) -> i64 {
        x.to_i64()
    }
    #[inline(always)]
    fn combine(&self, a: i64, b: i64) -> i64 {
        a.wrapping_mul(b)
    }
}

fn prod<T: Float>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    reduce(input, reduced(call, 1, input)?, call.out(0)?, &FloatProduct(PhantomData), T::from_acc)
}

fn prod_int<T: Element>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    reduce(input, reduced(call, 1, input)?, call.out(0)?, &IntProduct::<T>(PhantomData), |acc: i64| acc)
}

kernel!("prod", "TIb>T", prod, [f32, f64, f16, bf16]);
kernel!("prod", "TIb>T", prod_int, [i8, i16, i32, i64, u8, u16, u32, u64, bool]);
