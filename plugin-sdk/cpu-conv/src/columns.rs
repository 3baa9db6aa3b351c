//! The elements of some kernels at one tap, as the blocks read them.

use super::block::WIDE;
use super::gathered::Weight;
use crate::image::Pixel;
use crate::turn::turn;
use keyway_cpu_loops::vectors::widen;

/// The number of channels widened at once: two cache lines, which processors fetch together.
pub const CHANNELS: usize = 32;

/// Writes the elements of up to [`WIDE`] rows as `[channels][WIDE]`, with zeros where there are no rows.
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
    // SAFETY: as the caller guarantees; a line holds the channels of a chunk.
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
