//! Selection of the fastest algorithm by sizes.

use super::algorithms::{F2x2, F4x4, Transforms};
use super::run;
use super::tiles::Tiles;
use crate::block::WIDE;
use crate::image::Pixel;
use crate::product::Product;
use keyway_cpu_loops::images::Axis;
use keyway_sdk::author::{Error, MatmulPrecision, float32_matmul_precision};
use std::any::TypeId;

/// The minimum number of pixels of an image in each direction, of channels, of rows of results, and of pairs of channels
/// and rows: below them the transforms take longer than they save.
pub const SHORT: usize = 4;
const LEAST: [usize; 3] = [24, 16, 1024];

/// An algorithm, named after the results of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    F2x2,
    F4x4,
}

impl Algorithm {
    /// The fastest algorithm for these sizes; `None` if direct sums are faster.
    pub fn fastest<T: Pixel>(of: &Product<'_, T>) -> Option<Algorithm> {
        fits(of).then(|| fastest(of, may_be_rounded::<T>()))?
    }

    /// Computes the results. Returns `false`, with some results unwritten, if values are too large.
    ///
    /// # Safety
    /// As for [`Product::run`], for sizes that [fit](fits) the algorithm.
    pub unsafe fn run<T: Pixel>(self, of: &Product<'_, T>) -> Result<bool, Error> {
        // SAFETY: as the caller guarantees.
        unsafe {
            match self {
                Algorithm::F2x2 => run::<T, F2x2, _, _>(of),
                Algorithm::F4x4 => run::<T, F4x4, _, _>(of),
            }
        }
    }
}

/// Whether the program allows the factors of this type to be rounded.
pub fn may_be_rounded<T: Pixel>() -> bool {
    TypeId::of::<T>() == TypeId::of::<f32>() && float32_matmul_precision() == MatmulPrecision::High
}

/// Whether a kernel has three neighbouring elements along the axis, and stride 1.
pub fn is_three_wide(axis: &Axis) -> bool {
    axis.step == 1 && axis.taps.len() == 3 && axis.taps.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

/// Whether the product is a 3x3 convolution with stride 1, over enough channels and pixels.
pub fn fits<T: Pixel>(of: &Product<'_, T>) -> bool {
    let axis = |d: usize| is_three_wide(&of.axes[d]) && of.axes[d].size >= SHORT;
    let enough = [of.channels, of.rows, of.channels.saturating_mul(of.rows)]
        .iter()
        .zip(LEAST)
        .all(|(n, least)| *n >= least);
    of.groups == 1 && axis(0) && axis(1) && enough
}

/// The fastest algorithm by sizes; F(4x4) only if factors `may_be_rounded`.
pub fn fastest<T: Pixel>(of: &Product<'_, T>, may_be_rounded: bool) -> Option<Algorithm> {
    let by_2x2 = time::<T, F2x2, _, _>(of).map(|time| (time, Algorithm::F2x2));
    let by_4x4 = time::<T, F4x4, _, _>(of).filter(|_| may_be_rounded).map(|time| (time, Algorithm::F4x4));
    let (time, algorithm) = by_2x2.into_iter().chain(by_4x4).min_by_key(|(time, _)| *time)?;
    (time < of.out.sizes[0] * of.axes[0].count * of.axes[1].count * 9).then_some(algorithm)
}

/// The estimated cost of an algorithm, in products per channel and row; `None` if its weight needs too much memory.
fn time<T: Pixel, F: Transforms<WRITE, READ>, const WRITE: usize, const READ: usize>(
    of: &Product<'_, T>,
) -> Option<usize> {
    let size = of.channels.saturating_mul(of.rows.next_multiple_of(WIDE)).saturating_mul(READ * READ * 4);
    (size <= F::MOST)
        .then(|| Tiles::of(of.out.sizes[0], &of.axes, WRITE).count() * (READ * READ + F::TILE) + F::KERNEL)
}
