//! Blocks of accumulators and their operands.

/// A 32 by 32 block of accumulators and its operands.
#[derive(Clone, Copy)]
pub struct Block {
    /// The number of steps of 32 along the reduction dimension, at least 1.
    pub steps: usize,
    /// The rows of the left operand: a panel, or rows in place.
    pub left: Rows,
    /// A panel of columns.
    pub right: *const u16,
    /// The address of the first accumulator.
    pub sums: *mut f32,
    /// The row stride of the accumulators, in elements.
    pub row: usize,
    /// Whether to add to the current accumulators instead of to 0.
    pub add: bool,
    /// The prefetch address: each step prefetches 256 bytes, and the next step starts 2048 bytes later.
    pub soon: *const u16,
}

/// A 32 by 32 block of accumulators whose rows have a different address at each step, as for the taps of a convolution.
#[derive(Clone, Copy)]
pub struct Gathered<'a> {
    /// For each step of 32 along the reduction dimension, the offset in bytes from `left` to its first row. At least one.
    pub offsets: &'a [usize],
    /// The rows of the left operand, each 32 elements per step.
    pub left: *const u16,
    /// The row stride, in elements.
    pub line: usize,
    /// A panel of columns.
    pub right: *const u16,
    /// The accumulators, row by row, which start at 0.
    pub sums: *mut f32,
    /// Whether only the first 16 columns are computed: the other accumulators are unchanged.
    pub narrow: bool,
}

/// Rows of the left operand as tiles load them. Strides are in elements.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The address of the first element.
    pub data: *const u16,
    /// The stride between rows.
    pub line: usize,
    /// The stride between the first and the last 16 rows.
    pub half: usize,
    /// The stride between steps.
    pub step: usize,
}
