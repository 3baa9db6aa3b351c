//! `log_softmax_backward`

use super::softmax_backward::{compose, errors, rule, samples};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::decomposed;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use keyway_dispatcher::op::{Part, Rule};

/// The gradient less the shares, of which the logarithms are given, of its sum.
pub(super) fn by_tensor_ops(grad: &Tensor, logs: &Tensor, dim: i64) -> Result<Tensor> {
    grad.sub(&logs.exp()?.mul(&grad.sum_keepdim(dim)?)?)
}

/// `log_softmax_backward`: the gradient from that of the output and the output. Used where it is not differentiated again.
pub static DEF: OpDef = OpDef {
    schema: "log_softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: decomposed(
        |args| compose(args, by_tensor_ops),
        &[
            Part::widened("exp"),
            Part::widened("sum"),
            Part::widened("mul"),
            Part::widened("sub"),
            Part::widened("to_dtype"),
            Part::new("to_dtype"),
        ],
    ),
    derivative: Derivative::Missing(
        "`log_softmax` uses tensor ops where its gradient is differentiated again",
    ),
    forms: Forms::New,
    dtypes: Dtypes::FLOAT,
    samples,
    errors,
    entry: Entry::new(),
};
