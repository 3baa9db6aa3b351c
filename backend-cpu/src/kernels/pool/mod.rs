//! `max_pool`, `avg_pool`, their adaptive variants, and their gradients.
//!
//! Outputs are computed in lines: the positions of a row or, if channels are dense, the channels of a position. A line is
//! processed once for each element of the window, so that the inner loop is over neighbouring elements in any memory
//! format: these kernels also serve channels_last. Gradients are scattered to the input channel by channel, or in blocks of
//! contiguous channels.

mod adaptive;
mod average;
mod integers;
mod largest;
mod lines;
mod near;
mod spread;
mod unpool;

use keyway_cpu_loops::images::{Axis, Volume, three};
use keyway_cpu_loops::reserve;
use keyway_sdk::author::{Call, Element, Error};

/// The parameters of a pooling window.
struct Window {
    kernel: [usize; 3],
    stride: [usize; 3],
    padding: [usize; 3],
    dilation: [usize; 3],
}

impl Window {
    /// Reads kernel, stride and padding from arguments `at` to `at + 2`.
    fn of(call: &Call, at: usize, dilation: [usize; 3]) -> Result<Window, Error> {
        let (kernel, stride) = (three(call.ints(at)?, 1), three(call.ints(at + 1)?, 1));
        Ok(Window { kernel, stride, padding: three(call.ints(at + 2)?, 0), dilation })
    }

    /// The axes of a nonempty pooled image. Window elements outside the image at every position have no taps, as a window
    /// may be far larger than the image.
    fn axes<T: Element>(&self, image: &Volume<'_, T>, counts: [usize; 3]) -> Result<[Axis; 3], Error> {
        let axis = |d: usize| {
            let (size, count, stride) = (image.sizes[d + 2], counts[d], self.stride[d]);
            let (dilation, padding, most) = (self.dilation[d], self.padding[d], self.kernel[d]);
            // The window elements inside the image at a position. They do not increase with the position.
            let inside = |place: usize| {
                let [begin, end] = [0, size]
                    .map(|at| (padding + at).saturating_sub(place * stride).div_ceil(dilation).min(most));
                begin..end
            };
            let mut taps = reserve(most.min(size.saturating_mul(count)))?;
            let mut next = 0;
            for place in (0..count).rev() {
                let inside = inside(place);
                next = next.max(inside.start);
                taps.extend((next..inside.end).map(|t| (t * dilation).cast_signed() - padding.cast_signed()));
                next = next.max(inside.end);
                if next == most {
                    break;
                }
            }
            Ok(Axis::of(image, d, count, stride, taps))
        };
        Ok([axis(0)?, axis(1)?, axis(2)?])
    }
}
