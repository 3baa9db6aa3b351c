//! The gradient of a 3x3 kernel with stride 1 by the transposed algorithms: each product of a tile is a sum over all tiles
//! of transformed pixels times transformed gradients, and the inverse transform of these sums is the kernel's nine
//! elements. With F(2x2) the four positions of a tile take 16 products per pair of channels instead of 36.

use super::algorithms::{F2x2, F4x4, Transforms, times};
use super::choice::{SHORT, is_three_wide, may_be_rounded};
use super::rows::{Image, Rows};
use super::tiles::Tiles;
use super::transforms::{self, is_large};
use crate::block::{Chains, Operands, Run, Sums, TALL, VECTORS, WIDE, WORK, block};
use crate::image::{Numbers, Pixel, add, has_dense_channels};
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::vectors::{Vector, write_some};
use keyway_cpu_loops::{parallel_try, transpose};
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The approximate number of elements of a piece's transformed pixels and gradients, which stay in L2; and the minimum
/// number of tiles of a piece, since its products are added to larger sums, proportional to the number of channels.
const PIECE: usize = 1 << 17;
const TILES: usize = 128;
const SHARE: usize = 4;
/// The maximum number of parts of the tiles, each with its own partial sums, and the maximum number of elements of all
/// partial sums.
const PARTS: usize = 8;
const SUMS: usize = 1 << 22;
/// The number of blocks of rows below which a part of a piece would mostly transform pixels.
const FEW: usize = 4;
/// The minimum number of channels of each side, and of pairs of them: below these the transforms take longer than they
/// save.
const LEAST: [usize; 2] = [24, 1024];
/// The pitch of a tile in a block of channels, in elements; the first [`TALL`] belong to the block.
const PITCH: usize = TALL.next_multiple_of(Numbers::LANES);
/// The stride of transposed rows, in elements.
const ROW: usize = 2 * Numbers::LANES;

/// The operands of the reduction.
pub struct WeightGrad<'a, T> {
    pub grad: &'a Volume<'a, T>,
    pub input: &'a Volume<'a, T>,
    pub out: &'a Volume<'a, T>,
    pub axes: &'a [Axis; 2],
}

