//! Images in row-major order: what is read is turned to dense channels as it is copied, and what is written back to planes.

use crate::image::Pixel;
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::transpose;
use keyway_cpu_loops::vectors::widen;
use std::any::TypeId;
use std::ops::Range;

/// Elements that are widened at once: two lines of the cache, which processors fetch together.
const SOME: usize = 32;

/// Widens rows of elements to columns of numbers: element `c` of row `r` goes to `to[c * to_step + r]`.
///
/// # Safety
/// There must be the elements, and places for the numbers, which nobody else may use; the caller upholds this.
pub unsafe fn turn<T: Pixel>(
    to: *mut f32,
    to_step: usize,
    from: *const T,
    from_step: usize,
    (rows, columns): (usize, usize),
) {
    // SAFETY: as the caller guarantees; the lines hold those of some rows.
    unsafe {
        if TypeId::of::<T>() == TypeId::of::<f32>() {
            return transpose(to, to_step, from.cast(), from_step, rows, columns);
        }
        let mut lines = [[0.0; SOME]; SOME];
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

/// Results with dense channels, as they lie before they are [put](Staged::put) to where they belong.
pub struct Staged<T> {
    pub from: *const T,
    /// Elements from place to place, and from row to row.
    pub across: usize,
    pub down: usize,
}

impl<T: Copy> Staged<T> {
    /// Copies channels of some rows and columns of places.
    ///
    /// # Safety
    /// There must be the results, and places for them in the sample, which nobody else may use; the caller upholds this.
    pub unsafe fn put(
        &self,
        to: &Volume<'_, T>,
        sample: usize,
        channels: Range<usize>,
        area: [Range<usize>; 2],
    ) {
        let ([_, plane, _, down, across], (at, tall, wide)) =
            (to.strides, self.place(to, sample, &channels, area));
        let to = to.data.as_ptr().wrapping_add(at);
        for row in 0..tall {
            let (to, from) = (to.wrapping_add(row * down), self.from.wrapping_add(row * self.down));
            // SAFETY: as the caller guarantees.
            unsafe {
                if across == 1 {
                    transpose(to, plane, from, self.across, wide, channels.len());
                    continue;
                }
                for c in 0..channels.len() {
                    for x in 0..wide {
                        *to.wrapping_add(c * plane + x * across) = *from.add(x * self.across + c);
                    }
                }
            }
        }
    }

    /// The opposite of [`Staged::put`]: copies what is in those places to where the results are staged.
    ///
    /// # Safety
    /// The sample must have the elements, and there must be places for them, which nobody else may use; the caller upholds
    /// this.
    pub unsafe fn take(
        &self,
        from: &Volume<'_, T>,
        sample: usize,
        channels: Range<usize>,
        area: [Range<usize>; 2],
    ) {
        let ([_, plane, _, down, across], (at, tall, wide)) =
            (from.strides, self.place(from, sample, &channels, area));
        let from = from.data.as_ptr().cast_const().wrapping_add(at);
        for row in 0..tall {
            let (from, to) =
                (from.wrapping_add(row * down), self.from.cast_mut().wrapping_add(row * self.down));
            // SAFETY: as the caller guarantees.
            unsafe {
                if across == 1 {
                    transpose(to, self.across, from, plane, channels.len(), wide);
                    continue;
                }
                for c in 0..channels.len() {
                    for x in 0..wide {
                        *to.wrapping_add(x * self.across + c) = *from.wrapping_add(c * plane + x * across);
                    }
                }
            }
        }
    }

    /// Where an area begins in planes, and its rows and columns; rows without a gap between them are one.
    fn place(
        &self,
        of: &Volume<'_, T>,
        sample: usize,
        channels: &Range<usize>,
        [rows, columns]: [Range<usize>; 2],
    ) -> (usize, usize, usize) {
        let [step, plane, _, down, across] = of.strides;
        let at = sample * step + channels.start * plane + rows.start * down + columns.start * across;
        let (tall, wide) = (rows.len(), columns.len());
        match down == wide && self.down == wide * self.across {
            true => (at, 1, tall * wide),
            false => (at, tall, wide),
        }
    }
}
