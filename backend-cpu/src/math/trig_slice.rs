//! `sin`, `cos` and `tan` of slices: vectorised for each block, then a second pass over blocks with elements that are too
//! large.

use super::trig::{
    FAST_LIMIT_F32, FAST_LIMIT_F64, NEAR_LIMIT_F32, cos_fast_f32, cos_fast_f64, cos_near_f32, sin_fast_f32,
    sin_fast_f64, sin_near_f32, tan_fast_f32, tan_fast_f64, tan_near_f32,
};

/// Elements per block. The check for large elements is once per block.
const BLOCK: usize = 256;

/// Applies `near` to each element, and `far` to blocks with an element for which `is_far` holds.
#[inline(always)]
fn by_block<T: Copy>(
    x: &[T],
    out: &mut [T],
    near: impl Fn(T) -> T,
    is_far: impl Fn(T) -> bool,
    far: impl Fn(&[T], &mut [T]),
) {
    assert_eq!(x.len(), out.len(), "input and output must have the same length");
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let mut any_far = false;
        for &value in x {
            any_far |= is_far(value);
        }
        for (value, result) in x.iter().zip(out.iter_mut()) {
            *result = near(*value);
        }
        if any_far {
            far(x, out);
        }
    }
}

/// Applies `near`, `fast` or `slow` to each element, depending on its magnitude.
#[inline(always)]
fn by_size_f32(
    x: &[f32],
    out: &mut [f32],
    near: impl Fn(f32) -> f32,
    fast: impl Fn(f32) -> f32,
    slow: impl Fn(f32) -> f32,
) {
    by_block(
        x,
        out,
        near,
        |v| v.abs() > NEAR_LIMIT_F32,
        |x, out| {
            for (value, result) in x.iter().zip(out.iter_mut()) {
                let far = fast(*value);
                *result = if value.abs() > NEAR_LIMIT_F32 { far } else { *result };
            }
            for (value, result) in x.iter().zip(out) {
                if value.abs() > FAST_LIMIT_F32 {
                    *result = slow(*value);
                }
            }
        },
    );
}

/// Applies `fast` or `slow` to each element, depending on its magnitude.
#[inline(always)]
fn by_size_f64(x: &[f64], out: &mut [f64], fast: impl Fn(f64) -> f64, slow: impl Fn(f64) -> f64) {
    by_block(
        x,
        out,
        fast,
        |v| v.abs() > FAST_LIMIT_F64,
        |x, out| {
            for (value, result) in x.iter().zip(out) {
                if value.abs() > FAST_LIMIT_F64 {
                    *result = slow(*value);
                }
            }
        },
    );
}

/// [`super::sin_f32`] of each element. Panics if the lengths differ.
pub fn sin_slice_f32(x: &[f32], out: &mut [f32]) {
    by_size_f32(x, out, sin_near_f32, sin_fast_f32, f32::sin);
}

/// [`super::cos_f32`] of each element. Panics if the lengths differ.
pub fn cos_slice_f32(x: &[f32], out: &mut [f32]) {
    by_size_f32(x, out, cos_near_f32, cos_fast_f32, f32::cos);
}

/// [`super::tan_f32`] of each element. Panics if the lengths differ.
pub fn tan_slice_f32(x: &[f32], out: &mut [f32]) {
    by_size_f32(x, out, tan_near_f32, tan_fast_f32, f32::tan);
}

/// [`super::sin_f64`] of each element. Panics if the lengths differ.
pub fn sin_slice_f64(x: &[f64], out: &mut [f64]) {
    by_size_f64(x, out, sin_fast_f64, f64::sin);
}

/// [`super::cos_f64`] of each element. Panics if the lengths differ.
pub fn cos_slice_f64(x: &[f64], out: &mut [f64]) {
    by_size_f64(x, out, cos_fast_f64, f64::cos);
}

/// [`super::tan_f64`] of each element. Panics if the lengths differ.
pub fn tan_slice_f64(x: &[f64], out: &mut [f64]) {
    by_size_f64(x, out, tan_fast_f64, f64::tan);
}