impl<T: Pixel> WeightGrad<'_, T> {
    /// Computes the gradient if this algorithm is faster, and returns whether it did; if values are too large it returns
    /// `false`, and some results may have been written.
    ///
    /// # Safety
    /// The volumes must contain the elements that their sizes describe, `grad` and `input` must be
    /// [images](crate::image::image), with a position for each gradient, and the elements of `out` must be uniquely owned.
    pub unsafe fn run(&self) -> Result<bool, Error> {
        // SAFETY: as the caller guarantees.
        unsafe {
            match self.fastest(may_be_rounded::<T>()) {
                Some(4) => self.by::<F4x4, _, _>(),
                Some(_) => self.by::<F2x2, _, _>(),
                None => Ok(false),
            }
        }
    }

    /// The side of the fastest tiles, larger ones only if factors `may_be_rounded`; `None` if direct sums are faster.
    fn fastest(&self, may_be_rounded: bool) -> Option<usize> {
        let fits = |axis: &Axis| is_three_wide(axis) && axis.count >= SHORT;
        let [rows, channels, ..] = self.out.sizes;
        if !self.axes.iter().all(fits) || rows.min(channels) < LEAST[0] || rows * channels < LEAST[1] {
            return None;
        }
        // The estimated cost of tiles of a side; `None` if their sums would need too much memory.
        let time = |side: usize, [tile, sums]: [usize; 2], most: usize| {
            let numbers = (channels * rows.next_multiple_of(WIDE)).saturating_mul((side + 2) * (side + 2));
            let time = Tiles::of(self.grad.sizes[0], self.axes, side).count() * tile + sums;
            (numbers <= most).then_some((time, side))
        };
        let by_2x2 = time(2, F2x2::SUMMED, F2x2::MOST / 4);
        let by_4x4 = time(4, F4x4::SUMMED, SUMS).filter(|_| may_be_rounded);
        let (time, side) = by_2x2.into_iter().chain(by_4x4).min()?;
        let places = self.grad.sizes[0] * self.axes[0].count * self.axes[1].count;
        (time < places * 9).then_some(side)
    }

    /// # Safety
    /// As for [`WeightGrad::run`], for a kernel of 3x3 elements with stride 1.
    unsafe fn by<F: Transforms<WRITE, READ>, const WRITE: usize, const READ: usize>(
        &self,
    ) -> Result<bool, Error> {
        let products = READ * READ;
        let tiles = Tiles::of(self.grad.sizes[0], self.axes, WRITE);
        let [rows, channels, ..] = self.out.sizes;
        let (blocks, pitch) = (rows.div_ceil(WIDE), channels.div_ceil(TALL) * PITCH);
        let most = (PIECE / (products * (rows + channels))).max(TILES).max((rows + channels) / SHARE);
        let pieces = tiles.count().div_ceil(most);
        let piece = |i: usize| i * tiles.count() / pieces..(i + 1) * tiles.count() / pieces;
        // Sums are stored as `[parts][blocks][products][channels][WIDE]`.
        let of_product = channels * WIDE;
        let of_block = products * of_product;
        let parts = PARTS.min(pieces).min(SUMS / (blocks * of_block)).max(1);
        let cuts = PARTS.div_ceil(parts).min(blocks / FEW).max(1);
        let mut sums = Scratch::<f32>::zeroed(parts * blocks * of_block)?;
        // SAFETY: the address is used within this call, and each task has a block of a part.
        let to = unsafe { Lanes::new(sums.as_mut_ptr()) };
        let (pixels, grads) =
            (Side::of(self.input, self.axes, channels)?, Side::of(self.grad, &self.places(), rows)?);
        let limit = F::LARGE / pieces as f32;
        let large = AtomicBool::new(false);
        let work = tiles.count().div_ceil(parts).saturating_mul(products * channels * rows / cuts);
        parallel_try(parts * cuts, WORK / work.max(1), |range| {
            let longest = (0..pieces).map(|i| piece(i).len()).max().unwrap_or(0);
            let mut left = Buffers::new(&pixels, &tiles, (0..pieces).map(piece), products * longest * pitch)?;
            let mut right =
                Buffers::new(&grads, &tiles, (0..pieces).map(piece), products * longest * blocks * WIDE)?;
            for task in range {
                let (part, cut) = (task / cuts, task % cuts);
                let own = cut * blocks / cuts..(cut + 1) * blocks / cuts;
                for piece in (part * pieces / parts..(part + 1) * pieces / parts).map(piece) {
                    if large.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    // SAFETY: as the caller guarantees; the buffers have capacity for the products of the longest piece.
                    let squares = unsafe {
                        let columns = own.start * WIDE..(own.end * WIDE).min(rows);
                        let by = (F::of_pixels, F::PIXELS);
                        let all = (0..channels, [TALL, PITCH]);
                        let squares = pixels.transform(&tiles, &piece, all, by, &mut left);
                        let by = (F::of_gradients, F::ELEMENTS);
                        squares + grads.transform(&tiles, &piece, (columns, [WIDE, WIDE]), by, &mut right)
                    };
                    if is_large(squares, limit) {
                        large.store(true, Ordering::Relaxed);
                    }
                    let columns = own.len() * WIDE;
                    // The pixels of a product stay in the cache over all blocks of rows.
                    for (p, (nth, b)) in
                        (0..products).flat_map(|p| own.clone().enumerate().map(move |b| (p, b)))
                    {
                        let left = left.made.as_ptr().wrapping_add(p * piece.len() * pitch);
                        let right =
                            right.made.as_ptr().wrapping_add((p * columns + nth * WIDE) * piece.len());
                        let at = (part * blocks + b) * of_block + p * of_product;
                        // SAFETY: the block's sums belong to this task; operands were computed for this number of tiles.
                        unsafe {
                            let sums = std::slice::from_raw_parts_mut(to.as_ptr().add(at), of_product);
                            add_products((left, right), piece.len(), rows - b * WIDE, sums);
                        }
                    }
                }
            }
            Ok(())
        })?;
        if large.into_inner() {
            return Ok(false);
        }
        let (total, others) = sums.split_at_mut(blocks * of_block);
        // SAFETY: as above.
        let total = unsafe { Lanes::new(total.as_mut_ptr()) };
        let vectors = channels.div_ceil(Numbers::LANES);
        parallel_try(blocks * vectors, WORK / (64 * products * Numbers::LANES * WIDE), |range| {
            for i in range {
                let (b, first) = (i / vectors, i % vectors * Numbers::LANES);
                let n = Numbers::LANES.min(channels - first) * WIDE;
                for p in 0..products {
                    let at = b * of_block + p * of_product + first * WIDE;
                    // SAFETY: these sums belong to one task.
                    let to = unsafe { std::slice::from_raw_parts_mut(total.as_ptr().add(at), n) };
                    others.chunks_exact(blocks * of_block).for_each(|part| add(to, &part[at..at + n]));
                }
                let from = total.as_ptr().cast_const().wrapping_add(b * of_block + first * WIDE);
                // SAFETY: as the caller guarantees; the elements belong to these rows and channels alone.
                unsafe { self.write::<F, _, _>((b * WIDE, first), from, of_product) };
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// The axes of the gradients: each is read at its own position.
    fn places(&self) -> [Axis; 2] {
        [0, 1].map(|d| Axis::of(self.grad, d + 1, self.axes[d].count, 1, vec![0]))
    }

    /// Transforms the sums of a block of rows and a vector of channels, and writes their kernel elements.
    ///
    /// # Safety
    /// As for [`WeightGrad::run`]; there must be sums for each product, with stride `apart`.
    #[expect(clippy::needless_range_loop, reason = "the channel is the second index")]
    unsafe fn write<F: Transforms<WRITE, READ>, const WRITE: usize, const READ: usize>(
        &self,
        (row, channel): (usize, usize),
        sums: *const f32,
        apart: usize,
    ) {
        let [rows, channels, ..] = self.out.sizes;
        let (rows, channels) = (WIDE.min(rows - row), Numbers::LANES.min(channels - channel));
        let mut elements = [[[0.0f32; WIDE]; Numbers::LANES]; 9];
        for c in 0..channels {
            for at in (0..VECTORS).map(|v| v * Numbers::LANES) {
                // SAFETY: the caller guarantees the sums; each element has capacity for a block's row.
                unsafe {
                    let sums = sums.add(c * WIDE + at);
                    transforms::gather(sums, apart, F::of_sums, |y, x, sum| {
                        let to = elements[y * 3 + x][c].as_mut_ptr().add(at);
                        times(F::RESULTS, sum).store(to);
                    });
                }
            }
        }
        let [by_row, by_channel, _, down, across] = self.out.strides;
        for (t, element) in elements.iter().enumerate() {
            let mut transposed = [[0.0f32; ROW]; WIDE];
            let to = self
                .out
                .data
                .as_ptr()
                .wrapping_add(row * by_row + channel * by_channel + t / 3 * down + t % 3 * across);
            // SAFETY: both arrays have the same number of rows and columns; the elements exist, as the caller guarantees.
            unsafe {
                let (to_rows, from) = (transposed.as_mut_ptr().cast::<f32>(), element.as_ptr().cast::<f32>());
                transpose(to_rows, ROW, from, WIDE, Numbers::LANES, WIDE);
                for (r, numbers) in transposed.iter().enumerate().take(rows) {
                    let to = to.wrapping_add(r * by_row);
                    write_some(to, by_channel, channels, Numbers::load(numbers.as_ptr()));
                }
            }
        }
    }
}

/// One operand of the product: pixels or gradients, in place or from copied rows.
struct Side<'a, T> {
    image: &'a Volume<'a, T>,
    axes: [Axis; 2],
    rows: Option<Rows>,
    zeros: Scratch<T>,
    none: Scratch<f32>,
}

/// The scratch memory of a task for one operand.
struct Buffers {
    copied: Scratch<f32>,
    made: Scratch<f32>,
}

impl Buffers {
    fn new<T: Pixel>(
        of: &Side<'_, T>,
        tiles: &Tiles,
        pieces: impl Iterator<Item = Range<usize>>,
        made: usize,
    ) -> Result<Buffers, Error> {
        let rows = |rows: &Rows| {
            pieces.map(|piece| rows.of_piece(tiles, &piece).len()).max().unwrap_or(0) * rows.band.row
        };
        let copied = of.rows.as_ref().map_or(0, rows);
        // SAFETY: all elements are written before they are read, except those after the last tiles, which are not used.
        unsafe { Ok(Buffers { copied: Scratch::unwritten(copied)?, made: Scratch::unwritten(made)? }) }
    }
}

impl<'a, T: Pixel> Side<'a, T> {
    fn of(image: &'a Volume<'a, T>, axes: &[Axis; 2], channels: usize) -> Result<Side<'a, T>, Error> {
        let rows = (!has_dense_channels(image)).then(|| Rows::of(axes, channels)).transpose()?;
        let (zeros, none) = (Scratch::zeroed(channels)?, Scratch::zeroed(channels)?);
        Ok(Side { image, axes: axes.clone(), rows, zeros, none })
    }

    /// Transforms the pixels that a piece's tiles read in a range of channels, block by block, to
    /// `[products][blocks][tiles][pitch]`, and returns the sum of all squares; channels in two blocks count twice.
    ///
    /// # Safety
    /// The image must have the channels, and the memory must have capacity for the products of whole blocks, and for the copied
    /// rows.
    unsafe fn transform<const FROM: usize, const TO: usize>(
        &self,
        tiles: &Tiles,
        piece: &Range<usize>,
        (channels, [block, pitch]): (Range<usize>, [usize; 2]),
        by: (impl Fn([Numbers; FROM]) -> [Numbers; TO], f32),
        buffers: &mut Buffers,
    ) -> f32 {
        let (copied, to) = (buffers.copied.as_mut_ptr(), buffers.made.as_mut_ptr());
        let apart = channels.len().div_ceil(block) * pitch * piece.len();
        let place = |i, c| to.wrapping_add((c / block * piece.len() + i) * pitch + c % block);
        let channels = (channels, block.min(Numbers::LANES));
        // SAFETY: as the caller guarantees.
        unsafe {
            match &self.rows {
                None => {
                    let image = Image::of(self.image, &self.axes, tiles);
                    image.transform(self.zeros.as_ptr(), piece, channels, by, (place, apart))
                }
                Some(rows) => {
                    rows.copy(self.image, tiles, piece, copied);
                    let image = rows.copied(tiles, piece, copied);
                    image.transform(self.none.as_ptr(), piece, channels, by, (place, apart))
                }
            }
        }
    }
}

/// Adds the products of all channels, which are stored in blocks, with a block of rows, reduced over `depth` tiles.
///
/// # Safety
/// Both must have been computed for `depth` tiles.
unsafe fn add_products((a, b): (*const f32, *const f32), depth: usize, rows: usize, sums: &mut [f32]) {
    let chains = Chains::of(&[Run { a: 0, b: 0, depth }], PITCH, WIDE);
    let mut products: Sums = [[0.0; WIDE]; TALL];
    for (i, to) in sums.chunks_mut(TALL * WIDE).enumerate() {
        let a = a.wrapping_add(i * depth * PITCH);
        let operands = Operands { a, row: 1, step: PITCH, b, next: WIDE, chains: &chains };
        // SAFETY: as the caller guarantees.
        unsafe { block(&operands, (to.len() / WIDE, rows), &mut products) };
        add(to, &products.as_flattened()[..to.len()]);
    }
}

#[cfg(test)]
mod tests;
