//! `conv_weight_grad`: for each kernel tap the products of the output's gradient with the pixels that the tap reads,
//! reduced over all output positions.

use super::block::{Chains, Operands, Run, Sums, TALL, WIDE, WORK, block};
use super::chunks::{Chunk, chunks};
use super::product::{runs, tiles};
use super::winograd::WeightGrad;
use super::{by_tiles, sum_by_tiles, sum_depthwise, together};
use crate::image::{Band, Numbers, Pixel, add, dense, has_dense_channels};
use crate::turn::turn;
use keyway_cpu_loops::images::{Axis, Moves, Volume};
use keyway_cpu_loops::vectors::{Vector, load_some, widen, write_some};
use keyway_cpu_loops::{parallel_try, transpose};
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::any::TypeId;
use std::ops::Range;

/// The approximate number of copied elements of both operands, so that they stay in L2.
const COPIED: usize = 1 << 19;
/// The number of work items that occupies all threads.
const ENOUGH: usize = 32;
/// The maximum number of columns of a tile for which its elements are read in place, without packing.
const FEW: usize = 2;
/// The pitch, in elements, between positions of the operand that provides the rows of a block.
const PITCH: usize = TALL.next_multiple_of(Numbers::LANES);

/// Computes the gradient of the weight, which is not empty.
///
/// # Safety
/// The volumes must contain the elements that their sizes describe, `grad` and `input` must be
/// [images](crate::image::image), and the elements of `out` must be uniquely owned.
pub unsafe fn run<T: Pixel>(
    grad: &Volume<'_, T>,
    input: &Volume<'_, T>,
    out: &Volume<'_, T>,
    moves: &Moves,
) -> Result<(), Error> {
    let (rows, channels) = (out.sizes[0] / moves.groups, out.sizes[1]);
    if moves.groups > 1 && rows == 1 && channels == 1 {
        // SAFETY: as the caller guarantees.
        return unsafe { sum_depthwise::run(grad, input, out, moves) };
    }
    let together = together::count::<T>(moves.groups, rows, channels)?;
    if together > 1 {
        let of = |out: &Volume<'_, T>, moves: &Moves| {
            // SAFETY: as the caller guarantees; the elements of this output are uniquely owned.
            unsafe { run(grad, input, out, moves) }
        };
        // SAFETY: as the caller guarantees; a success has written all elements.
        return unsafe { together::weight_grad(out, (moves, together), of) };
    }
    if let Some(unit) = by_tiles::unit::<T>() {
        // SAFETY: as the caller guarantees; the unit supports elements of this type.
        if unsafe { sum_by_tiles::run(unit, grad, input, out, moves) }? {
            return Ok(());
        }
    }
    let ([_, _, places @ ..], [_, _, kernel @ ..]) = (grad.sizes, out.sizes);
    let [_, height, width] = moves.axes(input, places, kernel)?;
    let axes = [height, width];
    if moves.groups == 1 {
        let of = WeightGrad { grad, input, out, axes: &axes };
        // SAFETY: as the caller guarantees.
        if unsafe { of.run() }? {
            return Ok(());
        }
    }
    // SAFETY: as the caller guarantees.
    unsafe { in_blocks(grad, input, out, (moves.groups, &axes)) }
}

/// Computes the gradient by direct sums.
///
/// # Safety
/// As for [`run`].
pub unsafe fn in_blocks<T: Pixel>(
    grad: &Volume<'_, T>,
    input: &Volume<'_, T>,
    out: &Volume<'_, T>,
    (groups, axes): (usize, &[Axis; 2]),
) -> Result<(), Error> {
    let (rows, channels) = (out.sizes[0] / groups, out.sizes[1]);
    let band = Band::of(axes, channels)?;
    let [height, width] = [0, 1].map(|d| axes[d].count);
    let chunks = chunks(grad.sizes[0], height, width);
    let sources = Sources::of(grad, input, axes, &band, rows);
    let strips = runs(axes, sources.row, sources.pixel, channels);
    let blocks = strips.iter().flat_map(|strip| tiles(strip.depth).map(|tile| (*strip, tile))).collect();
    for group in 0..groups {
        let of = Sum { grad, input, out, group, rows, width, band: &band, sources, blocks: &blocks };
        // SAFETY: as the caller guarantees.
        unsafe { of.run(&chunks)? };
    }
    Ok(())
}

