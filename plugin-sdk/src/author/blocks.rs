//! The walk of elementwise kernels over their operands, compiled once for all functions.
//!
//! Work is cut into blocks, rectangles of the two innermost dimensions. An operand that is at unit stride along a
//! block's rows is given to the function where it lies. Any other is copied into a dense block that stays in the
//! first-level cache: a repeated value once for as long as it stays the same, a transposed operand some columns at a
//! time, so that each cache line of it is read once. So is an input which is the output, since the function is
//! vectorised without a second loop for memory that overlaps.

use super::elementwise::Cost;
use super::error::Error;
use super::host::parallel_for;
use super::loops::{Addresses, Leaf};
use super::pack::{Rectangle, pack, unpack};
use super::plan::{Block, Dims, OPERANDS, PerOperand, Walk, collapse, cross};
use super::tensor::entries;
use crate::abi::codes::tensor_flag;
use crate::abi::tensor::RawTensor;
use std::mem::MaybeUninit;

/// Bytes of a copied block.
const BLOCK: usize = 8 * 1024;
/// Columns of a block of which an operand lies across: with them a block has rows of two cache lines, whatever
/// the size of an element.
const COLUMNS: usize = 64;
/// The function is called for each row of a block if the rows are at least that long, else for whole blocks.
const LONG: usize = 64;
/// The most elements of a block that needs no copies.
const DIRECT: usize = 16 * 1024;

/// An operand of a walk: a tensor, and the size of its elements.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) tensor: &'a RawTensor,
    pub(crate) bytes: usize,
}

impl<'a> Operand<'a> {
    fn sizes(&self) -> &'a [i64] {
        // SAFETY: there are `ndim` sizes while the tensor lives; the host upholds this.
        unsafe { entries(self.tensor.sizes, self.tensor.ndim as usize) }
    }

    fn strides(&self) -> &'a [i64] {
        // SAFETY: as above, since a view is of strided tensors only.
        unsafe { entries(self.tensor.strides, self.tensor.ndim as usize) }
    }

    fn numel(&self) -> usize {
        self.tensor.numel.max(0) as usize
    }

    fn is_contiguous(&self) -> bool {
        self.tensor.flags & tensor_flag::CONTIGUOUS != 0
    }

    /// The bytes from the first element to the last.
    fn range(&self) -> (usize, usize) {
        let last = if self.is_contiguous() {
            self.numel().saturating_sub(1)
        } else {
            self.sizes().iter().zip(self.strides()).map(|(n, s)| (n - 1).max(0) as usize * *s as usize).sum()
        };
        let begin = self.tensor.data as usize;
        (begin, begin + if self.numel() == 0 { 0 } else { (last + 1) * self.bytes })
    }

    fn meets(&self, other: (usize, usize)) -> bool {
        let own = self.range();
        own.0 < other.1 && other.0 < own.1
    }
}

#[cold]
#[inline(never)]
fn wrong_shape(expected: &[i64], got: &[i64]) -> Error {
    Error::InvalidArgument {
        argument: "input",
        expected: format!("the output's shape {expected:?}"),
        got: format!("{got:?}"),
    }
}

