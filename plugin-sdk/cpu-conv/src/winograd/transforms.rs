//! The forward and inverse transforms, each of a vector of channels: plain loops with constant bounds, which the compiler
//! unrolls with all values in registers.

#![expect(
    clippy::needless_range_loop,
    reason = "numbers stay in registers only where each index is a constant"
)]

use super::algorithms::{Transforms, times};
use crate::image::{Numbers, Pixel};
use keyway_cpu_loops::vectors::{Vector, read_some, sum};

/// Whether a sum of squares exceeds a [limit](Transforms::LARGE), or is NaN.
#[inline]
pub fn is_large(squares: f32, limit: f32) -> bool {
    squares.is_nan() || squares >= limit
}

#[inline(always)]
fn column<const HEIGHT: usize, const WIDTH: usize>(
    rows: &[[Numbers; WIDTH]; HEIGHT],
    x: usize,
) -> [Numbers; HEIGHT] {
    let mut column = [Numbers::splat(0.0); HEIGHT];
    for y in 0..HEIGHT {
        column[y] = rows[y][x];
    }
    column
}

/// Transforms the pixels of a tile in both dimensions, each from `FROM` pixels to `TO`, times `scale`; the vector of
/// channels starting at `c`, a multiple of `step`, is stored at `place(c)`, and the vectors of the other products follow
/// with stride `apart`. Lanes beyond the channels are 0. The squares of all pixels are added to `squares`.
///
/// # Safety
/// The pixels must have these channels, and the products must have capacity for whole vectors, uniquely owned.
#[inline(always)]
pub unsafe fn spread<T: Pixel, const FROM: usize, const TO: usize>(
    pixels: &[[*const T; FROM]; FROM],
    (channels, step): (usize, usize),
    (transform, scale): (impl Fn([Numbers; FROM]) -> [Numbers; TO], f32),
    (place, apart): (impl Fn(usize) -> *mut f32, usize),
    squares: &mut [Numbers; FROM],
) {
    for c in (0..channels).step_by(step) {
        let n = Numbers::LANES.min(channels - c);
        let mut rows = [[Numbers::splat(0.0); TO]; FROM];
        for y in 0..FROM {
            let mut row = [Numbers::splat(0.0); FROM];
            for x in 0..FROM {
                // SAFETY: the caller guarantees the channels.
                let pixel = unsafe { read_some(pixels[y][x].add(c), 1, n) };
                squares[y] = pixel.mul_add(pixel, squares[y]);
                row[x] = times(scale, pixel);
            }
            rows[y] = transform(row);
        }
        let to = place(c);
        for x in 0..TO {
            let column = transform(column(&rows, x));
            for y in 0..TO {
                // SAFETY: the caller guarantees the target.
                unsafe { column[y].store(to.add((y * TO + x) * apart)) };
            }
        }
    }
}

/// Transforms a vector of kernels, passed element by element, to a vector for each product, with stride `apart`, and adds
/// the squares of all elements to `squares`.
///
/// # Safety
/// `to` must have capacity for the vectors, uniquely owned.
#[inline(always)]
pub unsafe fn weight<F: Transforms<WRITE, READ>, const WRITE: usize, const READ: usize>(
    elements: &[[Numbers; 3]; 3],
    to: *mut f32,
    apart: usize,
    squares: &mut Numbers,
) {
    let mut rows = [[Numbers::splat(0.0); READ]; 3];
    for y in 0..3 {
        for x in 0..3 {
            *squares = elements[y][x].mul_add(elements[y][x], *squares);
        }
        let [a, b, c] = elements[y];
        rows[y] = F::of_elements([times(F::ELEMENTS, a), times(F::ELEMENTS, b), times(F::ELEMENTS, c)]);
    }
    for x in 0..READ {
        let column = F::of_elements(column(&rows, x));
        for y in 0..READ {
            // SAFETY: the caller guarantees the target.
            unsafe { column[y].store(to.add((y * READ + x) * apart)) };
        }
    }
}

/// Transforms vectors of sums, with stride `apart`, in both dimensions, each from `FROM` to `TO`, and calls `write` with
/// the row and column of each result.
///
/// # Safety
/// The sums must exist.
#[inline(always)]
pub unsafe fn gather<const FROM: usize, const TO: usize>(
    sums: *const f32,
    apart: usize,
    transform: impl Fn([Numbers; FROM]) -> [Numbers; TO],
    mut write: impl FnMut(usize, usize, Numbers),
) {
    let mut rows = [[Numbers::splat(0.0); FROM]; TO];
    for x in 0..FROM {
        let mut column = [Numbers::splat(0.0); FROM];
        for y in 0..FROM {
            // SAFETY: the caller guarantees the sums.
            column[y] = unsafe { Numbers::load(sums.add((y * FROM + x) * apart)) };
        }
        let results = transform(column);
        for y in 0..TO {
            rows[y][x] = results[y];
        }
    }
    for y in 0..TO {
        let results = transform(rows[y]);
        for x in 0..TO {
            write(y, x, results[x]);
        }
    }
}

/// The sum of the lanes.
pub fn total(lanes: Numbers) -> f32 {
    sum(lanes, Numbers::splat(0.0))
}
