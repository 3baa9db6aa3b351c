//! Products of bf16 by AMX, the tile unit of some x86-64 processors, or by the dot products of AVX-512 BF16. Both
//! accumulate in f32.
//!
//! Both operands are packed completely, then blocks of the result are computed from the panels. The accumulation order of a
//! block depends on its position alone. Both units flush subnormals to 0.

#[cfg(test)]
mod tests;

use super::product::{Batch, Matrix, Tile};
use super::widen::finish;
use keyway_cpu_loops::parallel_try;
use keyway_cpu_loops::tiles::{Block, Native, Operand, Rows, SIDE, STEP, Source, Unit, pack};
use keyway_sdk::author::{Error, Lanes, Scratch};
use keyway_sdk::half::bf16;

/// The maximum number of rows and columns of a block of the result, so that its panels and accumulators stay in L2.
const BLOCK: usize = 256;
/// Steps of 32 along the reduction dimension after which accumulators are stored, so that the panels of a block stay in
/// L2.
const DEPTH: usize = 32;
/// Panels that are packed per work item.
const PACKED: usize = 4;
/// The number of blocks above which smaller blocks do not balance the threads better.
const ENOUGH_BLOCKS: usize = 16;
/// The minimum number of multiplications per work item.
const WORK: usize = 1 << 24;
/// The number of multiplications below which other kernels are faster.
const LEAST: usize = 1 << 12;

/// Computes the products; `None` if the processor has no unit for them, or they are too small for it.
///
/// # Safety
/// All elements described by the sizes and strides of the products must exist, and those of `out` must be uniquely
/// owned; the caller upholds this.
pub unsafe fn multiply(all: &Batch<bf16>) -> Option<Result<(), Error>> {
    let Tile { rows, columns, inner, .. } = all.first;
    let worth = inner > 0 && rows.saturating_mul(columns).saturating_mul(inner) >= LEAST;
    let unit = if worth { Native::find()? } else { return None };
    if !unit.pays(rows, columns, inner) {
        return None;
    }
    // SAFETY: the caller guarantees the elements.
    Some(unsafe { multiply_by(unit, all) })
}

/// # Safety
/// As for [`multiply`]; the reduction dimension is nonempty.
unsafe fn multiply_by<U: Unit>(unit: U, all: &Batch<bf16>) -> Result<(), Error> {
    let Tile { rows, columns, inner, .. } = all.first;
    if rows > BLOCK || columns > BLOCK {
        // SAFETY: the caller guarantees the elements.
        return (0..all.count).try_for_each(|i| unsafe { one_product(unit, &all.only(i)) });
    }
    let size = Size::of(&all.first);
    let grain = (WORK / (rows * columns * inner)).max(1);
    parallel_try(all.count, grain, |products| {
        // SAFETY: packing writes each element of the panels, and the first step writes each sum, before they are read.
        let (mut left, mut right, mut sums) =
            unsafe { (size.left()?, size.right()?, size.sums(rows, columns)?) };
        unit.with_tiles(|| {
            for i in products {
                let product = all.product(i);
                // SAFETY: the caller guarantees the elements; the scratch memory is of the product's size.
                unsafe {
                    let left = size.rows::<U>(left.as_mut_ptr(), &product);
                    pack_right::<U>(right.as_mut_ptr(), &product);
                    let end = write(&product);
                    let sums = Sums::of(&mut sums, size.steps, columns);
                    block(unit, left, right.as_ptr(), sums, size.steps, (rows, columns), end);
                }
            }
        });
        Ok(())
    })
}

/// Panels of a product.
#[derive(Clone, Copy)]
struct Size {
    /// The number of panels of rows and of columns.
    down: usize,
    across: usize,
    /// Steps of the reduction dimension in each panel.
    steps: usize,
    /// Whether the left operand is packed instead of read in place.
    packed: bool,
}

