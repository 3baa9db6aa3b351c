//! `glu_backward`

use super::glu::{half_sizes, halves};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, in_format_of, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{keeping, wrong_shape};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, sizes) = (args.tensor(1)?, half_sizes(args, 1)?);
    let grad = args.tensor(0)?.sizes();
    if grad != sizes.as_slice() {
        return Err(wrong_shape(args, 0, format!("of the shape of a half, {sizes:?}"), grad));
    }
    let mut plan = keeping(t, t.dtype(), Dims::from_slice(t.sizes()), t.dtype());
    plan.cast = 0b11;
    Ok(plan)
}

/// `grad * sigmoid(b)` for the first half `a`, and `grad * a * sigmoid'(b)` for the second half `b`.
pub(super) fn by_tensor_ops(grad: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    let (own, gate) = halves(x, dim)?;
    let (own, gate) = (widened(&own)?, widened(&gate)?);
    let to_own = widened(grad)?.mul(&gate.sigmoid()?)?;
    // `sigmoid(-b)` instead of `1 - sigmoid(b)`, which cancels where the sigmoid is close to 1.
    let to_gate = gate.neg()?.sigmoid()?.mul(&own)?.mul(&to_own)?;
    Tensor::cat(&[&to_own, &to_gate], dim)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (grad, x) = (tensor(args, 0)?, tensor(args, 1)?);
    in_format_of(&x, cast(by_tensor_ops(&grad, &x, args.int(2)?)?, x.dtype())?)
}

/// `glu_backward`: the gradients of both halves in one pass. Used where they are not differentiated again.
pub static DEF: OpDef = OpDef::new(
    "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    Rule::Structured(rule),
    Derivative::Missing("`glu` uses tensor ops where its gradient is differentiated again"),
    || {
        let call =
            |grad: &[usize], sizes: &[usize], dim| sample([plain(grad), plain(sizes), SampleArg::Int(dim)]);
        vec![
            call(&[3], &[6], 0),
            call(&[3, 2], &[3, 4], -1),
            call(&[2, 3], &[4, 3], 0),
            call(&[2, 2, 3], &[2, 4, 3], 1),
            call(&[2, 2, 2, 3], &[2, 4, 2, 3], -3),
            call(&[2, 1, 1, 3, 2], &[2, 1, 2, 3, 2], 2),
            call(&[3, 0], &[3, 0], 1),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], sizes: &[usize], dim| [plain(grad), plain(sizes), SampleArg::Int(dim)];
    vec![
        error(call(&[1], &[3], 0), "an even number of elements"),
        error(call(&[4], &[4], 0), "of the shape of a half"),
        error(call(&[2], &[4], 1), "out of range"),
    ]
})
.decomposed(|args| one(compose(args)));
