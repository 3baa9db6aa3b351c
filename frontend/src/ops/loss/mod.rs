//! Losses.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composed::{cast, float_tensor, one, tensor, widened};
use keyway_dispatcher::error::Error;
use keyway_dispatcher::op::Args;

crate::ops::family! {
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    nll_loss_backward,
    nll_loss_forward,
    smooth_l1_loss,
}

/// Input and target, f16 and bf16 widened to f32, for losses of several steps; see [`reduce_narrowed`].
fn wide_pair(args: &Args<'_>) -> Result<(Tensor, Tensor)> {
    Ok((widened(&float_tensor(args, 0)?)?, widened(&tensor(args, 1)?)?))
}

/// [`reduce`] of a loss that was computed of widened tensors, in the dtype that those in `mask` promote to.
fn reduce_narrowed(args: &Args<'_>, i: usize, loss: Tensor, mask: u32) -> Result<Tensor> {
    cast(reduce(args, i, loss)?, args.promote(mask)?)
}

/// A loss reduced as text argument `i` says.
fn reduce(args: &Args<'_>, i: usize, loss: Tensor) -> Result<Tensor> {
    match args.str(i)? {
        "none" => Ok(loss),
        "mean" => loss.mean(),
        "sum" => loss.sum(),
        other => Err(Error::Value {
            op: args.name(),
            argument: args.op.schema.param_name(i),
            expected: "none, mean or sum".to_string(),
            got: format!("`{other}`"),
        }
        .into()),
    }
}
