//! The strided iteration of element-wise kernels, compiled once for all functions.
//!
//! Work is split into blocks, rectangles of the two innermost dimensions. An operand with unit stride along a block's rows
//! is passed to the function in place, whether output or input. An operand with stride 0 along the rows is passed as a
//! chunk of copies. Any other operand is copied into a dense block that stays in L1: a repeated value once while it is
//! unchanged, a transposed operand several columns at a time, so that each of its cache lines is read once.

use crate::cost::Cost;
use crate::inner_loop::{Chunk, InnerLoop, Repeated};
use crate::operand::Addresses;
use crate::operand::{OPERANDS, Operand, Operands, PerOperand, repeat, same};
use crate::order::{Block, BlockIterator, Dims, cross};
use crate::pack::{Rectangle, pack, unpack};
use keyway_sdk::author::{Error, parallel_for};
use std::mem::MaybeUninit;

/// The size of a copied block in bytes.
const BLOCK: usize = 8 * 1024;
/// The size of all copied blocks in bytes. The block of a transposed operand uses all of the remaining arena, and is about
/// square: the longer the runs that are read on both sides, the less the memory latency at the start of each run matters.
const ARENA: usize = OPERANDS * BLOCK;
/// The minimum row length for a function call per row of a block; shorter rows are passed as whole blocks.
const LONG: usize = 64;
/// The maximum number of elements of a block that needs no copies.
const DIRECT: usize = 16 * 1024;
/// The alignment of blocks.
const CACHE_LINE: usize = 64;

#[cold]
#[inline(never)]
fn wrong_shape(expected: &[i64], got: &[i64]) -> Error {
    Error::InvalidArgument {
        argument: "input",
        expected: format!("the output's shape {expected:?}"),
        got: format!("{got:?}"),
    }
}

/// As [`apply`](crate::fast_path::apply), for operands of any strides; `range` is the output's.
// Not inlined: blocks use pages of the stack, which the contiguous fast path must not touch.
#[inline(never)]
pub(crate) fn by_blocks(
    cost: Cost,
    operands: &[Operand<'_>],
    range: (usize, usize),
    inner: InnerLoop<'_>,
) -> Result<(), Error> {
    let Some((out, ins)) = operands.split_first() else { return Ok(()) };
    let Some(dims) = dims(*out, ins)? else { return Ok(()) };
    let mut apart = [true; OPERANDS];
    for (k, input) in ins.iter().enumerate() {
        let exact = inner.lanes() > 0
            && input.coincides(out)
            && dims.iter().all(|d| d.size == 1 || d.strides[k + 1] == d.strides[0]);
        apart[k + 1] = exact || !input.overlaps(range);
    }
    let addresses = &Operands::new(operands);
    let blocks = Blocks::new(dims, addresses, operands.len(), apart, cost, inner.lanes());
    parallel_for(blocks.blocks.len(), cost.grain().div_ceil(blocks.blocks.block_len()), |part| {
        let mut arena = Arena::new();
        blocks.blocks.each(part, |block| {
            // SAFETY: the iterator's offsets are those of elements, whose existence the views guarantee.
            unsafe { blocks.run(&block, &mut arena, inner) }
        });
    })
}

/// The dimensions to iterate over; `None` if there are no elements.
fn dims(out: Operand<'_>, ins: &[Operand<'_>]) -> Result<Option<Dims>, Error> {
    let mut strides: [Option<&[i64]>; OPERANDS] = [None; OPERANDS];
    strides[0] = Some(out.strides());
    let mut contiguous = out.is_contiguous();
    for (slot, input) in strides[1..].iter_mut().zip(ins) {
        if same(input.sizes(), out.sizes()) {
            *slot = Some(input.strides());
            contiguous &= input.is_contiguous();
        } else if input.sizes().iter().any(|n| *n != 1) {
            return Err(wrong_shape(out.sizes(), input.sizes()));
        }
    }
    if out.numel() == 0 {
        return Ok(None);
    }
    if contiguous {
        return Ok(Some(Dims::one(out.numel(), strides.map(|s| s.is_some() as usize))));
    }
    let mut dims = Dims::collapse(out.sizes(), &strides);
    cross(&mut dims);
    Ok(Some(dims))
}

/// Memory for copied blocks and for chunks of repeated elements, with a description of its current content.
struct Arena {
    blocks: MaybeUninit<Bytes>,
    chunks: [Chunk; OPERANDS],
    held: [Held; OPERANDS],
}

/// The address, rows and columns of the input block that was copied last.
type Held = (*const u8, usize, usize);

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bytes([u8; ARENA]);

impl Arena {
    #[inline(always)]
    fn new() -> Self {
        Arena {
            blocks: MaybeUninit::uninit(),
            chunks: [const { MaybeUninit::uninit() }; OPERANDS],
            held: [(std::ptr::null(), 0, 0); OPERANDS],
        }
    }
}

/// A kernel's operands, split into blocks.
struct Blocks<'a> {
    blocks: BlockIterator,
    addresses: &'a Operands,
    count: usize,
    /// The operands that are copied into blocks.
    copied: [bool; OPERANDS],
    /// The offset of each operand's block in the arena.
    places: PerOperand,
    /// The size in bytes of each block's part of the arena.
    share: usize,
    /// The inputs with stride 0 along a row.
    repeated: Repeated,
    /// Whether the function is called once per block: each operand is dense in it.
    whole: bool,
}

