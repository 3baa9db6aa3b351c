//! `log_softmax_backward`

use super::softmax_backward::{compose, errors, rule, samples};
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::sample::{Fill, Sample, SampleArg, sample, tensor as filled};
use keyway_dispatcher::op::Rule;

/// `grad - softmax * sum(grad)`, where `logs` is the logarithm of the softmax.
pub(super) fn by_tensor_ops(grad: &Tensor, logs: &Tensor, dim: i64) -> Result<Tensor> {
    let sum = grad.sum_keepdim(dim)?;
    // An ignored row, whose gradients sum to 0, may be NaN, but its gradient is 0. Other rows retain their logarithms, from
    // which second derivatives are computed.
    let logs = logs.eq(logs)?.logical_or(&sum.ne(0)?)?.where_cond(logs, 0)?;
    grad.sub(&logs.exp()?.mul(&sum)?)
}

/// `log_softmax_backward`: the input gradient from the output gradient and the output. Used where it is not differentiated
/// again.
pub static DEF: OpDef = OpDef::new(
    "log_softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
    Rule::Structured(rule),
    Derivative::Missing("`log_softmax` uses tensor ops where its gradient is differentiated again"),
    || {
        // An ignored row, which may be NaN.
        let logs = filled(&[2, 3], Fill::Values(vec![f64::NAN, f64::NAN, f64::NAN, -1.0, -2.0, -0.5]));
        let grad = filled(&[2, 3], Fill::Values(vec![0.0, 0.0, 0.0, 0.5, -1.5, 2.0]));
        let ignored = Sample { smooth: false, ..sample([grad, logs, SampleArg::Int(1)]) };
        samples().into_iter().chain([ignored]).collect()
    },
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| compose(args, by_tensor_ops));
