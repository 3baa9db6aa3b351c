//! Packed panels of an operand, in the layout of the tile unit.
//!
//! A panel is up to 32 rows of the left operand, or columns of the right one, along the whole reduction dimension, in steps
//! of 32: `[steps][2][16][32]`. Each `[16][32]` is one tile of 1024 bytes. In a tile of the left operand, a line is a row
//! with its 32 elements of the step. In a tile of the right operand, a line is two neighbouring elements of the step from
//! each of 16 columns. As matrices of pairs of elements, one is the transpose of the other. Panels are padded with zeros
//! beyond the operand's edges.

/// The number of rows or columns of a panel, and of elements of a step along the reduction dimension.
pub const SIDE: usize = 32;
/// The number of elements of one step of a panel.
pub const STEP: usize = SIDE * SIDE;
/// The number of rows or columns of one tile, and of pairs of elements in its step.
const HALF: usize = SIDE / 2;

/// A matrix whose rows become the rows of panels. Strides are in elements.
#[derive(Clone, Copy)]
pub struct Source {
    /// The address of the first element.
    pub data: *const u16,
    /// The stride between rows (columns) of a panel.
    pub row: usize,
    /// The stride between elements of the reduction dimension.
    pub column: usize,
}

impl Source {
    /// The submatrix that starts at this element.
    pub fn at(self, row: usize, column: usize) -> Self {
        Source { data: self.data.wrapping_add(row * self.row + column * self.column), ..self }
    }
}

/// The operand of a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// The left operand: panels of rows.
    Left,
    /// The right operand: panels of columns.
    Right,
}

/// The dimension with unit stride in a block of 32 lines of 32 elements.
#[derive(Clone, Copy, PartialEq)]
enum Lines {
    /// A line is a row (column) of the panel.
    Side,
    /// A line is one element of the reduction dimension.
    Inner,
}

/// Packs all panels, of `steps * STEP` elements each, contiguously to `to`.
///
/// # Safety
/// `from` must have `size` by `inner` elements, and `to` capacity for their panels; with `VECTORS` the processor must have
/// AVX-512 F and BW. The caller upholds this.
pub unsafe fn pack<const VECTORS: bool>(
    to: *mut u16,
    from: Source,
    (size, inner): (usize, usize),
    operand: Operand,
) {
    let steps = inner.div_ceil(SIDE);
    // Step by step, so that all panels of a step read the same lines of the reduction dimension.
    for (step, panel) in (0..steps).flat_map(|s| (0..size.div_ceil(SIDE)).map(move |p| (s, p))) {
        let (side, deep) = (SIDE.min(size - panel * SIDE), SIDE.min(inner - step * SIDE));
        let block = from.at(panel * SIDE, step * SIDE);
        let lines = if block.column == 1 || block.row != 1 { Lines::Side } else { Lines::Inner };
        let whole = side == SIDE && deep == SIDE && (block.column == 1 || block.row == 1);
        // SAFETY: the caller guarantees the elements of source and target, and the processor's features.
        unsafe {
            let to = to.add((panel * steps + step) * STEP);
            if whole {
                let distance = if lines == Lines::Side { block.row } else { block.column };
                pack_block::<VECTORS>(to, (block.data, distance), operand, lines);
            } else {
                let mut copy = [0u16; STEP];
                gather(&mut copy, block, (side, deep), lines);
                pack_block::<VECTORS>(to, (copy.as_ptr(), SIDE), operand, lines);
            }
        }
    }
}

/// Copies a partial block, or one without a dense dimension, to lines of 32.
///
/// # Safety
/// The elements must exist; the caller upholds this.
unsafe fn gather(to: &mut [u16; STEP], from: Source, (side, deep): (usize, usize), lines: Lines) {
    let (count, length, distance, step) = match lines {
        Lines::Side => (side, deep, from.row, from.column),
        Lines::Inner => (deep, side, from.column, from.row),
    };
    for (i, line) in to.chunks_exact_mut(SIDE).take(count).enumerate() {
        for (k, slot) in line[..length].iter_mut().enumerate() {
            // SAFETY: the caller guarantees the elements.
            *slot = unsafe { *from.data.add(i * distance + k * step) };
        }
    }
}

