//! Gradients of sums of sparse tensors at the entries that they store.

use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::memory::from_components::{map_stored_as, stored};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::op::Arg;

/// The gradient of a sum, for arguments `(self, dim, keepdim)`: that of each sum, at every element that was added to it. That of
/// a sparse tensor is made at the entries alone, whatever its sizes are.
pub(super) fn sum_grad(b: &Backward<'_>, g: &Grads<'_>, grad: &Tensor) -> Result<Tensor> {
    if let Some(pattern) = g.pattern(0).filter(Tensor::is_coordinates)
        && let Some(made) = at_entries(b, grad, &pattern)?
    {
        return Ok(made);
    }
    b.unreduce(&grad.to_strided()?, 0, b.arg(1), b.bool(2)?)?.expand(b.sizes(0))
}

/// At the entries of `pattern`; `None` if dense dimensions were added up too.
fn at_entries(b: &Backward<'_>, grad: &Tensor, pattern: &Tensor) -> Result<Option<Tensor>> {
    let keepdim = b.bool(2)?;
    let [indices, values] = &pattern.components()?[..] else { return Ok(None) };
    let (sparse_dim, entries, rank) = (indices.dim(0)?, indices.dim(1)?, pattern.rank());
    let mut reduced = vec![false; rank];
    match b.arg(1) {
        Arg::Ints(dims) if !dims.is_empty() => {
            for &dim in dims {
                reduced[wrap_dim("sum", dim, rank)?] = true;
            }
        }
        _ => reduced.fill(true),
    }
    if reduced[sparse_dim..].contains(&true) {
        return Ok(None);
    }
    let blocks = if reduced[..sparse_dim].contains(&false) {
        // Where the entries lie among the sums.
        let row = |dim: usize| -> Result<Option<Tensor>> {
            match (reduced[dim], keepdim) {
                (true, false) => Ok(None),
                (true, true) => Tensor::zeros_with((1, entries), (DType::I64, indices.device())).map(Some),
                (false, _) => indices.narrow(0, dim as i64, 1).map(Some),
            }
        };
        let rows: Vec<Tensor> =
            (0..sparse_dim).filter_map(|dim| row(dim).transpose()).collect::<Result<_>>()?;
        let zeros = values.to_dtype(grad.dtype())?;
        let places = Tensor::sparse_coo(&Tensor::cat(&rows, 0)?, &zeros, grad.shape())?;
        stored(&grad.project_like(&places)?)?
    } else {
        let block = grad.to_strided()?.reshape(&values.shape()[1..])?;
        block.expand(values.shape())?
    };
    map_stored_as(pattern, grad.dtype(), |_| Ok(blocks.clone())).map(Some)
}
