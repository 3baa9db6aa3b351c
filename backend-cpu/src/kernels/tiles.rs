//! Rectangular tiles for kernels whose result depends on an element's index in row-major order. A tile is computed along
//! the rows of that order in a small block, and transposed from and to memory if the strides have another order.

use super::indexed::PIECE;
use super::nest::{Nest, dims};
use keyway_cpu_loops::{copy_dense, transpose};

/// Unused elements before each row of a block: a row may start at any index, its computation starts at a multiple of this.
const SLACK: usize = 4;
/// The maximum number of rows of a tile.
const TALLEST: usize = 128;
/// Rows of a tile that has few of them are a multiple of this.
const FEWEST: usize = 8;
/// The columns of a tile of long rows are a multiple of this, so that random words are generated in whole vectors.
const COLUMNS: usize = 128;

/// The number of elements of a block for tiles of `capacity` elements.
pub const fn block_len(capacity: usize) -> usize {
    capacity + SLACK * (TALLEST + 1)
}

/// A loop over a dimension: its size, the strides of both operands, and the step of the row-major index.
#[derive(Clone, Copy)]
struct Loop {
    size: usize,
    strides: [isize; 2],
    index: usize,
}

/// A partition of a tensor's elements into tiles, by sizes and strides alone.
pub struct Tiles {
    outer: Vec<Loop>,
    /// The dimension along which an operand is dense in memory.
    rows: Loop,
    /// The innermost dimension of the row-major order.
    columns: Loop,
    height: usize,
    width: usize,
    /// The row stride of a block, in elements.
    pitch: usize,
    /// Whether the rows of a tile are consecutive in row-major order.
    joined: bool,
}

/// One tile: the row-major index of its first element, the offset of this element in both operands, and its extent.
#[derive(Clone, Copy)]
pub struct Tile {
    first: usize,
    offsets: [isize; 2],
    rows: usize,
    columns: usize,
}

impl Tiles {
    /// The tiles of an output and an input of these sizes, for blocks of `capacity` elements; [`TALLEST`] times [`COLUMNS`]
    /// elements or more use all of it. An output without input passes its strides twice.
    pub fn new(sizes: &[i64], strides: [&[i64]; 2], capacity: usize, tallest: usize) -> Tiles {
        let sizes: Vec<usize> = sizes.iter().map(|n| *n as usize).collect();
        let [out, input] = strides.map(|of| of.iter().map(|s| *s as isize).collect::<Vec<isize>>());
        let mut loops: Vec<Loop> = Nest::in_order(dims(&sizes, [&out, &input]))
            .into_dims()
            .into_iter()
            .map(|(size, strides)| Loop { size, strides, index: 1 })
            .collect();
        for d in (1..loops.len()).rev() {
            loops[d - 1].index = loops[d].index * loops[d].size;
        }
        let one = Loop { size: 1, strides: [0; 2], index: 0 };
        let columns = loops.pop().unwrap_or(one);
        let across = |k: usize| {
            let dense = |d: &Loop| d.strides[k] == 1 && columns.strides[k] != 1;
            loops.iter().rposition(dense)
        };
        let rows = across(0).or_else(|| across(1)).or(loops.len().checked_sub(1));
        let rows = rows.map_or(one, |d| loops.remove(d));
        let mut height = rows.size.min(tallest.min(TALLEST)).max(1);
        if rows.index == columns.size && (capacity / height..capacity / FEWEST).contains(&columns.size) {
            // Fewer rows, but whole ones, which are consecutive.
            height = capacity / columns.size / FEWEST * FEWEST;
        }
        let width = match capacity / height {
            all if all >= columns.size => columns.size.max(1),
            some => (some / COLUMNS * COLUMNS).max(some.min(COLUMNS)),
        };
        let joined = width == columns.size && (rows.index == width || rows.size == 1);
        let pitch = if joined { width } else { width + SLACK };
        Tiles { outer: loops, rows, columns, height, width, pitch, joined }
    }

    /// The number of tiles.
    pub fn len(&self) -> usize {
        self.outer.iter().map(|d| d.size).product::<usize>() * self.plane()
    }

    fn plane(&self) -> usize {
        self.rows.size.div_ceil(self.height) * self.columns.size.div_ceil(self.width)
    }

    /// The number of elements of a full tile.
    pub fn tile_len(&self) -> usize {
        self.height * self.width
    }

