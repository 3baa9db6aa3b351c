//! `ctc_loss_backward`
//!
//! Arguments:
//! - `grad`: the gradient of the loss of each sequence.
//! - `log_probs`: log-probabilities of the classes, `[steps, batch, classes]`.
//! - `targets`: labels, `[batch, labels]` with padding, or those of all sequences in one dimension.
//! - `input_lengths`: the number of steps of each sequence.
//! - `target_lengths`: the number of labels of each sequence.
//! - `blank`: the class that separates labels.
//! - `zero_infinity`: whether a target that no alignment reaches has the gradient 0 instead of NaN.

use super::ctc_samples::{calls, refused};
use super::ctc_states::{Alignment, check};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::wrong_shape;
use crate::ops::sample::plain;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let sizes = check(args, 1)?;
    let grad = args.tensor(0)?.sizes();
    if grad != [sizes[1]] {
        return Err(wrong_shape(args, 0, format!("[{}], one element for each sequence", sizes[1]), grad));
    }
    let dtype = args.tensor(1)?.dtype();
    let mut plan = Plan::one(dtype, Dims::from_slice(&sizes), dtype, Strides::Contiguous);
    plan.cast = 0b11;
    plan.cast_index = 0b100;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let grad = widened(&tensor(args, 0)?)?;
    let made = Alignment::new(args, 1, f64::NEG_INFINITY)?.gradient(&grad, args.bool(6)?)?;
    cast(made, args.tensor(1)?.dtype())
}

/// `ctc_loss_backward`: the gradient of the log-probabilities of `ctc_loss`.
pub static DEF: OpDef = OpDef::new(
    "ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, \
     int blank=0, bool zero_infinity=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::Missing("`ctc_loss` uses tensor ops where its gradients are differentiated again"),
    || calls(|batch| vec![plain(&[batch])]),
)
.dtypes(Dtypes::FLOAT)
.errors(|| refused(|batch| vec![plain(&[batch])]))
.decomposed(|args| one(compose(args)));
