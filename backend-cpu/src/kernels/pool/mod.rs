//! `max_pool`, `avg_pool`, the same for windows that follow from the sizes of the result, and their gradients.
//!
//! Results are made by lines: of the places of a row, or, where channels are dense, of the channels of a place. A line is gone
//! through once for each element of the window, so that its loop is over neighbouring elements whatever the format: these are
//! the kernels for channels_last, too. Gradients go to the input channel by channel, or by some channels that lie side by side.

mod adaptive;
mod average;
mod largest;
mod lines;
mod spread;
mod unpool;

use keyway_cpu_loops::images::{Axis, Volume, taps, three};
use keyway_sdk::author::{Call, Element, Error};

/// The axes of a pooled image: kernel, stride and padding are arguments `at` to `at + 2`.
fn axes<T: Element>(
    call: &Call,
    at: usize,
    dilation: [usize; 3],
    image: &Volume<'_, T>,
    counts: [usize; 3],
) -> Result<[Axis; 3], Error> {
    let (kernel, stride) = (three(call.ints(at)?, 1), three(call.ints(at + 1)?, 1));
    let padding = three(call.ints(at + 2)?, 0);
    Ok([0, 1, 2].map(|d| Axis::of(image, d, counts[d], stride[d], taps(kernel[d], dilation[d], padding[d]))))
}
