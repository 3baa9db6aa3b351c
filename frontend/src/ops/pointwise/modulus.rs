//! Shared parts of `fmod` and `remainder`, which differ in the rounding of the quotient. `floor_divide` has the same rule.

use crate::DType;
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::rules;
use crate::ops::sample::{
    ErrorSample, Fill, PAIRS, Sample, SampleArg, broadcast_errors, error, fixed, sample, tensor,
};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

pub(super) const RULE: Rule = Rule::Elementwise(rules::FIRST_TWO, rule);

pub(super) const fn def(
    schema: &'static str,
    formula: fn(&Backward<'_>, &mut Grads<'_>) -> Result<()>,
) -> OpDef {
    OpDef::new(schema, RULE, Derivative::of_inputs(0b11, formula), samples)
        .forms(Forms::InPlace)
        .dtypes(Dtypes::NUMERIC)
        .errors(errors)
        .with(OpFlags::ZERO_PRESERVING_IF_NONZERO)
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::binary_held(args)?;
    rules::require(args, 0, typing.compute, typing.compute != DType::BOOL, "numbers")?;
    Ok(typing)
}

/// The result is `self - quotient * other`, and the quotient is piecewise constant.
pub(super) fn derivative(b: &Backward<'_>, g: &mut Grads<'_>, rounding: &str) -> Result<()> {
    g.set(0, || Ok(b.grad(0)?.clone()))?;
    g.set(1, || {
        let (a, other) = (b.saved(0)?, b.saved(1)?);
        let quotient = super::div::DEF.run(&[a.arg(), other.arg(), Arg::Str(rounding)])?;
        b.grad(0)?.mul(&quotient)?.mul(-1)
    })
}

/// Operands whose quotients are not integers, where the remainder is discontinuous.
fn samples() -> Vec<Sample> {
    let dividend = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![5.25, -4.0, 1.0, -7.5, 0.5, 3.0, -1.0]));
    let divisor = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.7, -2.3, 3.25, -1.9, 2.6]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([dividend(a), divisor(b)]));
    let numbers =
        [sample([dividend(&[3, 4]), SampleArg::Float(2.9)]), sample([SampleArg::Int(5), divisor(&[2, 3])])];
    pairs.chain(numbers).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = |fill| fixed(&[2], DType::I32, fill);
    let mut errors = broadcast_errors(&[]);
    errors.push(error([ints(Fill::Index(5)), ints(Fill::Values(vec![0.0]))], "divided by zero"));
    errors
}
