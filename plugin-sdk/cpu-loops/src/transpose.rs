//! Transposed copies: a tile of several rows is transposed in vector registers, so that both sides are accessed by whole
//! vectors.
//!
//! The compiler does not generate these shuffles from plain loops, which take more than twice as long. So they are written
//! with AVX intrinsics, used if the build's level has AVX; otherwise several rows are read in parallel.

use crate::vectors::{Lanes, widen};
use keyway_sdk::author::Real;
use std::any::TypeId;

/// The number of rows read in parallel: together they fill a cache line of 4-byte elements.
const ROWS: usize = 16;
/// Whether the build's level has AVX.
const VECTORS: bool = cfg!(all(target_arch = "x86_64", target_feature = "avx"));

/// Transposes a matrix with dense rows: element `c` of row `r` is copied to element `r` of row `c`, for each `r < rows` and
/// `c < columns`. The steps are row strides in elements.
///
/// # Safety
/// `from` must have the elements and `to` capacity for them, without overlap; the caller upholds this.
pub unsafe fn transpose<W: Copy>(
    to: *mut W,
    to_step: usize,
    from: *const W,
    from_step: usize,
    rows: usize,
    columns: usize,
) {
    // SAFETY: as the caller guarantees; `VECTORS` implies that the build's level, and so the processor, has AVX.
    unsafe { turn::<W, VECTORS>((to, to_step), (from, from_step), rows, columns) }
}

/// # Safety
/// As for [`transpose`]; if `AVX`, the processor must have it.
#[inline(always)]
unsafe fn turn<W: Copy, const AVX: bool>(
    (to, to_step): (*mut W, usize),
    (from, from_step): (*const W, usize),
    rows: usize,
    columns: usize,
) {
    const HALF: usize = ROWS / 2;
    let mut r = 0;
    while r < rows {
        let some = match rows - r {
            ROWS.. => ROWS,
            HALF.. => HALF,
            // The last tile overlaps rows that were already copied.
            _ if AVX && rows >= HALF => {
                r = rows - HALF;
                HALF
            }
            _ => 1,
        };
        // SAFETY: the caller guarantees the elements of source and target for each row and column.
        unsafe {
            let (to, from) = (to.add(r), from.add(r * from_step));
            // Tiles of vectors have elements of 8 bytes at most.
            let vectors = AVX && some > 1 && size_of::<W>() <= 8;
            let done =
                if vectors { vectors::rows((to, to_step), (from, from_step), some, columns) } else { 0 };
            for c in done..columns {
                (0..some).for_each(|k| to.add(c * to_step + k).write(*from.add(k * from_step + c)));
            }
        }
        r += some;
    }
}

/// The number of elements widened at a time: two cache lines, which processors fetch together.
const SOME: usize = 32;

