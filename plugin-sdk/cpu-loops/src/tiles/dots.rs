//! Blocks by vector dot products (AVX-512 BF16), from the same panels as tiles.
//!
//! A vector holds pairs of 16 columns; each pair of a row is broadcast to a vector. The register tile is eight rows by 32
//! columns, which leaves registers for the operands. Closures would not be inlined here: they lack the target features.

use super::block::{Block, Gathered};
use super::pack::{SIDE, STEP};
use std::arch::x86_64::*;

/// The number of rows of the register tile.
const ROWS: usize = 8;
/// Rows, pairs of a step, and columns of a tile.
const HALF: usize = SIDE / 2;

/// The accumulators of [`ROWS`] rows and `N` vectors of 16 columns.
type Sums<const N: usize> = [[__m512; N]; ROWS];

/// Reinterprets the bits as pairs of bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn as_pairs(bits: __m512i) -> __m512bh {
    // SAFETY: both are 512 bits, and every bit pattern is valid.
    unsafe { std::mem::transmute(bits) }
}

/// Accumulates the products of one step: rows with stride `line`, and a step of a panel.
///
/// # Safety
/// Both must exist; the caller upholds this.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn add_step<const N: usize>(sums: &mut Sums<N>, left: *const u16, line: usize, right: *const u16) {
    for pair in 0..HALF {
        // SAFETY: the caller guarantees 16 lines of 64 bytes in each half of the step, and the pairs of each row.
        unsafe {
            let mut columns = [as_pairs(_mm512_setzero_si512()); N];
            for (j, columns) in columns.iter_mut().enumerate() {
                *columns = as_pairs(_mm512_loadu_si512(right.add(j * STEP / 2 + pair * SIDE).cast()));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let pair = left.add(row * line + 2 * pair).cast::<i32>().read_unaligned();
                let row = as_pairs(_mm512_set1_epi32(pair));
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm512_dpbf16_ps(*sum, row, columns[j]);
                }
            }
        }
    }
}

/// Implements [`super::Unit::block`].
///
/// # Safety
/// As for `Unit::block`; the processor must have AVX-512 F, BW and BF16.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn block(block: &Block) {
    let Block { steps, left, right, sums, row, add, soon } = *block;
    for first in (0..SIDE).step_by(ROWS) {
        let place = |r: usize, j: usize| sums.wrapping_add((first + r) * row + j * HALF);
        let rows = left.data.wrapping_add(first / HALF * left.half + first % HALF * left.line);
        let mut all: Sums<2> = [[_mm512_setzero_ps(); 2]; ROWS];
        // SAFETY: the caller guarantees rows, panel and sums; a prefetch never faults.
        unsafe {
            if add {
                for (r, sums) in all.iter_mut().enumerate() {
                    for (j, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm512_loadu_ps(place(r, j));
                    }
                }
            }
            for step in 0..steps {
                _mm_prefetch::<_MM_HINT_T1>(soon.wrapping_add(step * STEP + first / ROWS * SIDE).cast());
                let right = right.add(step * STEP);
                add_step(&mut all, rows.add(step * left.step), left.line, right);
            }
            for (r, sums) in all.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    _mm512_storeu_ps(place(r, j), *sum);
                }
            }
        }
    }
}

/// Implements [`super::Unit::gathered`].
///
/// # Safety
/// As for [`block`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn gathered(block: &Gathered<'_>) {
    // SAFETY: as the caller guarantees.
    unsafe {
        match block.narrow {
            true => gather::<1>(block),
            false => gather::<2>(block),
        }
    }
}

/// # Safety
/// As for [`block`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn gather<const N: usize>(block: &Gathered<'_>) {
    let Gathered { offsets, left, line, right, sums, .. } = *block;
    for first in (0..SIDE).step_by(ROWS) {
        let mut all: Sums<N> = [[_mm512_setzero_ps(); N]; ROWS];
        // SAFETY: the caller guarantees rows at each offset, a panel with a step for each, and the sums.
        unsafe {
            for (step, offset) in offsets.iter().enumerate() {
                let rows = left.byte_add(*offset).add(first * line);
                add_step(&mut all, rows, line, right.add(step * STEP));
            }
            for (r, all) in all.iter().enumerate() {
                for (j, sum) in all.iter().enumerate() {
                    _mm512_storeu_ps(sums.add((first + r) * SIDE + j * HALF), *sum);
                }
            }
        }
    }
}
