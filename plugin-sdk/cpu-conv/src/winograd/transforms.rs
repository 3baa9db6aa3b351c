//! The three transforms of F(2x2, 3x3), each of a vector of channels at once: plain loops over constants, which the compiler
//! writes out with all numbers in registers.

#![expect(
    clippy::needless_range_loop,
    reason = "numbers stay in registers only where each index is a constant"
)]

use super::{PRODUCTS, READ};
use crate::image::{Numbers, Pixel};
use keyway_cpu_loops::vectors::{Vector, read_some};

#[inline(always)]
fn add(a: Numbers, b: Numbers) -> Numbers {
    Numbers::splat(1.0).mul_add(a, b)
}

#[inline(always)]
fn subtract(a: Numbers, b: Numbers) -> Numbers {
    Numbers::splat(-1.0).mul_add(b, a)
}

#[inline(always)]
fn of_pixels([a, b, c, d]: [Numbers; READ]) -> [Numbers; READ] {
    [subtract(a, c), add(b, c), subtract(c, b), subtract(b, d)]
}

/// Twice the usual one, whose halves could lose the last bits of tiny elements.
#[inline(always)]
fn of_elements([a, b, c]: [Numbers; 3]) -> [Numbers; READ] {
    let ends = add(a, c);
    [add(a, a), add(ends, b), subtract(ends, b), add(c, c)]
}

#[inline(always)]
fn of_products([a, b, c, d]: [Numbers; READ]) -> [Numbers; 2] {
    [add(add(a, b), c), subtract(subtract(b, c), d)]
}

/// What undoes the factors of both passes of [`of_elements`].
const SCALE: f32 = 0.25;

/// Transforms the pixels of a tile, row by row, to [`PRODUCTS`] rows of channels that lie `apart`; lanes beyond the channels
/// become 0. The squares of all pixels are added to `squares`.
///
/// # Safety
/// The pixels must have these channels, and the rows places for whole vectors that nobody else may use.
#[inline(always)]
pub unsafe fn input<T: Pixel>(
    pixels: &[*const T; PRODUCTS],
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
                let pixel = unsafe { read_some(pixels[y * READ + x].add(c), 1, n) };
                squares[y] = pixel.mul_add(pixel, squares[y]);
                rows[y][x] = pixel;
            }
            rows[y] = of_pixels(rows[y]);
        }
        for x in 0..READ {
            let column = of_pixels([rows[0][x], rows[1][x], rows[2][x], rows[3][x]]);
            for y in 0..READ {
                // SAFETY: the caller guarantees the places.
                unsafe { column[y].store(to.add((y * READ + x) * apart + c)) };
            }
        }
    }
}

/// Transforms a vector of kernels, given element by element, to [`PRODUCTS`] vectors that lie `apart`, and adds the squares
/// of all elements to `squares`.
///
/// # Safety
/// There must be places for the vectors, which nobody else may use.
#[inline(always)]
pub unsafe fn weight(elements: &[[Numbers; 3]; 3], to: *mut f32, apart: usize, squares: &mut Numbers) {
    let mut rows = [[Numbers::splat(0.0); READ]; 3];
    for y in 0..3 {
        for x in 0..3 {
            *squares = elements[y][x].mul_add(elements[y][x], *squares);
        }
        rows[y] = of_elements(elements[y]);
    }
    for x in 0..READ {
        let column = of_elements([rows[0][x], rows[1][x], rows[2][x]]);
        for y in 0..READ {
            // SAFETY: the caller guarantees the places.
            unsafe { column[y].store(to.add((y * READ + x) * apart)) };
        }
    }
}

/// Transforms a vector of the sums of products, which lie `apart`, and gives `write` the number of each of the tile's four
/// places and its result plus `bias`.
///
/// # Safety
/// There must be the sums.
#[inline(always)]
pub unsafe fn output(sums: *const f32, apart: usize, bias: Numbers, write: impl Fn(usize, Numbers)) {
    let mut rows = [[Numbers::splat(0.0); READ]; 2];
    for x in 0..READ {
        let mut column = [Numbers::splat(0.0); READ];
        for y in 0..READ {
            // SAFETY: the caller guarantees the sums.
            column[y] = unsafe { Numbers::load(sums.add((y * READ + x) * apart)) };
        }
        [rows[0][x], rows[1][x]] = of_products(column);
    }
    for y in 0..2 {
        let results = of_products(rows[y]);
        for x in 0..2 {
            write(y * 2 + x, results[x].mul_add(Numbers::splat(SCALE), bias));
        }
    }
}
