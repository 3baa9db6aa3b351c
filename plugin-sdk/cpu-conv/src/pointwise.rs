//! Pointwise (1x1) convolutions of contiguous images: matrix products whose columns are output positions, without a
//! transpose.

use crate::block::{Chains, Operands, Run, Sums, TALL, WIDE, WORK, block};
use crate::image::{Numbers, Pixel, has_dense_channels};
use crate::product::{Product, tiles};
use keyway_cpu_loops::images::{Axis, Volume};
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::vectors::{Vector, load_some, widen, write_some};
use keyway_sdk::author::{Error, Lanes, Scratch};
use std::ops::Range;

/// The approximate number of copied elements, which stay in L2 together with a part of the weight.
const COPIED: usize = 1 << 16;
/// The number of weight elements above which each work item reads the weight from beyond L2, and the number of groups of
/// positions that amortises it.
const FAR: usize = 1 << 18;
const MANY: usize = 4;
/// The minimum number of positions of a large plane.
const LARGE: usize = 4 * WIDE;
/// The number of work items that occupies all threads.
const ENOUGH: usize = 32;

/// Whether the product is a pointwise convolution that this module supports.
pub fn is_one<T: Pixel>(of: &Product<'_, T>) -> bool {
    let single = |axis: &Axis| axis.taps == [0] && axis.step == 1 && axis.count == axis.size;
    let planes =
        |of: &Volume<'_, T>| !has_dense_channels(of) && of.strides[4] == 1 && of.strides[3] == of.sizes[4];
    of.axes.iter().all(single) && planes(&of.input) && planes(&of.out)
}

/// Computes the convolution: the positions of all samples in order, in groups of [`WIDE`].
///
/// # Safety
/// As for [`Product::run`].
pub unsafe fn run<T: Pixel>(of: &Product<'_, T>) -> Result<(), Error> {
    let places = Places { samples: of.out.sizes[0], plane: of.axes[0].count * of.axes[1].count };
    let blocks = of.rows.div_ceil(WIDE);
    let size = of.channels * WIDE;
    // SAFETY: as the caller guarantees.
    let mut weight = unsafe { of.packed(blocks) }?;
    // SAFETY: the address is read within this call.
    let weight = unsafe { Lanes::new(weight.as_mut_ptr()) };
    let groups = places.groups();
    let many = if blocks * size > FAR { MANY } else { 1 };
    let few = groups.div_ceil(ENOUGH.div_ceil(of.groups)).max(many);
    let most = (COPIED / size).max(many).min(few);
    let shares = groups.div_ceil(most);
    let parts = (ENOUGH / (shares * of.groups)).clamp(1, blocks);
    let work = (most * WIDE * of.channels).saturating_mul(of.rows / parts);
    parallel_try(of.groups * shares * parts, WORK / work.max(1), |range| {
        // SAFETY: the elements are written before they are read.
        let mut copied = unsafe { Scratch::<f32>::unwritten(most * size) }?;
        let (mut copied_for, mut here) = (None, Vec::new());
        for task in range {
            let (part, task) = (task % parts, task / parts);
            let (share, g) = (task % shares, task / shares);
            if copied_for.replace(task) != Some(task) {
                here = places.pieces(share * groups / shares..(share + 1) * groups / shares);
                // SAFETY: the caller guarantees the elements; the memory has capacity for the positions of a work item.
                unsafe { copy(of, g, &here, copied.as_mut_ptr()) };
            }
            for block in part * blocks / parts..(part + 1) * blocks / parts {
                let weight = weight.as_ptr().cast_const().wrapping_add((g * blocks + block) * size);
                // SAFETY: as above; work items and blocks have disjoint results.
                unsafe { multiply(of, (g, block * WIDE), &here, copied.as_ptr(), weight) };
            }
        }
        Ok(())
    })
}

/// Consecutive positions in one plane and one group.
struct Piece {
    sample: usize,
    /// The first position in its plane, and the number of positions.
    place: usize,
    count: usize,
    /// The index of the first position among all positions of the groups of a work item.
    at: usize,
    /// The number of padding positions of the group after the last position.
    behind: usize,
}

/// The positions of all samples in groups of [`WIDE`].
#[derive(Clone, Copy)]
struct Places {
    samples: usize,
    /// The number of positions of a plane.
    plane: usize,
}

impl Places {
    /// Whether the last positions of a plane share a group with the first of the next plane; in large planes a partial last
    /// group costs little.
    fn follow(self) -> bool {
        self.plane < LARGE
    }

