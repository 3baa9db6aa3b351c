//! The outer loops of a reduction over its input, compiled once for all reducers.

use super::super::buffer::Buffer;
use super::geometry::{Dim, Geometry, offset};
use super::loops::{Loops, ROWS, Sizes};
use keyway_sdk::author::{Error, Lanes, parallel_for};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The number of elements of a block of rows, and the minimum and maximum number of its rows.
const ROW_BLOCK: usize = 128 * 1024;
const FEWEST_ROWS: usize = 64;
const MOST_ROWS: usize = 4096;
/// Bytes of a row of accumulators.
const ROW_BYTES: usize = 16 * 1024;
/// The number of elements of a unit of outputs whose elements are separate runs: a second pass still finds them in L1.
const LINES: usize = 8 * 1024;
/// The number of units that occupies all threads without splitting units into blocks.
pub const MANY_UNITS: usize = 64;
/// The minimum number of elements per thread.
const GRAIN: usize = 32 * 1024;
/// Bytes of strided elements that are copied at a time.
const COPIED: usize = 4 * 1024;
/// The minimum length of a run that is reduced in place; shorter ones are gathered first.
const LONG: usize = 64;

/// The partition of a reduction into units of neighbouring outputs, and of the reduced space into blocks.
pub struct Cut {
    /// The number of outputs of a unit.
    pub width: usize,
    /// The number of units along the innermost preserved dimension.
    across: usize,
    /// The number of units.
    pub units: usize,
    block: usize,
    /// The number of blocks of a unit.
    pub blocks: usize,
    columnar: bool,
}

/// One unit: its outputs, and its offsets in the input and the output.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// The index of its first output.
    pub first: usize,
    /// The number of its outputs.
    pub width: usize,
    at: usize,
    /// The offset of its first output.
    pub out: usize,
}

impl Cut {
    /// The partition for accumulators of `acc` bytes, and blocks of `block` elements of one output.
    pub fn new(g: &Geometry, acc: usize, block: usize) -> Cut {
        let columnar = g.is_columnar();
        let (width, across, block) = match g.kept.last() {
            Some(inner) if columnar => {
                let width = inner.size.min(ROW_BYTES / acc.max(1));
                (width, inner.size.div_ceil(width), (ROW_BLOCK / width).clamp(FEWEST_ROWS, MOST_ROWS))
            }
            Some(inner) => {
                let width = inner.size.min((LINES / g.count.max(1)).max(1));
                (width, inner.size.div_ceil(width), block)
            }
            None => (1, 1, block),
        };
        let units = g.kept.last().map_or(g.outputs, |inner| g.outputs / inner.size * across);
        Cut { width, across, units, block, blocks: g.count.div_ceil(block), columnar }
    }

    /// Unit number `index`.
    pub fn unit(&self, g: &Geometry, index: usize) -> Unit {
        let Some((inner, outer)) = g.kept.split_last() else {
            return Unit { first: index, width: 1, at: 0, out: 0 };
        };
        let (row, column) = (index / self.across, index % self.across * self.width);
        let (at, out) = offset(outer, row);
        Unit {
            first: row * inner.size + column,
            width: self.width.min(inner.size - column),
            at: at + column * inner.stride,
            out: out + column * inner.out,
        }
    }

    fn range(&self, g: &Geometry, block: usize) -> Range<usize> {
        block * self.block..((block + 1) * self.block).min(g.count)
    }

    /// The minimum number of units per thread.
    pub fn grain(&self, g: &Geometry) -> usize {
        GRAIN.div_ceil(g.count.max(1).saturating_mul(self.width))
    }
}

/// Contexts or accumulators of any type whose alignment is at most that of `u64`.
pub struct Values {
    few: [u64; 2],
    many: Buffer<u64>,
    bytes: usize,
}

impl Values {
    /// Allocates `n` values of `bytes` each, zeroed.
    pub fn new(n: usize, bytes: usize) -> Result<Values, Error> {
        let words = (n * bytes).div_ceil(8);
        let many = if words > 2 { Buffer::zeroed(words)? } else { Buffer::Few(Vec::new()) };
        Ok(Values { few: [0; 2], many, bytes })
    }

    /// The address of value `i`.
    pub fn at(&mut self, i: usize) -> *mut u8 {
        let first: *mut u64 =
            if self.many.is_empty() { self.few.as_mut_ptr() } else { self.many.as_mut_ptr() };
        first.cast::<u8>().wrapping_add(i * self.bytes)
    }
}

/// A contiguous copy of strided elements.
#[repr(align(64))]
struct Copied([MaybeUninit<u8>; COPIED]);

