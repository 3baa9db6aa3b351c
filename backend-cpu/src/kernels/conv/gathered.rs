//! `out = weight * patches + bias`, an im2col product: one for `conv`, one per stride phase for `conv_input_grad`.

use super::super::product::{Matrix, Multiply, TILE_WORK, Tile, multiply_one};
use super::patches::{Order, Patches};
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::parallel_try;
use keyway_sdk::author::{Error, Lanes, Scratch};

/// The approximate number of elements of the patches of a tile, so that they stay in L2 together with the operands.
const TILE: usize = 1 << 17;
/// The minimum and maximum number of output positions of a tile.
const PLACES: (usize, usize) = (128, 2048);

/// The weight as a matrix for each group; the offset of an element is the sum of its row's offset and its column's offset.
pub struct Weight<'a, T> {
    pub data: Lanes<'a, T>,
    /// The strides between groups and between rows, in elements.
    pub group: usize,
    pub row: usize,
    /// The offsets of the columns, in the order of the patches' rows.
    pub inner: Vec<usize>,
}

/// The output: `[sample, row, depth, height, width]`.
pub struct Results<'a, T> {
    pub data: Lanes<'a, T>,
    pub sample: usize,
    pub row: usize,
    pub places: [usize; 3],
}

/// An im2col product.
pub struct Product<'a, T> {
    pub samples: usize,
    pub groups: usize,
    /// Channels of a group, and rows of a group's output.
    pub channels: usize,
    pub rows: usize,
    pub patches: Patches<'a, T>,
    pub order: Order,
    pub weight: Weight<'a, T>,
    pub out: Results<'a, T>,
    /// The bias of each row of all groups, with its stride.
    pub bias: Option<(Lanes<'a, T>, usize)>,
}

impl<'a, T> Results<'a, T> {
    /// The output positions of a whole tensor.
    pub fn of(out: &Volume<'a, T>) -> Self {
        let [sample, row, places @ ..] = out.strides;
        Results { data: out.data, sample, row, places }
    }

    /// The number of consecutive positions with the last dimension's stride.
    fn run(&self, counts: [usize; 4]) -> usize {
        let steps = [self.sample, self.places[0], self.places[1], self.places[2]];
        let mut run = counts[3];
        for d in [2, 1, 0] {
            if counts[d] != 1 && steps[d] != run * steps[3] {
                break;
            }
            run *= counts[d];
        }
        run
    }

    /// The offset of a position, counted over all samples.
    fn at(&self, counts: [usize; 4], place: usize) -> usize {
        let [_, depth, height, width] = counts;
        let row = place / width;
        row / height / depth * self.sample
            + row / height % depth * self.places[0]
            + row % height * self.places[1]
            + place % width * self.places[2]
    }
}

/// The weight packed as `[groups][rows][inner]`, if its columns do not have a constant stride.
///
/// # Safety
/// The elements at the offsets of the weight must exist.
unsafe fn packed<T: Multiply>(
    weight: &Weight<'_, T>,
    groups: usize,
    rows: usize,
) -> Result<Option<Scratch<T>>, Error> {
    let step = weight.inner.get(1).copied().unwrap_or(1);
    if weight.inner.iter().enumerate().all(|(k, &at)| at == k * step) {
        return Ok(None);
    }
    let inner = weight.inner.len();
    // SAFETY: each element is written below.
    let mut made = unsafe { Scratch::<T>::unwritten(groups * rows * inner) }?;
    for (i, row) in made.chunks_exact_mut(inner).enumerate() {
        let from = weight.data.as_ptr().wrapping_add(i / rows * weight.group + i % rows * weight.row);
        // SAFETY: the caller guarantees the elements.
        row.iter_mut().zip(&weight.inner).for_each(|(to, &at)| *to = unsafe { *from.add(at) });
    }
    Ok(Some(made))
}