impl Size {
    fn of(product: &Tile<bf16>) -> Size {
        let Tile { rows, columns, inner, a, .. } = *product;
        // Rows with a larger stride would conflict in L1.
        let near = a.column == 1 && a.row <= BLOCK;
        Size {
            down: rows.div_ceil(SIDE),
            across: columns.div_ceil(SIDE),
            steps: inner.div_ceil(SIDE),
            packed: !near || rows % SIDE != 0 || inner % SIDE != 0,
        }
    }

    /// The rows of a product, packed into `memory` if necessary, and the distance to the next [`SIDE`] rows.
    ///
    /// # Safety
    /// The product's elements must exist, and `memory` must be from [`Size::left`].
    unsafe fn rows<U: Unit>(self, memory: *mut u16, product: &Tile<bf16>) -> (Rows, usize) {
        if !self.packed {
            return (Rows::dense(product.a.data.cast(), product.a.row), SIDE * product.a.row);
        }
        // SAFETY: as the caller guarantees.
        unsafe { pack_left::<U>(memory, product) };
        (Rows::packed(memory), self.steps * STEP)
    }

    /// Allocates memory for the panels of rows.
    ///
    /// # Safety
    /// It must be written before it is read.
    unsafe fn left(self) -> Result<Scratch<u16>, Error> {
        // SAFETY: as the caller guarantees.
        unsafe { Scratch::unwritten(if self.packed { self.down * self.steps * STEP } else { 0 }) }
    }

    /// Allocates memory for the panels of columns.
    ///
    /// # Safety
    /// It must be written before it is read.
    unsafe fn right(self) -> Result<Scratch<u16>, Error> {
        // SAFETY: as the caller guarantees.
        unsafe { Scratch::unwritten(self.across * self.steps * STEP) }
    }

    /// Allocates memory for the accumulators of a block; for one panel of rows if they are never stored between steps.
    ///
    /// # Safety
    /// It must be written before it is read.
    unsafe fn sums(self, rows: usize, columns: usize) -> Result<Scratch<f32>, Error> {
        let rows = if self.steps > DEPTH { rows.next_multiple_of(SIDE) } else { SIDE };
        // SAFETY: as the caller guarantees.
        unsafe { Scratch::unwritten(rows * columns.next_multiple_of(SIDE)) }
    }
}

/// The address and row stride of a block's accumulators.
#[derive(Clone, Copy)]
struct Sums {
    at: *mut f32,
    /// The row stride in elements.
    row: usize,
    /// Whether the memory has the accumulators of all rows, not only of [`SIDE`].
    all: bool,
}

impl Sums {
    /// The accumulators in memory from [`Size::sums`].
    fn of(memory: &mut Scratch<f32>, steps: usize, columns: usize) -> Sums {
        Sums { at: memory.as_mut_ptr(), row: columns.next_multiple_of(SIDE), all: steps > DEPTH }
    }
}

/// Returns the function that writes [`SIDE`] rows of a product from their accumulators.
fn write(part: &Tile<bf16>) -> impl Fn(usize, *const f32, usize) {
    // SAFETY: the callers guarantee the elements of the part, which contains the rows, and [`block`] the sums.
    |first, sums, width| unsafe { finish(&part.part((first, 0), (SIDE, part.columns)), sums, width) }
}

/// The number of rows and columns of a block, which depends on the sizes alone.
fn block_sizes(rows: usize, columns: usize, inner: usize) -> (usize, usize) {
    let (mut tall, mut wide) = (BLOCK, BLOCK);
    while rows.div_ceil(tall) * columns.div_ceil(wide) < ENOUGH_BLOCKS && tall * wide * inner >= 2 * WORK {
        if tall >= wide && rows > SIDE {
            tall /= 2;
        } else {
            wide /= 2;
        }
        if tall < 2 * SIDE || wide < 2 * SIDE {
            break;
        }
    }
    (tall, wide)
}

