//! `index_select` and `embedding`: whole slices at indices.

use super::cells::{Cells, cell_kernel};
use super::dims::dim;
use super::gather::{Gather, gather_rows};
use super::indices::check_indices;
use super::nest::{Dim, Nest};
use keyway_sdk::author::{Call, Element, Error};

fn index_select<C: Element>(call: &Call) -> Result<(), Error> {
    let (source, index) =
        (Cells::<C>::argument(call, 0)?.with_dim(), Cells::<i64>::argument(call, 2)?.with_dim());
    let out = Cells::<C>::output(call, 0)?.with_dim();
    let dim = dim(call, 1, source.sizes.len())?;
    check_indices(&index, "index", dim, source.sizes[dim], 0)?;
    let one = |d: usize| -> Dim<3> {
        let (i, s) = if d == dim { (index.strides[0], 0) } else { (0, source.strides[d]) };
        (out.sizes[d], [out.strides[d], i, s])
    };
    let nest = Nest::sorted((0..out.sizes.len()).map(one).collect());
    let operands =
        Gather { out: out.lanes, index: index.lanes, source: source.lanes, stride: source.strides[dim] };
    // SAFETY: the loops are those of the result, which has the source's sizes except in `dim`, where every index was
    // checked; the result overlaps no argument.
    unsafe { gather_rows(&nest, &operands) }
}

fn embedding<C: Element>(call: &Call) -> Result<(), Error> {
    let (weight, index) = (Cells::<C>::argument(call, 0)?, Cells::<i64>::argument(call, 1)?);
    let out = Cells::<C>::output(call, 0)?;
    check_indices(&index, "indices", 0, weight.sizes[0], 0)?;
    let last = index.sizes.len();
    let one = |d: usize| -> Dim<3> {
        let (i, s) = if d < last { (index.strides[d], 0) } else { (0, weight.strides[1]) };
        (out.sizes[d], [out.strides[d], i, s])
    };
    let nest = Nest::sorted((0..=last).map(one).collect());
    let operands =
        Gather { out: out.lanes, index: index.lanes, source: weight.lanes, stride: weight.strides[0] };
    // SAFETY: the loops are those of the result, which has the index's sizes and the weight's columns; every index was
    // checked; the result overlaps no argument.
    unsafe { gather_rows(&nest, &operands) }
}

cell_kernel!("index_select", "TiT>T", index_select);
cell_kernel!("embedding", "TTi>T", embedding);
