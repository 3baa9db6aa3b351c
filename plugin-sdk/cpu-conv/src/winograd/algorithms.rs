//! The algorithms: the one-dimensional transforms for each tile size, and their costs.

use crate::image::Numbers;
use keyway_cpu_loops::vectors::{ROWS, Vector};

/// F(`WRITE`, 3): `WRITE` neighbouring results of a kernel of three elements from `READ` pixels, by `READ` products of the
/// transformed pixels and the transformed kernel elements. In two dimensions these transforms are applied to rows, then to
/// columns.
pub trait Transforms<const WRITE: usize, const READ: usize> {
    /// The factors by which pixels, kernel elements and results are scaled in addition to the transforms: powers of two, so
    /// that values near 0 lose no precision.
    const PIXELS: f32;
    const ELEMENTS: f32;
    const RESULTS: f32;
    /// The sum of squares above which pixels and elements are large: below it no sum of products overflows.
    const LARGE: f32;
    /// The cost of the transforms of a tile's pixels and results for each channel, and of the weight transform for each
    /// kernel, in products of a channel.
    const TILE: usize;
    const KERNEL: usize;
    /// The maximum size of the transformed weight in bytes.
    const MOST: usize;
    /// The cost of the kernel gradient for each tile, and for its sums, in products of a pair of channels.
    const SUMMED: [usize; 2];

    fn of_pixels(pixels: [Numbers; READ]) -> [Numbers; READ];
    fn of_elements(elements: [Numbers; 3]) -> [Numbers; READ];
    fn of_products(products: [Numbers; READ]) -> [Numbers; WRITE];
    /// The transposed transforms of kernel elements and results, which compute the gradient of the kernel from the
    /// gradients of a tile's results: [`Transforms::RESULTS`] then scales the kernel elements, and the gradients have the
    /// factor of the elements.
    fn of_gradients(gradients: [Numbers; WRITE]) -> [Numbers; READ];
    fn of_sums(sums: [Numbers; READ]) -> [Numbers; 3];
}

/// F(2x2, 3x3), interpolation points 0, 1, -1 and infinity.
pub struct F2x2;

/// F(4x4, 3x3), interpolation points 0, 3/4, -3/4, 3/2, -3/2 and infinity. Errors are a quarter of those with the usual
/// points 1 and 2 instead of 3/4 and 3/2, since no factor is larger than 27/8; and nearly all factors are exact.
pub struct F4x4;

/// `factor * a + b`.
#[inline(always)]
fn add_times(factor: f32, a: Numbers, b: Numbers) -> Numbers {
    Numbers::splat(factor).mul_add(a, b)
}

#[inline(always)]
fn add(a: Numbers, b: Numbers) -> Numbers {
    add_times(1.0, a, b)
}

#[inline(always)]
fn subtract(a: Numbers, b: Numbers) -> Numbers {
    add_times(-1.0, b, a)
}

/// `factor * a`; free if the factor is 1.
#[inline(always)]
pub fn times(factor: f32, a: Numbers) -> Numbers {
    if factor == 1.0 { a } else { add_times(factor, a, Numbers::splat(0.0)) }
}

impl Transforms<2, 4> for F2x2 {
    const PIXELS: f32 = 1.0;
    const ELEMENTS: f32 = 1.0;
    const RESULTS: f32 = 0.25;
    /// The square of 1e16; both passes of all transforms scale a sum of products by at most 324.
    const LARGE: f32 = 1e32;
    const TILE: usize = 4;
    const KERNEL: usize = 500;
    const MOST: usize = 1 << 26;
    const SUMMED: [usize; 2] = [20, 500];

    #[inline(always)]
    fn of_pixels([a, b, c, d]: [Numbers; 4]) -> [Numbers; 4] {
        [subtract(a, c), add(b, c), subtract(c, b), subtract(b, d)]
    }

    /// Twice the usual transform, whose halves could lose the last bits of tiny elements.
    #[inline(always)]
    fn of_elements([a, b, c]: [Numbers; 3]) -> [Numbers; 4] {
        let ends = add(a, c);
        [add(a, a), add(ends, b), subtract(ends, b), add(c, c)]
    }

    #[inline(always)]
    fn of_products([a, b, c, d]: [Numbers; 4]) -> [Numbers; 2] {
        [add(add(a, b), c), subtract(subtract(b, c), d)]
    }

