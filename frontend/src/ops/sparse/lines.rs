//! Reductions of tensors that store some of their elements go line by line, and so do their gradients: a number for each line is
//! brought to the entries of that line, whatever the sizes are.

use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::memory::from_components::{map_stored_as, stored};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::op::Arg;

/// The gradient of a sum, for arguments `(self, dim, keepdim)`: that of each sum, at every element that was added to it. That of
/// a sparse tensor is made at the entries alone.
pub(crate) fn sum_grad(b: &Backward<'_>, g: &Grads<'_>, grad: &Tensor) -> Result<Tensor> {
    if let Some(pattern) = g.pattern(0).filter(Tensor::is_coordinates) {
        let blocks = at_entries(&pattern, grad, b.arg(1), b.bool(2)?)?;
        return map_stored_as(&pattern, grad.dtype(), |_| Ok(blocks.clone()));
    }
    b.unreduce(&grad.to_strided()?, 0, b.arg(1), b.bool(2)?)?.expand(b.sizes(0))
}

/// `lines` has a number for each line of `pattern` over `dims`, all without any, as a reduction gives them: these numbers in
/// the shape of what `pattern` stores, each where its line has an entry.
pub(crate) fn at_entries(pattern: &Tensor, lines: &Tensor, dims: Arg<'_>, keepdim: bool) -> Result<Tensor> {
    let rank = pattern.rank();
    let mut reduced = vec![false; rank];
    match dims {
        Arg::Ints(dims) if !dims.is_empty() => {
            for &dim in dims {
                reduced[wrap_dim("sum", dim, rank)?] = true;
            }
        }
        Arg::Int(dim) if rank > 0 => reduced[wrap_dim("sum", dim, rank)?] = true,
        _ => reduced.fill(true),
    }
    if pattern.is_coordinates() {
        return at_coordinates(pattern, lines, &reduced, keepdim);
    }
    let kept =
        std::iter::zip(pattern.shape(), &reduced).map(|(&size, &reduced)| if reduced { 1 } else { size });
    let whole = lines.to_strided()?.reshape(kept.collect::<Vec<usize>>())?.expand(pattern.shape())?;
    stored(&whole.project_like(pattern)?)
}

fn at_coordinates(pattern: &Tensor, lines: &Tensor, reduced: &[bool], keepdim: bool) -> Result<Tensor> {
    let [indices, values] = &pattern.components()?[..] else { return stored(pattern) };
    let (sparse_dim, entries) = (indices.dim(0)?, indices.dim(1)?);
    let (sparse, dense) = reduced.split_at(sparse_dim);
    // Which rows of the indices say where the entries lie among the lines.
    let row = |dim: usize| -> Result<Option<Tensor>> {
        match (sparse[dim], keepdim) {
            (true, false) => Ok(None),
            (true, true) => Tensor::zeros_with((1, entries), (DType::I64, indices.device())).map(Some),
            (false, _) => indices.narrow(0, dim, 1).map(Some),
        }
    };
    let rows: Vec<Tensor> = (0..sparse_dim).filter_map(|dim| row(dim).transpose()).collect::<Result<_>>()?;
    let block = &lines.shape()[rows.len()..];
    let mut blocks = if sparse.contains(&false) {
        let sizes: Vec<usize> = std::iter::once(entries).chain(block.iter().copied()).collect();
        let zeros = values.new_zeros(&sizes)?.to_dtype(lines.dtype())?;
        let places = Tensor::sparse_coo(&Tensor::cat(&rows, 0)?, &zeros, lines.shape())?;
        stored(&lines.project_like(&places)?)?
    } else {
        let sizes: Vec<usize> = std::iter::once(1).chain(block.iter().copied()).collect();
        lines.to_strided()?.reshape(sizes)?
    };
    if !keepdim {
        for dim in (0..dense.len()).filter(|&dim| dense[dim]) {
            blocks = blocks.unsqueeze(dim + 1)?;
        }
    }
    blocks.expand(values.shape())
}
