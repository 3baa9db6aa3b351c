//! The im2col matrix, one column for each output position, filled for a range of positions at a time and never materialised
//! completely.

use keyway_cpu_loops::images::Axis;
use keyway_sdk::author::{Lanes, Plain};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The layout of the matrix: one row for each channel and tap, or one for each position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// `[channels * taps][positions]`: for images whose rows are dense.
    Channels,
    /// `[positions][taps * channels]`: for images whose channels are dense.
    Places,
}

/// The source and the output positions.
pub struct Patches<'a, T> {
    pub data: Lanes<'a, T>,
    /// The strides between samples and between channels, in elements.
    pub sample: usize,
    pub channel: usize,
    pub axes: [Axis; 3],
}

/// Consecutive positions of one row.
struct Run {
    sample: usize,
    depth: usize,
    height: usize,
    places: Range<usize>,
    /// The index of the first position, relative to the start of the range.
    at: usize,
}

/// The positions of a run at which a tap reads inside the image, and the offset of the first element within a channel; at
/// other positions the tap reads zero padding.
struct Piece {
    begin: usize,
    end: usize,
    from: usize,
}

impl<T: Plain> Patches<'_, T> {
    /// The number of kernel taps.
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.taps.len()).product()
    }

    /// The order in which the source is read most sequentially.
    pub fn order(&self, channels: usize) -> Order {
        if channels > 1 && self.channel == 1 { Order::Places } else { Order::Channels }
    }

    fn runs(&self, places: &Range<usize>) -> Vec<Run> {
        let [depth, height, width] = [0, 1, 2].map(|d| self.axes[d].count);
        let (mut runs, mut next) = (Vec::new(), places.start);
        while next < places.end {
            let (row, w) = (next / width, next % width);
            let count = (width - w).min(places.end - next);
            runs.push(Run {
                sample: row / height / depth,
                depth: row / height % depth,
                height: row % height,
                places: w..w + count,
                at: next - places.start,
            });
            next += count;
        }
        runs
    }

    /// Fills the matrix for these channels and positions, counted over all samples.
    ///
    /// # Safety
    /// The source must contain the elements that sizes, strides and positions describe; `to` must have capacity for the
    /// matrix, and be uniquely owned.
    pub unsafe fn fill<A: Copy + Default>(
        &self,
        to: *mut A,
        order: Order,
        channels: Range<usize>,
        places: Range<usize>,
        convert: impl Fn(T) -> A + Copy,
    ) {
        let runs = self.runs(&places);
        if runs.is_empty() {
            return;
        }
        // SAFETY: as the caller guarantees.
        unsafe {
            match order {
                Order::Channels => self.by_channels(to, &runs, channels, places.len(), convert),
                Order::Places => self.by_places(to, &runs, channels, convert),
            }
        }
    }

    /// The elements that each tap reads in each run, the same for all channels.
    fn pieces(&self, runs: &[Run]) -> Vec<Piece> {
        let [depth, height, width] = &self.axes;
        let piece = |(d, h, w): (usize, usize, usize), run: &Run| {
            let plane = depth.element(run.depth, d).zip(height.element(run.height, h));
            let Some((z, y)) = plane else { return Piece { begin: 0, end: 0, from: 0 } };
            let inside = width.inside(w, run.places.clone());
            if inside.is_empty() {
                return Piece { begin: 0, end: 0, from: 0 };
            }
            let x = ((inside.start * width.step).cast_signed() + width.taps[w]).cast_unsigned();
            let row = run.sample * self.sample + z * depth.stride + y * height.stride;
            let [begin, end] = [inside.start, inside.end].map(|place| place - run.places.start);
            Piece { begin, end, from: row + x * width.stride }
        };
        self.each_tap().flat_map(|tap| runs.iter().map(move |run| piece(tap, run))).collect()
    }

    /// # Safety
    /// As for [`Patches::fill`].
    unsafe fn by_channels<A: Copy + Default>(
        &self,
        to: *mut A,
        runs: &[Run],
        channels: Range<usize>,
        columns: usize,
        convert: impl Fn(T) -> A + Copy,
    ) {
        let pieces = self.pieces(runs);
        let step = self.axes[2].step * self.axes[2].stride;
        let mut row = to;
        for c in channels {
            let channel = self.data.as_ptr().cast_const().wrapping_add(c * self.channel);
            for pieces in pieces.chunks_exact(runs.len()) {
                for (run, piece) in runs.iter().zip(pieces) {
                    // SAFETY: the run is within the row, whose elements the caller guarantees.
                    let line = unsafe {
                        let line = row.add(run.at).cast::<MaybeUninit<A>>();
                        std::slice::from_raw_parts_mut(line, run.places.len())
                    };
                    let outside = |slots: &mut [MaybeUninit<A>]| slots.fill(MaybeUninit::new(A::default()));
                    outside(&mut line[..piece.begin]);
                    outside(&mut line[piece.end..]);
                    let from = channel.wrapping_add(piece.from);
                    let line = &mut line[piece.begin..piece.end];
                    if step == 1 {
                        for (i, slot) in line.iter_mut().enumerate() {
                            // SAFETY: the offsets of the piece are within the source.
                            slot.write(convert(unsafe { *from.add(i) }));
                        }
                    } else {
                        for (i, slot) in line.iter_mut().enumerate() {
                            // SAFETY: as above.
                            slot.write(convert(unsafe { *from.add(i * step) }));
                        }
                    }
                }
                row = row.wrapping_add(columns);
            }
        }
    }

    /// # Safety
    /// As for [`Patches::fill`].
    unsafe fn by_places<A: Copy + Default>(
        &self,
        to: *mut A,
        runs: &[Run],
        channels: Range<usize>,
        convert: impl Fn(T) -> A + Copy,
    ) {
        let [depth, height, width] = &self.axes;
        let count = channels.len();
        let row = self.taps() * count;
        for run in runs {
            for place in run.places.clone() {
                // SAFETY: the caller guarantees the elements of this row.
                let mut to = unsafe { to.add((run.at + place - run.places.start) * row) };
                for (d, h, w) in self.each_tap() {
                    let z = depth.element(run.depth, d);
                    let (y, x) = (height.element(run.height, h), width.element(place, w));
                    // SAFETY: the row has capacity for the channels of each tap, and the offset is within the source.
                    unsafe {
                        if let (Some(z), Some(y), Some(x)) = (z, y, x) {
                            let at = run.sample * self.sample
                                + channels.start * self.channel
                                + z * depth.stride
                                + y * height.stride
                                + x * width.stride;
                            let from = self.data.as_ptr().cast_const().add(at);
                            if self.channel == 1 {
                                (0..count).for_each(|c| to.add(c).write(convert(*from.add(c))));
                            } else {
                                (0..count)
                                    .for_each(|c| to.add(c).write(convert(*from.add(c * self.channel))));
                            }
                        } else {
                            (0..count).for_each(|c| to.add(c).write(A::default()));
                        }
                        to = to.add(count);
                    }
                }
            }
        }
    }

    fn each_tap(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<T> {
        let [depth, height, width] = [0, 1, 2].map(|d| self.axes[d].taps.len());
        (0..depth * height * width).map(move |t| (t / width / height, t / width % height, t % width))
    }
}
