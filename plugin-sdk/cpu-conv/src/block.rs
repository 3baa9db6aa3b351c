//! The innermost loop of convolutions: a block of sums that stay in registers.

use crate::image::Numbers;
use keyway_cpu_loops::vectors::{ROWS, Vector};

/// Vectors of a block's row.
pub const VECTORS: usize = if ROWS > 1 { 2 } else { 1 };
/// Columns of a block.
pub const WIDE: usize = VECTORS * Numbers::LANES;
/// The most rows of a block: with its sums the vectors of a row and a number find registers.
pub const TALL: usize = match ROWS {
    8.. => 14,
    4..8 => 6,
    _ => 4,
};

/// Products that are summed in one chain; the sums of such chains are summed in turn. Errors grow with the length of a chain, and a
/// convolution of many channels has thousands of products for each result.
const CHAIN: usize = 128;

/// A part of what is summed: where it begins in both operands, and its length.
#[derive(Clone, Copy)]
pub struct Run {
    pub a: usize,
    pub b: usize,
    pub depth: usize,
}

/// The operands: the numbers of row `r` at depth `k` of a run are `a[run.a + r * row + k * step]`, and those of the columns
/// `b[run.b + k * next..][..WIDE]`.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    pub a: *const f32,
    pub row: usize,
    pub step: usize,
    pub b: *const f32,
    pub next: usize,
    pub runs: &'a [Run],
}

/// The sums of a block.
pub type Sums = [[f32; WIDE]; TALL];

/// Computes the sums of `rows` rows, at most [`TALL`], and of the first `columns` columns at least.
///
/// # Safety
/// All numbers that the operands name must exist; the caller upholds this.
pub unsafe fn block(of: &Operands<'_>, (rows, columns): (usize, usize), sums: &mut Sums) {
    macro_rules! by_rows {
        ($($rows:literal)*) => {
            match rows {
                // SAFETY: as the caller guarantees.
                $($rows if $rows <= TALL => unsafe {
                    if columns <= Numbers::LANES {
                        fixed::<$rows, 1>(of, sums);
                    } else {
                        fixed::<$rows, VECTORS>(of, sums);
                    }
                },)*
                _ => debug_assert!(false, "a block of {rows} rows"),
            }
        };
    }
    by_rows!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

/// A function of its own with plain loops over constants, for the compiler to find that the sums fit its registers.
///
/// # Safety
/// As for [`block`].
#[inline(never)]
#[expect(
    clippy::needless_range_loop,
    reason = "the sums stay in registers only where each index is a constant"
)]
unsafe fn fixed<const R: usize, const V: usize>(of: &Operands<'_>, to: &mut Sums) {
    let mut sums = [[Numbers::splat(0.0); V]; R];
    let mut left = CHAIN;
    let mut is_first = true;
    for run in of.runs {
        let (mut a, mut b) = (of.a.wrapping_add(run.a), of.b.wrapping_add(run.b));
        let mut depth = run.depth;
        while depth > 0 {
            if left == 0 {
                // SAFETY: a row of the sums has places for its vectors.
                unsafe { add(&sums, to, is_first) };
                (sums, left, is_first) = ([[Numbers::splat(0.0); V]; R], CHAIN, false);
            }
            let now = depth.min(left);
            for _ in 0..now {
                // SAFETY: the caller guarantees the numbers.
                unsafe {
                    let mut line = [Numbers::splat(0.0); V];
                    for v in 0..V {
                        line[v] = Numbers::load(b.add(v * Numbers::LANES));
                    }
                    // Two loops, each short enough for the compiler to write it out.
                    for r in 0..R / 2 {
                        let x = Numbers::splat(*a.add(r * of.row));
                        for v in 0..V {
                            sums[r][v] = x.mul_add(line[v], sums[r][v]);
                        }
                    }
                    for r in R / 2..R {
                        let x = Numbers::splat(*a.add(r * of.row));
                        for v in 0..V {
                            sums[r][v] = x.mul_add(line[v], sums[r][v]);
                        }
                    }
                }
                a = a.wrapping_add(of.step);
                b = b.wrapping_add(of.next);
            }
            (depth, left) = (depth - now, left - now);
        }
    }
    // SAFETY: as above.
    unsafe { add(&sums, to, is_first) };
}

/// Adds the sums of a chain to a block's; those of the first one are its sums.
///
/// # Safety
/// A row of the block must have places for `V` vectors.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "as in `fixed`")]
unsafe fn add<const R: usize, const V: usize>(sums: &[[Numbers; V]; R], to: &mut Sums, is_first: bool) {
    for r in 0..R {
        for v in 0..V {
            let at = to[r].as_mut_ptr().wrapping_add(v * Numbers::LANES);
            // SAFETY: as the caller guarantees.
            unsafe {
                let sum = if is_first {
                    sums[r][v]
                } else {
                    Numbers::splat(1.0).mul_add(Numbers::load(at), sums[r][v])
                };
                sum.store(at);
            }
        }
    }
}
