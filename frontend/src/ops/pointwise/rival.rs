//! Shared parts of `maximum` and `minimum`.

use crate::Tensor;
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules;
use crate::ops::sample::{Fill, PAIRS, Sample, SampleArg, sample, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Typing};

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::binary_held(args)?;
    rules::has_order(args, 0, typing.compute)?;
    Ok(typing)
}

pub(super) const fn def(
    schema: &'static str,
    formula: fn(&Backward<'_>, &mut Grads<'_>) -> Result<()>,
) -> OpDef {
    OpDef::binary(schema, rule, Derivative::of_inputs(0b11, formula))
        .forms(Forms::Out)
        .samples(samples)
        .with(OpFlags::EXACT)
}

/// The gradients; `loses` is a comparison that is true where its first argument is not selected.
pub(super) fn derivative(b: &Backward<'_>, g: &mut Grads<'_>, loses: &'static OpDef) -> Result<()> {
    g.set(0, || share(b.grad(0)?, loses, b.saved(0)?.arg(), b.saved(1)?.arg()))?;
    g.set(1, || share(b.grad(0)?, loses, b.saved(1)?.arg(), b.saved(0)?.arg()))
}

/// The part of `grad` for `own`: all of it where `own` is selected, half where both are equal, otherwise 0.
fn share(grad: &Tensor, loses: &'static OpDef, own: Arg<'_>, rival: Arg<'_>) -> Result<Tensor> {
    let lost = loses.run(&[own, rival])?;
    let tied = super::eq::DEF.run(&[own, rival])?;
    lost.where_cond(0, &tied.where_cond(&grad.mul(0.5)?, grad)?)
}

fn samples() -> Vec<Sample> {
    let left = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.0, -2.0, 0.5, 3.0, -1.5, 2.0, -3.0]));
    let right = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![-0.75, 1.25, -2.25, 0.25, 4.0]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([left(a), right(b)]));
    let more = [
        sample([left(&[3, 4]), SampleArg::Float(0.1)]),
        Sample { smooth: false, ..sample([left(&[7]), left(&[7])]) },
    ];
    pairs.chain(more).collect()
}