/// Widens rows of elements to columns of f32: element `c` of row `r` is written to `to[c * to_step + r]`.
///
/// # Safety
/// `from` must have the elements, and `to` capacity for the results, uniquely owned; the caller upholds this.
pub unsafe fn widen_transposed<T: Lanes>(
    to: *mut T::Acc,
    to_step: usize,
    from: *const T,
    from_step: usize,
    (rows, columns): (usize, usize),
) {
    // SAFETY: as the caller guarantees; `lines` has capacity for the chunk.
    unsafe {
        if TypeId::of::<T>() == TypeId::of::<T::Acc>() {
            return transpose(to, to_step, from.cast(), from_step, rows, columns);
        }
        let mut lines = [[T::Acc::ZERO; SOME]; SOME];
        for first in (0..rows).step_by(SOME) {
            let tall = SOME.min(rows - first);
            for c in (0..columns).step_by(SOME) {
                let wide = SOME.min(columns - c);
                for (r, line) in lines.iter_mut().enumerate().take(tall) {
                    widen(line.as_mut_ptr(), from.wrapping_add((first + r) * from_step + c), wide);
                }
                transpose(to.add(c * to_step + first), to_step, lines.as_ptr().cast(), SOME, tall, wide);
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod vectors {
    /// # Safety
    /// No precondition: no column is copied.
    pub(super) unsafe fn rows<W>(_: (*mut W, usize), _: (*const W, usize), _: usize, _: usize) -> usize {
        0
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::*;

    /// Copies tiles of `n` rows, and returns the number of columns copied: all of them, or none.
    ///
    /// # Safety
    /// As for [`transpose`](super::transpose); `n` must be a multiple of 8, and the processor must have AVX.
    #[inline(always)]
    pub(super) unsafe fn rows<W: Copy>(
        (to, to_step): (*mut W, usize),
        (from, from_step): (*const W, usize),
        n: usize,
        columns: usize,
    ) -> usize {
        let wide = match size_of::<W>() {
            8 => 4,
            _ => 8,
        };
        if size_of::<W>() == 4 && (4..8).contains(&columns) {
            for (c, k) in [0, columns - 4].into_iter().flat_map(|c| (0..n).step_by(8).map(move |k| (c, k))) {
                // SAFETY: as below.
                unsafe {
                    let (to, from) = (to.add(c * to_step + k), from.add(c + k * from_step));
                    four_of_eight((to.cast(), to_step), (from.cast(), from_step));
                }
            }
            return columns;
        }
        if columns < wide {
            return 0;
        }
        for first in (0..columns).step_by(wide) {
            // The last tile overlaps columns that were already copied.
            let c = first.min(columns - wide);
            // SAFETY: the caller guarantees the elements of source and target, and the processor's features; the types have
            // the size of `W`, and their vectors are moved as bits.
            unsafe {
                let (to, from) = (to.add(c * to_step), from.add(c));
                for k in (0..n).step_by(wide) {
                    let (to, from) = (to.add(k), from.add(k * from_step));
                    match size_of::<W>() {
                        1 => bytes((to.cast(), to_step), (from.cast(), from_step)),
                        2 => pairs((to.cast(), to_step), (from.cast(), from_step)),
                        4 => eight_by_eight((to.cast(), to_step), (from.cast(), from_step)),
                        _ => four_by_four((to.cast(), to_step), (from.cast(), from_step)),
                    }
                }
            }
        }
        columns
    }

    /// # Safety
    /// There must be 8 elements in each of 8 rows on both sides.
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn bytes((to, to_step): (*mut u8, usize), (from, from_step): (*const u8, usize)) {
        // SAFETY: the caller guarantees the elements.
        let row = |k: usize| unsafe { _mm_loadl_epi64(from.add(k * from_step).cast()) };
        let pair = |k: usize| _mm_unpacklo_epi8(row(k), row(k + 1));
        let (a, b, c, d) = (pair(0), pair(2), pair(4), pair(6));
        let (top, top_high) = (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b));
        let (low, low_high) = (_mm_unpacklo_epi16(c, d), _mm_unpackhi_epi16(c, d));
        let transposed = [
            _mm_unpacklo_epi32(top, low),
            _mm_unpackhi_epi32(top, low),
            _mm_unpacklo_epi32(top_high, low_high),
            _mm_unpackhi_epi32(top_high, low_high),
        ];
        for (i, rows) in transposed.into_iter().enumerate() {
            // SAFETY: the caller guarantees the target.
            unsafe {
                _mm_storel_epi64(to.add(2 * i * to_step).cast(), rows);
                _mm_storel_epi64(to.add((2 * i + 1) * to_step).cast(), _mm_unpackhi_epi64(rows, rows));
            }
        }
    }

    /// # Safety
    /// There must be 8 elements in each of 8 rows on both sides.
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn pairs((to, to_step): (*mut u16, usize), (from, from_step): (*const u16, usize)) {
        // SAFETY: the caller guarantees the elements.
        let row = |k: usize| unsafe { _mm_loadu_si128(from.add(k * from_step).cast()) };
        let quarter = |k: usize| {
            let (a, b, c, d) = (row(k), row(k + 1), row(k + 2), row(k + 3));
            let (ab, cd) = (_mm_unpacklo_epi16(a, b), _mm_unpacklo_epi16(c, d));
            let (ab_high, cd_high) = (_mm_unpackhi_epi16(a, b), _mm_unpackhi_epi16(c, d));
            [
                _mm_unpacklo_epi32(ab, cd),
                _mm_unpackhi_epi32(ab, cd),
                _mm_unpacklo_epi32(ab_high, cd_high),
                _mm_unpackhi_epi32(ab_high, cd_high),
            ]
        };
        let (top, low) = (quarter(0), quarter(4));
        for i in 0..4 {
            // SAFETY: the caller guarantees the target.
            unsafe {
                _mm_storeu_si128(to.add(2 * i * to_step).cast(), _mm_unpacklo_epi64(top[i], low[i]));
                _mm_storeu_si128(to.add((2 * i + 1) * to_step).cast(), _mm_unpackhi_epi64(top[i], low[i]));
            }
        }
    }

    /// # Safety
    /// There must be 8 elements in each of 8 rows on both sides.
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn eight_by_eight((to, to_step): (*mut f32, usize), (from, from_step): (*const f32, usize)) {
        for half in [0, 4] {
            // SAFETY: as the caller guarantees.
            unsafe { four_of_eight((to.add(half * to_step), to_step), (from.add(half), from_step)) };
        }
    }

    /// # Safety
    /// There must be 4 elements in each of 8 rows, and capacity for the 4 columns of 8 elements.
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn four_of_eight((to, to_step): (*mut f32, usize), (from, from_step): (*const f32, usize)) {
        // Row `k`, followed by row `k + 4`: the loads do the permutation across the halves of a vector.
        // SAFETY: the caller guarantees the elements.
        let pair = |k: usize| unsafe {
            let row = from.add(k * from_step);
            let (low, high) = (_mm_loadu_ps(row), _mm_loadu_ps(row.add(4 * from_step)));
            _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1)
        };
        let (a, b, c, d) = (pair(0), pair(1), pair(2), pair(3));
        let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        let transposed = [
            _mm256_shuffle_ps(ab, cd, 0b01_00_01_00),
            _mm256_shuffle_ps(ab, cd, 0b11_10_11_10),
            _mm256_shuffle_ps(ab_high, cd_high, 0b01_00_01_00),
            _mm256_shuffle_ps(ab_high, cd_high, 0b11_10_11_10),
        ];
        for (i, row) in transposed.into_iter().enumerate() {
            // SAFETY: the caller guarantees the target.
            unsafe { _mm256_storeu_ps(to.add(i * to_step), row) };
        }
    }

    /// # Safety
    /// There must be 4 elements in each of 4 rows on both sides.
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn four_by_four((to, to_step): (*mut f64, usize), (from, from_step): (*const f64, usize)) {
        for half in [0, 2] {
            // As above.
            // SAFETY: the caller guarantees the elements.
            let pair = |k: usize| unsafe {
                let row = from.add(k * from_step + half);
                let (low, high) = (_mm_loadu_pd(row), _mm_loadu_pd(row.add(2 * from_step)));
                _mm256_insertf128_pd(_mm256_castpd128_pd256(low), high, 1)
            };
            let (a, b) = (pair(0), pair(1));
            // SAFETY: the caller guarantees the target.
            unsafe {
                _mm256_storeu_pd(to.add(half * to_step), _mm256_unpacklo_pd(a, b));
                _mm256_storeu_pd(to.add((half + 1) * to_step), _mm256_unpackhi_pd(a, b));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<W: Copy + PartialEq + std::fmt::Debug + Default, const AVX: bool>(element: impl Fn(usize) -> W) {
        for (rows, columns) in
            [(1, 1), (8, 8), (16, 4), (24, 7), (9, 5), (7, 30), (24, 40), (19, 21), (64, 33), (9, 3)]
        {
            let (from_step, to_step) = (columns + 3, rows + 2);
            let from: Vec<W> = (0..rows * from_step).map(&element).collect();
            let untouched = element(rows * from_step);
            let mut to = vec![untouched; columns * to_step];
            // SAFETY: both vectors have the elements; the caller checked the processor's features.
            unsafe {
                turn::<W, AVX>((to.as_mut_ptr(), to_step), (from.as_ptr(), from_step), rows, columns);
            }
            for (c, r) in (0..columns).flat_map(|c| (0..to_step).map(move |r| (c, r))) {
                let expected = if r < rows { from[r * from_step + c] } else { untouched };
                assert_eq!(to[c * to_step + r], expected, "{rows} x {columns} at {r}, {c}");
            }
        }
    }

    #[test]
    fn each_element_goes_to_its_place_and_nothing_beside() {
        check::<u8, false>(|i| i as u8);
        check::<u16, false>(|i| i as u16);
        check::<u32, false>(|i| i as u32);
        check::<u64, false>(|i| i as u64);
        check::<u128, false>(|i| i as u128);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn with_vectors_too_whatever_the_bits() {
        if !std::is_x86_feature_detected!("avx") {
            eprintln!("skipped: this processor has no AVX");
            return;
        }
        check::<u8, true>(|i| (i as u8).wrapping_mul(167));
        check::<u16, true>(|i| i as u16);
        // Includes signalling NaN.
        check::<u32, true>(|i| (i as u32).wrapping_mul(0x9e37_79b9) | 0x7f80_0000);
        check::<u64, true>(|i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 0x7ff0_0000_0000_0000);
        check::<u128, true>(|i| (i as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    }
}
