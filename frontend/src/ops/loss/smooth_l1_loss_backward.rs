//! `smooth_l1_loss_backward`
//!
//! Arguments:
//! - `beta`: the difference from which the loss is linear.

use super::one;
use super::smooth_l1_loss::check;
use crate::Tensor;
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{FIRST_THREE, wrong_shape};
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor as filled, uniform};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Typing};

/// Arguments 1 and 2, input and target.
const PAIR: u32 = 0b110;

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    float_tensor(args, 0)?;
    args.tensor(1)?;
    args.tensor(2)?;
    check(args, 3)?;
    if !matches!(args.str(4)?, "none" | "mean" | "sum") {
        return Err(Error::Value {
            op: args.name(),
            argument: args.op.schema.param_name(4),
            expected: "none, mean or sum".to_string(),
            got: format!("`{}`", args.str(4)?),
        });
    }
    let sizes = args.broadcast(PAIR)?;
    if args.broadcast(FIRST_THREE)? != sizes {
        let expected = format!("of a shape that broadcasts to that of the loss, {sizes:?}");
        return Err(wrong_shape(args, 0, expected, args.tensor(0)?.sizes()));
    }
    Plan::elementwise(args, FIRST_THREE, Typing::of(args.promote(FIRST_THREE)?))
}

/// The factor of each gradient: the reciprocal of the count for a mean, otherwise 1.
fn share(reduction: &str, difference: &Tensor) -> f64 {
    if reduction == "mean" { 1.0 / difference.elem_count() as f64 } else { 1.0 }
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let [grad, x, target] = [0, 1, 2].map(|i| widened(&tensor(args, i)?));
    let (difference, beta) = (x?.sub(&target?)?, args.float(3)?);
    // NaN is not outside, and propagates.
    let outside = difference.abs()?.ge(beta)?;
    let slope = outside.where_cond(&difference.sign()?, &difference.div(beta)?)?;
    let grad = grad?.mul(share(args.str(4)?, &difference))?;
    cast(grad.mul(&slope)?, args.promote(FIRST_THREE)?)
}

/// The first derivative is linear within `beta` and constant beyond.
fn formula(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (x, target, beta) = (widened(&b.input(1)?)?, widened(&b.input(2)?)?, b.float(3)?);
    let difference = x.sub(&target)?;
    let factor = share(b.str(4)?, &difference);
    g.set(0, || {
        let each = [b.grad(0)?.into(), (&x).into(), (&target).into(), b.arg(3), Arg::Str("none")];
        DEF.run(&each)?.mul(factor)
    })?;
    if beta == 0.0 {
        g.set(1, || x.zeros_like())?;
        return g.set(2, || target.zeros_like());
    }
    let bend = || {
        let both = widened(b.grad(0)?)?.mul(&b.input(0)?)?.mul(factor / beta)?;
        difference.abs()?.lt(beta)?.where_cond(&both, 0)
    };
    g.set(1, bend)?;
    g.set(2, || bend()?.neg())
}

fn samples() -> Vec<Sample> {
    let call = |grad: &[usize], sizes: &[usize], beta, how| {
        let (x, target) = (filled(sizes, Fill::Distinct(2.1, 4.0)), uniform(sizes, -1.0, 1.0));
        sample([plain(grad), x, target, SampleArg::Float(beta), SampleArg::Str(how)])
    };
    let near = |beta, how| {
        let (x, target) = (filled(&[4], Fill::Distinct(0.1, 0.5)), uniform(&[4], -0.1, 0.0));
        sample([plain(&[4]), x, target, SampleArg::Float(beta), SampleArg::Str(how)])
    };
    // Differences of 0, of `beta` and above.
    let corners = |beta| {
        let x = filled(&[7], Fill::Values(vec![0.0, 0.5, -0.5, 0.25, -0.25, 2.0, -2.0]));
        let rest = [filled(&[7], Fill::Values(vec![0.0])), SampleArg::Float(beta), SampleArg::Str("none")];
        Sample { smooth: false, ..sample([plain(&[7]), x].into_iter().chain(rest)) }
    };
    vec![
        near(1.0, "none"),
        near(2.0, "mean"),
        corners(0.5),
        corners(0.0),
        call(&[], &[], 0.7, "mean"),
        call(&[], &[3, 4], 0.7, "mean"),
        call(&[], &[2, 3, 4], 0.7, "sum"),
        call(&[2, 3, 2, 2], &[2, 3, 2, 2], 0.7, "none"),
        call(&[], &[2, 1, 2, 3, 2], 0.7, "mean"),
        call(&[], &[0, 3], 0.7, "sum"),
    ]
}

/// `smooth_l1_loss_backward`: the gradient of the input; that of the target is its negative.
pub static DEF: OpDef = OpDef::new(
    "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar beta=1, \
     str reduction='mean') -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b111, saves_outputs: 0, formula },
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |grad: &[usize], beta, how| {
        [plain(grad), plain(&[3]), plain(&[3]), SampleArg::Float(beta), SampleArg::Str(how)]
    };
    vec![
        error(call(&[3], 1.0, "avg"), "none, mean or sum"),
        error(call(&[3], -1.0, "none"), "0 or more"),
        error(call(&[2, 3], 1.0, "none"), "that of the loss"),
        error(call(&[4], 1.0, "none"), "do not broadcast"),
    ]
})
.decomposed(|args| one(compose(args)));
