//! Convolutions of bf16 by the processor's matrix unit.
//!
//! Rows of tiles are neighbouring output positions, read from the flat copy of [`planes`](super::planes) or, if no tap is
//! outside the image, from the image itself; a block of 32 positions and 32 channels is accumulated over all taps and
//! channels in the tile registers, and is rounded once. The unit flushes subnormal values to 0.
//! tile registers, and is rounded once. The unit treats subnormal values as 0.

use super::planes::{Part, Planes, copy_few};
use super::product::{Product, Weight};
use crate::image::{Numbers, Pixel, has_dense_channels, unsupported};
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::tiles::{Gathered, Native, Operand, SIDE, STEP, Source, Unit, pack};
use keyway_cpu_loops::vectors::{Vector, write_some};
use keyway_cpu_loops::{parallel_try, transpose};
use keyway_sdk::author::{Error, Lanes, Scratch};
use keyway_sdk::half::bf16;
use std::any::TypeId;

/// The approximate number of copied elements, so that they stay in L2.
const BAND: usize = 1 << 17;
/// The maximum number of elements of the packed weight for which it stays in L2 with the tiles' rows.
const NEAR: usize = 1 << 19;
/// The number of work items that occupies all threads, and the number of rows below which a band mostly copies rows that
/// its neighbour also copies.
const ENOUGH: usize = 16;
const SHORT: usize = 4;
/// The number of multiplications divided by [`SIDE`] that justifies another thread: some 200 us of tiles. A band of rows,
/// which also copies rows of its neighbour, has at least twice as many, and a part of a large weight, which is read once,
/// half.
const GRAIN: usize = 1 << 21;
/// The number of elements of the weight that justifies another thread.
const PACKED: usize = 1 << 18;

/// Memory aligned to a cache line, so that no row of a tile crosses one.
#[repr(align(64))]
struct Lines<T>(T);

/// This processor's matrix unit, if it supports elements of this type.
pub fn unit<T: 'static>() -> Option<Native> {
    if TypeId::of::<T>() == TypeId::of::<bf16>() { Native::find() } else { None }
}

/// The partition of the output positions into parts: if positions are the reduction dimension, by the sizes alone.
pub struct Cut {
    /// The maximum number of samples and of rows of positions in a part.
    pub samples: usize,
    pub rows: usize,
    bands: usize,
    sizes: [usize; 2],
    pub count: usize,
}

impl Cut {
    /// A partition of this number of samples and rows of positions, in parts of about `most` elements. Parts have several
    /// samples if these are small, as long as there are at least `enough` parts.
    pub fn of(planes: &Planes, sizes: [usize; 2], most: usize, enough: usize) -> Cut {
        let [samples, height] = sizes;
        let row = planes.pitch * planes.pixel * planes.count();
        let whole = (height + planes.reach) * row;
        let several = (most / whole).clamp(1, samples.div_ceil(enough));
        let tall = (most / row).saturating_sub(planes.reach).clamp(planes.reach.clamp(1, height), height);
        let few = height.div_ceil(enough.div_ceil(samples)).max(SHORT.min(height));
        let bands = if several > 1 { 1 } else { height.div_ceil(tall.min(few)) };
        let rows = height.div_ceil(bands);
        let bands = height.div_ceil(rows);
        Cut { samples: several, rows, bands, sizes, count: samples.div_ceil(several) * bands }
    }

    /// Part `i` of a group's channels.
    pub fn part(&self, i: usize, first_channel: usize) -> Part {
        let range = |i: usize, each: usize, all: usize| i * each..((i + 1) * each).min(all);
        Part {
            samples: range(i / self.bands, self.samples, self.sizes[0]),
            rows: range(i % self.bands, self.rows, self.sizes[1]),
            first_channel,
        }
    }
}

/// The copies of the input from which a convolution is computed; `Unsupported` if they would be mostly zeros.
pub fn planes<T: Pixel>(
    input: &Volume<'_, T>,
    axes: &[Axis; 2],
    groups: usize,
    channels: usize,
) -> Result<Planes, Error> {
    let planes = Planes::of(axes, channels, groups == 1 && has_dense_channels(input));
    match planes.mostly_zeros(axes) {
        true => Err(unsupported("taps so far apart")),
        false => Ok(planes),
    }
}

