//! f16 and bf16 in f32: elements widened for a product, and its sums rounded at the end.

use super::product::{Matrix, Tile};
use keyway_cpu_loops::transpose;
use keyway_sdk::author::Float;
use keyway_sdk::half::{bf16, f16};

/// An element type that is widened to f32 to be computed with.
pub trait Half: Float<Acc = f32> {
    /// Widens a row, exactly.
    fn widen(to: &mut [f32], from: &[Self]);
    /// Rounds a row to nearest even.
    fn narrow(to: &mut [Self], from: &[f32]);
}

impl Half for bf16 {
    #[inline]
    fn widen(to: &mut [f32], from: &[bf16]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = f32::from_bits(u32::from(from.to_bits()) << 16);
        }
    }

    #[inline]
    fn narrow(to: &mut [bf16], from: &[f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            let bits = from.to_bits();
            // Both ways without a branch, for the sake of vectors. A NaN must stay one whose first bits are all 0.
            let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
            let nan = bits >> 16 | 0x40;
            *to = bf16::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded } as u16);
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "f16c"))]
impl Half for f16 {
    #[inline]
    fn widen(to: &mut [f32], from: &[f16]) {
        use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};
        let n = to.len().min(from.len());
        let ((to, to_rest), (from, rest)) = (to[..n].as_chunks_mut::<8>(), from[..n].as_chunks::<8>());
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: both arrays are as long as the vectors; the build's level has the instruction.
            unsafe {
                _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())))
            };
        }
        to_rest.iter_mut().zip(rest).for_each(|(to, from)| *to = from.to_f32());
    }

    #[inline]
    fn narrow(to: &mut [f16], from: &[f32]) {
        use std::arch::x86_64::{
            _MM_FROUND_TO_NEAREST_INT, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps,
        };
        let n = to.len().min(from.len());
        let ((to, to_rest), (from, rest)) = (to[..n].as_chunks_mut::<8>(), from[..n].as_chunks::<8>());
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: as in `widen`.
            unsafe {
                let rounded = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.as_ptr()));
                _mm_storeu_si128(to.as_mut_ptr().cast(), rounded);
            }
        }
        to_rest.iter_mut().zip(rest).for_each(|(to, from)| *to = f16::from_f32(*from));
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "f16c")))]
impl Half for f16 {
    #[inline]
    fn widen(to: &mut [f32], from: &[f16]) {
        use half::slice::HalfFloatSliceExt;
        let n = to.len().min(from.len());
        from[..n].convert_to_f32_slice(&mut to[..n]);
    }

    #[inline]
    fn narrow(to: &mut [f16], from: &[f32]) {
        use half::slice::HalfFloatSliceExt;
        let n = to.len().min(from.len());
        to[..n].convert_from_f32_slice(&from[..n]);
    }
}

/// Rows or columns that are turned at once, and elements of each.
const TURNED: (usize, usize) = (16, 64);
/// Sums that are rounded at once.
const LINE: usize = 256;

/// Widens `rows` by `columns` elements to rows `step` apart.
///
/// # Safety
/// The elements and places must exist, and nobody else may use the places; the caller upholds this.
pub unsafe fn widen_matrix<T: Half>(
    to: *mut f32,
    step: usize,
    from: Matrix<*const T>,
    (rows, columns): (usize, usize),
) {
    if from.column == 1 {
        for r in 0..rows {
            // SAFETY: the caller guarantees the row and the places.
            unsafe {
                let row = std::slice::from_raw_parts(from.at(r, 0).data, columns);
                T::widen(std::slice::from_raw_parts_mut(to.add(r * step), columns), row);
            }
        }
    } else if from.row == 1 {
        let mut lines = [[0f32; TURNED.1]; TURNED.0];
        for (c, r) in
            (0..columns).step_by(TURNED.0).flat_map(|c| (0..rows).step_by(TURNED.1).map(move |r| (c, r)))
        {
            let (wide, tall) = (TURNED.0.min(columns - c), TURNED.1.min(rows - r));
            for (i, line) in lines.iter_mut().enumerate().take(wide) {
                // SAFETY: the caller guarantees the column.
                T::widen(line, unsafe { std::slice::from_raw_parts(from.at(r, c + i).data, tall) });
            }
            // SAFETY: the caller guarantees the places; the lines are long enough.
            unsafe { transpose(to.add(r * step + c), step, lines[0].as_ptr(), TURNED.1, wide, tall) };
        }
    } else {
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            // SAFETY: the caller guarantees the element and the place.
            unsafe { *to.add(r * step + c) = (*from.at(r, c).data).to_acc() };
        }
    }
}