/// The source of the operands: copies, or the tensors in place if they are f32 with dense channels.
#[derive(Clone, Copy)]
struct Sources {
    /// Whether every tap is inside the image, which is then read in place.
    image_in_place: bool,
    /// Whether the gradients are whole blocks, which are then read in place.
    grad_in_place: bool,
    /// The strides of the image between rows and between pixels, in elements.
    row: usize,
    pixel: usize,
    /// The first row and pixel that the first position reads, for an image read in place.
    first: [usize; 2],
    /// The stride of the gradients between positions, in elements.
    place: usize,
}

impl Sources {
    fn of<T: Pixel>(
        grad: &Volume<'_, T>,
        input: &Volume<'_, T>,
        axes: &[Axis; 2],
        band: &Band,
        rows: usize,
    ) -> Sources {
        let is_f32 = TypeId::of::<T>() == TypeId::of::<f32>();
        let image_in_place = is_f32 && has_dense_channels(input) && axes.iter().all(Axis::stays_inside);
        // With more columns, positions have so large a stride that they evict each other from the cache.
        let whole = rows.is_multiple_of(WIDE) && rows <= FEW * WIDE;
        let grad_in_place = is_f32 && dense(*grad).is_ok() && whole;
        let (row, pixel) = match image_in_place {
            true => (input.strides[3], input.strides[4]),
            false => (band.row, band.channels),
        };
        let first = [0, 1].map(|d| axes[d].taps.first().map_or(0, |tap| tap.max(&0).cast_unsigned()));
        let place = if grad_in_place { grad.strides[4] } else { WIDE };
        Sources { image_in_place, grad_in_place, row, pixel, first, place }
    }
}

/// The operands of the reduction, for one group.
struct Sum<'a, T> {
    grad: &'a Volume<'a, T>,
    input: &'a Volume<'a, T>,
    out: &'a Volume<'a, T>,
    group: usize,
    /// The number of rows of the weight, whose gradients are contiguous at a position.
    rows: usize,
    width: usize,
    band: &'a Band,
    sources: Sources,
    /// Blocks of kernel taps: a strip whose elements are contiguous in the copied rows, and a tile of it.
    blocks: &'a Vec<(Run, Range<usize>)>,
}

/// The copied rows of several chunks: rows of the image, and the gradients packed as `[columns][positions][WIDE]`.
struct Copied<'a> {
    image: Lanes<'a, f32>,
    grad: Lanes<'a, f32>,
    /// The number of elements of a chunk in each copy.
    sizes: [usize; 2],
}