impl<T: Multiply> Product<'_, T> {
    /// Computes the product, in tiles that depend on the sizes alone.
    ///
    /// # Safety
    /// All elements described by sizes, strides and offsets must exist, and those of the results must be uniquely
    /// owned.
    pub unsafe fn run(&self) -> Result<(), Error> {
        let [depth, height, width] = &self.patches.axes;
        let counts = [self.samples, depth.count, height.count, width.count];
        let total: usize = counts.iter().product();
        let inner = self.weight.inner.len();
        if total == 0 || self.rows == 0 {
            return Ok(());
        }
        // SAFETY: as the caller guarantees.
        let mut own = unsafe { packed(&self.weight, self.groups, self.rows) }?;
        let step = self.weight.inner.get(1).copied().unwrap_or(1);
        let weight = match &mut own {
            // SAFETY: the address is read within this call.
            Some(own) => (unsafe { Lanes::new(own.as_mut_ptr()) }, self.rows * inner, inner, 1),
            None => (self.weight.data, self.weight.group, self.weight.row, step),
        };
        let wide = (TILE / inner.max(1)).clamp(PLACES.0, PLACES.1);
        let run = self.out.run(counts);
        // Short runs of several rows are computed together in scratch memory, and copied to the output.
        let direct = run == total || 2 * run >= wide;
        let (span, wide) = if direct { (run, wide.min(run)) } else { (total, wide.min(total)) };
        let tiles = span.div_ceil(wide);
        let tasks = self.groups * (total / span) * tiles;
        let work = self.rows.saturating_mul(inner.max(1)).saturating_mul(wide);
        parallel_try(tasks, TILE_WORK / work.max(1), |range| {
            // SAFETY: patches and results are written before they are read.
            let (mut patches, mut apart) = unsafe {
                let apart = if direct { 0 } else { self.rows * wide };
                (Scratch::<T>::unwritten(inner * wide)?, Scratch::<T>::unwritten(apart)?)
            };
            for task in range {
                let (g, i) = (task / (total / span * tiles), task % (total / span * tiles));
                let first = i / tiles * span + i % tiles * wide;
                let count = wide.min(span - i % tiles * wide);
                let channels = g * self.channels..(g + 1) * self.channels;
                // SAFETY: the caller guarantees source and results; tiles are disjoint.
                unsafe {
                    let to = patches.as_mut_ptr();
                    self.patches.fill(to, self.order, channels, first..first + count, |x| x);
                    let b = match self.order {
                        Order::Channels => Matrix { data: to.cast_const(), row: count, column: 1 },
                        Order::Places => Matrix { data: to.cast_const(), row: 1, column: inner },
                    };
                    let (data, group, row, column) = weight;
                    let a = Matrix { data: data.as_ptr().cast_const().wrapping_add(g * group), row, column };
                    let first_row = g * self.rows;
                    let out = if direct {
                        let at = self.out.at(counts, first) + first_row * self.out.row;
                        let data = self.out.data.as_ptr().wrapping_add(at);
                        Matrix { data, row: self.out.row, column: self.out.places[2] }
                    } else if self.out.row == 1 {
                        Matrix { data: apart.as_mut_ptr(), row: 1, column: self.rows }
                    } else {
                        Matrix { data: apart.as_mut_ptr(), row: count, column: 1 }
                    };
                    let input = self.bias.map(|(bias, step)| {
                        let data = bias.as_ptr().cast_const().wrapping_add(first_row * step);
                        (Matrix { data, row: step, column: 0 }, T::from_i64(1))
                    });
                    let (rows, alpha) = (self.rows, T::from_i64(1));
                    multiply_one(&Tile { rows, columns: count, inner, a, b, out, input, alpha })?;
                    if !direct {
                        self.lay(out, counts, (first_row, first), count);
                    }
                }
            }
            Ok(())
        })
    }

    /// Copies the results of a range of positions to the output.
    ///
    /// # Safety
    /// As for [`Product::run`].
    unsafe fn lay(
        &self,
        from: Matrix<*mut T>,
        counts: [usize; 4],
        (first_row, first): (usize, usize),
        count: usize,
    ) {
        let copy = |place: usize, r: usize, to: usize| {
            let to = self.out.data.as_ptr().wrapping_add(to + (first_row + r) * self.out.row);
            // SAFETY: the caller guarantees the elements and that the results are uniquely owned.
            unsafe { to.write(*from.at(r, place).data) };
        };
        if self.out.row == 1 {
            for place in 0..count {
                let to = self.out.at(counts, first + place);
                (0..self.rows).for_each(|r| copy(place, r, to));
            }
        } else {
            let places: Vec<usize> = (0..count).map(|place| self.out.at(counts, first + place)).collect();
            for r in 0..self.rows {
                places.iter().enumerate().for_each(|(place, &to)| copy(place, r, to));
            }
        }
    }
}