/// Copies `n` elements of `bytes` each with stride `stride`, in elements.
///
/// # Safety
/// The elements must exist, and `to` must have capacity for them; the caller upholds this.
unsafe fn copy(bytes: usize, to: *mut u8, from: *const u8, n: usize, stride: usize) {
    unsafe fn each<W: Copy>(to: *mut u8, from: *const u8, n: usize, stride: usize) {
        let (to, from) = (to.cast::<W>(), from.cast::<W>());
        // SAFETY: as the caller guarantees; elements are aligned to their size.
        (0..n).for_each(|i| unsafe { to.add(i).write(*from.add(i * stride)) });
    }
    // SAFETY: as the caller guarantees.
    unsafe {
        match bytes {
            1 => each::<u8>(to, from, n, stride),
            2 => each::<u16>(to, from, n, stride),
            4 => each::<u32>(to, from, n, stride),
            8 => each::<u64>(to, from, n, stride),
            _ => each::<u128>(to, from, n, stride),
        }
    }
}

/// One pass over an input. Contexts are passed for the outputs of a unit, the first one first.
pub struct Pass<'a> {
    loops: &'a dyn Loops,
    sizes: Sizes,
    geometry: &'a Geometry,
    cut: &'a Cut,
    input: Lanes<'a, u8>,
}

