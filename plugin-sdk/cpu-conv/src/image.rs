//! Images, and copies of their rows with zero padding.

use crate::turn::turn;
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::vectors::{Lanes, widen};
use keyway_sdk::author::Error;
use std::ops::Range;

/// A vector of the accumulation type.
pub type Numbers = <f32 as Lanes>::Vector;

/// An element type that is widened to f32.
pub trait Pixel: Lanes<Acc = f32, Vector = Numbers> {}

impl<T: Lanes<Acc = f32, Vector = Numbers>> Pixel for T {}

/// The error for a case that this library does not support, and the strided kernels do.
pub fn unsupported(what: &str) -> Error {
    Error::Unsupported { what: what.into() }
}

/// The image with depth 1, if it is dense in channels_last order and not a volume.
pub fn dense<'a, T>(of: Volume<'a, T>) -> Result<Volume<'a, T>, Error> {
    let [n, c, d, h, w] = of.sizes;
    let steps = [d * h * w * c, 1, h * w * c, w * c, c];
    let fits = |(i, step): (usize, usize)| of.sizes[i] == 1 || of.strides[i] == step;
    if d != 1 || n * c * h * w == 0 || !steps.into_iter().enumerate().all(fits) {
        return Err(unsupported("other memory than dense images in channels_last order"));
    }
    Ok(Volume { strides: steps, ..of })
}

/// The image with depth 1, if it is [`dense`] or the columns of each plane are.
pub fn image<'a, T: Copy>(of: Volume<'a, T>) -> Result<Volume<'a, T>, Error> {
    let [_, channels, depth, _, width] = of.sizes;
    if let Ok(dense) = dense(of) {
        return Ok(dense);
    }
    if depth != 1 || of.sizes.contains(&0) || (width != 1 && of.strides[4] != 1) {
        return Err(unsupported("other memory than images with dense channels or columns"));
    }
    let [sample, channel, _, row, _] = of.strides;
    let channel = if channels == 1 { 1 } else { channel };
    Ok(Volume { strides: [sample, channel, 1, row, 1], ..of })
}

/// Whether the channels of an [`image`] are dense; otherwise its columns are.
pub fn has_dense_channels<T>(image: &Volume<'_, T>) -> bool {
    image.strides[1] == 1
}

/// The geometry of a copy of the image rows that some output positions read, with zero padding.
pub struct Band {
    /// The row stride in elements.
    pub row: usize,
    /// The stride between positions, in rows and pixels of the image.
    pub step: [usize; 2],
    /// The first row and pixel that a position reads, relative to the position's own.
    first: [isize; 2],
    /// The extent of the taps of one position, in rows and pixels.
    reach: [usize; 2],
    /// The number of channels of a pixel that are copied.
    pub channels: usize,
    width: usize,
}

impl Band {
    /// The band of the positions along two axes. Taps are in ascending order.
    ///
    /// # Errors
    /// `Unsupported` if rows would be mostly zeros.
    pub fn of(axes: &[Axis; 2], channels: usize) -> Result<Band, Error> {
        if axes.iter().any(Axis::is_sparse) {
            return Err(unsupported("kernel taps or output positions so far apart"));
        }
        let first = [0, 1].map(|d| axes[d].taps.first().copied().unwrap_or(0));
        let reach =
            [0, 1].map(|d| axes[d].taps.last().map_or(0, |last| (last - first[d] + 1).cast_unsigned()));
        let width = (axes[1].count.max(1) - 1) * axes[1].step + reach[1];
        let step = [0, 1].map(|d| axes[d].step);
        Ok(Band { row: width * channels, step, first, reach, channels, width })
    }

    /// The number of rows that `places` rows of positions read.
    pub fn rows(&self, places: usize) -> usize {
        (places.max(1) - 1) * self.step[0] + self.reach[0]
    }

    /// The copied row that a row of taps reads at the first position.
    pub fn down(&self, tap: isize) -> usize {
        (tap - self.first[0]).cast_unsigned()
    }

    /// The axis along a copied row, from the image's axis.
    pub fn across(&self, axis: &Axis) -> Axis {
        let taps = axis.taps.iter().map(|tap| tap - self.first[1]).collect();
        Axis { size: self.width, stride: self.channels, taps, ..axis.clone() }
    }

    /// The part of an image that the positions of these rows read: for each row the range of pixels within the image,
    /// relative to the first pixel read, and the index of the first one in the image.
    fn reads<T: Copy>(
        &self,
        image: &Volume<'_, T>,
        sample: usize,
        places: &Range<usize>,
        first_channel: usize,
    ) -> impl Iterator<Item = (Range<usize>, *const T)> {
        let [_, _, _, height, width] = image.sizes;
        let [step, channel, _, down, across] = image.strides;
        let (top, left) = ((places.start * self.step[0]).cast_signed() + self.first[0], self.first[1]);
        let begin = (-left).clamp(0, self.width.cast_signed()).cast_unsigned();
        let end =
            (width.cast_signed() - left).clamp(begin.cast_signed(), self.width.cast_signed()).cast_unsigned();
        let pixel = if begin < end { (left + begin.cast_signed()).cast_unsigned() } else { 0 };
        let from = image.data.as_ptr().cast_const();
        let from = from.wrapping_add(sample * step + first_channel * channel + pixel * across);
        (0..self.rows(places.len())).map(move |r| {
            let y = top + r.cast_signed();
            if y < 0 || y.cast_unsigned() >= height {
                return (0..0, from);
            }
            (begin..end, from.wrapping_add(y.cast_unsigned() * down))
        })
    }

    /// Copies the pixels that the positions of these rows read, for a range of channels of an image.
    ///
    /// # Safety
    /// The image must contain the elements that its sizes describe, and be an [`image`]; `to` must have capacity for
    /// `rows(places.len()) * row` elements, uniquely owned.
    pub unsafe fn copy<T: Pixel>(
        &self,
        to: *mut f32,
        image: &Volume<'_, T>,
        sample: usize,
        places: &Range<usize>,
        first_channel: usize,
    ) {
        let c = self.channels;
        for (r, (pixels, from)) in self.reads(image, sample, places, first_channel).enumerate() {
            let to = to.wrapping_add(r * self.row);
            // SAFETY: the row has capacity for the elements; these pixels exist, which the caller guarantees.
            unsafe {
                to.write_bytes(0, pixels.start * c);
                to.add(pixels.end * c).write_bytes(0, (self.width - pixels.end) * c);
                let to = to.add(pixels.start * c);
                if !has_dense_channels(image) {
                    turn(to, c, from, image.strides[1], (c, pixels.len()));
                } else if c == image.strides[4] {
                    widen(to, from, pixels.len() * c);
                } else {
                    for x in 0..pixels.len() {
                        widen(to.add(x * c), from.wrapping_add(x * image.strides[4]), c);
                    }
                }
            }
        }
    }
}

/// Adds `from` to `to`, element by element.
pub fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
}
