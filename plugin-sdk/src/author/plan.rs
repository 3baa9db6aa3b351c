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

    /// No dimension: nothing to walk.
    pub(crate) fn none() -> Self {
        Dims::new(0)
    }

    fn push(&mut self, dim: Dim) {
        self.len += 1;
        let last = self.len - 1;
        self[last] = dim;
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
        sorted.heap = Vec::new();
        sorted.push(Dim { size: 1, strides: [0; OPERANDS] });
    } else {
        sorted.len = merged + 1;
    }
    sorted
}

/// Moves the dimension along which some input is contiguous next to the innermost one, where that input
/// is not contiguous along the innermost. Says whether the two innermost dimensions want tiles.
pub(crate) fn cross(dims: &mut Dims) -> bool {
    let Some((inner, outer)) = dims.split_last() else { return false };
    if inner.size < MIN_TILE || inner.strides[0] != 1 {
        return false;
    }
    let across = (1..OPERANDS)
        .filter(|&k| inner.strides[k] > 1)
        .find_map(|k| outer.iter().position(|d| d.strides[k] == 1 && d.size >= MIN_TILE));
    let Some(at) = across else { return false };
    let end = dims.len() - 1;
    dims[at..end].rotate_left(1);
    true
}

/// Rows of a tile. More rows than columns, because a packed input is read along the rows: with small pages
/// each of its columns costs an address translation.
pub(crate) const TILE_ROWS: usize = 128;
/// Columns of a tile: whole cache lines of the output.
pub(crate) const TILE_COLUMNS: usize = 16;
/// A dimension shorter than this is not worth a tile.
const MIN_TILE: usize = 8;

/// Walks the elements `range` (counted in the order of `dims`) and calls `run` with the operands' offsets
/// and the length of each piece of the innermost dimension.
pub(crate) fn walk_runs(dims: &[Dim], range: Range<usize>, run: &mut dyn FnMut(PerOperand, usize)) {
    let Some((inner, outer)) = dims.split_last() else { return };
    if outer.is_empty() {
        return run(inner.strides.map(|s| s * range.start), range.len());
    }
    let mut at = range.start % inner.size;
    let mut left = range.len();
    let mut walk = Odometer::new(outer, range.start / inner.size);
    while left > 0 {
        let n = left.min(inner.size - at);
        let mut offsets = walk.offsets;
        for (o, s) in offsets.iter_mut().zip(inner.strides) {
            *o += at * s;
        }
        run(offsets, n);
        at = 0;
        left -= n;
        walk.step(outer);
    }
}

/// A tile: the offsets of its first element, its rows and its columns.
pub(crate) type Tile = (PerOperand, usize, usize);

/// The number of tiles over `dims`, the last two of which are cut.
pub(crate) fn tiles(dims: &[Dim]) -> usize {
    let [outer @ .., rows, columns] = dims else { return 0 };
    outer.iter().map(|d| d.size).product::<usize>()
        * rows.size.div_ceil(TILE_ROWS)
        * columns.size.div_ceil(TILE_COLUMNS)
}

/// Walks the tiles `range`, counted in the order of `dims`.
pub(crate) fn walk_tiles(dims: &[Dim], range: Range<usize>, run: &mut dyn FnMut(Tile)) {
    let [outer @ .., rows, columns] = dims else { return };
    let across = columns.size.div_ceil(TILE_COLUMNS);
    let each = rows.size.div_ceil(TILE_ROWS) * across;
    let mut walk = Odometer::new(outer, range.start / each);
    let mut at = range.start % each;
    for _ in range {
        let (row, column) = (at / across * TILE_ROWS, at % across * TILE_COLUMNS);
        let mut offsets = walk.offsets;
        for (k, o) in offsets.iter_mut().enumerate() {
            *o += row * rows.strides[k] + column * columns.strides[k];
        }
        run((offsets, TILE_ROWS.min(rows.size - row), TILE_COLUMNS.min(columns.size - column)));
        at += 1;
        if at == each {
            at = 0;
            walk.step(outer);
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
