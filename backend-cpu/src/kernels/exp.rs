//! `exp`

use super::kernel;
use super::number::{Apply, RealFunction};
use crate::math;
use keyway_sdk::author::{Call, Cost, Error, Float, map1};
use keyway_sdk::half::{bf16, f16};

struct Exp;

impl RealFunction for Exp {
    #[inline(always)]
    fn f32(x: f32) -> f32 {
        math::exp_f32(x)
    }
    #[inline(always)]
    fn f64(x: f64) -> f64 {
        math::exp_f64(x)
    }
}

fn exp<T: Float<Acc: Apply>>(call: &Call) -> Result<(), Error> {
    map1(call.view::<T>(0)?, call.out::<T>(0)?, Cost::Medium, |x: T| T::from_acc(x.to_acc().apply::<Exp>()))
}

kernel!("exp", "T>T", exp, [f32, f64, f16, bf16]);
