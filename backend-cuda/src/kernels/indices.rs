//! Indices as the kernels that take them need them: looked at before anything is read or written at them.

use super::Kernel;
use super::elements::Taken;
use super::launch::{Dims, Operand, POSITIONS, launch, pieces};
use super::scratch::{On, Scratch, words};
use super::space::{Laid, dense, each, in_order};
use crate::driver::Argument;
use keyway_sdk::author::{Call, Error};

/// `Check` in index.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct CheckArgument {
    index: Operand,
    found: u64,
    low: i64,
    range: u64,
    first: u64,
    count: u64,
    dims: Dims<1>,
}
// SAFETY: `Check` has these fields.
unsafe impl Argument for CheckArgument {}

/// `Offset` in index.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct OffsetArgument {
    out: u64,
    index: Operand,
    size: i64,
    stride: i64,
    added: u64,
    count: u64,
    dims: Dims<2>,
}
// SAFETY: `Offset` has these fields.
unsafe impl Argument for OffsetArgument {}

const INDEX: Kernel = Kernel { family: "index", name: "index", dtype: "i64" };

/// Why ops on indices are not captured.
pub const CHECKED: &str = "the op checks its indices on the host, which";

/// Refuses indices outside `low..size` of dimension `dim`; `low` is `-size` where an index may count from the end, else 0.
/// Waits for the answer: a kernel has no error to answer with.
pub fn check(
    on: On,
    index: &Laid,
    argument: &'static str,
    dim: usize,
    size: i64,
    low: i64,
) -> Result<(), Error> {
    let wrong = |index: i64| Error::InvalidArgument {
        argument,
        expected: format!("indices in {low}..{size} for dimension {dim} of size {size}"),
        got: format!("index {index}"),
    };
    if index.numel() == 0 {
        return Ok(());
    }
    if index.operand.data == 0 {
        let only = index.operand.value as i64;
        return if (low..size).contains(&only) { Ok(()) } else { Err(wrong(only)) };
    }
    on.0.context.refuse_captured(on.1, CHECKED)?;
    let found = Scratch::filled(on, 1, u64::MAX)?;
    let mut first = 0;
    for piece in pieces(&in_order(&index.sizes, [&index.strides]), POSITIONS) {
        let argument = CheckArgument {
            index: index.operand.shifted(piece.offsets[0], 8),
            found: found.at(),
            low,
            range: (size - low) as u64,
            first,
            count: piece.count as u64,
            dims: Dims::new(&piece.dims),
        };
        launch(on.0, INDEX, format_args!("check_i64"), each(piece.count), &argument, on.1)?;
        first += piece.count as u64;
    }
    let number = words(on, found.at(), 1)?[0];
    if number == u64::MAX {
        return Ok(());
    }
    let (mut rest, mut offset) = (number as i64, 0);
    for (n, stride) in index.sizes.iter().zip(&index.strides).rev() {
        offset += rest % n * stride;
        rest /= n;
    }
    Err(wrong(words(on, index.operand.shifted(offset as usize, 8).data, 1)?[0] as i64))
}

/// Indices of several dimensions, broadcast together, as offsets.
pub struct Offsets {
    /// The shape that the indices broadcast to.
    pub sizes: Vec<i64>,
    /// Row-major.
    pub values: Scratch,
}

impl Offsets {
    /// Of the tensors of argument `list`, one for each of `dims`, by `strides`, after a look at them. Negative indices
    /// count from the end.
    pub fn new(
        on: On,
        call: &Call<'_>,
        list: usize,
        dims: &[i64],
        sizes: &[i64],
        strides: &[i64],
    ) -> Result<Offsets, Error> {
        let indices: Vec<Laid> =
            call.tensors(list)?.iter().map(|t| Laid::new(&t, Taken::Raw)).collect::<Result<_, _>>()?;
        let ndim = indices.iter().map(|i| i.sizes.len()).max().unwrap_or(0);
        let mut shape = vec![1; ndim];
        for index in &indices {
            let lead = ndim - index.sizes.len();
            index.sizes.iter().enumerate().filter(|(_, n)| **n != 1).for_each(|(d, &n)| shape[lead + d] = n);
        }
        for (index, &d) in indices.iter().zip(dims) {
            let size = sizes[d as usize];
            check(on, index, "indices", d as usize, size, -size)?;
        }
        let count = shape.iter().product::<i64>() as usize;
        // Without indices the only offset is 0.
        let values =
            if indices.is_empty() { Scratch::filled(on, count, 0)? } else { Scratch::new(on, count, 8)? };
        let own = dense(&shape);
        for (k, (index, &d)) in indices.iter().zip(dims).enumerate() {
            for piece in pieces(&in_order(&shape, [&own, &index.expanded(&shape)]), POSITIONS) {
                let argument = OffsetArgument {
                    out: values.operand().shifted(piece.offsets[0], 8).data,
                    index: index.operand.shifted(piece.offsets[1], 8),
                    size: sizes[d as usize],
                    stride: strides[d as usize],
                    added: u64::from(k > 0),
                    count: piece.count as u64,
                    dims: Dims::new(&piece.dims),
                };
                launch(on.0, INDEX, format_args!("offset_i64"), each(piece.count), &argument, on.1)?;
            }
        }
        Ok(Offsets { sizes: shape, values })
    }
}

/// The dimensions of the result of indexing: those of the indices (true) and of the tensor (false), with their place among
/// their own. Those of the indices stand in place of the indexed dimensions where these are neighbours, else in front.
pub fn layout(ndim: usize, dims: &[i64], index_ndim: usize) -> Vec<(bool, usize)> {
    let mut layout: Vec<(bool, usize)> =
        (0..ndim).filter(|&d| !dims.contains(&(d as i64))).map(|d| (false, d)).collect();
    let neighbours = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let at = if neighbours { dims.first().map_or(0, |&d| d as usize) } else { 0 };
    layout.splice(at..at, (0..index_ndim).map(|d| (true, d)));
    layout
}