impl<'a> Blocks<'a> {
    /// `apart` is the mask of inputs that do not overlap the output.
    fn new(
        dims: Dims,
        on: &'a Operands,
        count: usize,
        apart: [bool; OPERANDS],
        cost: Cost,
        lanes: usize,
    ) -> Self {
        let mut iterator = BlockIterator::new(dims);
        let (rows, columns) = (iterator.rows, iterator.columns);
        let (mut copied, mut across, mut widest) = (apart.map(|apart| !apart), false, 0);
        let mut repeated = 0;
        for (k, copied) in copied.iter_mut().enumerate().take(count) {
            let (row, column) = (rows.strides[k], columns.strides[k]);
            if k > 0 && column == 0 && columns.size >= LONG && lanes > 0 && !*copied {
                repeated |= 1 << k;
                continue;
            }
            let gaps = columns.size < LONG && rows.size > 1 && row != columns.size;
            *copied |= column != 1 || gaps;
            across |= *copied && row == 1 && column > 1;
            widest = widest.max(if *copied { on.bytes[k] } else { 0 });
        }
        let (mut places, blocks) = ([0; OPERANDS], copied[..count].iter().filter(|c| **c).count());
        let share = ARENA / blocks.max(1) / CACHE_LINE * CACHE_LINE;
        for k in 1..count {
            places[k] = places[k - 1] + if copied[k - 1] { share } else { 0 };
        }
        let bytes = if across { share } else { BLOCK };
        let most = bytes.checked_div(widest).unwrap_or(DIRECT.min(cost.grain()));
        let narrow = if across { most.isqrt().next_power_of_two().max(LONG) } else { most };
        let height = rows.size.min((most / narrow.min(columns.size)).max(1));
        let width = if across { most / height } else { narrow };
        iterator.cut(height, width.min(columns.size));
        if !across && (1..count).any(|k| copied[k] && rows.strides[k] == 0) {
            iterator.go_down();
        }
        Blocks {
            blocks: iterator,
            addresses: on,
            count,
            copied,
            places,
            share,
            repeated,
            whole: columns.size < LONG || copied[..count].iter().all(|c| *c),
        }
    }

    /// # Safety
    /// Each operand must have the block's elements; views uphold this.
    unsafe fn run(&self, block: &Block, arena: &mut Arena, inner: InnerLoop<'_>) {
        let (rows, columns) = (block.rows, block.columns);
        let from = self.addresses.at(block.at);
        let (mut at, mut steps) = (from, [0; OPERANDS]);
        // Taken once: another borrow of the arena would invalidate the addresses.
        let blocks = (&raw mut arena.blocks).cast::<u8>();
        let chunks = (&raw mut arena.chunks).cast::<Chunk>();
        let held = &mut arena.held;
        let rectangle = |k: usize| Rectangle {
            rows,
            columns,
            row: self.blocks.rows.strides[k],
            column: self.blocks.columns.strides[k],
        };
        for k in 0..self.count {
            let bytes = self.addresses.bytes[k];
            if self.repeated >> k & 1 == 1 {
                at[k] = chunks.wrapping_add(k).cast();
                continue;
            }
            if !self.copied[k] {
                steps[k] = self.blocks.rows.strides[k] * bytes;
                continue;
            }
            steps[k] = columns * bytes;
            at[k] = blocks.wrapping_add(self.places[k]);
            let (held, now) = (&mut held[k], (from[k].cast_const(), rows, columns));
            if k > 0 && (held.0 != now.0 || held.1 < rows || held.2 != columns) {
                // SAFETY: the caller guarantees the elements; a block has the same capacity.
                unsafe { pack(bytes, at[k], from[k], rectangle(k)) };
                *held = now;
            } else if k == 0 && held.1 == 0 {
                // The function may borrow its output as a slice.
                // SAFETY: this part of the arena belongs to the block.
                unsafe { at[0].write_bytes(0, self.share.min(self.blocks.block_len() * bytes)) };
                *held = now;
            }
        }
        // SAFETY: each operand is dense along a row, or in the block, or repeated; an input that overlaps the output was
        // copied, or is the output and the inner loop has chunks.
        unsafe {
            if self.whole {
                inner.run(at, 0, rows * columns);
            } else {
                let ([out, a, b, c], [to, x, y, z]) = (at, steps);
                for r in 0..rows {
                    let row = |address: *mut u8, step: usize| address.wrapping_add(r * step);
                    if self.repeated != 0 {
                        self.refill(from, r, (chunks, held), inner.lanes());
                    }
                    inner.run([row(out, to), row(a, x), row(b, y), row(c, z)], self.repeated, columns);
                }
            }
            if self.copied[0] {
                unpack(self.addresses.bytes[0], from[0], at[0], rectangle(0));
            }
        }
    }

    /// Fills the chunks of operands that repeat one element along row `r` of the block at `from`.
    ///
    /// # Safety
    /// As for [`Blocks::run`].
    unsafe fn refill(
        &self,
        from: Addresses,
        r: usize,
        (chunks, held): (*mut Chunk, &mut [Held; OPERANDS]),
        lanes: usize,
    ) {
        for k in (1..self.count).filter(|k| self.repeated >> k & 1 == 1) {
            let bytes = self.addresses.bytes[k];
            let element = from[k].wrapping_add(r * self.blocks.rows.strides[k] * bytes).cast_const();
            if held[k].0 != element {
                // SAFETY: the caller guarantees the element; a chunk has capacity for the elements of `lanes`.
                unsafe { repeat(bytes, chunks.wrapping_add(k).cast(), element, lanes) };
                held[k] = (element, 1, lanes);
            }
        }
    }
}
