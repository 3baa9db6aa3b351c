//! The transforms of both directions, each of a vector of channels at once: plain loops over constants, which the compiler
//! writes out with all numbers in registers.

#![expect(
    clippy::needless_range_loop,
    reason = "numbers stay in registers only where each index is a constant"
)]

use super::algorithms::{Transforms, times};
use crate::image::{Numbers, Pixel};
use keyway_cpu_loops::vectors::{Vector, read_some};

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

/// Transforms the pixels of a tile, row by row, to as many rows of channels that lie `apart`; lanes beyond the channels
/// become 0. The squares of all pixels are added to `squares`.
///
/// # Safety
/// The pixels must have these channels, and the rows places for whole vectors that nobody else may use.
#[inline(always)]
pub unsafe fn input<T: Pixel, F: Transforms<WRITE, READ>, const WRITE: usize, const READ: usize>(
    pixels: &[[*const T; READ]; READ],
    channels: usize,
    to: *mut f32,
    apart: usize,
    squares: &mut [Numbers; READ],
) {
    for c in (0..channels).step_by(Numbers::LANES) {
        let n = Numbers::LANES.min(channels - c);
        let mut rows = [[Numbers::splat(0.0); READ]; READ];
        for y in 0..READ {
            for x in 0..READ {
                // SAFETY: the caller guarantees the channels.
                let pixel = unsafe { read_some(pixels[y][x].add(c), 1, n) };
                squares[y] = pixel.mul_add(pixel, squares[y]);
                rows[y][x] = times(F::PIXELS, pixel);
            }
            rows[y] = F::of_pixels(rows[y]);
        }
        for x in 0..READ {
            let column = F::of_pixels(column(&rows, x));
            for y in 0..READ {
                // SAFETY: the caller guarantees the places.
                unsafe { column[y].store(to.add((y * READ + x) * apart + c)) };
            }
        }
    }
}

/// Transforms a vector of kernels, given element by element, to a vector for each product, which lie `apart`, and adds
/// the squares of all elements to `squares`.
///
/// # Safety
/// There must be places for the vectors, which nobody else may use.
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
            // SAFETY: the caller guarantees the places.
            unsafe { column[y].store(to.add((y * READ + x) * apart)) };
        }
    }
}

/// Transforms a vector of the sums of products, which lie `apart`, and gives `write` the row and column of each of the tile's
/// places and its result plus `bias`.
///
/// # Safety
/// There must be the sums.
#[inline(always)]
pub unsafe fn output<F: Transforms<WRITE, READ>, const WRITE: usize, const READ: usize>(
    sums: *const f32,
    apart: usize,
    bias: Numbers,
    write: impl Fn(usize, usize, Numbers),
) {
    let mut rows = [[Numbers::splat(0.0); READ]; WRITE];
    for x in 0..READ {
        let mut column = [Numbers::splat(0.0); READ];
        for y in 0..READ {
            // SAFETY: the caller guarantees the sums.
            column[y] = unsafe { Numbers::load(sums.add((y * READ + x) * apart)) };
        }
        let results = F::of_products(column);
        for y in 0..WRITE {
            rows[y][x] = results[y];
        }
    }
    for y in 0..WRITE {
        let results = F::of_products(rows[y]);
        for x in 0..WRITE {
            write(y, x, results[x].mul_add(Numbers::splat(F::RESULTS), bias));
        }
    }
}
