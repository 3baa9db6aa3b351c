//! Gradients of reductions of sparse tensors: the value of each reduced line is gathered at the entries of that line, whatever
//! the sizes are.

use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::rules::{reduced_by, reduced_sizes};
use crate::{DType, Tensor};
use keyway_dispatcher::op::Arg;

/// The gradient of a sum with arguments `(self, dim, keepdim)`: the gradient of each sum, expanded to its addends. For a sparse
/// tensor it is computed only at the entries.
pub(crate) fn sum_grad(b: &Backward<'_>, g: &Grads<'_>, grad: &Tensor) -> Result<Tensor> {
    if let Some(pattern) = g.pattern(0).filter(Tensor::is_coordinates) {
        let blocks = at_entries(&pattern, grad, b.arg(1), b.bool(2)?)?;
        return pattern.map_stored_as(grad.dtype(), |_| Ok(blocks.clone()));
    }
    b.unsqueeze_reduced(&grad.to_strided()?, 0, b.arg(1), b.bool(2)?)?.expand(b.sizes(0))
}

/// Gathers `lines`, the result of a reduction of `pattern` over `dims` (all if missing), at the stored entries of `pattern`:
/// each entry gets the value of its line.
pub(crate) fn at_entries(pattern: &Tensor, lines: &Tensor, dims: Arg<'_>, keepdim: bool) -> Result<Tensor> {
    let reduced = reduced_by("sum", dims, pattern.rank())?;
    if pattern.is_coordinates()
        && let [indices, values] = &pattern.components()?[..]
    {
        return at_coordinates([indices, values], lines, reduced, keepdim);
    }
    let kept = reduced_sizes(pattern.shape(), reduced, true);
    let whole = lines.to_strided()?.reshape(&kept)?.expand(pattern.shape())?;
    if whole.dtype() == pattern.dtype() {
        return whole.sparse_mask_like(pattern)?.stored();
    }
    // Counts for f16 lines are f32, and a projection needs both tensors in one dtype.
    let pattern = pattern.map_stored_as(whole.dtype(), |numbers| numbers.to_dtype(whole.dtype()))?;
    whole.sparse_mask_like(&pattern)?.stored()
}

/// The number of elements reduced into each of `lines`, for a tensor of these sizes. The product of the sizes of a sparse
/// tensor may overflow integers.
pub(crate) fn length(sizes: &[usize], lines: &[usize]) -> f64 {
    let product = |sizes: &[usize]| sizes.iter().map(|&size| size as f64).product::<f64>();
    product(sizes) / product(lines).max(1.0)
}

fn at_coordinates(
    [indices, values]: [&Tensor; 2],
    lines: &Tensor,
    reduced: u64,
    keepdim: bool,
) -> Result<Tensor> {
    let (sparse_dim, entries) = (indices.dim(0)?, indices.dim(1)?);
    let is_reduced = |dim: usize| reduced & (1 << dim) != 0;
    // The rows of the indices that locate an entry among the lines.
    let row = |dim: usize| -> Result<Option<Tensor>> {
        match (is_reduced(dim), keepdim) {
            (true, false) => Ok(None),
            (true, true) => Tensor::zeros_with((1, entries), (DType::I64, indices.device())).map(Some),
            (false, _) => indices.narrow(0, dim, 1).map(Some),
        }
    };
    let rows: Vec<Tensor> = (0..sparse_dim).filter_map(|dim| row(dim).transpose()).collect::<Result<_>>()?;
    let block = &lines.shape()[rows.len()..];
    let mut blocks = if !(0..sparse_dim).all(is_reduced) {
        let sizes: Vec<usize> = std::iter::once(entries).chain(block.iter().copied()).collect();
        let zeros = Tensor::zeros_with(sizes, (lines.dtype(), values.device()))?;
        let places = Tensor::sparse_coo(&Tensor::cat(&rows, 0)?, &zeros, lines.shape())?;
        lines.sparse_mask_like(&places)?.stored()?
    } else {
        let sizes: Vec<usize> = std::iter::once(1).chain(block.iter().copied()).collect();
        lines.to_strided()?.reshape(sizes)?
    };
    if !keepdim {
        for dim in (1..values.rank()).filter(|&dim| is_reduced(sparse_dim + dim - 1)) {
            blocks = blocks.unsqueeze(dim)?;
        }
    }
    blocks.expand(values.shape())
}
