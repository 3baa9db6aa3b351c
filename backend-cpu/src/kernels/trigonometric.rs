//! Trigonometric functions and their inverses.

use super::number::real_functions;
use crate::math;
use keyway_cpu_loops::{Cost, map1_slices, narrow_slice};
use keyway_sdk::author::{Call, Error, Float, Real};
use keyway_sdk::half::{bf16, f16};

real_functions! {
    "asin" Asin Medium (math::asin_f32, math::asin_f64);
    "acos" Acos Medium (math::acos_f32, math::acos_f64);
    "atan" Atan Medium (math::atan_f32, math::atan_f64);
}

/// `sin`, `cos` and `tan` of slices: only a slice without huge arguments is computed by vectors throughout.
trait Circular: Real {
    fn sin_slice(x: &[Self], out: &mut [Self]);
    fn cos_slice(x: &[Self], out: &mut [Self]);
    fn tan_slice(x: &[Self], out: &mut [Self]);
}

impl Circular for f32 {
    fn sin_slice(x: &[f32], out: &mut [f32]) {
        math::sin_slice_f32(x, out);
    }
    fn cos_slice(x: &[f32], out: &mut [f32]) {
        math::cos_slice_f32(x, out);
    }
    fn tan_slice(x: &[f32], out: &mut [f32]) {
        math::tan_slice_f32(x, out);
    }
}

impl Circular for f64 {
    fn sin_slice(x: &[f64], out: &mut [f64]) {
        math::sin_slice_f64(x, out);
    }
    fn cos_slice(x: &[f64], out: &mut [f64]) {
        math::cos_slice_f64(x, out);
    }
    fn tan_slice(x: &[f64], out: &mut [f64]) {
        math::tan_slice_f64(x, out);
    }
}

/// Applies a function of slices to argument 0, a block at a time in the accumulation type.
fn by_block<T: Float>(call: &Call, f: impl Fn(&[T::Acc], &mut [T::Acc]) + Sync) -> Result<(), Error> {
    const BLOCK: usize = 256;
    map1_slices(call.view::<T>(0)?, call.out::<T>(0)?, Cost::Medium, |x: &[T], out: &mut [T]| {
        let (mut wide, mut result) = ([T::Acc::ZERO; BLOCK], [T::Acc::ZERO; BLOCK]);
        for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            let n = x.len();
            wide.iter_mut().zip(x).for_each(|(to, from)| *to = from.to_acc());
            f(&wide[..n], &mut result[..n]);
            narrow_slice(&result[..n], out);
        }
    })
}

fn sin<T: Float<Acc: Circular>>(call: &Call) -> Result<(), Error> {
    by_block::<T>(call, T::Acc::sin_slice)
}

fn cos<T: Float<Acc: Circular>>(call: &Call) -> Result<(), Error> {
    by_block::<T>(call, T::Acc::cos_slice)
}

fn tan<T: Float<Acc: Circular>>(call: &Call) -> Result<(), Error> {
    by_block::<T>(call, T::Acc::tan_slice)
}

kernel!("sin", "T>T", sin, [f32, f64, f16, bf16]);
kernel!("cos", "T>T", cos, [f32, f64, f16, bf16]);
kernel!("tan", "T>T", tan, [f32, f64, f16, bf16]);
