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

/// `sin`, `cos` and `tan` of slices: a slice without huge arguments is fully vectorised.
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

/// A float whose slices are computed by slice functions of the accumulation type.
trait Slices: Float<Acc: Circular> {
    fn apply(x: &[Self], out: &mut [Self], f: impl Fn(&[Self::Acc], &mut [Self::Acc]));
}

macro_rules! slices_as_they_are {
    ($($t:ty)*) => {$(
        impl Slices for $t {
            #[inline(always)]
            fn apply(x: &[$t], out: &mut [$t], f: impl Fn(&[$t], &mut [$t])) {
                f(x, out);
            }
        }
    )*};
}
slices_as_they_are!(f32 f64);

macro_rules! slices_by_block {
    ($($t:ty)*) => {$(
        impl Slices for $t {
            #[inline(always)]
            fn apply(x: &[$t], out: &mut [$t], f: impl Fn(&[f32], &mut [f32])) {
                const BLOCK: usize = 256;
                let (mut wide, mut result) = ([0.0; BLOCK], [0.0; BLOCK]);
                for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                    let n = x.len();
                    wide.iter_mut().zip(x).for_each(|(to, from)| *to = from.to_acc());
                    f(&wide[..n], &mut result[..n]);
                    narrow_slice(&result[..n], out);
                }
            }
        }
    )*};
}
slices_by_block!(f16 bf16);

/// Applies a slice function to argument 0.
fn by_slice<T: Slices>(call: &Call, f: impl Fn(&[T::Acc], &mut [T::Acc]) + Sync) -> Result<(), Error> {
    let (x, out) = (call.view::<T>(0)?, call.out::<T>(0)?);
    map1_slices(x, out, Cost::Medium, |x: &[T], out: &mut [T]| T::apply(x, out, &f))
}

fn sin<T: Slices>(call: &Call) -> Result<(), Error> {
    by_slice::<T>(call, T::Acc::sin_slice)
}

fn cos<T: Slices>(call: &Call) -> Result<(), Error> {
    by_slice::<T>(call, T::Acc::cos_slice)
}

fn tan<T: Slices>(call: &Call) -> Result<(), Error> {
    by_slice::<T>(call, T::Acc::tan_slice)
}

kernel!("sin", "T>T", sin, [f32, f64, f16, bf16]);
kernel!("cos", "T>T", cos, [f32, f64, f16, bf16]);
kernel!("tan", "T>T", tan, [f32, f64, f16, bf16]);