    #[inline(always)]
    fn of_gradients([a, b]: [Numbers; 2]) -> [Numbers; 4] {
        [a, add(a, b), subtract(a, b), times(-1.0, b)]
    }

    #[inline(always)]
    fn of_sums([a, b, c, d]: [Numbers; 4]) -> [Numbers; 3] {
        let both = add(b, c);
        [add_times(2.0, a, both), subtract(b, c), add_times(2.0, d, both)]
    }
}

impl Transforms<4, 6> for F4x4 {
    const PIXELS: f32 = 65536.0;
    const ELEMENTS: f32 = 65536.0;
    const RESULTS: f32 = 1.0 / (65536.0 * 65536.0);
    /// Both passes scale pixels by at most 33, elements by 1.5 and sums of products by 74, in total 1.6e13 with the factors
    /// above. The squares of a kernel are below 22^2 times this value, since those of the weight are added in chunks of its
    /// channels, at most 455 chunks.
    const LARGE: f32 = 1e22;
    const TILE: usize = 16;
    const KERNEL: usize = 2000;
    /// With smaller vectors blocks have fewer tiles, and reading a large weight for each of them takes as long as F(2x2).
    const MOST: usize = if ROWS < 8 { 1 << 23 } else { 1 << 26 };
    const SUMMED: [usize; 2] = [52, 1000];

    #[inline(always)]
    fn of_pixels([a, b, c, d, e, f]: [Numbers; 6]) -> [Numbers; 6] {
        // The products of `(x - point)` over all interpolation points but the current one, from 0 or infinity, and from a
        // pair.
        let outer = |a, c, e| add_times(81.0 / 64.0, a, add_times(-45.0 / 16.0, c, e));
        let pair = |point: f32, other: f32| {
            let (even, odd) = (add_times(-other * other, c, e), add_times(-other * other, b, d));
            [add_times(point, odd, even), add_times(-point, odd, even)]
        };
        let [near, far] = [pair(0.75, 1.5), pair(1.5, 0.75)];
        [outer(a, c, e), near[0], near[1], far[0], far[1], outer(b, d, f)]
    }

    #[inline(always)]
    fn of_elements([a, b, c]: [Numbers; 3]) -> [Numbers; 6] {
        let pair = |point: f32, by: f32| {
            let (even, odd) = (times(by, add_times(point * point, c, a)), times(by, b));
            [add_times(point, odd, even), add_times(-point, odd, even)]
        };
        let [near, far] = [pair(0.75, -128.0 / 243.0), pair(1.5, 32.0 / 243.0)];
        [times(64.0 / 81.0, a), near[0], near[1], far[0], far[1], c]
    }

    #[inline(always)]
    fn of_products([a, b, c, d, e, f]: [Numbers; 6]) -> [Numbers; 4] {
        let (near, far) = ((add(b, c), subtract(b, c)), (add(d, e), subtract(d, e)));
        [
            add(a, add(near.0, far.0)),
            add_times(0.75, near.1, times(1.5, far.1)),
            add_times(9.0 / 16.0, near.0, times(9.0 / 4.0, far.0)),
            add_times(27.0 / 64.0, near.1, add_times(27.0 / 8.0, far.1, f)),
        ]
    }

    #[inline(always)]
    fn of_gradients([a, b, c, d]: [Numbers; 4]) -> [Numbers; 6] {
        let pair = |point: f32| {
            let even = add_times(point * point, c, a);
            let odd = times(point, add_times(point * point, d, b));
            [add(even, odd), subtract(even, odd)]
        };
        let [near, far] = [pair(0.75), pair(1.5)];
        [a, near[0], near[1], far[0], far[1], d]
    }

    #[inline(always)]
    fn of_sums([a, b, c, d, e, f]: [Numbers; 6]) -> [Numbers; 3] {
        let pair = |b, c, by: f32| (times(by, add(b, c)), times(by, subtract(b, c)));
        let (near, far) = (pair(b, c, -128.0 / 243.0), pair(d, e, 32.0 / 243.0));
        [
            add_times(64.0 / 81.0, a, add(near.0, far.0)),
            add_times(0.75, near.1, times(1.5, far.1)),
            add_times(9.0 / 16.0, near.0, add_times(9.0 / 4.0, far.0, f)),
        ]
    }
}
