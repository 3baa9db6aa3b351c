//! The micro-kernel of convolutions.
//!
//! A register tile of output positions and channels accumulates over all taps and input channels. An accumulator chains
//! about 128 products, and the sums of chains are added: in a single chain the rounding error grows with the square root of
//! the number of channels, four to ten times as large at 512 channels.

use crate::image::Numbers;
use keyway_cpu_loops::vectors::{ROWS, Vector};
use std::ops::Range;

/// The number of multiplications that justifies another thread.
pub const WORK: usize = 1 << 20;
/// The number of vectors in a row of a block.
pub const VECTORS: usize = if ROWS > 1 { 2 } else { 1 };
/// The number of columns of a block.
pub const WIDE: usize = VECTORS * Numbers::LANES;
/// The maximum number of rows of a block: its accumulators fit the registers together with the vectors of a row and a
/// broadcast value.
pub const TALL: usize = match ROWS {
    8.. => 14,
    4..8 => 6,
    _ => 4,
};

/// The approximate number of products per chain. Rounding errors grow with the length of a chain, and a convolution of many
/// channels has thousands of products per result: the sums of chains are added.
const CHAIN: usize = 128;

/// A run of the reduction dimension: its offsets in both operands, and its length.
#[derive(Clone, Copy)]
pub struct Run {
    pub a: usize,
    pub b: usize,
    pub depth: usize,
}

/// The reduction dimension, split into chains of similar length, close to [`CHAIN`]: a run is split at the end of a chain,
/// so that results do not depend on how the products are divided into runs.
pub struct Chains {
    runs: Vec<Run>,
    /// The end of each chain, as an index into the runs.
    ends: Vec<usize>,
}

impl Chains {
    /// The chains of runs whose products have strides `step` and `next` in the operands.
    pub fn of(of: &[Run], step: usize, next: usize) -> Chains {
        let depth: usize = of.iter().map(|run| run.depth).sum();
        let longest = depth.div_ceil(((depth + CHAIN / 2) / CHAIN).max(1));
        let (mut runs, mut ends, mut left) = (Vec::with_capacity(of.len()), Vec::new(), longest);
        for &Run { mut a, mut b, depth: mut rest } in of {
            while rest > 0 {
                let depth = rest.min(left);
                runs.push(Run { a, b, depth });
                (a, b) = (a + depth * step, b + depth * next);
                (rest, left) = (rest - depth, left - depth);
                if left == 0 {
                    ends.push(runs.len());
                    left = longest;
                }
            }
        }
        // An empty reduction is one empty chain.
        if ends.last() != Some(&runs.len()) {
            ends.push(runs.len());
        }
        Chains { runs, ends }
    }
}

/// The operands: the element of row `r` at depth `k` of a run is `a[run.a + r * row + k * step]`, and the columns are
/// `b[run.b + k * next..][..WIDE]`.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    pub a: *const f32,
    pub row: usize,
    pub step: usize,
    pub b: *const f32,
    pub next: usize,
    pub chains: &'a Chains,
}

/// The accumulators of a block.
pub type Sums = [[f32; WIDE]; TALL];

/// Computes `rows` rows, at most [`TALL`], and at least the first `columns` columns.
///
/// # Safety
/// All elements described by the operands must exist; the caller upholds this.
pub unsafe fn block(of: &Operands<'_>, (rows, columns): (usize, usize), sums: &mut Sums) {
    let mut first = 0;
    for &end in &of.chains.ends {
        let chain = first..end;
        macro_rules! by_rows {
            ($($rows:literal)*) => {
                match rows {
                    // SAFETY: as the caller guarantees.
                    $($rows if $rows <= TALL => unsafe {
                        if columns <= Numbers::LANES {
                            fixed::<$rows, 1>(of, chain, sums);
                        } else {
                            fixed::<$rows, VECTORS>(of, chain, sums);
                        }
                    },)*
                    _ => debug_assert!(false, "a block of {rows} rows"),
                }
            };
        }
        by_rows!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
        first = end;
    }
}

/// The micro-kernel of one chain, whose sum is added to those of the previous chains. A separate function with plain loops
/// over constants, so that the compiler allocates registers for the register tile.
///
/// # Safety
/// As for [`block`].
#[inline(never)]
#[expect(
    clippy::needless_range_loop,
    reason = "the sums stay in registers only where each index is a constant"
)]
unsafe fn fixed<const R: usize, const V: usize>(of: &Operands<'_>, chain: Range<usize>, to: &mut Sums) {
    let is_first = chain.start == 0;
    let mut sums = [[Numbers::splat(0.0); V]; R];
    for run in &of.chains.runs[chain] {
        let (mut a, mut b) = (of.a.wrapping_add(run.a), of.b.wrapping_add(run.b));
        for _ in 0..run.depth {
            // SAFETY: the caller guarantees the elements.
            unsafe {
                let mut line = [Numbers::splat(0.0); V];
                for v in 0..V {
                    line[v] = Numbers::load(b.add(v * Numbers::LANES));
                }
                // Two loops, each short enough for the compiler to unroll.
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
    }
    // SAFETY: a row of the sums has capacity for its vectors.
    unsafe {
        if !is_first {
            for r in 0..R {
                for v in 0..V {
                    let before = Numbers::load(to[r].as_ptr().add(v * Numbers::LANES));
                    sums[r][v] = Numbers::splat(1.0).mul_add(before, sums[r][v]);
                }
            }
        }
        for r in 0..R {
            for v in 0..V {
                sums[r][v].store(to[r].as_mut_ptr().add(v * Numbers::LANES));
            }
        }
    }
}