    fn groups(self) -> usize {
        match self.follow() {
            true => (self.samples * self.plane).div_ceil(WIDE),
            false => self.samples * self.plane.div_ceil(WIDE),
        }
    }

    /// The pieces of a range of groups.
    fn pieces(self, groups: Range<usize>) -> Vec<Piece> {
        let mut all = Vec::with_capacity(2 * groups.len());
        let each = self.plane.div_ceil(WIDE);
        for (i, group) in groups.enumerate() {
            let (mut sample, mut place) = match self.follow() {
                true => (group * WIDE / self.plane, group * WIDE % self.plane),
                false => (group / each, group % each * WIDE),
            };
            let mut done = 0;
            while done < WIDE && sample < self.samples {
                let count = (self.plane - place).min(WIDE - done);
                all.push(Piece { sample, place, count, at: i * WIDE + done, behind: 0 });
                done += count;
                (sample, place) = (sample + 1, 0);
                if !self.follow() {
                    break;
                }
            }
            if let Some(last) = all.last_mut() {
                last.behind = WIDE - done;
            }
        }
        all
    }
}

/// Packs positions of a group's channels as `[positions / WIDE][channels][WIDE]`, padded with zeros.
///
/// # Safety
/// As for [`Product::run`]; `to` must have capacity for the positions, uniquely owned.
unsafe fn copy<T: Pixel>(of: &Product<'_, T>, g: usize, pieces: &[Piece], to: *mut f32) {
    let [step, channel, ..] = of.input.strides;
    for c in 0..of.channels {
        let from = of.input.data.as_ptr().cast_const().wrapping_add((g * of.channels + c) * channel);
        let number = |at: usize| to.wrapping_add((at / WIDE * of.channels + c) * WIDE + at % WIDE);
        // SAFETY: as the caller guarantees.
        unsafe {
            for piece in pieces {
                let from = from.wrapping_add(piece.sample * step + piece.place);
                widen(number(piece.at), from, piece.count);
                if piece.behind > 0 {
                    number(piece.at + piece.count).write_bytes(0, piece.behind);
                }
            }
        }
    }
}

/// Computes the results of some positions and up to [`WIDE`] rows of a group.
///
/// # Safety
/// As for [`Product::run`], with the packed positions and the packed block of the weight; the results must be uniquely
/// owned.
unsafe fn multiply<T: Pixel>(
    of: &Product<'_, T>,
    (g, first): (usize, usize),
    pieces: &[Piece],
    copied: *const f32,
    weight: *const f32,
) {
    let [step, channel, ..] = of.out.strides;
    let chains = Chains::of(&[Run { a: 0, b: 0, depth: of.channels }], WIDE, WIDE);
    let mut sums: Sums = [[0.0; WIDE]; TALL];
    for tile in tiles(WIDE.min(of.rows - first)) {
        let row = g * of.rows + first + tile.start;
        let (to, add) = (of.out.data.as_ptr().wrapping_add(row * channel), of.epilogue.place(row * channel));
        for &Piece { sample, place, count, at, behind } in pieces {
            if at % WIDE == 0 {
                let a = weight.wrapping_add(tile.start);
                let b = copied.wrapping_add(at * of.channels);
                let operands = Operands { a, row: 1, step: WIDE, b, next: WIDE, chains: &chains };
                // SAFETY: as the caller guarantees.
                unsafe { block(&operands, (tile.len(), WIDE - behind), &mut sums) };
            }
            let (to, add) = (to.wrapping_add(sample * step + place), add.wrapping_add(sample * step + place));
            for (r, sums) in sums.iter().enumerate().take(tile.len()) {
                let bias = of.bias.as_ref().map(|bias| Numbers::splat(bias[row + r].to_acc()));
                let put = |at: usize, first: usize, n: usize| {
                    // SAFETY: the sums and the plane have these elements.
                    unsafe {
                        let sum: Numbers = load_some(sums.as_ptr().add(first + at), n);
                        let result = bias.map_or(sum, |bias| Numbers::splat(1.0).mul_add(bias, sum));
                        let at = r * channel + at;
                        let result = of.epilogue.apply(add.wrapping_add(at), n, result);
                        write_some(to.wrapping_add(at), 1, n, result);
                    }
                };
                // Two loops: the compiler unrolls the first one.
                if count == WIDE {
                    (0..WIDE).step_by(Numbers::LANES).for_each(|v| put(v, 0, Numbers::LANES));
                } else {
                    let lanes = |v: usize| Numbers::LANES.min(count - v);
                    (0..count).step_by(Numbers::LANES).for_each(|v| put(v, at % WIDE, lanes(v)));
                }
            }
        }
    }
}
