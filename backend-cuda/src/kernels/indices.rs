//! Checks of indices before kernels access elements at them.

use super::Kernel;
use super::elements::Taken;
use super::launch::{Dims, Operand, POSITIONS, launch, pieces};
use super::scratch::{On, Scratch, words};
use super::space::{Laid, dense, each, in_order};
use crate::checks::{Bounds, When, when};
use crate::driver::{Argument, SLOTS};
use keyway_sdk::author::{Call, Error};

/// `Check` in index.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct CheckArgument {
    index: Operand,
    found: u64,
    low: i64,
    range: u64,
    none: i64,
    has_none: u64,
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

/// `Clamp` in index.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct ClampArgument {
    out: u64,
    index: Operand,
    report: u64,
    end: u64,
    low: i64,
    range: u64,
    instead: i64,
    may_be_instead: u64,
    first: u64,
    count: u64,
    dims: Dims<1>,
}
// SAFETY: `Clamp` has these fields.
unsafe impl Argument for ClampArgument {}

/// Valid indices for kernels: the given ones, or a copy.
pub struct Checked {
    /// The indices as an operand.
    pub laid: Laid,
    _copy: Option<Scratch>,
}

/// Whether the call synchronises with the check of its indices, so that the call itself returns the error.
pub fn waits(on: On) -> bool {
    when() != When::Later && !on.0.context.captures(on.1)
}

/// The address to which an asynchronous check writes its finding.
pub fn report(on: On, bounds: Bounds) -> Result<u64, Error> {
    let place = on.0.checks.place(&on.0.context, bounds)?;
    place.ok_or_else(|| Error::Unsupported {
        what: format!("a look at indices that is not waited for, of more than {SLOTS} kinds, on this device"),
    })
}

/// Indices that are within bounds, or a copy with replaced values.
pub fn checked(on: On, index: Laid, bounds: Bounds) -> Result<Checked, Error> {
    checked_until(on, index, bounds, 0)
}

/// As [`checked`]; for 1-d indices, only those before the position stored at the address `end`, if that is not 0.
pub fn checked_until(on: On, index: Laid, bounds: Bounds, end: u64) -> Result<Checked, Error> {
    let given = |laid| Checked { laid, _copy: None };
    if index.numel() == 0 {
        return Ok(given(index));
    }
    if index.operand.data == 0 {
        let only = index.operand.value as i64;
        return if bounds.allow(only) { Ok(given(index)) } else { Err(bounds.wrong(only)) };
    }
    if waits(on) {
        look(on, &index, bounds)?;
        return Ok(given(index));
    }
    // No index is valid as a replacement.
    if bounds.size <= bounds.low && bounds.none().is_none() {
        return Err(bounds.impossible(index.numel()));
    }
    let report = report(on, bounds)?;
    let own = dense(&index.sizes);
    let copy = Scratch::new(on, index.numel(), 8)?;
    let mut first = 0;
    for piece in pieces(&in_order(&index.sizes, [&index.strides]), POSITIONS) {
        let argument = ClampArgument {
            out: copy.at(),
            index: index.operand.shifted(piece.offsets[0], 8),
            report,
            end,
            low: bounds.low,
            range: (bounds.size - bounds.low).max(0) as u64,
            instead: bounds.none().unwrap_or(0),
            may_be_instead: u64::from(bounds.none().is_some()),
            first,
            count: piece.count as u64,
            dims: Dims::new(&piece.dims),
        };
        launch(on.0, INDEX, format_args!("clamp_i64"), each(piece.count), &argument, on.1)?;
        first += piece.count as u64;
    }
    Ok(Checked { laid: Laid { operand: copy.operand(), strides: own, ..index }, _copy: Some(copy) })
}

/// Returns an error if an index is out of bounds; synchronises, since a kernel cannot return an error.
fn look(on: On, index: &Laid, bounds: Bounds) -> Result<(), Error> {
    let found = Scratch::filled(on, 1, u64::MAX)?;
    let mut first = 0;
    for piece in pieces(&in_order(&index.sizes, [&index.strides]), POSITIONS) {
        let argument = CheckArgument {
            index: index.operand.shifted(piece.offsets[0], 8),
            found: found.at(),
            low: bounds.low,
            range: (bounds.size - bounds.low).max(0) as u64,
            none: bounds.none().unwrap_or(0),
            has_none: u64::from(bounds.none().is_some()),
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
    Err(bounds.wrong(words(on, index.operand.shifted(offset as usize, 8).data, 1)?[0] as i64))
}

/// Indices of several dimensions, broadcast together, as offsets.
pub struct Offsets {
    /// The shape that the indices broadcast to.
    pub sizes: Vec<i64>,
    /// Row-major.
    pub values: Scratch,
}

impl Offsets {
    /// Converts the tensors of list argument `list` of an op, one for each of `dims`, to offsets with `strides`, after a
    /// check. Negative indices count from the end.
    pub fn new(
        on: On,
        (op, call, list): (&'static str, &Call<'_>, usize),
        dims: &[i64],
        sizes: &[i64],
        strides: &[i64],
    ) -> Result<Offsets, Error> {
        let given: Vec<Laid> =
            call.tensors(list)?.iter().map(|t| Laid::new(&t, Taken::Raw)).collect::<Result<_, _>>()?;
        let ndim = given.iter().map(|i| i.sizes.len()).max().unwrap_or(0);
        let mut shape = vec![1; ndim];
        for index in &given {
            let lead = ndim - index.sizes.len();
            index.sizes.iter().enumerate().filter(|(_, n)| **n != 1).for_each(|(d, &n)| shape[lead + d] = n);
        }
        let mut indices = Vec::with_capacity(given.len());
        for (index, &d) in given.into_iter().zip(dims) {
            let size = sizes[d as usize];
            let bounds = Bounds { low: -size, ..Bounds::of_dim(op, "indices", d as usize, size) };
            indices.push(checked(on, index, bounds)?);
        }
        let count = shape.iter().product::<i64>() as usize;
        // Without index tensors the only offset is 0.
        let values =
            if indices.is_empty() { Scratch::filled(on, count, 0)? } else { Scratch::new(on, count, 8)? };
        let own = dense(&shape);
        for (k, (index, &d)) in indices.iter().zip(dims).enumerate() {
            for piece in pieces(&in_order(&shape, [&own, &index.laid.expanded(&shape)]), POSITIONS) {
                let argument = OffsetArgument {
                    out: values.operand().shifted(piece.offsets[0], 8).data,
                    index: index.laid.operand.shifted(piece.offsets[1], 8),
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

/// The dimensions of the result of indexing: whether each is one of the index, and its position in the index or the tensor.
/// Those of the indices replace the indexed dimensions if these are adjacent, otherwise they are leading.
pub fn layout(ndim: usize, dims: &[i64], index_ndim: usize) -> Vec<(bool, usize)> {
    let mut layout: Vec<(bool, usize)> =
        (0..ndim).filter(|&d| !dims.contains(&(d as i64))).map(|d| (false, d)).collect();
    let neighbours = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let at = if neighbours { dims.first().map_or(0, |&d| d as usize) } else { 0 };
    layout.splice(at..at, (0..index_ndim).map(|d| (true, d)));
    layout
}