    /// Tile number `number`.
    pub fn tile(&self, number: usize) -> Tile {
        let below = self.rows.size.div_ceil(self.height);
        let (mut rest, within) = (number / self.plane(), number % self.plane());
        let (row, column) = (within % below * self.height, within / below * self.width);
        let mut first = 0;
        let mut offsets = [0; 2];
        let mut step = |d: &Loop, i: usize| {
            first += i * d.index;
            (0..2).for_each(|k| offsets[k] += i as isize * d.strides[k]);
        };
        for d in self.outer.iter().rev() {
            step(d, rest % d.size);
            rest /= d.size;
        }
        step(&self.rows, row);
        step(&self.columns, column);
        Tile {
            first,
            offsets,
            rows: self.height.min(self.rows.size - row),
            columns: self.width.min(self.columns.size - column),
        }
    }

    /// Calls `make` with the pieces of a tile: the row-major index of the first element, a multiple of 4, its position in
    /// the block, and the number of elements, at most [`PIECE`]. A piece may start up to 3 elements before its row.
    pub fn pieces(&self, tile: &Tile, mut make: impl FnMut(usize, usize, usize)) {
        let mut run = |first: usize, at: usize, n: usize| {
            let early = first % SLACK;
            let end = at + n;
            let (mut first, mut at) = (first - early, at - early);
            while at < end {
                let n = PIECE.min(end - at);
                make(first, at, n);
                (first, at) = (first + n, at + n);
            }
        };
        if self.joined {
            return run(tile.first, SLACK, tile.rows * tile.columns);
        }
        for k in 0..tile.rows {
            run(tile.first + k * self.rows.index, SLACK + k * self.pitch, tile.columns);
        }
    }

    /// Copies a tile of operand `k` into a block.
    ///
    /// # Safety
    /// `from` must be operand `k` with the elements that its sizes and strides describe, and the block must have
    /// [`block_len`] elements; the caller upholds this.
    pub unsafe fn gather<C: Copy>(&self, tile: &Tile, k: usize, from: *const C, block: *mut C) {
        let (row, column) = (self.rows.strides[k], self.columns.strides[k]);
        // SAFETY: the caller guarantees the elements, and the block's rows have stride `pitch`.
        unsafe {
            let (from, block) = (from.offset(tile.offsets[k]), block.add(SLACK));
            if row == 1 && column > 1 {
                return transpose(block, self.pitch, from, column as usize, tile.columns, tile.rows);
            }
            for r in 0..tile.rows {
                let (from, block) = (from.offset(r as isize * row), block.add(r * self.pitch));
                if column == 1 {
                    copy_dense(block, from, tile.columns);
                } else {
                    (0..tile.columns).for_each(|c| block.add(c).write(*from.offset(c as isize * column)));
                }
            }
        }
    }

    /// Copies a block to a tile of operand `k`.
    ///
    /// # Safety
    /// As for [`Tiles::gather`]; the elements of the tile must be uniquely owned.
    pub unsafe fn scatter<C: Copy>(&self, tile: &Tile, k: usize, to: *mut C, block: *const C) {
        let (row, column) = (self.rows.strides[k], self.columns.strides[k]);
        // SAFETY: as in `gather`.
        unsafe {
            let (to, block) = (to.offset(tile.offsets[k]), block.add(SLACK));
            if row == 1 && column > 1 {
                return transpose(to, column as usize, block, self.pitch, tile.rows, tile.columns);
            }
            for r in 0..tile.rows {
                let (to, block) = (to.offset(r as isize * row), block.add(r * self.pitch));
                if column == 1 {
                    copy_dense(to, block, tile.columns);
                } else {
                    (0..tile.columns).for_each(|c| to.offset(c as isize * column).write(*block.add(c)));
                }
            }
        }
    }

    /// Whether both operands are dense along the rows' dimension, so that a transposed block has their order.
    pub fn are_across(&self) -> bool {
        self.rows.strides == [1; 2] && self.columns.strides.iter().all(|s| *s > 1)
    }

    /// Calls `body` with the runs of a tile that are dense in both operands: the offsets in both, the position in a block
    /// filled by [`Tiles::transposed`], and the number of elements.
    pub fn runs(&self, tile: &Tile, mut body: impl FnMut([isize; 2], usize, usize)) {
        if self.columns.strides == [tile.rows as isize; 2] {
            return body(tile.offsets, 0, tile.rows * tile.columns);
        }
        for c in 0..tile.columns {
            let offset = |k: usize| tile.offsets[k] + c as isize * self.columns.strides[k];
            body([offset(0), offset(1)], c * tile.rows, tile.rows);
        }
    }

    /// Transposes a block.
    pub fn transposed<C: Copy>(&self, tile: &Tile, to: &mut [C], block: &[C]) {
        assert!(to.len() >= tile.rows * tile.columns && block.len() >= SLACK + tile.rows * self.pitch);
        // SAFETY: both have the elements.
        unsafe {
            transpose(
                to.as_mut_ptr(),
                tile.rows,
                block.as_ptr().add(SLACK),
                self.pitch,
                tile.rows,
                tile.columns,
            );
        }
    }
}
