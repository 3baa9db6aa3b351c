//! Gradients of ops that move a sparse tensor's elements.

use super::context::Backward;
use super::modes::no_grad;
use super::node::OwnedArg;
use crate::error::Result;
use crate::{DType, Tensor};

impl Backward<'_> {
    /// The gradient, on the argument's pattern, of argument `i` of an op that moves or repeats its elements; `None` if its
    /// gradients are not restricted to a pattern, as those of a strided argument. `moves` is the op; applied to element indices
    /// (as `arange`) it returns the source of each result element.
    pub(crate) fn moved_back(
        &self,
        i: usize,
        moves: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Option<Tensor>> {
        let edge = match self.call.args.get(i) {
            Some(OwnedArg::Tensor { slot }) if !self.call.inputs[*slot].strided => self.node.edges.get(*slot),
            _ => None,
        };
        let Some(pattern) = edge.and_then(Option::as_ref).and_then(|edge| edge.pattern()) else {
            return Ok(None);
        };
        let (grad, kept) = (self.grad(0)?, pattern.stored()?);
        let (count, device) = (kept.elem_count(), kept.device());
        let zeros = |count: usize| Tensor::zeros_with(count, (grad.dtype(), device));
        // Index 0 represents elements that are not stored.
        let (numbers, grads) = {
            let _off = no_grad();
            let numbers = Tensor::arange_with(1, count as i64 + 1, 1, (DType::I64, device))?;
            let moved = moves(&pattern.map_stored_as(DType::I64, |_| numbers.reshape(kept.shape()))?)?;
            match moved.as_ref().is_strided() {
                true => (moved, None),
                false => {
                    let like = |part: Tensor| zeros(1)?.reshape(())?.expand(part.shape());
                    (moved.stored()?, Some(moved.map_stored_as(grad.dtype(), like)?))
                }
            }
        };
        let grads = match grads {
            Some(like) => grad.sparse_mask_like(&like)?.stored()?,
            None => grad.to_strided()?,
        };
        let sums = zeros(count + 1)?.index_add(0, &numbers.reshape(-1)?, &grads.reshape(-1)?)?;
        let values = sums.narrow(0, 1, count)?.reshape(kept.shape())?;
        pattern.map_stored_as(grad.dtype(), |_| Ok(values.clone())).map(Some)
    }
}
