//! 3x3 convolutions with stride 1 by Winograd's algorithms F(2x2, 3x3) and F(4x4, 3x3) (Lavin and Gray, arXiv:1509.09308):
//! the 4 results of a tile take 16 products per channel instead of 36, and the 16 results of a larger tile 36 instead of
//! 144.
//!
//! A tile's results are sums and differences of its 4x4 or 6x6 pixels, so one non-finite pixel would reach results whose
//! window does not contain it, and intermediate sums of large values could overflow although the result is small. If the
//! sum of squares of the pixels of some tiles or of the weight exceeds [`Transforms::LARGE`], or is NaN, the caller
//! computes all results directly.
//!
//! Errors are small relative to the largest result of a tile, not to each result: with F(2x2) no larger than those of a
//! sequential sum of pixels of similar magnitude, which is one to two times the direct kernel's error; with F(4x4) one to
//! six times as large. So F(4x4) is used only if the program allows the factors of f32 to be rounded. That setting concerns
//! f32 alone, and f16 and bf16 results that are small relative to others would show such errors: they use F(2x2).

mod algorithms;
mod choice;
mod rows;
#[cfg(test)]
mod tests;
mod tiles;
mod transforms;
mod weight;
mod weight_grad;

use super::block::{Chains, Operands, Run, Sums, TALL, VECTORS, WIDE, WORK, block};
use super::product::{Product, tiles as row_tiles};
use crate::image::{Numbers, Pixel, has_dense_channels};
use crate::turn::Staged;
use algorithms::Transforms;
pub use choice::Algorithm;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Vector, load_some, write_some};
use keyway_sdk::author::{Error, Lanes, Scratch};
use rows::{Image, Rows};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use tiles::Tiles;
use transforms::is_large;
pub use weight_grad::WeightGrad;

/// The approximate number of elements of a work item's transformed pixels and sums, which stay in L2 together with a block
/// of the weight. The number is doubled if the whole weight has more elements than the second constant, since each work
/// item then reads it from beyond L2.
const PIECE: usize = 1 << 17;
const FAR: usize = 1 << 20;
/// The number of work items that occupies all threads, and the number of blocks of results below which a part of a work
/// item would mostly transform pixels.
const ENOUGH: usize = 32;
const FEW: usize = 4;