/// Computes a convolution with nonzero sizes; `Unsupported` as for [`planes`].
///
/// # Safety
/// As for [`Product::run`], with elements of bf16.
pub unsafe fn run<U: Unit, T: Pixel>(unit: U, of: &Product<'_, T>) -> Result<(), Error> {
    let (samples, height) = (of.out.sizes[0], of.axes[0].count);
    let planes = planes(&of.input, &of.axes, of.groups, of.channels)?;
    let (steps, blocks) = (planes.taps * planes.pixel / SIDE, of.rows.div_ceil(SIDE));
    let near = of.groups * blocks * steps * STEP <= NEAR;
    let work = steps * STEP * blocks * (samples * height * planes.width) / SIDE;
    let least = if near { 2 * GRAIN } else { GRAIN / 2 };
    let enough = (work.saturating_mul(unit.slowness()) / least).clamp(1, ENOUGH);
    let cut = Cut::of(&planes, [samples, height], BAND, if near { enough } else { 1 });
    let plane = planes.plane(cut.samples * (cut.rows + planes.reach));
    let offsets: Vec<usize> = planes
        .distances()
        .flat_map(|(number, distance)| {
            let first = (number * plane + distance) * planes.pixel;
            (first..first + planes.pixel).step_by(SIDE).map(|at| at * size_of::<u16>())
        })
        .collect();
    // A panel that is used once is packed right before its use, and stays in L2.
    let once = cut.count == 1 && !near;
    // SAFETY: as the caller guarantees.
    let mut weight = unsafe { packed::<U, T>(of, &planes, if once { 0 } else { blocks }) }?;
    // SAFETY: the address is read within this call.
    let weight = unsafe { Lanes::new(weight.as_mut_ptr()) };
    let bias: Vec<f32> = of.bias.iter().flatten().map(|number| number.to_acc()).collect();

    let pieces = enough.div_ceil(cut.count * of.groups).min(blocks);
    let work = steps * STEP * cut.samples * cut.rows * planes.width * blocks.div_ceil(pieces) / SIDE;
    parallel_try(cut.count * of.groups * pieces, GRAIN / unit.slowness() / work.max(1), |range| {
        // SAFETY: the copy and the panel are written before they are read.
        let (mut copied, mut own) = unsafe {
            let panel = if once { steps * STEP } else { 0 };
            (
                Scratch::<u16>::unwritten(planes.count() * plane * planes.pixel)?,
                Scratch::<u16>::unwritten(panel)?,
            )
        };
        let (mut sums, mut stage) = (Lines([0f32; STEP]), Lines([[T::from_acc(0.0); STEP]; 2]));
        unit.with_tiles(|| {
            for task in range {
                let (piece, task) = (task % pieces, task / pieces);
                let (g, i) = (task % of.groups, task / of.groups);
                let part = cut.part(i, g * of.channels);
                let flat = planes.flat(&part);
                // Blocks of an image that is read in place end at its last position.
                let in_place = planes.in_place && flat >= SIDE;
                // SAFETY: the caller guarantees the elements; the memory has capacity for the planes of a part.
                let left = unsafe {
                    if in_place {
                        planes.first_read(&of.input, &part)
                    } else {
                        planes.copy(copied.as_mut_ptr(), plane, &of.input, &part);
                        copied.as_ptr()
                    }
                };
                let blocks_here = piece * blocks / pieces..(piece + 1) * blocks / pieces;
                let mut one = |first: usize, block: usize, right: *const u16| {
                    let begin = if in_place { first.min(flat - SIDE) } else { first };
                    let left = left.wrapping_add(begin * planes.pixel);
                    let line = planes.pixel;
                    let to = sums.0.as_mut_ptr();
                    // SAFETY: copy and weight have the elements of these positions, this thread has tiles, and each result is
                    // written by one task.
                    unsafe {
                        let narrow = of.rows - block * SIDE <= SIDE / 2;
                        unit.gathered(&Gathered { offsets: &offsets, left, line, right, sums: to, narrow });
                        write(
                            of,
                            &planes,
                            &part,
                            (&sums.0, &mut stage.0),
                            [begin, first],
                            (g, block * SIDE),
                            &bias,
                        );
                    }
                };
                let places = || (0..flat).step_by(SIDE);
                let panel =
                    |block| weight.as_ptr().cast_const().wrapping_add((g * blocks + block) * steps * STEP);
                if near {
                    places().for_each(|first| {
                        blocks_here.clone().for_each(|block| one(first, block, panel(block)));
                    });
                    continue;
                }
                for block in blocks_here {
                    let right = if once {
                        // SAFETY: the caller guarantees the elements; the memory has capacity for a panel.
                        unsafe { pack_block::<U, T>(of, &planes, (g, block), own.as_mut_ptr()) };
                        own.as_ptr()
                    } else {
                        panel(block)
                    };
                    places().for_each(|first| one(first, block, right));
                }
            }
        });
        Ok(())
    })
}