/// A product of several blocks: each operand is packed once, and all blocks read the same panels.
///
/// # Safety
/// As for [`multiply`]; the reduction dimension is nonempty, and the batch has one product.
unsafe fn one_product<U: Unit>(unit: U, whole: &Batch<bf16>) -> Result<(), Error> {
    let Tile { rows, columns, inner, .. } = whole.first;
    let size = Size { packed: true, ..Size::of(&whole.first) };
    // SAFETY: the panels are packed below before the blocks read them.
    let (mut left, mut right) = unsafe { (size.left()?, size.right()?) };
    // SAFETY: both are used within this call, and the work items write disjoint panels.
    let (to_left, to_right) = unsafe { (Lanes::new(left.as_mut_ptr()), Lanes::new(right.as_mut_ptr())) };
    let (piece, chunk) = (PACKED * SIDE, PACKED * size.steps * STEP);
    let lefts = rows.div_ceil(piece);
    let grain = (WORK / 64 / (piece * inner)).max(1);
    parallel_try(lefts + columns.div_ceil(piece), grain, |pieces| {
        for i in pieces {
            // SAFETY: the caller guarantees the elements; each work item has its own panels.
            unsafe {
                if i < lefts {
                    let part = whole.first.part((i * piece, 0), (piece, columns));
                    pack_left::<U>(to_left.as_ptr().add(i * chunk), &part);
                } else {
                    let part = whole.first.part((0, (i - lefts) * piece), (rows, piece));
                    pack_right::<U>(to_right.as_ptr().add((i - lefts) * chunk), &part);
                }
            }
        }
        Ok(())
    })?;
    let (tall, wide) = block_sizes(rows, columns, inner);
    let (down, across) = (rows.div_ceil(tall), columns.div_ceil(wide));
    let grain = (WORK / (tall * wide * inner)).max(1);
    parallel_try(down * across, grain, |blocks| {
        // SAFETY: the first step of a block writes its sums before they are read.
        let mut sums = unsafe { size.sums(tall, wide) }?;
        unit.with_tiles(|| {
            for i in blocks {
                let (row, column) = (i % down * tall, i / down * wide);
                let part = whole.first.part((row, column), (tall, wide));
                let panel = size.steps * STEP;
                // SAFETY: the caller guarantees the elements; the panels are packed, and each block of the result is
                // written by one thread.
                unsafe {
                    let left = (Rows::packed(to_left.as_ptr().add(row / SIDE * panel)), panel);
                    let right = to_right.as_ptr().add(column / SIDE * panel);
                    let (sizes, end) = ((part.rows, part.columns), write(&part));
                    let sums = Sums::of(&mut sums, size.steps, part.columns);
                    block(unit, left, right, sums, size.steps, sizes, end);
                }
            }
        });
        Ok(())
    })
}

/// # Safety
/// As for [`multiply`]; `to` must have capacity for the panels.
unsafe fn pack_left<U: Unit>(to: *mut u16, product: &Tile<bf16>) {
    let Matrix { data, row, column } = product.a;
    // SAFETY: as the caller guarantees; a unit with `VECTORS` exists only on processors with the features.
    unsafe {
        let from = Source { data: data.cast(), row, column };
        match U::VECTORS {
            true => pack::<true>(to, from, (product.rows, product.inner), Operand::Left),
            false => pack::<false>(to, from, (product.rows, product.inner), Operand::Left),
        }
    }
}

/// # Safety
/// As for [`pack_left`].
unsafe fn pack_right<U: Unit>(to: *mut u16, product: &Tile<bf16>) {
    let Matrix { data, row, column } = product.b.transposed();
    // SAFETY: as in `pack_left`.
    unsafe {
        let from = Source { data: data.cast(), row, column };
        match U::VECTORS {
            true => pack::<true>(to, from, (product.columns, product.inner), Operand::Right),
            false => pack::<false>(to, from, (product.columns, product.inner), Operand::Right),
        }
    }
}