impl<T: Pixel> Sum<'_, T> {
    /// # Safety
    /// As for [`run`].
    unsafe fn run(&self, chunks: &[Chunk]) -> Result<(), Error> {
        let columns = self.rows.div_ceil(WIDE);
        let most = |of: fn(&Chunk) -> usize| chunks.iter().map(of).max().unwrap_or(0);
        let (samples, rows) = (most(|c| c.samples.len()), most(|c| c.rows.len()));
        let places = samples * rows * self.width;
        let [image, grad] = [samples * self.band.rows(rows) * self.band.row, columns * places * WIDE];
        let sizes = [
            if self.sources.image_in_place { 0 } else { image },
            if self.sources.grad_in_place { 0 } else { grad },
        ];
        // An operand that is read in place occupies as much cache as a copy.
        let reads = image + grad;
        let together = (COPIED / reads.max(1)).clamp(1, chunks.len().max(1));
        let totals = if chunks.len() > 1 { self.blocks.len() * columns * TALL * WIDE } else { 0 };
        // SAFETY: all elements are written before they are read, except those after the last row, which are not used.
        let (mut image, mut grad, mut totals) = unsafe {
            (
                Scratch::<f32>::unwritten(together * sizes[0] + PITCH)?,
                Scratch::<f32>::unwritten(together * sizes[1])?,
                Scratch::<f32>::unwritten(totals)?,
            )
        };
        // SAFETY: the addresses are used within this call, each part by one task at a time.
        let (copied, totals) = unsafe {
            let [image, grad] = [&mut image, &mut grad].map(|memory| Lanes::new(memory.as_mut_ptr()));
            (Copied { image, grad, sizes }, Lanes::new(totals.as_mut_ptr()))
        };
        let parts = ENOUGH.div_ceil(self.blocks.len().max(1)).min(columns);
        for (nth, some) in chunks.chunks(together).enumerate() {
            let images: Vec<(usize, usize)> = some
                .iter()
                .enumerate()
                .flat_map(|(i, chunk)| chunk.samples.clone().map(move |s| (i, s)))
                .collect();
            parallel_try(
                images.len(),
                WORK / (16 * (sizes[0] + sizes[1]) / samples.max(1)).max(1),
                |range| {
                    // SAFETY: the caller guarantees the elements; each sample of a chunk has separate memory.
                    images[range]
                        .iter()
                        .for_each(|&(i, sample)| unsafe { self.copy(&copied, i, &some[i], sample) });
                    Ok(())
                },
            )?;
            let ends = [nth == 0, (nth + 1) * together >= chunks.len()];
            let work = some.len() * places * TALL * self.rows / parts;
            parallel_try(self.blocks.len() * parts, WORK / work.max(1), |range| {
                // SAFETY: all of it is written before it is read.
                let mut left = unsafe { Scratch::<f32>::unwritten(places * PITCH) }?;
                for (i, chunk) in some.iter().enumerate() {
                    let ends = [ends[0] && i == 0, ends[1] && i + 1 == some.len()];
                    for task in range.clone() {
                        let (b, part) = (task / parts, task % parts);
                        let columns = part * columns / parts..(part + 1) * columns / parts;
                        // SAFETY: the rows are copied; each block has its own sums and results.
                        unsafe {
                            self.add(&copied, (i, chunk), (b, columns), &mut left, totals.as_ptr(), ends)
                        };
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Copies the pixels that the positions of a chunk read in a sample, and their gradients.
    ///
    /// # Safety
    /// As for [`run`]; the chunk must have capacity for them, and this sample's part must be uniquely owned.
    unsafe fn copy(&self, to: &Copied<'_>, i: usize, chunk: &Chunk, sample: usize) {
        let nth = sample - chunk.samples.start;
        let (rows, places) = (self.band.rows(chunk.rows.len()), chunk.rows.len() * self.width);
        let image = to.image.as_ptr().wrapping_add(i * to.sizes[0] + nth * rows * self.band.row);
        let grad = to.grad.as_ptr().wrapping_add(i * to.sizes[1]);
        let columns = (0..self.rows).step_by(WIDE).map(|first| (first, WIDE.min(self.rows - first)));
        let column = |first: usize, place: usize| {
            grad.wrapping_add((first * chunk.samples.len() + nth * WIDE) * places + place * WIDE)
        };
        let [step, channel, _, down, across] = self.grad.strides;
        let from = self.grad.data.as_ptr().cast_const();
        let from =
            from.wrapping_add(sample * step + chunk.rows.start * down + self.group * self.rows * channel);
        // SAFETY: as the caller guarantees.
        unsafe {
            if !self.sources.image_in_place {
                self.band.copy(image, self.input, sample, &chunk.rows, self.group * self.band.channels);
            }
        }
        if self.sources.grad_in_place {
            return;
        }
        if !has_dense_channels(self.grad) {
            // Contiguous rows are merged.
            let (tall, wide) = if down == self.width { (1, places) } else { (chunk.rows.len(), self.width) };
            for ((first, n), y) in columns.flat_map(|column| (0..tall).map(move |y| (column, y))) {
                let to = column(first, y * wide);
                // SAFETY: as above; the columns have capacity for these rows.
                unsafe {
                    if n < WIDE {
                        to.write_bytes(0, wide * WIDE);
                    }
                    turn(to, WIDE, from.wrapping_add(first * channel + y * down), channel, (n, wide));
                }
            }
            return;
        }
        for (y, x) in (0..chunk.rows.len()).flat_map(|y| (0..self.width).map(move |x| (y, x))) {
            for (first, n) in columns.clone() {
                let to = column(first, y * self.width + x);
                // SAFETY: as above.
                unsafe {
                    widen(to, from.wrapping_add(y * down + x * across + first), n);
                    to.add(n).write_bytes(0, WIDE - n);
                }
            }
        }
    }

    /// Adds the products of a chunk to the sums of some blocks of one tile: the first chunk initialises the sums, and the
    /// last one writes them to the output.
    ///
    /// # Safety
    /// As for [`run`]; the chunk's rows must be copied, there must be totals for all blocks if there are several chunks,
    /// and their totals and results must be uniquely owned.
    unsafe fn add(
        &self,
        copied: &Copied<'_>,
        (i, chunk): (usize, &Chunk),
        (b, columns): (usize, Range<usize>),
        left: &mut [f32],
        totals: *mut f32,
        [is_first, is_last]: [bool; 2],
    ) {
        let (strip, tile) = &self.blocks[b];
        let image = match self.sources.image_in_place {
            true => self.first_read(chunk),
            false => copied.image.as_ptr().cast_const().wrapping_add(i * copied.sizes[0]),
        };
        let image = image.wrapping_add(strip.a + tile.start);
        let places = chunk.samples.len() * chunk.rows.len() * self.width;
        let gathered = columns.len() > FEW;
        let (runs, step) = match gathered {
            true => (vec![Run { a: 0, b: 0, depth: places }], PITCH),
            false => (self.rows_of(chunk), self.band.step[1] * self.sources.pixel),
        };
        let chains = Chains::of(&runs, step, self.sources.place);
        if gathered {
            // SAFETY: as the caller guarantees; a copy has padding after its last row.
            unsafe { self.gather(image, chunk, tile.len(), left) };
        }
        let a = if gathered { left.as_ptr() } else { image };
        let mut sums = [[0.0; WIDE]; PITCH];
        for column in columns {
            let right = match self.sources.grad_in_place {
                true => self.first_grad(chunk).wrapping_add(column * WIDE),
                false => {
                    let at = i * copied.sizes[1] + column * places * WIDE;
                    copied.grad.as_ptr().cast_const().wrapping_add(at)
                }
            };
            let of = Operands { a, row: 1, step, b: right, next: self.sources.place, chains: &chains };
            // SAFETY: both operands have all positions; the first rows are those of a block.
            unsafe {
                let block_of = &mut *sums.as_mut_ptr().cast::<Sums>();
                block(&of, (tile.len(), self.rows - column * WIDE), block_of);
            }
            if !(is_first && is_last) {
                let at = (b * self.rows.div_ceil(WIDE) + column) * TALL * WIDE;
                // SAFETY: the caller guarantees the totals.
                let total =
                    unsafe { std::slice::from_raw_parts_mut(totals.wrapping_add(at), tile.len() * WIDE) };
                let block_of = &mut sums.as_flattened_mut()[..tile.len() * WIDE];
                match (is_first, is_last) {
                    (true, _) => total.copy_from_slice(block_of),
                    (_, true) => add(block_of, total),
                    _ => add(total, block_of),
                }
            }
            if is_last {
                // SAFETY: as the caller guarantees.
                unsafe { self.lay((strip.b / WIDE + tile.start, tile.len()), column * WIDE, &sums) };
            }
        }
    }

    /// The address that the first tap reads at a chunk's first position, in an image that is read in place.
    fn first_read(&self, chunk: &Chunk) -> *const f32 {
        let [sample, _, _, down, across] = self.input.strides;
        let [top, left] = self.sources.first;
        let at = chunk.samples.start * sample
            + (chunk.rows.start * self.band.step[0] + top) * down
            + left * across
            + self.group * self.band.channels;
        self.input.data.as_ptr().cast_const().wrapping_add(at).cast()
    }

    /// The gradients of a chunk's first position, which are read in place.
    fn first_grad(&self, chunk: &Chunk) -> *const f32 {
        let [sample, _, _, down, _] = self.grad.strides;
        let at = chunk.samples.start * sample + chunk.rows.start * down + self.group * self.rows;
        self.grad.data.as_ptr().cast_const().wrapping_add(at).cast()
    }

    /// The positions of a chunk, row by row, as runs in the copies or in place. A chunk of several samples has all of their
    /// rows.
    fn rows_of(&self, chunk: &Chunk) -> Vec<Run> {
        let rows = chunk.rows.len();
        let sample = match self.sources.image_in_place {
            true => self.input.strides[0],
            false => self.band.rows(rows) * self.sources.row,
        };
        let of = |i: usize| Run {
            a: i / rows * sample + i % rows * self.band.step[0] * self.sources.row,
            b: i * self.width * self.sources.place,
            depth: self.width,
        };
        let mut runs: Vec<Run> = Vec::new();
        let across = self.band.step[1] * self.sources.pixel;
        for run in (0..chunk.samples.len() * rows).map(of) {
            // Contiguous rows are merged.
            match runs.last_mut() {
                Some(last) if last.a + last.depth * across == run.a => last.depth += run.depth,
                _ => runs.push(run),
            }
        }
        runs
    }

    /// Packs the pixels that the positions of a chunk read for the `n` taps of a tile contiguously, with a pitch of
    /// [`PITCH`].
    ///
    /// # Safety
    /// The image must contain [`PITCH`] pixels for each position after the tile's first element; a copy has padding after
    /// its last element.
    unsafe fn gather(&self, image: *const f32, chunk: &Chunk, n: usize, to: &mut [f32]) {
        let mut places = to.chunks_exact_mut(PITCH);
        let mut all: usize = self.rows_of(chunk).iter().map(|run| run.depth).sum();
        for run in self.rows_of(chunk) {
            for (x, place) in places.by_ref().take(run.depth).enumerate() {
                let from = image.wrapping_add(run.a + x * self.band.step[1] * self.sources.pixel);
                all -= 1;
                // There is no padding after the last element of an image that is read in place.
                let is_last = self.sources.image_in_place && all < PITCH;
                for at in (0..PITCH).step_by(Numbers::LANES) {
                    let n = if is_last { n.saturating_sub(at).min(Numbers::LANES) } else { Numbers::LANES };
                    // SAFETY: the caller guarantees the elements; a position has the same number.
                    unsafe {
                        let numbers: Numbers = load_some(from.wrapping_add(at), n);
                        numbers.store(place.as_mut_ptr().add(at));
                    }
                }
            }
        }
    }

    /// Writes the sums of `n` kernel taps, starting at `first`, for the rows of a column to the output.
    ///
    /// # Safety
    /// As for [`run`]; these results must be uniquely owned.
    unsafe fn lay(&self, (first, n): (usize, usize), column: usize, sums: &[[f32; WIDE]; PITCH]) {
        const ROW: usize = PITCH + Numbers::LANES;
        let mut transposed = [[0.0; ROW]; WIDE];
        // SAFETY: both arrays have as many rows and columns.
        unsafe {
            transpose(transposed.as_mut_ptr().cast(), ROW, sums.as_ptr().cast::<f32>(), WIDE, PITCH, WIDE)
        };
        let (channels, width) = (self.band.channels, self.out.sizes[4]);
        let [row, channel, _, down, across] = self.out.strides;
        let mut i = 0;
        while i < n {
            let (tap, c) = ((first + i) / channels, (first + i) % channels);
            let some = (channels - c).min(n - i).min(Numbers::LANES);
            let at = (self.group * self.rows + column) * row
                + c * channel
                + tap / width * down
                + tap % width * across;
            for (k, numbers) in transposed.iter().enumerate().take(self.rows - column) {
                let to = self.out.data.as_ptr().wrapping_add(at + k * row);
                // SAFETY: the elements are within the sizes of the output, which the caller guarantees; a row has a vector
                // after each of its sums.
                unsafe { write_some(to, channel, some, Numbers::load(numbers.as_ptr().add(i))) };
            }
            i += some;
        }
    }
}