/// `out = alpha * sums + beta * input`, rounded once; rows of sums are `step` apart.
///
/// # Safety
/// The sums and the elements of the tile's `out` and `input` must exist, and nobody else may use those of `out`; the
/// caller upholds this.
pub unsafe fn finish<T: Half>(tile: &Tile<T>, sums: *const f32, step: usize) {
    let (mut line, mut added, mut rounded) = ([0f32; LINE], [0f32; LINE], [T::from_acc(0.0); LINE]);
    let alpha = tile.alpha.to_acc();
    for (r, begin) in (0..tile.rows).flat_map(|r| (0..tile.columns).step_by(LINE).map(move |c| (r, c))) {
        let n = LINE.min(tile.columns - begin);
        // SAFETY: the caller guarantees the sums.
        let mut sums = unsafe { std::slice::from_raw_parts(sums.add(r * step + begin), n) };
        if tile.input.is_some() || alpha != 1.0 {
            line.iter_mut().zip(sums).for_each(|(value, sum)| *value = alpha * sum);
            if let Some((input, beta)) = tile.input {
                let beta = beta.to_acc();
                // SAFETY: the caller guarantees the input.
                unsafe { widen_matrix(added.as_mut_ptr(), LINE, input.at(r, begin), (1, n)) };
                line.iter_mut().zip(&added[..n]).for_each(|(value, added)| *value += beta * added);
            }
            sums = &line[..n];
        }
        let to = tile.out.data.wrapping_add(r * tile.out.row + begin * tile.out.column);
        if tile.out.column == 1 {
            // SAFETY: the caller guarantees the places, which are dense.
            T::narrow(unsafe { std::slice::from_raw_parts_mut(to, n) }, sums);
        } else {
            T::narrow(&mut rounded, sums);
            // SAFETY: the caller guarantees the places.
            rounded[..n].iter().enumerate().for_each(|(i, v)| unsafe { *to.add(i * tile.out.column) = *v });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Half + std::fmt::Debug>(from_bits: impl Fn(u16) -> T, bits: impl Fn(T) -> u16) {
        let all: Vec<T> = (0..=u16::MAX).map(&from_bits).collect();
        let mut wide = vec![0f32; all.len()];
        T::widen(&mut wide, &all);
        for (wide, element) in wide.iter().zip(&all) {
            assert!(wide.to_bits() == element.to_acc().to_bits() || wide.is_nan(), "{wide} of {element:?}");
        }
        // Each element, and what lies halfway to the next or beside that.
        let numbers: Vec<f32> = wide
            .iter()
            .zip(wide.iter().skip(1))
            .flat_map(|(&a, &b)| {
                let middle = ((f64::from(a) + f64::from(b)) / 2.0) as f32;
                [a, middle, middle.next_up(), middle.next_down(), -middle]
            })
            .chain([f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xff80_0001), f32::MAX, f32::MIN])
            .collect();
        let mut narrow = vec![from_bits(0); numbers.len()];
        T::narrow(&mut narrow, &numbers);
        for (&narrow, &number) in narrow.iter().zip(&numbers) {
            let expected = T::from_acc(number);
            let nan = number.is_nan() && narrow.to_acc().is_nan();
            assert!(nan || bits(narrow) == bits(expected), "{narrow:?} of {number:e}, not {expected:?}");
        }
    }

    #[test]
    fn rows_are_widened_and_rounded_as_single_elements_are() {
        check(bf16::from_bits, bf16::to_bits);
        check(f16::from_bits, f16::to_bits);
    }

    #[test]
    fn a_matrix_is_widened_whichever_way_it_lies() {
        for (rows, columns) in [(1, 1), (3, 70), (70, 3), (64, 16), (130, 33), (1, 200)] {
            let elements = (rows + 2) * columns * 2;
            let from: Vec<bf16> = (0..elements).map(|i| bf16::from_bits(i as u16)).collect();
            for (row, column) in [(columns, 1), (1, rows), (2 * columns, 2), (0, 1), (1, 0), (1, rows + 2)] {
                let step = columns + 3;
                let mut to = vec![-1f32; rows * step];
                let matrix = Matrix { data: from.as_ptr(), row, column };
                // SAFETY: there are the elements at these strides, and the places.
                unsafe { widen_matrix(to.as_mut_ptr(), step, matrix, (rows, columns)) };
                for (r, c) in (0..rows).flat_map(|r| (0..step).map(move |c| (r, c))) {
                    let expected = if c < columns { from[r * row + c * column].to_f32() } else { -1.0 };
                    assert_eq!(
                        to[r * step + c],
                        expected,
                        "{rows} x {columns} by {row}, {column} at {r}, {c}"
                    );
                }
            }
        }
    }
}
