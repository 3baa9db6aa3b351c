//! `nll_loss_backward`
//!
//! Arguments:
//! - `weights`: the weight of each target's class, of the targets' shape.
//! - `classes`: the number of classes.
//! - `grad`: the gradient of the loss of each target.

use super::nll_loss_forward;
use crate::ops::composite::{cast, one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{require, wrong_shape};
use crate::ops::sample::{Fill, SampleArg, error, fixed, index, plain, sample};
use crate::{DType, Tensor, error::Result};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let grad = args.tensor(0)?;
    require(args, 0, grad.dtype(), grad.dtype().is_float(), "a float dtype")?;
    let mut sizes = Dims::from_slice(args.tensor(1)?.sizes());
    for i in [0, 2] {
        let got = args.tensor(i)?.sizes();
        if got != sizes.as_slice() {
            return Err(wrong_shape(args, i, format!("of the targets' shape {sizes:?}"), got));
        }
    }
    sizes.insert(usize::from(!sizes.is_empty()), args.int(3)?.max(0) as usize);
    let mut plan = Plan::one(grad.dtype(), sizes, grad.dtype(), Strides::Contiguous);
    plan.cast = 0b101;
    plan.cast_index = 0b10;
    Ok(plan)
}

fn formula(b: &crate::autograd::Backward<'_>, g: &mut crate::autograd::Grads<'_>) -> Result<()> {
    let target = b.input(1)?;
    let (picked, _) =
        nll_loss_forward::DEF.run_pair(&[b.grad(0)?.into(), (&target).into(), Arg::None, b.arg(4)])?;
    g.set(0, || picked.mul(&b.input(2)?))?;
    g.set(2, || picked.mul(&b.input(0)?))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (grad, target) = (tensor(args, 0)?, tensor(args, 1)?);
    let mut sizes = Dims::from_slice(target.shape());
    let at = usize::from(!sizes.is_empty());
    sizes.insert(at, args.int(3)?.max(0) as usize);
    let (absent, places) = nll_loss_forward::places(target, args.int(4)?, at)?;
    let values = grad.mul(&cast(tensor(args, 2)?, grad.dtype())?)?.neg()?.masked_fill(&absent, 0)?;
    Tensor::zeros_with(&sizes, (grad.dtype(), grad.device()))?.scatter_add(
        at as i64,
        &places,
        &values.unsqueeze(at)?,
    )
}

/// `nll_loss_backward`: zeros of the input's shape, except `-grad * weight` at each target's class.
pub static DEF: OpDef = OpDef::new(
    "nll_loss_backward(Tensor grad, Tensor target, Tensor weights, int classes, \
     int ignore_index) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b111, saves_outputs: 0, formula },
    || {
        let weights = fixed(&[4], DType::F64, Fill::Values(vec![0.5, 1.5, 2.0, 1.0]));
        let learned =
            [plain(&[2, 2]), index(&[2, 2], 3), plain(&[2, 2]), SampleArg::Int(3), SampleArg::Int(1)];
        vec![
            sample(learned),
            sample([plain(&[4]), index(&[4], 3), weights, SampleArg::Int(3), SampleArg::Int(-100)]),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], weights: &[usize]| {
        [plain(grad), index(&[4], 3), plain(weights), SampleArg::Int(3), SampleArg::Int(-100)]
    };
    vec![
        error(call(&[3], &[4]), "of the targets' shape [4]"),
        error(call(&[4], &[]), "of the targets' shape [4]"),
    ]
})
.decomposed(|args| one(compose(args)));