/// Writes the results of 32 flat positions, starting at `begin`, except those before `first`; results in row-major order
/// are transposed through `stage`.
///
/// # Safety
/// As for [`run`].
#[inline]
unsafe fn write<T: Pixel>(
    of: &Product<'_, T>,
    planes: &Planes,
    part: &Part,
    (sums, stage): (&[f32; STEP], &mut [[T; STEP]; 2]),
    [begin, first]: [usize; 2],
    (g, row): (usize, usize),
    bias: &[f32],
) {
    let [step, plane, _, down, across] = of.out.strides;
    let (channels, channel) = (SIDE.min(of.rows - row), g * of.rows + row);
    // -0 is the neutral addend, also for a sum of -0.
    let mut added = [-0f32; SIDE];
    if !bias.is_empty() {
        added[..channels].copy_from_slice(&bias[channel..channel + channels]);
    }
    // Writes the accumulators of one position.
    let write_place = |to: *mut T, add: *const T, place: usize| {
        let sums = sums[(place - begin) * SIDE..].as_ptr();
        let store = |v: usize, n: usize| {
            // SAFETY: the result has these channels, and sums and addends whole vectors.
            unsafe {
                let sum = Numbers::load(sums.add(v));
                let result = Numbers::splat(1.0).mul_add(sum, Numbers::load(added.as_ptr().add(v)));
                let result = of.epilogue.apply(add.wrapping_add(v), n, result);
                write_some(to.wrapping_add(v), 1, n, result);
            }
        };
        // Two loops: the compiler unrolls the first one.
        if channels == SIDE {
            (0..SIDE).step_by(Numbers::LANES).for_each(|v| store(v, Numbers::LANES));
        } else {
            (0..channels).step_by(Numbers::LANES).for_each(|v| store(v, Numbers::LANES.min(channels - v)));
        }
    };
    let tall = planes.tall(part);
    let end = (begin + SIDE).min(planes.flat(part));
    // Runs of neighbouring positions that are outputs: the first one, its flat position, and the length.
    let runs = || {
        let mut next = first;
        std::iter::from_fn(move || {
            while next < end {
                let flat = next;
                let (line, x) = (flat / planes.pitch, flat % planes.pitch);
                let (sample, y) = (line / tall, line % tall);
                next = (flat - x + planes.pitch).min(end);
                if y < part.rows.len() && x < planes.width {
                    let at = (part.samples.start + sample) * step + (part.rows.start + y) * down + x * across;
                    return Some((at + channel * plane, flat, (next - flat).min(planes.width - x)));
                }
            }
            None
        })
    };
    // All channels of the block without epilogue: the addend stays in registers, and all stores follow each other.
    let plain = channels == SIDE && of.epilogue.is_none();
    if plain && !of.is_staged() {
        const VECTORS: usize = SIDE / Numbers::LANES;
        // SAFETY: these are whole vectors.
        let added: [Numbers; VECTORS] =
            std::array::from_fn(|v| unsafe { Numbers::load(added[v * Numbers::LANES..].as_ptr()) });
        for (at, flat, count) in runs() {
            let mut to = of.out.data.as_ptr().wrapping_add(at);
            for place in sums[(flat - begin) * SIDE..].chunks_exact(SIDE).take(count) {
                for (v, added) in added.iter().enumerate() {
                    // SAFETY: as above; the result has all channels of the block.
                    unsafe {
                        let sum = Numbers::load(place[v * Numbers::LANES..].as_ptr());
                        let sum = Numbers::splat(1.0).mul_add(sum, *added);
                        T::write(to.wrapping_add(v * Numbers::LANES), sum);
                    }
                }
                to = to.wrapping_add(across);
            }
        }
        return;
    }
    if !of.is_staged() {
        for (at, flat, count) in runs() {
            let (to, add) = (of.out.data.as_ptr().wrapping_add(at), of.epilogue.place(at));
            (0..count).for_each(|i| {
                write_place(to.wrapping_add(i * across), add.wrapping_add(i * across), flat + i);
            });
        }
        return;
    }
    let [places, transposed] = stage;
    if of.epilogue.adds() {
        for (at, flat, count) in runs() {
            let add = of.epilogue.place(at);
            for c in 0..channels {
                let (to, from) = (&mut transposed[c * SIDE + flat - begin..], add.wrapping_add(c * plane));
                // SAFETY: the addend has the strides of the results, which the caller guarantees; an element has two bytes.
                unsafe {
                    match across {
                        1 => copy_few(to.as_mut_ptr().cast(), from.cast(), count),
                        _ => (0..count).for_each(|i| to[i] = *from.wrapping_add(i * across)),
                    }
                }
            }
        }
        // SAFETY: each has capacity for all channels of all positions.
        unsafe { transpose(places.as_mut_ptr(), SIDE, transposed.as_ptr(), SIDE, channels, SIDE) };
    }
    for place in first..end {
        let to = places.as_mut_ptr().wrapping_add((place - begin) * SIDE);
        write_place(to, to.cast_const(), place);
    }
    // SAFETY: as above.
    unsafe { transpose(transposed.as_mut_ptr(), SIDE, places.as_ptr(), SIDE, SIDE, channels) };
    for (at, flat, count) in runs() {
        for c in 0..channels {
            let (to, from) =
                (of.out.data.as_ptr().wrapping_add(at + c * plane), &transposed[c * SIDE + flat - begin..]);
            // SAFETY: the caller guarantees the results; an element has two bytes.
            unsafe {
                match across {
                    1 => copy_few(to.cast(), from.as_ptr().cast(), count),
                    _ => (0..count).for_each(|i| *to.wrapping_add(i * across) = from[i]),
                }
            }
        }
    }
}