/// # Safety
/// As for [`Algorithm::run`].
unsafe fn run<T: Pixel, F: Transforms<WRITE, READ>, const WRITE: usize, const READ: usize>(
    of: &Product<'_, T>,
) -> Result<bool, Error> {
    let products = READ * READ;
    let all = Tiles::of(of.out.sizes[0], &of.axes, WRITE);
    let blocks = of.rows.div_ceil(WIDE);
    // SAFETY: as the caller guarantees.
    let Some(mut weight) = (unsafe { weight::transformed::<T, F, _, _>(of, blocks) })? else {
        return Ok(false);
    };
    // SAFETY: the address is read within this call.
    let weight = unsafe { Lanes::new(weight.as_mut_ptr()) };
    let (zeros, none) = (Scratch::<T>::zeroed(of.channels)?, Scratch::<f32>::zeroed(of.channels)?);
    let rows = (!has_dense_channels(&of.input)).then(|| Rows::of(&of.axes, of.channels)).transpose()?;
    let pitch = of.channels.next_multiple_of(Numbers::LANES);
    let numbers = if blocks * products * weight::apart(of.channels) < FAR { PIECE } else { 2 * PIECE };
    let most = (numbers / (products * (pitch + WIDE)) / TALL).max(1) * TALL;
    let pieces = all.count().div_ceil(most);
    let parts = ENOUGH.div_ceil(pieces).min(blocks / FEW).max(1);
    let piece = |i: usize| i * all.count() / pieces..(i + 1) * all.count() / pieces;
    let longest = |of: &dyn Fn(&Range<usize>) -> usize| (0..pieces).map(|i| of(&piece(i))).max().unwrap_or(0);
    let copied =
        rows.as_ref().map_or(0, |rows| longest(&|piece| rows.of_piece(&all, piece).len()) * rows.band.row);
    let staged = if of.is_staged() {
        longest(&|piece| all.rows(piece).len()) * WRITE * of.axes[1].count * WIDE
    } else {
        0
    };
    let work = most.min(all.count()) * products * of.channels * (of.rows / parts);
    let large = AtomicBool::new(false);
    parallel_try(pieces * parts, WORK / work.max(1), |range| {
        // Rows of products must not have a stride of a multiple of 4096 bytes, which would map to the same cache sets.
        let apart = most.min(all.count()) * pitch + Numbers::LANES;
        let groups = most.min(all.count()).div_ceil(TALL);
        // SAFETY: pixels and sums are written before they are read, and so are rows and staged results.
        let (mut pixels, mut sums, mut copied, mut stage) = unsafe {
            (
                Scratch::<f32>::unwritten(products * apart)?,
                Scratch::<f32>::unwritten(groups * products * TALL * WIDE)?,
                Scratch::<f32>::unwritten(copied)?,
                Scratch::<T>::unwritten(staged)?,
            )
        };
        for task in range {
            let (piece, part) = (piece(task / parts), task % parts);
            let size = products * weight::apart(of.channels);
            let to = pixels.as_mut_ptr();
            let (channels, by) = ((0..of.channels, Numbers::LANES), (F::of_pixels, F::PIXELS));
            let place = |i, c| to.wrapping_add(i * pitch + c);
            // SAFETY: as the caller guarantees; the buffers have capacity for the pixels and the rows of a piece.
            let squares = unsafe {
                match &rows {
                    None => {
                        let image = Image::of(&of.input, &of.axes, &all);
                        image.transform(zeros.as_ptr(), &piece, channels, by, (place, apart))
                    }
                    Some(rows) => {
                        rows.copy(&of.input, &all, &piece, copied.as_mut_ptr());
                        let image = rows.copied(&all, &piece, copied.as_ptr());
                        image.transform(none.as_ptr(), &piece, channels, by, (place, apart))
                    }
                }
            };
            if is_large(squares, F::LARGE) || large.load(Ordering::Relaxed) {
                large.store(true, Ordering::Relaxed);
                return Ok(());
            }
            for block in part * blocks / parts..(part + 1) * blocks / parts {
                let b = weight.as_ptr().cast_const().wrapping_add(block * size);
                // SAFETY: as above; each block has its own results for the tiles of a piece.
                unsafe {
                    multiply((of, products), pixels.as_ptr(), apart, b, (piece.len(), block), &mut sums);
                    write::<T, F, _, _>(of, &all, &piece, block, &sums, stage.as_mut_ptr());
                }
            }
        }
        Ok(())
    })?;
    Ok(!large.into_inner())
}

