//! Losses.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composed::{one, tensor};
use crate::ops::rules::require;
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

/// Tensor argument `i`, of a float dtype: the means and logarithms of losses are no integers.
fn float(args: &Args<'_>, i: usize) -> Result<Tensor> {
    let t = tensor(args, i)?;
    require(args, i, t.dtype(), t.dtype().is_float(), "a float dtype")?;
    Ok(t)
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