/// The weight as panels of 32 rows: `[groups][blocks][taps][pixel / 32][STEP]`.
///
/// # Safety
/// As for [`run`].
unsafe fn packed<U: Unit, T: Pixel>(
    of: &Product<'_, T>,
    planes: &Planes,
    blocks: usize,
) -> Result<Scratch<u16>, Error> {
    let panel = planes.taps * planes.pixel * SIDE;
    // SAFETY: each panel is written below.
    let mut made = unsafe { Scratch::<u16>::unwritten(of.groups * blocks * panel) }?;
    // SAFETY: the address is used within this call, by work items that write their own panels.
    let to = unsafe { Lanes::new(made.as_mut_ptr()) };
    parallel_try(of.groups * blocks, (PACKED / panel).max(1), |range| {
        for i in range {
            // SAFETY: as the caller guarantees; each panel has its own address range.
            unsafe { pack_block::<U, T>(of, planes, (i / blocks, i % blocks), to.as_ptr().add(i * panel)) };
        }
        Ok(())
    })?;
    Ok(made)
}

/// Packs a panel of a group's weight.
///
/// # Safety
/// As for [`run`]; `to` must have capacity for the block, uniquely owned.
unsafe fn pack_block<U: Unit, T: Pixel>(
    of: &Product<'_, T>,
    planes: &Planes,
    (g, block): (usize, usize),
    to: *mut u16,
) {
    let Weight { data, group, row, channel, taps } = &of.weight;
    let (first, tap) = (block * SIDE, planes.pixel * SIDE);
    let rows = SIDE.min(of.rows - first);
    let from = data.as_ptr().cast_const().cast::<u16>().wrapping_add(g * group + first * row);
    for t in 0..planes.taps {
        let to = to.wrapping_add(t * tap);
        // SAFETY: the caller guarantees the elements; a unit with `VECTORS` exists only on processors with the features.
        unsafe {
            if planes.taps == taps.len() {
                let data = from.wrapping_add(taps[t]);
                let source = Source { data, row: *row, column: *channel };
                pack_right::<U>(to, source, (rows, of.channels));
            } else {
                let mut lines = vec![0u16; rows * planes.pixel];
                for (r, line) in lines.chunks_exact_mut(planes.pixel).enumerate() {
                    for (e, slot) in line.iter_mut().enumerate() {
                        if let Some((t, c)) = planes.meaning(t, e) {
                            *slot = *from.wrapping_add(r * row + taps[t] + c * channel);
                        }
                    }
                }
                let source = Source { data: lines.as_ptr(), row: planes.pixel, column: 1 };
                pack_right::<U>(to, source, (rows, planes.pixel));
            }
        }
    }
}

/// Packs the columns of a right operand.
///
/// # Safety
/// As for [`pack`]; the unit must be one of this processor.
pub unsafe fn pack_right<U: Unit>(to: *mut u16, from: Source, sizes: (usize, usize)) {
    // SAFETY: as the caller guarantees.
    unsafe {
        match U::VECTORS {
            true => pack::<true>(to, from, sizes, Operand::Right),
            false => pack::<false>(to, from, sizes, Operand::Right),
        }
    }
}
