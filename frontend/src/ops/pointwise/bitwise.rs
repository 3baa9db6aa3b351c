//! What the bitwise ops of two tensors share: the dtypes that have bits, their samples and errors.

use crate::DType;
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Fill, PAIRS, Sample, error, fixed, sample, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Typing};

/// `bitwise_and`, `bitwise_or` or `bitwise_xor`.
pub(super) const fn def(schema: &'static str) -> OpDef {
    OpDef::binary(schema, rule, Derivative::NotDifferentiable)
        .dtypes(Dtypes::INTEGRAL)
        .samples(|| samples(&Fill::Index(50)))
        .errors(|| refuses_floats("integers or bool"))
}

/// A shift of `self` by `other` bits.
pub(super) const fn shift(schema: &'static str) -> OpDef {
    OpDef::binary(schema, shift_rule, Derivative::NotDifferentiable)
        .dtypes(Dtypes::INT)
        .samples(|| samples(&Fill::Values(vec![0.0, 1.0, 3.0, 7.0, 70.0])))
        .errors(|| refuses_floats("integers"))
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::binary(args)?;
    rules::require(args, 0, typing.compute, !typing.compute.is_float(), "integers or bool")?;
    Ok(typing)
}

fn shift_rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::binary(args)?;
    rules::require(args, 0, typing.compute, typing.compute.is_integer(), "integers")?;
    Ok(typing)
}

fn samples(other: &Fill) -> Vec<Sample> {
    let pair =
        |(a, b): &(&[usize], &[usize])| sample([tensor(a, Fill::Index(100)), tensor(b, other.clone())]);
    PAIRS.iter().map(pair).collect()
}

fn refuses_floats(message: &'static str) -> Vec<ErrorSample> {
    let floats = || fixed(&[2], DType::F32, Fill::Index(2));
    vec![error([floats(), floats()], message)]
}
