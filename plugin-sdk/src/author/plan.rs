//! The order in which an elementwise kernel walks its operands: dimensions collapsed, sorted and cut.

use super::view::Coordinates;
use std::ops::{Deref, DerefMut, Range};

/// Operands of one walk: the output and up to three inputs.
pub(crate) const OPERANDS: usize = 4;

/// One number for each operand; those beyond the inputs stay 0.
pub(crate) type PerOperand = [usize; OPERANDS];

/// A dimension of the walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dim {
    pub(crate) size: usize,
    pub(crate) strides: PerOperand,
}

/// Dimensions, outermost first; without heap for up to 8.
#[derive(Clone, Debug)]
pub(crate) struct Dims {
    inline: [Dim; 8],
    heap: Vec<Dim>,
    len: usize,
}

impl Dims {
    fn new(capacity: usize) -> Self {
        let heap = if capacity > 8 { vec![Dim::default(); capacity] } else { Vec::new() };
        Dims { inline: [Dim::default(); 8], heap, len: 0 }
    }

    /// One dimension.
    pub(crate) fn one(size: usize, strides: PerOperand) -> Self {
        let mut dims = Dims::new(1);
        dims.push(Dim { size, strides });
        dims
    }

    fn push(&mut self, dim: Dim) {
        self.len += 1;
        let last = self.len - 1;
        self[last] = dim;
    }

    fn pop(&mut self) -> Option<Dim> {
        let last = self.last().copied();
        self.len = self.len.saturating_sub(1);
        last
    }
}

impl Deref for Dims {
    type Target = [Dim];
    fn deref(&self) -> &[Dim] {
        if self.heap.is_empty() { &self.inline[..self.len] } else { &self.heap[..self.len] }
    }
}

impl DerefMut for Dims {
    fn deref_mut(&mut self) -> &mut [Dim] {
        if self.heap.is_empty() { &mut self.inline[..self.len] } else { &mut self.heap[..self.len] }
    }
}

/// Dimensions in the order of the output's strides (largest first, then the inputs'), those of size 1
/// dropped and neighbours merged where every operand allows it. Never empty. No size may be 0.
pub(crate) fn collapse(sizes: &[i64], strides: &[Option<&[i64]>; OPERANDS]) -> Dims {
    let mut sorted = Dims::new(sizes.len());
    for (d, &size) in sizes.iter().enumerate() {
        if size != 1 {
            let strides = strides.map(|s| s.map_or(0, |s| s[d] as usize));
            sorted.push(Dim { size: size as usize, strides });
        }
    }
    // An insertion sort: stable, and quick on the few dimensions that mostly are in order.
    for i in 1..sorted.len() {
        let mut j = i;
        while j > 0 && sorted[j - 1].strides < sorted[j].strides {
            sorted.swap(j - 1, j);
            j -= 1;
        }
    }
    let mut merged = 0;
    for i in 1..sorted.len() {
        let (outer, inner) = (sorted[merged], sorted[i]);
        if (0..OPERANDS).all(|k| outer.strides[k] == inner.strides[k] * inner.size) {
            sorted[merged] = Dim { size: outer.size * inner.size, strides: inner.strides };
        } else {
            merged += 1;
            sorted[merged] = inner;
        }
    }
    if sorted.is_empty() {
        return Dims::one(1, [1; OPERANDS]);
    }
    sorted.len = merged + 1;
    sorted
}

/// Moves the dimension along which some input is dense next to the innermost one, where that input is not dense
/// along the innermost.
pub(crate) fn cross(dims: &mut Dims) {
    let Some((inner, outer)) = dims.split_last() else { return };
    if inner.size < SHORTEST || inner.strides[0] != 1 {
        return;
    }
    let across = (1..OPERANDS)
        .filter(|&k| inner.strides[k] > 1)
        .find_map(|k| outer.iter().position(|d| d.strides[k] == 1 && d.size >= SHORTEST));
    let Some(at) = across else { return };
    let end = dims.len() - 1;
    dims[at..end].rotate_left(1);
}

