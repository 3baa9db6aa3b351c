//! Views: other sizes and strides of the same memory.

mod joined;
mod meshgrid;
mod names;
mod ranks;
mod scattered;

use crate::Tensor;
use crate::autograd::Backward;
use crate::error::Result;
use keyway_dispatcher::dims::may_self_overlap;

crate::ops::family! {
    as_strided,
    diagonal,
    expand,
    permute,
    reshape,
    select,
    slice,
    split,
    squeeze,
    transpose,
    unbind,
    unfold,
    unsqueeze,
    view,
}

/// Zeros of these sizes with the dtype, device and memory format of `grad`.
fn zeros(grad: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    grad.new_zeros(sizes)
}

/// The gradient of argument 0 from that of its part `view`: zeros elsewhere; for a sparse tensor, at its stored entries.
fn placed_back(b: &Backward<'_>, view: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    match b.moved_back(0, &view)? {
        Some(grad) => Ok(grad),
        None => placed(b.grad(0)?, b.sizes(0), view),
    }
}

/// The gradient of a tensor of `sizes` from that of its part `view`: zeros outside of it. The view must not repeat an
/// element. Recorded as any in-place change, so it can be differentiated again.
pub(crate) fn placed(
    grad: &Tensor,
    sizes: &[usize],
    view: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let whole = zeros(grad, sizes)?;
    view(&whole)?.copy_(grad)?;
    Ok(whole)
}

/// [`placed`] for a view that may repeat elements: their gradients are added.
pub(crate) fn gathered(
    grad: &Tensor,
    sizes: &[usize],
    view: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let whole = zeros(grad, sizes)?;
    view(&whole)?.add_overlapping(grad)?;
    Ok(whole)
}

impl Tensor {
    /// Adds a gradient to a view that may overlap itself, by recursion over its dimensions until it does not.
    pub(crate) fn add_overlapping(&self, grad: &Tensor) -> Result<()> {
        let (sizes, strides) = (self.shape(), self.strides());
        if !may_self_overlap(sizes, strides) {
            self.add_(grad)?;
            return Ok(());
        }
        if let Some(repeated) = (0..self.rank()).find(|&d| sizes[d] > 1 && strides[d] == 0) {
            let dim = repeated as i64;
            return self.select(dim, 0)?.add_overlapping(&grad.sum(dim)?);
        }
        let shortest = (0..self.rank()).filter(|&d| sizes[d] > 1).min_by_key(|&d| sizes[d]);
        let Some(dim) = shortest else { return Ok(()) };
        let add = |i: i64| self.select(dim, i)?.add_overlapping(&grad.select(dim, i)?);
        (0..sizes[dim] as i64).try_for_each(add)
    }
}