/// Packs 32 lines of 32 elements.
///
/// # Safety
/// As for [`pack`], with 32 lines at distance `distance`.
#[inline(always)]
unsafe fn pack_block<const VECTORS: bool>(
    to: *mut u16,
    (from, distance): (*const u16, usize),
    operand: Operand,
    lines: Lines,
) {
    #[cfg(target_arch = "x86_64")]
    if VECTORS {
        // SAFETY: the caller guarantees the elements of source and target, and the processor's features.
        return unsafe { vectors::pack_block(to, (from, distance), operand, lines) };
    }
    for (line, k) in (0..SIDE).flat_map(|l| (0..SIDE).map(move |k| (l, k))) {
        let (side, inner) = if lines == Lines::Side { (line, k) } else { (k, line) };
        // SAFETY: the caller guarantees the elements of source and target.
        unsafe { *to.add(place(operand, side, inner)) = *from.add(line * distance + k) };
    }
}

/// The offset of an element in a step of a panel.
fn place(operand: Operand, side: usize, inner: usize) -> usize {
    let (tile, side) = (side / HALF * (STEP / 2), side % HALF);
    match operand {
        Operand::Left => tile + side * SIDE + inner,
        Operand::Right => tile + inner / 2 * SIDE + side * 2 + inner % 2,
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::{HALF, Lines, Operand, SIDE, STEP};
    use std::arch::x86_64::*;

    /// # Safety
    /// As for [`super::pack_block`].
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn pack_block(
        to: *mut u16,
        (from, distance): (*const u16, usize),
        operand: Operand,
        lines: Lines,
    ) {
        // SAFETY: the caller guarantees 32 lines of one vector each; none is aligned.
        let line = |i: usize| unsafe { _mm512_loadu_si512(from.add(i * distance).cast()) };
        // SAFETY: the caller guarantees 32 lines of the step.
        let write = |i: usize, v| unsafe { _mm512_storeu_si512(to.add(i * SIDE).cast(), v) };
        match (operand, lines) {
            (Operand::Left, Lines::Side) => (0..SIDE).for_each(|i| write(i, line(i))),
            (Operand::Right, Lines::Side) => {
                for tile in 0..2 {
                    let transposed = transpose(std::array::from_fn(|i| line(tile * HALF + i)));
                    transposed.into_iter().enumerate().for_each(|(i, v)| write(tile * HALF + i, v));
                }
            }
            (Operand::Right, Lines::Inner) => {
                for pair in 0..HALF {
                    let (low, high) = interleave(line(2 * pair), line(2 * pair + 1));
                    write(pair, low);
                    write(HALF + pair, high);
                }
            }
            (Operand::Left, Lines::Inner) => {
                let (mut low, mut high) = ([_mm512_setzero_si512(); HALF], [_mm512_setzero_si512(); HALF]);
                for (pair, (low, high)) in low.iter_mut().zip(&mut high).enumerate() {
                    (*low, *high) = interleave(line(2 * pair), line(2 * pair + 1));
                }
                for (tile, pairs) in [low, high].into_iter().enumerate() {
                    let transposed = transpose(pairs);
                    transposed.into_iter().enumerate().for_each(|(i, v)| write(tile * HALF + i, v));
                }
            }
        }
        const { assert!(STEP == 2 * HALF * SIDE) };
    }

    /// Interleaves the elements of two lines in pairs: the first 16 pairs, and the last 16.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn interleave(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        // Each 64 bits of the permuted lines hold four neighbours, so that interleaving within 128 bits preserves the
        // order.
        let spread = |v| {
            let low = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), v);
            let high = _mm512_permutexvar_epi64(_mm512_setr_epi64(4, 4, 5, 5, 6, 6, 7, 7), v);
            (low, high)
        };
        let ((a_low, a_high), (b_low, b_high)) = (spread(a), spread(b));
        (_mm512_unpacklo_epi16(a_low, b_low), _mm512_unpacklo_epi16(a_high, b_high))
    }

    /// Transposes 16 by 16 elements of 32 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn transpose(rows: [__m512i; HALF]) -> [__m512i; HALF] {
        let mut pairs = [_mm512_setzero_si512(); HALF];
        for i in 0..HALF / 2 {
            pairs[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
            pairs[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
        }
        // `fours[4 * i + c]`: within each 128 bits, the elements of column `4 * lane + c` from four rows, starting at `4 *
        // i`.
        let mut fours = [_mm512_setzero_si512(); HALF];
        for i in 0..HALF / 4 {
            for c in 0..2 {
                fours[4 * i + 2 * c] = _mm512_unpacklo_epi64(pairs[4 * i + c], pairs[4 * i + 2 + c]);
                fours[4 * i + 2 * c + 1] = _mm512_unpackhi_epi64(pairs[4 * i + c], pairs[4 * i + 2 + c]);
            }
        }
        let mut columns = [_mm512_setzero_si512(); HALF];
        for c in 0..4 {
            let even = |low| _mm512_shuffle_i32x4(fours[low], fours[low + 4], 0b10_00_10_00);
            let odd = |low| _mm512_shuffle_i32x4(fours[low], fours[low + 4], 0b11_01_11_01);
            let (a, b, x, y) = (even(c), even(8 + c), odd(c), odd(8 + c));
            columns[c] = _mm512_shuffle_i32x4(a, b, 0b10_00_10_00);
            columns[8 + c] = _mm512_shuffle_i32x4(a, b, 0b11_01_11_01);
            columns[4 + c] = _mm512_shuffle_i32x4(x, y, 0b10_00_10_00);
            columns[12 + c] = _mm512_shuffle_i32x4(x, y, 0b11_01_11_01);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs a numbered operand and checks each element at the offset of [`place`].
    fn check<const VECTORS: bool>((size, inner): (usize, usize), (row, column): (usize, usize)) {
        let from: Vec<u16> = (1..=(size * row + inner * column) as u16 + 1).collect();
        let (panels, steps) = (size.div_ceil(SIDE), inner.div_ceil(SIDE));
        for operand in [Operand::Left, Operand::Right] {
            let mut to = vec![u16::MAX; panels * steps * STEP];
            let matrix = Source { data: from.as_ptr(), row, column };
            // SAFETY: both vectors have the elements; the caller checked the processor's features.
            unsafe { pack::<VECTORS>(to.as_mut_ptr(), matrix, (size, inner), operand) };
            for (s, k) in (0..panels * SIDE).flat_map(|s| (0..steps * SIDE).map(move |k| (s, k))) {
                let at = (s / SIDE * steps + k / SIDE) * STEP + place(operand, s % SIDE, k % SIDE);
                let expected = if s < size && k < inner { from[s * row + k * column] } else { 0 };
                assert_eq!(to[at], expected, "{operand:?} {size} x {inner} by {row}, {column} at {s}, {k}");
            }
        }
    }

    /// Whole and partial blocks in both dimensions; fewer under Miri, which is a thousand times slower.
    const SIZES: &[(usize, usize)] = match cfg!(miri) {
        true => &[(33, 32)],
        false => &[(32, 32), (33, 31), (64, 96), (1, 1), (31, 65), (70, 70)],
    };

    fn check_all<const VECTORS: bool>() {
        for &(size, inner) in SIZES {
            check::<VECTORS>((size, inner), (inner, 1));
            check::<VECTORS>((size, inner), (inner + 3, 1));
            check::<VECTORS>((size, inner), (1, size));
            check::<VECTORS>((size, inner), (1, size + 5));
            check::<VECTORS>((size, inner), (0, 1));
            check::<VECTORS>((size, inner), (1, 0));
            check::<VECTORS>((size, inner), (2 * inner, 2));
        }
    }

    #[test]
    fn each_element_lies_in_its_tile_and_zeros_beyond_the_edges() {
        check_all::<false>();
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn with_vectors_too() {
        if !(std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512bw")) {
            eprintln!("skipped: this processor has no AVX-512");
            return;
        }
        check_all::<true>();
    }
}