/// Computes the sums of a product of at most [`BLOCK`] rows and columns, in rows with stride `step`; `None` for larger
/// products.
///
/// # Safety
/// All elements described by the sizes and strides of the operands must exist, and an element for each sum, uniquely owned; the
/// caller upholds this.
pub unsafe fn sums(
    unit: Native,
    product: &Tile<bf16>,
    to: *mut f32,
    step: usize,
) -> Option<Result<(), Error>> {
    if product.rows > BLOCK || product.columns > BLOCK || product.inner == 0 {
        return None;
    }
    // SAFETY: as the caller guarantees.
    Some(unsafe { sums_by(unit, product, to, step) })
}

/// # Safety
/// As for [`sums`]; the reduction dimension is nonempty.
unsafe fn sums_by<U: Unit>(unit: U, product: &Tile<bf16>, to: *mut f32, step: usize) -> Result<(), Error> {
    let (rows, columns, size) = (product.rows, product.columns, Size::of(product));
    let whole = rows % SIDE == 0 && columns % SIDE == 0;
    // SAFETY: packing writes each element of the panels, and the first step each sum, before they are read.
    let (mut left, mut right, mut sums) = unsafe {
        (size.left()?, size.right()?, if whole { Scratch::zeroed(0)? } else { size.sums(rows, columns)? })
    };
    // SAFETY: the caller guarantees operands and sums; the scratch memory has the product's size.
    unit.with_tiles(|| unsafe {
        let left = size.rows::<U>(left.as_mut_ptr(), product);
        pack_right::<U>(right.as_mut_ptr(), product);
        if whole {
            let sums = Sums { at: to, row: step, all: true };
            return block(unit, left, right.as_ptr(), sums, size.steps, (rows, columns), |_, _, _| {});
        }
        let sums = Sums::of(&mut sums, size.steps, columns);
        block(unit, left, right.as_ptr(), sums, size.steps, (rows, columns), |first, sums, width| {
            for r in 0..SIDE.min(rows - first) {
                to.add((first + r) * step).copy_from_nonoverlapping(sums.add(r * width), columns);
            }
        });
    });
    Ok(())
}

/// Computes one block of the result from its panels. `left` has the panels of its first rows, and `next` is the stride to the
/// next ones. `end` is called with the first of [`SIDE`] rows, their sums, and the row stride of the sums.
///
/// # Safety
/// As for [`multiply`]; the panels must be packed, the sums must have the layout of [`Size::sums`], and this thread must be
/// within [`Unit::with_tiles`].
unsafe fn block<U: Unit>(
    unit: U,
    (left, next): (Rows, usize),
    right: *const u16,
    sums: Sums,
    steps: usize,
    (rows, columns): (usize, usize),
    end: impl Fn(usize, *const f32, usize),
) {
    let (down, across) = (rows.div_ceil(SIDE), columns.div_ceil(SIDE));
    for begin in (0..steps).step_by(DEPTH) {
        let some = DEPTH.min(steps - begin);
        for i in 0..down {
            let left = Rows { data: left.data.wrapping_add(i * next), ..left }.at(begin);
            // SAFETY: the caller guarantees panels and sums; the rows of `finish` are within the part.
            unsafe {
                let first = if sums.all { sums.at.add(i * SIDE * sums.row) } else { sums.at };
                for j in 0..across {
                    let right = right.add((j * steps + begin) * STEP);
                    // Each step prefetches an eighth of the next panel of rows.
                    let soon = left.data.wrapping_add(next + j * (STEP / 8));
                    let (to, add) = (first.add(j * SIDE), begin > 0);
                    unit.block(&Block { steps: some, left, right, sums: to, row: sums.row, add, soon });
                }
                if begin + some == steps {
                    end(i * SIDE, first, sums.row);
                }
            }
        }
    }
}
