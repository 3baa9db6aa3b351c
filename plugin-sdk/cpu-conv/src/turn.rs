//! Transposition of contiguous images: inputs are transposed to dense channels while they are copied, and results back to
//! planes while they are written.

use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::transpose;
pub use keyway_cpu_loops::widen_transposed as turn;
use std::ops::Range;

/// Results with dense channels, staged before they are [copied](Staged::put) to the output.
pub struct Staged<T> {
    pub from: *const T,
    /// The strides between positions, and between rows, in elements.
    pub across: usize,
    pub down: usize,
}

impl<T: Copy> Staged<T> {
    /// Copies the channels of an area of positions to the output.
    ///
    /// # Safety
    /// The results must exist, and the sample must have these elements, uniquely owned; the caller upholds this.
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

    /// Copies the elements of an area to the staging buffer, the inverse of [`Staged::put`].
    ///
    /// # Safety
    /// The sample must have the elements, and the buffer capacity for them, uniquely owned; the caller upholds this.
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

    /// The offset of an area in elements, and its number of rows and columns; contiguous rows are merged.
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
        match down == wide * across && self.down == wide * self.across {
            true => (at, 1, tall * wide),
            false => (at, tall, wide),
        }
    }
}
