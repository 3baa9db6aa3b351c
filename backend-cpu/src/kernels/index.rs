//! `index`

use super::cells::{Cells, cell_kernel, row_major};
use super::gather::{Gather, gather_rows};
use super::indices::offsets;
use super::nest::{Dim, Nest};
use keyway_sdk::author::{Call, Element, Error, Lanes};

/// The position of the index dimensions in the result: that of the indexed dimensions if these are adjacent, otherwise 0
/// (as in NumPy).
pub fn index_position(dims: &[i64]) -> usize {
    let neighbours = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if neighbours { dims.first().map_or(0, |&d| d as usize) } else { 0 }
}

/// The dimensions of the result of indexing: whether each is one of the index, and its position in the index or the tensor.
pub fn index_layout(ndim: usize, dims: &[i64], index_ndim: usize) -> Vec<(bool, usize)> {
    let mut layout: Vec<(bool, usize)> =
        (0..ndim).filter(|&d| !dims.contains(&(d as i64))).map(|d| (false, d)).collect();
    let at = index_position(dims);
    layout.splice(at..at, (0..index_ndim).map(|b| (true, b)));
    layout
}

fn index<C: Element>(call: &Call) -> Result<(), Error> {
    let source = Cells::<C>::argument(call, 0)?;
    let indices = Cells::<i64>::list(call, 1)?;
    let dims = call.ints(2)?;
    let out = Cells::<C>::output(call, 0)?;
    if out.numel() == 0 && source.numel() > 0 {
        // The result is empty, but indices must still be in range.
        return offsets(&indices, dims, &source.sizes, &source.strides).map(|_| ());
    }
    let mut at = offsets(&indices, dims, &source.sizes, &source.strides)?;
    let steps = row_major(&at.sizes);
    let layout = index_layout(source.sizes.len(), dims, at.sizes.len());
    let one = |(place, (is_index, d)): (usize, &(bool, usize))| -> Dim<3> {
        let (i, s) = if *is_index { (steps[*d], 0) } else { (0, source.strides[*d]) };
        (out.sizes[place], [out.strides[place], i, s])
    };
    let nest = Nest::sorted(layout.iter().enumerate().map(one).collect());
    // SAFETY: the offsets outlive the loop below, which only reads them.
    let lanes = unsafe { Lanes::new(at.values.as_mut_ptr()) };
    let operands = Gather { out: out.lanes, index: lanes, source: source.lanes, stride: 1 };
    // SAFETY: the loops are those of the result: the shape of the offsets, which are within the source, and the source's
    // dimensions that are not indexed; the result does not overlap the source.
    unsafe { gather_rows(&nest, &operands) }
}

cell_kernel!("index", "TLI>T", index);