/// The products of a piece's tiles with a block of the weight, as `[groups of tiles][products]` of [`Sums`].
///
/// # Safety
/// As for [`Product::run`], with operands computed by the other functions of this module.
unsafe fn multiply<T: Pixel>(
    (of, products): (&Product<'_, T>, usize),
    pixels: *const f32,
    apart: usize,
    weight: *const f32,
    (count, first): (usize, usize),
    sums: &mut [f32],
) {
    let pitch = of.channels.next_multiple_of(Numbers::LANES);
    let chains = Chains::of(&[Run { a: 0, b: 0, depth: of.channels }], 1, WIDE);
    for p in 0..products {
        let b = weight.wrapping_add(p * weight::apart(of.channels));
        for (group, rows) in row_tiles(count).enumerate() {
            let a = pixels.wrapping_add(p * apart + rows.start * pitch);
            let operands = Operands { a, row: pitch, step: 1, b, next: WIDE, chains: &chains };
            let at = (group * products + p) * TALL * WIDE;
            // SAFETY: the sums are those of one block, contiguous values; operands as the caller guarantees.
            unsafe {
                let to = &mut *sums[at..at + TALL * WIDE].as_mut_ptr().cast::<Sums>();
                block(&operands, (rows.len(), of.rows - first * WIDE), to);
            }
        }
    }
}

/// Transforms a block's sums and writes its results.
///
/// # Safety
/// As for [`Product::run`]; the results must be uniquely owned by this block, and if they are staged, the buffer must have
/// capacity for all rows in which the piece has tiles.
unsafe fn write<T: Pixel, F: Transforms<WRITE, READ>, const WRITE: usize, const READ: usize>(
    of: &Product<'_, T>,
    all: &Tiles,
    piece: &Range<usize>,
    block: usize,
    sums: &[f32],
    stage: *mut T,
) {
    let first = block * WIDE;
    let channels = WIDE.min(of.rows - first);
    let mut bias = [0.0; WIDE];
    if let Some(numbers) = &of.bias {
        bias.iter_mut().zip(&numbers[first..first + channels]).for_each(|(to, from)| *to = from.to_acc());
    }
    let [height, width] = [0, 1].map(|d| of.axes[d].count);
    // The address of an image's results, and the strides between rows and between positions.
    let stage = Staged { from: stage.cast_const(), across: WIDE, down: width * WIDE };
    let first_row = all.rows(piece).start;
    let (to, [step, down, across]) = match of.is_staged() {
        true => (stage.from.cast_mut(), [WRITE * all.down * stage.down, stage.down, stage.across]),
        false => (of.out.data.as_ptr().wrapping_add(first), [0, 3, 4].map(|d| of.out.strides[d])),
    };
    let to = if of.is_staged() { to.wrapping_sub(WRITE * first_row * stage.down) } else { to };
    let staged = || {
        all.rectangles(piece).map(|(image, y, x, count)| {
            let rows = y..(y + WRITE * count.div_ceil(all.across)).min(height);
            let columns = x..(x + WRITE * count.min(all.across)).min(width);
            let at = ((image * all.down * WRITE + y - WRITE * first_row) * width + x) * WIDE;
            (Staged { from: stage.from.wrapping_add(at), ..stage }, image, [rows, columns])
        })
    };
    // The addend of staged results is copied to the staging buffer.
    let add = match of.is_staged() {
        true => to.cast_const(),
        false => of.epilogue.place(first),
    };
    if of.is_staged() && of.epilogue.adds() {
        for (to, image, area) in staged() {
            // SAFETY: as the caller guarantees; these results will be staged.
            unsafe { of.epilogue.stage(&to, &of.out, image, first..first + channels, area) };
        }
    }
    // A dummy target for results outside the output, and their addend.
    let (mut spare, zeros) = ([T::from_acc(0.0); WIDE], [T::from_acc(0.0); WIDE]);
    for (group, rows) in row_tiles(piece.len()).enumerate() {
        for (r, tile) in rows.enumerate() {
            let (image, y, x) = all.place(piece.start + tile);
            let mut places = [[(spare.as_mut_ptr(), zeros.as_ptr()); WRITE]; WRITE];
            for p in 0..WRITE * WRITE {
                let (down_by, across_by) = (p / WRITE, p % WRITE);
                if y + down_by < height && x + across_by < width {
                    let at = image * step + (y + down_by) * down + (x + across_by) * across;
                    places[down_by][across_by] = (to.wrapping_add(at), add.wrapping_add(at));
                }
            }
            let from = &sums[(group * READ * READ * TALL + r) * WIDE..];
            for v in 0..VECTORS {
                let at = v * Numbers::LANES;
                let n = channels.saturating_sub(at).min(Numbers::LANES);
                // SAFETY: the results exist, as the caller guarantees, and so do sums and bias of a vector.
                unsafe {
                    let bias = load_some(bias.as_ptr().add(at), Numbers::LANES);
                    transforms::gather(from.as_ptr().add(at), TALL * WIDE, F::of_products, |y, x, sum| {
                        let (to, add) = places[y][x];
                        let result = sum.mul_add(Numbers::splat(F::RESULTS), bias);
                        let result = of.epilogue.apply(add.wrapping_add(at), n, result);
                        write_some(to.wrapping_add(at), 1, n, result);
                    });
                }
            }
        }
    }
    if of.is_staged() {
        for (from, image, area) in staged() {
            // SAFETY: as the caller guarantees; these results were staged.
            unsafe { from.put(&of.out, image, first..first + channels, area) };
        }
    }
}
