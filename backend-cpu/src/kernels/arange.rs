//! `arange` and `linspace`: evenly spaced values, computed in f64, for integers in i64.

use super::indexed::produce;
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Error, Float, Int, Plain};
use keyway_sdk::half::{bf16, f16};

fn real<T: Float>(call: &Call) -> Result<(), Error> {
    let (start, step): (f64, f64) = (call.scalar(1)?, call.scalar(2)?);
    produce(call.out::<T>(0)?, Cost::Cheap, |first, values| {
        along(values, |i| start + (first as f64 + i) * step);
    })
}

/// Sets each element to `f(index)`; indices fit vectors of 32-bit integers.
#[inline(always)]
fn along<T: Plain>(values: &mut [T], f: impl Fn(f64) -> f64) {
    for (i, value) in values.iter_mut().enumerate() {
        *value = T::from_f64(f(f64::from(i as i32)));
    }
}

fn integer<T: Int>(call: &Call) -> Result<(), Error> {
    let (start, step): (i64, i64) = (call.scalar(1)?, call.scalar(2)?);
    produce(call.out::<T>(0)?, Cost::Cheap, |first, values| {
        for (i, value) in values.iter_mut().enumerate() {
            *value = T::from_i64(start.wrapping_add(step.wrapping_mul((first + i) as i64)));
        }
    })
}

fn linspace_real<T: Float>(call: &Call) -> Result<(), Error> {
    linspace::<T>(call, call.scalar(1)?, call.scalar(2)?)
}

/// `linspace` of integers: the ends are rounded towards zero first, then each value.
fn linspace_integer<T: Int>(call: &Call) -> Result<(), Error> {
    let (start, end): (f64, f64) = (call.scalar(1)?, call.scalar(2)?);
    linspace::<T>(call, start.trunc(), end.trunc())
}

/// Values are computed from the nearer end, so that both ends are exact.
fn linspace<T: Plain>(call: &Call, start: f64, end: f64) -> Result<(), Error> {
    let out = call.out::<T>(0)?;
    let last = out.numel().saturating_sub(1);
    let step = (end - start) / last.max(1) as f64;
    produce(out, Cost::Cheap, |first, values| {
        let half = (last / 2 + 1).saturating_sub(first).min(values.len());
        let (before, behind) = values.split_at_mut(half);
        along(before, |i| start + (first as f64 + i) * step);
        let left = last as f64 - (first + half) as f64;
        along(behind, |i| end - (left - i) * step);
    })
}

kernel!("arange", "Tss>T", real, [f32, f64, f16, bf16]);
kernel!("arange", "Tss>T", integer, [i8, i16, i32, i64, u8, u16, u32, u64]);
kernel!("linspace", "Tff>T", linspace_real, [f32, f64, f16, bf16]);
kernel!("linspace", "Tff>T", linspace_integer, [i8, i16, i32, i64, u8, u16, u32, u64]);
