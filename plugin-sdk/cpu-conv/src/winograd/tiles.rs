//! The partition of the results into tiles, and of tiles into work items.

use keyway_cpu_loops::images::Axis;
use std::ops::Range;

/// The tiles of all images in order.
#[derive(Clone, Copy)]
pub struct Tiles {
    /// The number of results of a tile in each direction.
    pub side: usize,
    images: usize,
    pub down: usize,
    pub across: usize,
}

impl Tiles {
    /// The tiles of the positions of `images` images.
    pub fn of(images: usize, axes: &[Axis; 2], side: usize) -> Tiles {
        let [down, across] = [0, 1].map(|d| axes[d].count.div_ceil(side));
        Tiles { side, images, down, across }
    }

    pub fn count(&self) -> usize {
        self.images * self.down * self.across
    }

    /// The image of a tile, and its first position.
    pub fn place(&self, tile: usize) -> (usize, usize, usize) {
        let (row, x) = (tile / self.across, tile % self.across);
        (row / self.down, row % self.down * self.side, x * self.side)
    }

    /// The rows of tiles of a piece, counted over all images.
    pub fn rows(&self, piece: &Range<usize>) -> Range<usize> {
        piece.start / self.across..piece.end.div_ceil(self.across)
    }

    /// A piece as parts of a row of tiles and as whole rows of an image: for each the position of its first tile, and its
    /// tiles.
    pub fn rectangles(&self, piece: &Range<usize>) -> impl Iterator<Item = (usize, usize, usize, usize)> {
        let (all, mut next, end) = (*self, piece.start, piece.end);
        std::iter::from_fn(move || {
            let (image, y, x) = (next < end).then(|| all.place(next))?;
            let (left, whole) = (end - next, (end - next) / all.across * all.across);
            let count = match (x, whole) {
                (0, 1..) => whole.min((all.down - y / all.side) * all.across),
                _ => left.min(all.across - x / all.side),
            };
            next += count;
            Some((image, y, x, count))
        })
    }
}
