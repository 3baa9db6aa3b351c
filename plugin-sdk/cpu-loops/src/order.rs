//! The order in which an element-wise kernel visits blocks of its operands.

use crate::operand::{OPERANDS, PerOperand};
use keyway_sdk::author::strided::{self, Odometer};
use std::ops::Range;

/// A dimension, with the stride of each operand.
pub(crate) type Dim = strided::Dim<OPERANDS>;
/// Dimensions, outermost first.
pub(crate) type Dims = strided::Dims<OPERANDS>;

/// Moves the dimension along which an input is dense next to the innermost one, if this input is not dense along the
/// innermost one.
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

/// The minimum size of a dimension for a change of the order.
const SHORTEST: usize = 8;

/// An iterator over the blocks of the two innermost dimensions.
#[derive(Debug)]
pub(crate) struct BlockIterator {
    outer: Dims,
    /// The second innermost dimension; of size 1 if there is none.
    pub(crate) rows: Dim,
    /// The innermost dimension.
    pub(crate) columns: Dim,
    height: usize,
    width: usize,
    /// Whether blocks are visited in column order.
    down: bool,
}

/// A block of the two innermost dimensions: the operands' offsets and its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) at: PerOperand,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl BlockIterator {
    /// A single block that covers the two innermost dimensions.
    pub(crate) fn new(mut dims: Dims) -> Self {
        let columns = dims.pop().unwrap_or(Dim { size: 0, strides: [0; OPERANDS] });
        let rows = dims.pop().unwrap_or(Dim { size: 1, strides: [0; OPERANDS] });
        BlockIterator { outer: dims, rows, columns, height: rows.size, width: columns.size, down: false }
    }

    /// Sets the maximum number of rows and columns of a block.
    pub(crate) fn cut(&mut self, height: usize, width: usize) {
        (self.height, self.width) = (height.max(1), width.max(1));
    }

    /// Visits blocks in column order, so that operands with equal rows are unchanged from block to block.
    pub(crate) fn go_down(&mut self) {
        self.down = true;
    }

    /// The number of elements of a full block.
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

    /// Calls `run` with the blocks in `range`, counted in visiting order.
    pub(crate) fn each(&self, range: Range<usize>, mut run: impl FnMut(Block)) {
        let (across, below) = (self.across(), self.rows.size.div_ceil(self.height));
        let each = below * across;
        let mut odometer = Odometer::new(&self.outer, range.start / each);
        let mut at = range.start % each;
        for _ in range {
            let (row, column) = if self.down { (at % below, at / below) } else { (at / across, at % across) };
            let (row, column) = (row * self.height, column * self.width);
            let mut offsets = odometer.offsets();
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
