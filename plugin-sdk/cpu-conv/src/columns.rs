//! The weight, packed for the micro-kernel.

use super::block::{WIDE, WORK};
use super::product::{Product, Weight};
use crate::image::Pixel;
use crate::turn::turn;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::widen;
use keyway_sdk::author::{Error, Lanes, Scratch};

/// The number of channels widened in one step: two cache lines, which processors fetch together.
pub const CHANNELS: usize = 32;
/// The number of multiplications that take as long as copying an element of the weight.
const MOVED: usize = 16;

/// Packs the elements of up to [`WIDE`] rows as `[channels][WIDE]`, with zeros for missing rows.
///
/// # Safety
/// `from` must have an element for each row and channel, and `to` capacity for `channels * WIDE` elements, uniquely owned; the
/// caller upholds this.
pub unsafe fn columns<T: Pixel>(
    from: *const T,
    weight: &Weight<'_, T>,
    (rows, channels): (usize, usize),
    to: *mut f32,
) {
    let column = |c: usize| to.wrapping_add(c * WIDE);
    // SAFETY: as the caller guarantees; a line has capacity for the channels of a chunk.
    unsafe {
        if rows < WIDE {
            to.write_bytes(0, channels * WIDE);
        }
        if weight.channel == 1 {
            turn(to, WIDE, from, weight.row, (rows, channels));
        } else if weight.row == 1 {
            (0..channels).for_each(|c| widen(column(c), from.wrapping_add(c * weight.channel), rows));
        } else {
            for c in 0..channels {
                for r in 0..rows {
                    let element = *from.wrapping_add(r * weight.row + c * weight.channel);
                    column(c).add(r).write(element.to_acc());
                }
            }
        }
    }
}

impl<T: Pixel> Product<'_, T> {
    /// The weight as `[groups][blocks][taps][channels][WIDE]`, with zeros for missing rows.
    ///
    /// # Safety
    /// As for [`Product::run`].
    pub unsafe fn packed(&self, blocks: usize) -> Result<Scratch<f32>, Error> {
        let size = self.weight.taps.len() * self.channels * WIDE;
        // SAFETY: all of it is written below.
        let mut made = unsafe { Scratch::<f32>::unwritten(self.groups * blocks * size) }?;
        // SAFETY: the address is used within this call, each block by one task.
        let to = unsafe { Lanes::new(made.as_mut_ptr()) };
        parallel_try(self.groups * blocks, WORK / (MOVED * size).max(1), |range| {
            for i in range {
                // SAFETY: the caller guarantees the elements; each block has its own address range.
                unsafe { self.pack((i / blocks, i % blocks), to.as_ptr().wrapping_add(i * size)) };
            }
            Ok(())
        })?;
        Ok(made)
    }

    /// Packs a block of the weight of a group as `[taps][channels][WIDE]`.
    ///
    /// # Safety
    /// As for [`Product::run`]; `to` must have capacity for the block, uniquely owned.
    pub unsafe fn pack(&self, (g, block): (usize, usize), to: *mut f32) {
        let Weight { data, group, row, taps, .. } = &self.weight;
        let first = block * WIDE;
        let from = data.as_ptr().cast_const().wrapping_add(g * group + first * row);
        let sizes = (WIDE.min(self.rows - first), self.channels);
        for (t, tap) in taps.iter().enumerate() {
            let to = to.wrapping_add(t * self.channels * WIDE);
            // SAFETY: as the caller guarantees.
            unsafe { columns(from.wrapping_add(*tap), &self.weight, sizes, to) };
        }
    }
}
