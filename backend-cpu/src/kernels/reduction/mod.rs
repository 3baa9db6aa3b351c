//! Reductions over any set of dimensions of any strided input.
//!
//! Decisions:
//! - strides decide how the input is walked, it is never copied: where neighbours in memory belong to one
//!   output, runs are summed in lanes; where they belong to different outputs, rows are added to a row of
//!   accumulators that stays in the first-level cache;
//! - the reduced space is cut into blocks by sizes alone and the blocks' results are combined in order, so a
//!   result has the same bits with any number of threads; the blocks also keep the rounding error of long
//!   sums small.

mod geometry;
mod loops;

pub use geometry::{Geometry, offset, reduced};
pub use loops::Reducer;

use keyway_sdk::author::{Element, Error, Lanes, View, ViewMut, parallel_for};
use loops::{columns, row};
use std::ops::Range;

/// Elements of one output that are reduced without a break.
const BLOCK: usize = 16 * 1024;
/// Elements of a block of rows, and the least and most rows that it has.
const ROW_BLOCK: usize = 128 * 1024;
const FEWEST_ROWS: usize = 64;
const MOST_ROWS: usize = 4096;
/// Bytes of a row of accumulators.
const ROW_BYTES: usize = 16 * 1024;
/// With this many units there is work for all threads without cutting units into blocks.
const MANY_UNITS: usize = 64;
/// The least number of elements for one thread.
const GRAIN: usize = 32 * 1024;

/// How a reduction is cut: units of neighbouring outputs, blocks of the reduced space.
struct Cut {
    /// Outputs of a unit.
    width: usize,
    /// Units along the innermost kept dimension.
    across: usize,
    units: usize,
    block: usize,
    blocks: usize,
    columnar: bool,
}

/// One unit: where it lies in the input and in the output.
struct Unit {
    first: usize,
    width: usize,
    at: usize,
    out: usize,
}

impl Cut {
    fn new(g: &Geometry, acc_size: usize) -> Cut {
        let columnar = g.is_columnar();
        let (width, across, block) = match g.kept.last() {
            Some(inner) if columnar => {
                let width = inner.size.min(ROW_BYTES / acc_size.max(1));
                (width, inner.size.div_ceil(width), (ROW_BLOCK / width).clamp(FEWEST_ROWS, MOST_ROWS))
            }
            _ => (1, 1, BLOCK),
        };
        let units = match g.kept.last() {
            Some(inner) if columnar => g.outputs / inner.size * across,
            _ => g.outputs,
        };
        Cut { width, across, units, block, blocks: g.count.div_ceil(block), columnar }
    }

    fn unit(&self, g: &Geometry, index: usize) -> Unit {
        match g.kept.split_last() {
            Some((inner, outer)) if self.columnar => {
                let (row, column) = (index / self.across, index % self.across * self.width);
                let (at, out) = offset(outer, row);
                Unit {
                    first: row * inner.size + column,
                    width: self.width.min(inner.size - column),
                    at: at + column * inner.stride,
                    out: out + column * inner.out,
                }
            }
            _ => {
                let (at, out) = offset(&g.kept, index);
                Unit { first: index, width: 1, at, out }
            }
        }
    }

    fn range(&self, g: &Geometry, block: usize) -> Range<usize> {
        block * self.block..((block + 1) * self.block).min(g.count)
    }

    /// The least number of units for one thread.
    fn grain(&self, g: &Geometry) -> usize {
        GRAIN.div_ceil(g.count.max(1).saturating_mul(self.width))
    }
}

/// One pass over an input.
struct Pass<'a, R: Reducer> {
    reducer: &'a R,
    geometry: &'a Geometry,
    cut: &'a Cut,
    input: Lanes<'a, R::In>,
}

