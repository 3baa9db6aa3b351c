//! `softmax_backward`

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{keeping, require, wrong_shape};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Outputs, Plan, Rule};

/// The rule for a gradient and an output of equal shape, and a dimension.
pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (grad, made) = (args.tensor(0)?, args.tensor(1)?);
    require(args, 1, made.dtype(), made.dtype().is_float(), "a float dtype")?;
    args.dim(2, made.ndim())?;
    if grad.sizes() != made.sizes() {
        return Err(wrong_shape(args, 0, format!("of the output's shape {:?}", made.sizes()), grad.sizes()));
    }
    let mut plan = keeping(made, made.dtype(), Dims::from_slice(made.sizes()), made.dtype());
    plan.cast = 0b11;
    Ok(plan)
}

/// The valid samples of a softmax backward op.
pub(super) fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dim| sample([plain(sizes), plain(sizes), SampleArg::Int(dim)]);
    vec![
        call(&[], 0),
        call(&[5], 0),
        call(&[3, 4], 0),
        call(&[3, 4], -1),
        call(&[2, 3, 4], 1),
        call(&[2, 3, 2, 2], -3),
        call(&[2, 1, 2, 3, 2], 3),
        call(&[2, 0], 1),
    ]
}

/// The error samples of a softmax backward op.
pub(super) fn errors() -> Vec<ErrorSample> {
    let call = |grad: &[usize], dim| [plain(grad), plain(&[3]), SampleArg::Int(dim)];
    vec![error(call(&[3], 1), "out of range"), error(call(&[1], 0), "of the output's shape [3]")]
}

/// `y * (grad - sum(grad * y))`, where `y` is the softmax.
pub(super) fn by_tensor_ops(grad: &Tensor, shares: &Tensor, dim: i64) -> Result<Tensor> {
    let product = grad.mul(shares)?;
    product.sub(&shares.mul(&product.sum_keepdim(dim)?)?)
}

/// The decomposition by a formula of gradient, output and dimension, in f32 for f16 and bf16.
pub(super) fn compose(
    args: &Args<'_>,
    formula: fn(&Tensor, &Tensor, i64) -> Result<Tensor>,
) -> RuleResult<Outputs> {
    let made = tensor(args, 1)?;
    let wide = formula(&widened(&tensor(args, 0)?)?, &widened(&made)?, args.int(2)?)?;
    one(cast(wide, made.dtype()))
}

/// `softmax_backward`: the input gradient from the output gradient and the output. Used where it is not differentiated again.
pub static DEF: OpDef = OpDef::new(
    "softmax_backward(Tensor grad_output, Tensor output, int dim) -> Tensor",
    Rule::Structured(rule),
    Derivative::Missing("`softmax` uses tensor ops where its gradient is differentiated again"),
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| compose(args, by_tensor_ops));