/// `a == b`, without the call of `memcmp` that costs more than a few sizes are worth.
#[inline(always)]
fn same(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// The addresses and element sizes of all operands, for all threads.
struct Operands {
    data: Addresses,
    bytes: PerOperand,
}

// SAFETY: the addresses are used for disjoint parts of the output, and for inputs that nobody writes
// except an input that is exactly the output, of which a thread reads the part that it writes.
unsafe impl Sync for Operands {}

// Written out operand by operand: as loops they would be vectorised, which takes longer for so few.
impl Operands {
    fn new(operands: &[Operand<'_>]) -> Self {
        let data = |k: usize| operands.get(k).map_or(std::ptr::null_mut(), |o| o.tensor.data.cast());
        let bytes = |k: usize| operands.get(k).map_or(0, |o| o.bytes);
        Operands {
            data: [data(0), data(1), data(2), data(3)],
            bytes: [bytes(0), bytes(1), bytes(2), bytes(3)],
        }
    }

    /// The addresses of the elements at these offsets. That of an operand which is not there stays null.
    fn at(&self, offsets: PerOperand) -> Addresses {
        let at = |k: usize| self.data[k].wrapping_add(offsets[k] * self.bytes[k]);
        [at(0), at(1), at(2), at(3)]
    }
}

/// Applies `leaf` over all operands; the first is the output. An input of one element stands for any shape.
pub(crate) fn apply(cost: Cost, operands: &[Operand<'_>], leaf: Leaf<'_>) -> Result<(), Error> {
    let Some((out, ins)) = operands.split_first() else { return Ok(()) };
    let range = out.range();
    let addresses = &Operands::new(operands);
    if out.is_contiguous()
        && ins.iter().all(|i| i.is_contiguous() && same(i.sizes(), out.sizes()) && !i.meets(range))
    {
        return parallel_for(out.numel(), cost.grain(), |part| {
            // SAFETY: contiguous operands have `numel` elements in a row, and no input meets the output.
            unsafe { leaf.run(addresses.at([part.start; OPERANDS]), part.len()) }
        });
    }
    let Some(dims) = dims(*out, ins)? else { return Ok(()) };
    let mut copied = [false; OPERANDS];
    copied.iter_mut().skip(1).zip(ins).for_each(|(copied, i)| *copied = i.meets(range));
    let blocks = Blocks::new(dims, addresses, operands.len(), copied, cost);
    parallel_for(blocks.walk.len(), cost.grain().div_ceil(blocks.walk.block_len()), |part| {
        let mut room = Room::new();
        blocks.walk.each(part, |block| {
            // SAFETY: the walk's offsets are those of elements that views guarantee.
            unsafe { blocks.run(&block, &mut room, leaf) }
        });
    })
}

/// The dimensions to walk; none if there are no elements.
fn dims(out: Operand<'_>, ins: &[Operand<'_>]) -> Result<Option<Dims>, Error> {
    let mut strides: [Option<&[i64]>; OPERANDS] = [None; OPERANDS];
    strides[0] = Some(out.strides());
    let mut straight = out.is_contiguous();
    for (slot, input) in strides[1..].iter_mut().zip(ins) {
        if same(input.sizes(), out.sizes()) {
            *slot = Some(input.strides());
            straight &= input.is_contiguous();
        } else if input.sizes().iter().any(|n| *n != 1) {
            return Err(wrong_shape(out.sizes(), input.sizes()));
        }
    }
    if out.numel() == 0 {
        return Ok(None);
    }
    if straight {
        return Ok(Some(Dims::one(out.numel(), strides.map(|s| s.is_some() as usize))));
    }
    let mut dims = collapse(out.sizes(), &strides);
    cross(&mut dims);
    Ok(Some(dims))
}

/// Room for a copied block of each operand, and what is in it.
struct Room {
    blocks: [MaybeUninit<Bytes>; OPERANDS],
    /// For each input the address, rows and columns of the block that was copied last.
    held: [(*const u8, usize, usize); OPERANDS],
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bytes([u8; BLOCK]);

impl Room {
    #[inline(always)]
    fn new() -> Self {
        Room {
            blocks: [const { MaybeUninit::uninit() }; OPERANDS],
            held: [(std::ptr::null(), 0, 0); OPERANDS],
        }
    }
}

/// A walk by blocks.
struct Blocks<'a> {
    walk: Walk,
    addresses: &'a Operands,
    count: usize,
    /// The operands that are copied into blocks.
    copied: [bool; OPERANDS],
    /// Whether the function takes a block at once: each operand is dense in it.
    whole: bool,
}

impl<'a> Blocks<'a> {
    fn new(dims: Dims, on: &'a Operands, count: usize, copied: [bool; OPERANDS], cost: Cost) -> Self {
        let mut walk = Walk::new(dims);
        let (rows, columns) = (walk.rows, walk.columns);
        let (mut copied, mut across, mut widest) = (copied, false, 0);
        for (k, copied) in copied.iter_mut().enumerate().take(count) {
            let (row, column) = (rows.strides[k], columns.strides[k]);
            let gaps = columns.size < LONG && rows.size > 1 && row != columns.size;
            *copied |= column != 1 || gaps;
            across |= *copied && row == 1 && column > 1;
            widest = widest.max(if *copied { on.bytes[k] } else { 0 });
        }
        let most = BLOCK.checked_div(widest).unwrap_or(DIRECT.min(cost.grain()));
        let narrow = if across { COLUMNS } else { most };
        let height = rows.size.min((most / narrow.min(columns.size)).max(1));
        let width = if across { most / height } else { narrow };
        walk.cut(height, width.min(columns.size));
        Blocks {
            walk,
            addresses: on,
            count,
            copied,
            whole: columns.size < LONG || copied[..count].iter().all(|c| *c),
        }
    }

    /// # Safety
    /// Each operand must have the block's elements; views uphold this.
    unsafe fn run(&self, block: &Block, room: &mut Room, leaf: Leaf<'_>) {
        let (rows, columns) = (block.rows, block.columns);
        let from = self.addresses.at(block.at);
        let (mut at, mut steps) = (from, [0; OPERANDS]);
        let rectangle = |k: usize| Rectangle {
            rows,
            columns,
            row: self.walk.rows.strides[k],
            column: self.walk.columns.strides[k],
        };
        for k in 0..self.count {
            let bytes = self.addresses.bytes[k];
            if !self.copied[k] {
                steps[k] = self.walk.rows.strides[k] * bytes;
                continue;
            }
            steps[k] = columns * bytes;
            at[k] = room.blocks[k].as_mut_ptr().cast();
            let (held, now) = (&mut room.held[k], (from[k].cast_const(), rows, columns));
            if k > 0 && (held.0 != now.0 || held.1 < rows || held.2 != columns) {
                // SAFETY: the caller guarantees the elements; a block has room for as many.
                unsafe { pack(bytes, at[k], from[k], rectangle(k)) };
                *held = now;
            } else if k == 0 && held.1 == 0 {
                // The function may borrow its output as a slice.
                // SAFETY: the room is a block's.
                unsafe { at[0].write_bytes(0, BLOCK) };
                *held = now;
            }
        }
        // SAFETY: each operand is dense along a row, or in the block; inputs that meet the output were copied.
        unsafe {
            if self.whole {
                leaf.run(at, rows * columns);
            } else {
                let ([out, a, b, c], [to, x, y, z]) = (at, steps);
                for r in 0..rows {
                    let row = |address: *mut u8, step: usize| address.wrapping_add(r * step);
                    leaf.run([row(out, to), row(a, x), row(b, y), row(c, z)], columns);
                }
            }
            if self.copied[0] {
                unpack(self.addresses.bytes[0], from[0], at[0], rectangle(0));
            }
        }
    }
}
