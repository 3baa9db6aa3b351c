//! `sin`, `cos` and `tan` of slices: vector code for each block, then a scalar pass over the
//! elements beyond the fast range, if the block has any.

use super::trig::{
    FAST_LIMIT_F32, FAST_LIMIT_F64, cos_fast_f32, cos_fast_f64, sin_fast_f32, sin_fast_f64, tan_fast_f32,
    tan_fast_f64,
};

/// Elements a block. The elements that need the slow pass are looked for once a block.
const BLOCK: usize = 256;

#[inline(always)]
fn by_block<T: Copy>(
    x: &[T],
    out: &mut [T],
    fast: impl Fn(T) -> T,
    is_slow: impl Fn(T) -> bool,
    slow: impl Fn(T) -> T,
) {
    assert_eq!(x.len(), out.len(), "input and output must have the same length");
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let mut any_slow = false;
        for &value in x {
            any_slow |= is_slow(value);
        }
        for (value, result) in x.iter().zip(out.iter_mut()) {
            *result = fast(*value);
        }
        if any_slow {
            for (value, result) in x.iter().zip(out) {
                if is_slow(*value) {
                    *result = slow(*value);
                }
            }
        }
    }
}

/// [`super::sin_f32`] of each element. Panics when the lengths differ.
pub fn sin_slice_f32(x: &[f32], out: &mut [f32]) {
    by_block(x, out, sin_fast_f32, |v| v.abs() > FAST_LIMIT_F32, f32::sin);
}

/// [`super::cos_f32`] of each element. Panics when the lengths differ.
pub fn cos_slice_f32(x: &[f32], out: &mut [f32]) {
    by_block(x, out, cos_fast_f32, |v| v.abs() > FAST_LIMIT_F32, f32::cos);
}

/// [`super::tan_f32`] of each element. Panics when the lengths differ.
pub fn tan_slice_f32(x: &[f32], out: &mut [f32]) {
    by_block(x, out, tan_fast_f32, |v| v.abs() > FAST_LIMIT_F32, f32::tan);
}

/// [`super::sin_f64`] of each element. Panics when the lengths differ.
pub fn sin_slice_f64(x: &[f64], out: &mut [f64]) {
    by_block(x, out, sin_fast_f64, |v| v.abs() > FAST_LIMIT_F64, f64::sin);
}

/// [`super::cos_f64`] of each element. Panics when the lengths differ.
pub fn cos_slice_f64(x: &[f64], out: &mut [f64]) {
    by_block(x, out, cos_fast_f64, |v| v.abs() > FAST_LIMIT_F64, f64::cos);
}

/// [`super::tan_f64`] of each element. Panics when the lengths differ.
pub fn tan_slice_f64(x: &[f64], out: &mut [f64]) {
    by_block(x, out, tan_fast_f64, |v| v.abs() > FAST_LIMIT_F64, f64::tan);
}
