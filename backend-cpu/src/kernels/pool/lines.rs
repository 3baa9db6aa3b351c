//! Windows that are gone through line by line.

use keyway_cpu_loops::images::{Axis, Volume};
use keyway_sdk::author::{Error, Float, parallel_for};
use std::ops::Range;

/// Elements that are worth handing to a thread.
const GRAIN: usize = 1 << 14;

/// What is made of the elements under a window, one after the other in the order of the window.
pub trait Reduce<A>: Sync {
    type State: Copy;
    /// Before the first element.
    fn begin(&self) -> Self::State;
    /// With one element more, which is at this place of its channel.
    fn take(&self, state: Self::State, x: A, at: i64) -> Self::State;
}

/// The input and how the window moves over it.
pub struct Lines<'a, T> {
    pub input: &'a Volume<'a, T>,
    pub axes: &'a [Axis; 3],
}

/// A line of results: along the last dimension, or along the channels.
#[derive(Clone, Copy)]
pub struct Line {
    first: [usize; 5],
    along: usize,
}

impl Line {
    /// Where result `i` of the line lies in a tensor.
    #[inline(always)]
    pub fn at<T>(&self, t: &Volume<'_, T>, i: usize) -> usize {
        let first: usize = self.first.iter().zip(&t.strides).map(|(i, stride)| i * stride).sum();
        first + i * t.strides[self.along]
    }

    /// The window's place for result `i` of the line.
    pub fn place(&self, i: usize) -> [usize; 3] {
        let [_, _, d, h, w] = self.first;
        if self.along == 1 { [d, h, w] } else { [d, h, w + i] }
    }
}

impl<T: Float> Lines<'_, T> {
    /// Gives `write` the results of each line of the output.
    ///
    /// # Safety
    /// The input must hold the elements that it names.
    pub unsafe fn each<R: Reduce<T::Acc>, O>(
        &self,
        out: &Volume<'_, O>,
        reduce: &R,
        write: impl Fn(Line, &[R::State]) + Sync,
    ) -> Result<(), Error> {
        let along = if self.input.strides[1] == 1 && self.input.sizes[1] > 1 { 1 } else { 4 };
        let length = out.sizes[along];
        let mut counts = out.sizes;
        counts[along] = 1;
        let window: usize = self.axes.iter().map(|axis| axis.taps.len()).product();
        let lines = if length == 0 { 0 } else { counts.iter().product() };
        parallel_for(lines, GRAIN / length.saturating_mul(window).max(1), |range| {
            let mut states = vec![reduce.begin(); length];
            for i in range {
                let mut first = [0; 5];
                let mut rest = i;
                for d in (0..5).rev() {
                    first[d] = rest % counts[d];
                    rest /= counts[d];
                }
                states.fill(reduce.begin());
                let line = Line { first, along };
                // SAFETY: as the caller guarantees.
                unsafe { self.line(line, reduce, &mut states) };
                write(line, &states);
            }
        })
    }

    /// # Safety
    /// As for [`Lines::each`].
    unsafe fn line<R: Reduce<T::Acc>>(&self, line: Line, reduce: &R, states: &mut [R::State]) {
        let [sample, channel, d, h, w] = line.first;
        let [depth, height, width] = self.axes;
        let begin = sample * self.input.strides[0] + channel * self.input.strides[1];
        for z in depth.reads(d) {
            for y in height.reads(h) {
                let begin = begin + z * depth.stride + y * height.stride;
                let row = (z * height.size + y) * width.size;
                for tap in 0..width.taps.len() {
                    // The results that this element of the window counts for, and the element of the first one.
                    let (inside, x): (Range<usize>, usize) = if line.along == 1 {
                        match width.element(w, tap) {
                            Some(x) => (0..states.len(), x),
                            None => continue,
                        }
                    } else {
                        let inside = width.inside(tap, 0..states.len());
                        if inside.is_empty() {
                            continue;
                        }
                        let x = (inside.start * width.step).cast_signed() + width.taps[tap];
                        (inside, x.cast_unsigned())
                    };
                    let (step, apart) = match line.along {
                        1 => (self.input.strides[1], 0),
                        _ => (width.step * width.stride, width.step),
                    };
                    let from = self.input.data.as_ptr().cast_const().wrapping_add(begin + x * width.stride);
                    for (i, state) in states[inside].iter_mut().enumerate() {
                        // SAFETY: `inside` names elements of the input, which the caller guarantees.
                        let value = unsafe { *from.add(i * step) }.to_acc();
                        *state = reduce.take(*state, value, (row + x + i * apart) as i64);
                    }
                }
            }
        }
    }
}