impl<R: Reducer> Pass<'_, R> {
    /// One block of a unit.
    fn block(&self, unit: &Unit, block: usize, contexts: &[R::Context], accs: &mut [R::Acc]) {
        let (g, range) = (self.geometry, self.cut.range(self.geometry, block));
        // SAFETY: unit and range lie in the sizes of the view, where the host guarantees elements.
        unsafe {
            let at = self.input.as_ptr().cast_const().add(unit.at);
            match g.kept.last() {
                Some(inner) if self.cut.columnar => {
                    columns(self.reducer, contexts, at, inner.stride, g, range, accs);
                }
                _ => accs[0] = row(self.reducer, contexts[0], at, &g.reduced, range),
            }
        }
    }

    /// All blocks of a unit, in order.
    fn unit(&self, unit: &Unit, contexts: &[R::Context], accs: &mut [R::Acc], part: &mut [R::Acc]) {
        let (accs, part) = (&mut accs[..unit.width], &mut part[..unit.width]);
        if self.cut.blocks == 0 {
            return accs.fill(self.reducer.identity());
        }
        self.block(unit, 0, contexts, accs);
        for block in 1..self.cut.blocks {
            self.block(unit, block, contexts, part);
            for (acc, part) in accs.iter_mut().zip(part.iter()) {
                *acc = self.reducer.combine(*acc, *part);
            }
        }
    }

    /// All units, when there are so few that their blocks are shared among the threads.
    fn blocks(&self, contexts: &[R::Context]) -> Result<Vec<R::Acc>, Error> {
        let (g, cut) = (self.geometry, self.cut);
        let mut parts = vec![self.reducer.identity(); g.outputs * cut.blocks.max(1)];
        // SAFETY: the address is used within `parts`, which outlives the loop.
        let to = unsafe { Lanes::new(parts.as_mut_ptr()) };
        parallel_for(cut.units * cut.blocks, GRAIN.div_ceil(cut.block * cut.width), |tasks| {
            for task in tasks {
                let (unit, block) = (cut.unit(g, task % cut.units), task / cut.units);
                // SAFETY: each task has its own block and outputs.
                let accs = unsafe { to.slice_mut(block * g.outputs + unit.first, unit.width) };
                self.block(&unit, block, &contexts[unit.first..unit.first + unit.width], accs);
            }
        })?;
        let (first, rest) = parts.split_at_mut(g.outputs);
        for part in rest.chunks_exact(g.outputs) {
            for (acc, part) in first.iter_mut().zip(part) {
                *acc = self.reducer.combine(*acc, *part);
            }
        }
        parts.truncate(g.outputs);
        Ok(parts)
    }
}

/// Where the results go.
struct Target<'a, O> {
    out: Lanes<'a, O>,
    stride: usize,
}

impl<O> Target<'_, O> {
    fn write(&self, unit: &Unit, values: impl Iterator<Item = O>) {
        for (j, value) in values.enumerate() {
            // SAFETY: the offsets are those of outputs that this unit alone writes.
            unsafe { self.out.write(unit.out + j * self.stride, value) };
        }
    }
}

