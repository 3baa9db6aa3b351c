//! The pixels of tiles: in an image with dense channels, or in copied rows of a contiguous one.

use super::tiles::Tiles;
use super::transforms::{spread, total};
use crate::image::{Band, Numbers, Pixel};
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::vectors::Vector;
use keyway_sdk::author::Error;
use std::marker::PhantomData;
use std::ops::Range;

/// Rows of pixels of several images, from which tiles are read.
pub struct Image<'a, T> {
    all: &'a Tiles,
    /// The address of the first element that a tile reads, which may be outside the image.
    data: *const T,
    /// The strides between images, rows and pixels, in elements.
    steps: [usize; 3],
    /// The first row and pixel that the first tile of an image reads.
    first: [isize; 2],
    sizes: [usize; 2],
    lives: PhantomData<&'a T>,
}

/// The number of pixels along an axis up to the last one that a position reads: pixels beyond it that tiles at the edge
/// would read contribute to no result, but would change last bits.
fn reads(axis: &Axis) -> usize {
    let last = axis.taps.last().copied().unwrap_or(0);
    axis.count.checked_add_signed(last).unwrap_or(0)
}

impl<'a, T> Image<'a, T> {
    /// An image in place, with dense channels, read by positions along two axes.
    pub fn of(image: &Volume<'a, T>, axes: &[Axis; 2], all: &'a Tiles) -> Image<'a, T> {
        Image {
            all,
            data: image.data.as_ptr().cast_const(),
            steps: [0, 3, 4].map(|d| image.strides[d]),
            first: [0, 1].map(|d| axes[d].taps.first().copied().unwrap_or(0)),
            sizes: [0, 1].map(|d| axes[d].size.min(reads(&axes[d]))),
            lives: PhantomData,
        }
    }

    /// The addresses of the pixels of a tile, or of zeros.
    #[inline]
    pub fn pixels<const READ: usize>(&self, tile: usize, zeros: *const T) -> [[*const T; READ]; READ] {
        let [step, down, across] = self.steps;
        let (image, top, left) = self.all.place(tile);
        let from = self.data.wrapping_add(image * step);
        let mut pixels = [[zeros; READ]; READ];
        for (y, row) in pixels.iter_mut().enumerate() {
            for (x, pixel) in row.iter_mut().enumerate() {
                // An index above or left of the image wraps to a value beyond its size.
                let y = (top + y).wrapping_add_signed(self.first[0]);
                let x = (left + x).wrapping_add_signed(self.first[1]);
                if y < self.sizes[0] && x < self.sizes[1] {
                    *pixel = from.wrapping_add(y * down + x * across);
                }
            }
        }
        pixels
    }
}

impl<T: Pixel> Image<'_, T> {
    /// Transforms the pixels of a piece's tiles, one vector of channels at a time, starting at multiples of `step`, to
    /// products with stride `apart`: `place` returns the address of the first product for a tile of the piece and a first
    /// channel. Returns the sum of all squares; channels in two vectors count twice.
    ///
    /// # Safety
    /// The image must have the pixels, and `zeros` as many elements as there are channels; `place` must return addresses of
    /// whole vectors, uniquely owned.
    pub unsafe fn transform<const FROM: usize, const TO: usize>(
        &self,
        zeros: *const T,
        piece: &Range<usize>,
        (channels, step): (Range<usize>, usize),
        by: (impl Fn([Numbers; FROM]) -> [Numbers; TO], f32),
        (place, apart): (impl Fn(usize, usize) -> *mut f32, usize),
    ) -> f32 {
        let own = Image { data: self.data.wrapping_add(channels.start), ..*self };
        let (zeros, channels) = (zeros.wrapping_add(channels.start), (channels.len(), step));
        let mut squares = [Numbers::splat(0.0); FROM];
        for (i, tile) in piece.clone().enumerate() {
            let pixels = own.pixels::<FROM>(tile, zeros);
            // SAFETY: as the caller guarantees.
            unsafe { spread(&pixels, channels, (&by.0, by.1), (|c| place(i, c), apart), &mut squares) };
        }
        squares.into_iter().map(total).sum()
    }
}

/// The geometry of the copied rows that the tiles of a piece read, with zero padding. Rows are counted over all images.
pub struct Rows {
    pub band: Band,
    /// The number of output rows of an image, and the number of image rows that they read.
    places: usize,
    tall: usize,
}

impl Rows {
    /// The rows that positions along two axes read, for this number of channels.
    pub fn of(axes: &[Axis; 2], channels: usize) -> Result<Rows, Error> {
        let band = Band::of(axes, channels)?;
        let places = axes[0].count;
        Ok(Rows { tall: band.rows(places), places, band })
    }

    /// The images in which a piece has tiles, each with the range of output rows of these tiles.
    fn images(&self, all: &Tiles, piece: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let (rows, down, side, places) = (all.rows(piece), all.down, all.side, self.places);
        (rows.start / down..rows.end.div_ceil(down)).map(move |image| {
            let [begin, end] =
                [rows.start, rows.end].map(|row| row.clamp(image * down, (image + 1) * down) - image * down);
            (image, side * begin..(side * end).min(places))
        })
    }

    /// The rows that a piece reads.
    pub fn of_piece(&self, all: &Tiles, piece: &Range<usize>) -> Range<usize> {
        let of = |(image, places): (usize, Range<usize>)| {
            let first = image * self.tall + places.start;
            first..first + self.band.rows(places.len())
        };
        let mut images = self.images(all, piece).map(of);
        let first = images.next().unwrap_or(0..0);
        let last = images.last().unwrap_or_else(|| first.clone());
        first.start..last.end
    }

    /// Copies the rows that a piece reads.
    ///
    /// # Safety
    /// The volume must contain the elements that its sizes describe, and be an [image](crate::image::image); the memory
    /// must have capacity for [these rows](Rows::of_piece), uniquely owned.
    pub unsafe fn copy<T: Pixel>(
        &self,
        from: &Volume<'_, T>,
        all: &Tiles,
        piece: &Range<usize>,
        to: *mut f32,
    ) {
        let first = self.of_piece(all, piece).start;
        for (image, places) in self.images(all, piece) {
            let to = to.wrapping_add((image * self.tall + places.start - first) * self.band.row);
            // SAFETY: as the caller guarantees.
            unsafe { self.band.copy(to, from, image, &places, 0) };
        }
    }

    /// The copied rows of a piece.
    pub fn copied<'a>(&self, all: &'a Tiles, piece: &Range<usize>, copied: *const f32) -> Image<'a, f32> {
        let first = self.of_piece(all, piece).start;
        let Band { row, channels, .. } = self.band;
        Image {
            all,
            data: copied.wrapping_sub(first * row),
            steps: [self.tall * row, row, channels],
            first: [0, 0],
            sizes: [self.tall, row / channels],
            lives: PhantomData,
        }
    }
}