/// A dimension shorter than this is not worth a change of the order.
const SHORTEST: usize = 8;

/// A walk over blocks of the two innermost dimensions.
#[derive(Debug)]
pub(crate) struct Walk {
    outer: Dims,
    /// The dimension before the innermost; of size 1 if there is none.
    pub(crate) rows: Dim,
    /// The innermost dimension.
    pub(crate) columns: Dim,
    height: usize,
    width: usize,
    /// Whether the next block is the one below, not the one beside.
    down: bool,
}

/// A part of the two innermost dimensions: the operands' offsets and its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) at: PerOperand,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Walk {
    /// One block for all of the two innermost dimensions.
    pub(crate) fn new(mut dims: Dims) -> Self {
        let columns = dims.pop().unwrap_or(Dim { size: 0, strides: [0; OPERANDS] });
        let rows = dims.pop().unwrap_or(Dim { size: 1, strides: [0; OPERANDS] });
        Walk { outer: dims, rows, columns, height: rows.size, width: columns.size, down: false }
    }

    /// Sets the most rows and columns of a block.
    pub(crate) fn cut(&mut self, height: usize, width: usize) {
        (self.height, self.width) = (height.max(1), width.max(1));
    }

    /// Goes down the blocks below each other first: what is the same in all rows is then the same in one block after
    /// the other.
    pub(crate) fn go_down(&mut self) {
        self.down = true;
    }

    /// The number of elements of a whole block.
    pub(crate) fn block_len(&self) -> usize {
        self.height * self.width
    }

    fn across(&self) -> usize {
        self.columns.size.div_ceil(self.width)
    }

    /// The number of blocks.
    pub(crate) fn len(&self) -> usize {
        let each = self.rows.size.div_ceil(self.height) * self.across();
        self.outer.iter().map(|d| d.size).product::<usize>() * each
    }

    /// Calls `run` with the blocks `range`, counted in the order in which they are walked.
    pub(crate) fn each(&self, range: Range<usize>, mut run: impl FnMut(Block)) {
        let (across, below) = (self.across(), self.rows.size.div_ceil(self.height));
        let each = below * across;
        let mut odometer = Odometer::new(&self.outer, range.start / each);
        let mut at = range.start % each;
        for _ in range {
            let (row, column) = if self.down { (at % below, at / below) } else { (at / across, at % across) };
            let (row, column) = (row * self.height, column * self.width);
            let mut offsets = odometer.offsets;
            for (k, o) in offsets.iter_mut().enumerate() {
                *o += row * self.rows.strides[k] + column * self.columns.strides[k];
            }
            let (rows, columns) =
                (self.height.min(self.rows.size - row), self.width.min(self.columns.size - column));
            run(Block { at: offsets, rows, columns });
            at += 1;
            if at == each {
                at = 0;
                odometer.step(&self.outer);
            }
        }
    }
}

/// An index over some dimensions, with the operands' offsets.
struct Odometer {
    index: Coordinates,
    offsets: PerOperand,
}

impl Odometer {
    fn new(dims: &[Dim], mut position: usize) -> Self {
        let mut odometer = Odometer { index: Coordinates::new(dims.len()), offsets: [0; OPERANDS] };
        if position > 0 {
            for (i, dim) in odometer.index.iter_mut().zip(dims).rev() {
                *i = position % dim.size;
                position /= dim.size;
                for (o, s) in odometer.offsets.iter_mut().zip(dim.strides) {
                    *o += *i * s;
                }
            }
        }
        odometer
    }

    fn step(&mut self, dims: &[Dim]) {
        for (i, dim) in self.index.iter_mut().zip(dims).rev() {
            *i += 1;
            if *i < dim.size {
                for (o, s) in self.offsets.iter_mut().zip(dim.strides) {
                    *o += s;
                }
                return;
            }
            *i = 0;
            for (o, s) in self.offsets.iter_mut().zip(dim.strides) {
                *o -= s * (dim.size - 1);
            }
        }
    }
}