/// `out = finish(the reduction of input over the dimensions in mask)`.
pub fn reduce<R: Reducer<Context = ()>, O: Element>(
    input: View<'_, R::In>,
    mask: u64,
    mut out: ViewMut<'_, O>,
    reducer: &R,
    finish: impl Fn(R::Acc) -> O + Sync,
) -> Result<(), Error> {
    let g = &Geometry::new(input.sizes(), input.strides(), out.strides(), mask);
    if g.outputs == 0 {
        return Ok(());
    }
    let cut = &Cut::new(g, size_of::<R::Acc>());
    let target = Target { out: out.lanes(), stride: g.kept.last().map_or(0, |d| d.out) };
    // SAFETY: the address is read within the view, which outlives the pass.
    let input = unsafe { Lanes::new(input.as_ptr().cast_mut()) };
    let pass = Pass { reducer, geometry: g, cut, input };
    if cut.units < MANY_UNITS && cut.blocks > 1 {
        let accs = pass.blocks(&vec![(); g.outputs])?;
        (0..cut.units).for_each(|u| {
            let unit = cut.unit(g, u);
            target.write(&unit, accs[unit.first..unit.first + unit.width].iter().map(|acc| finish(*acc)));
        });
        return Ok(());
    }
    if !cut.columnar && cut.blocks == 1 {
        // Nothing is kept between units: no buffers.
        return parallel_for(cut.units, cut.grain(g), |units| {
            for u in units {
                let unit = cut.unit(g, u);
                let mut acc = [reducer.identity()];
                pass.block(&unit, 0, &[()], &mut acc);
                target.write(&unit, acc.iter().map(|acc| finish(*acc)));
            }
        });
    }
    let contexts = &vec![(); cut.width];
    parallel_for(cut.units, cut.grain(g), |units| {
        let (mut accs, mut part) = (vec![reducer.identity(); cut.width], vec![reducer.identity(); cut.width]);
        for u in units {
            let unit = cut.unit(g, u);
            pass.unit(&unit, contexts, &mut accs, &mut part);
            target.write(&unit, accs[..unit.width].iter().map(|acc| finish(*acc)));
        }
    })
}

/// Two passes: `middle` makes of the first's result what the second's elements have in common, and
/// `finish` the output of that and the second's result. Unit by unit, so that the second pass reads from
/// the cache where a unit fits in it.
pub fn reduce_twice<A, B, O>(
    input: View<'_, A::In>,
    mask: u64,
    mut out: ViewMut<'_, O>,
    (first, second): (&A, &B),
    middle: impl Fn(A::Acc) -> B::Context + Sync,
    finish: impl Fn(B::Context, B::Acc) -> O + Sync,
) -> Result<(), Error>
where
    A: Reducer<Context = ()>,
    B: Reducer<In = A::In>,
    O: Element,
{
    let g = &Geometry::new(input.sizes(), input.strides(), out.strides(), mask);
    if g.outputs == 0 {
        return Ok(());
    }
    let cut = &Cut::new(g, size_of::<A::Acc>().max(size_of::<B::Acc>()));
    let target = Target { out: out.lanes(), stride: g.kept.last().map_or(0, |d| d.out) };
    // SAFETY: the address is read within the view, which outlives the passes.
    let input = unsafe { Lanes::new(input.as_ptr().cast_mut()) };
    let a = Pass { reducer: first, geometry: g, cut, input };
    let b = Pass { reducer: second, geometry: g, cut, input };
    if cut.units < MANY_UNITS && cut.blocks > 1 {
        let contexts: Vec<_> = a.blocks(&vec![(); g.outputs])?.into_iter().map(&middle).collect();
        let accs = b.blocks(&contexts)?;
        (0..cut.units).for_each(|u| {
            let unit = cut.unit(g, u);
            let of = unit.first..unit.first + unit.width;
            target.write(&unit, contexts[of.clone()].iter().zip(&accs[of]).map(|(c, acc)| finish(*c, *acc)));
        });
        return Ok(());
    }
    let nothing = &vec![(); cut.width];
    parallel_for(cut.units, cut.grain(g), |units| {
        let (mut accs, mut part) = (vec![first.identity(); cut.width], vec![first.identity(); cut.width]);
        let mut contexts = vec![middle(first.identity()); cut.width];
        let (mut results, mut result_part) =
            (vec![second.identity(); cut.width], vec![second.identity(); cut.width]);
        for u in units {
            let unit = cut.unit(g, u);
            a.unit(&unit, nothing, &mut accs, &mut part);
            contexts.iter_mut().zip(&accs[..unit.width]).for_each(|(c, acc)| *c = middle(*acc));
            b.unit(&unit, &contexts, &mut results, &mut result_part);
            target.write(&unit, contexts.iter().zip(&results[..unit.width]).map(|(c, acc)| finish(*c, *acc)));
        }
    })
}