impl<'a> Pass<'a> {
    /// # Safety
    /// `input` must have elements of the loops' type at all offsets of the geometry; the caller upholds this during the
    /// lifetime of the pass.
    pub unsafe fn new(
        loops: &'a dyn Loops,
        geometry: &'a Geometry,
        cut: &'a Cut,
        input: *const u8,
    ) -> Pass<'a> {
        // SAFETY: as the caller guarantees.
        let input = unsafe { Lanes::new(input.cast_mut()) };
        Pass { loops, sizes: loops.sizes(), geometry, cut, input }
    }

    /// The address of the element at an offset.
    fn element(&self, at: usize) -> *const u8 {
        self.input.as_ptr().wrapping_add(at * self.sizes.element)
    }

    /// The stride in the input between neighbouring outputs of a unit, in elements.
    fn apart(&self) -> usize {
        self.geometry.kept.last().map_or(0, |inner| inner.stride)
    }

    /// Copies the first element of each output of a unit, for contexts that are elements.
    ///
    /// # Safety
    /// `to` must have capacity for a context of each output of the unit; a context has size 0 or is an element.
    pub unsafe fn firsts(&self, unit: &Unit, to: *mut u8) {
        if self.sizes.context == 0 || self.geometry.count == 0 {
            return;
        }
        // SAFETY: the outputs of a unit have a constant stride in the input, and each has an element.
        unsafe { copy(self.sizes.element, to, self.element(unit.at), unit.width, self.apart()) };
    }

    /// Reduces one block of a unit.
    ///
    /// # Safety
    /// There must be a context and memory for an accumulator for each output of the unit.
    unsafe fn block(&self, unit: &Unit, block: usize, contexts: *const u8, accs: *mut u8) {
        let (g, range) = (self.geometry, self.cut.range(self.geometry, block));
        // SAFETY: unit and range are within the sizes of the view, whose elements the host guarantees.
        unsafe {
            self.loops.start(accs, unit.width);
            if self.cut.columnar {
                return self.columns(unit, self.apart(), range, contexts, accs);
            }
            if let [Dim { stride: 1, .. }] = g.reduced[..] {
                let at = self.element(unit.at + range.start);
                return self.loops.lines(contexts, at, range.len(), self.apart(), unit.width, accs);
            }
            for k in 0..unit.width {
                let (context, acc) = (contexts.add(k * self.sizes.context), accs.add(k * self.sizes.acc));
                self.row(unit.at + k * self.apart(), range.clone(), context, acc);
            }
        }
    }

    /// Reduces the elements in `range` of the reduced space into one output, whose first element is at offset `at`.
    ///
    /// # Safety
    /// As for [`Pass::block`].
    unsafe fn row(&self, at: usize, range: Range<usize>, context: *const u8, acc: *mut u8) {
        let element = self.sizes.element;
        let one = &[Dim { size: 1, stride: 1, out: 0 }];
        let dims = if self.geometry.reduced.is_empty() { one } else { &self.geometry.reduced[..] };
        let (inner, outer) = dims.split_last().unwrap_or((&one[0], &[]));
        let in_place = inner.stride == 1 && (outer.is_empty() || inner.size >= LONG);
        let mut copied = Copied([const { MaybeUninit::uninit() }; COPIED]);
        let (room, mut held) = (COPIED / element, 0);
        let mut next = range.start;
        while next < range.end {
            let i = next % inner.size;
            let mut n = (inner.size - i).min(range.end - next);
            let from = self.element(at + offset(outer, next / inner.size).0 + i * inner.stride);
            // SAFETY: the caller guarantees the elements; `room` is the capacity of `copied`.
            unsafe {
                if in_place {
                    self.loops.lines(context, from, n, 0, 1, acc);
                } else {
                    n = n.min(room - held);
                    let to = copied.0.as_mut_ptr().cast::<u8>();
                    copy(element, to.add(held * element), from, n, inner.stride);
                    held += n;
                    if held == room || next + n == range.end {
                        self.loops.lines(context, to, held, 0, 1, acc);
                        held = 0;
                    }
                }
            }
            next += n;
        }
    }

    /// Reduces neighbouring outputs, with stride `stride` in the input, over the elements in `range` of the reduced space.
    ///
    /// # Safety
    /// As for [`Pass::block`].
    unsafe fn columns(
        &self,
        unit: &Unit,
        stride: usize,
        range: Range<usize>,
        contexts: *const u8,
        accs: *mut u8,
    ) {
        let Sizes { element, context, acc, .. } = self.sizes;
        let mut copied = Copied([const { MaybeUninit::uninit() }; COPIED]);
        let room = COPIED / element / ROWS;
        let mut next = range.start;
        if let ([Dim { stride: down, .. }], 1) = (&self.geometry.reduced[..], stride) {
            let rows = range.len() / ROWS * ROWS;
            // SAFETY: the caller guarantees elements, contexts and accumulators.
            unsafe {
                let at = self.element(unit.at + next * down);
                self.loops.grid(contexts, at, *down, rows, unit.width, accs);
            }
            next += rows;
        }
        while next < range.end {
            let n = ROWS.min(range.end - next);
            let mut rows = [std::ptr::null(); ROWS];
            for (k, row) in rows[..n].iter_mut().enumerate() {
                *row = self.element(unit.at + offset(&self.geometry.reduced, next + k).0);
            }
            next += n;
            if stride == 1 {
                // SAFETY: the caller guarantees elements, contexts and accumulators.
                unsafe { self.loops.rows(contexts, &rows[..n], unit.width, accs) };
                continue;
            }
            for first in (0..unit.width).step_by(room) {
                let width = room.min(unit.width - first);
                let mut dense = [std::ptr::null(); ROWS];
                for (k, (row, dense)) in rows[..n].iter().zip(&mut dense).enumerate() {
                    // SAFETY: the caller guarantees the elements; `copied` has capacity for `ROWS` rows.
                    unsafe {
                        let to = copied.0.as_mut_ptr().cast::<u8>().add(k * room * element);
                        copy(element, to, row.add(first * stride * element), width, stride);
                        *dense = to.cast_const();
                    }
                }
                // SAFETY: as above, for the outputs after `first`.
                unsafe {
                    let (contexts, accs) = (contexts.add(first * context), accs.add(first * acc));
                    self.loops.rows(contexts, &dense[..n], width, accs);
                }
            }
        }
    }

    /// Reduces all blocks of a unit, in order.
    ///
    /// # Safety
    /// As for [`Pass::block`]; `part` must have capacity for the same number of accumulators.
    pub unsafe fn unit(&self, unit: &Unit, contexts: *const u8, accs: *mut u8, part: *mut u8) {
        // SAFETY: as the caller guarantees.
        unsafe {
            if self.cut.blocks == 0 {
                return self.loops.start(accs, unit.width);
            }
            self.block(unit, 0, contexts, accs);
            for block in 1..self.cut.blocks {
                self.block(unit, block, contexts, part);
                self.loops.merge(accs, part, unit.width);
            }
        }
    }

    /// Reduces all units in parallel blocks, for few units. The accumulators are the first values of the result.
    ///
    /// # Safety
    /// There must be a context for each output.
    pub unsafe fn blocks(&self, contexts: *const u8) -> Result<Values, Error> {
        let (g, cut, sizes) = (self.geometry, self.cut, self.sizes);
        let mut parts = Values::new(g.outputs * cut.blocks.max(1), sizes.acc)?;
        // SAFETY: the addresses are used within `parts` and the contexts, which outlive the loop.
        let (to, contexts) = unsafe { (Lanes::new(parts.at(0)), Lanes::new(contexts.cast_mut())) };
        parallel_for(cut.units * cut.blocks, GRAIN.div_ceil(cut.block * cut.width), |tasks| {
            for task in tasks {
                let (unit, block) = (cut.unit(g, task % cut.units), task / cut.units);
                let accs = to.as_ptr().wrapping_add((block * g.outputs + unit.first) * sizes.acc);
                let contexts = contexts.as_ptr().wrapping_add(unit.first * sizes.context);
                // SAFETY: each task has its own block and outputs.
                unsafe { self.block(&unit, block, contexts, accs) };
            }
        })?;
        for block in 1..cut.blocks {
            // SAFETY: `parts` holds the results of each block.
            unsafe { self.loops.merge(parts.at(0), parts.at(block * g.outputs), g.outputs) };
        }
        Ok(parts)
    }
}
