//! Shared parts of the bitwise ops of two tensors: supported dtypes, samples and errors.

use crate::DType;
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Fill, PAIRS, Sample, error, fixed, sample, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Typing};

/// The definition of `bitwise_and`, `bitwise_or` or `bitwise_xor`.
pub(super) const fn def(schema: &'static str) -> OpDef {
    OpDef::binary(schema, rule, Derivative::NotDifferentiable)
        .dtypes(Dtypes::INTEGRAL)
        .samples(|| samples(&Fill::Index(50)))
        .errors(|| refuses_floats("integers or bool"))
}

/// The definition of a shift of `self` by `other` bits.
pub(super) const fn shift(schema: &'static str) -> OpDef {
    OpDef::binary(schema, shift_rule, Derivative::NotDifferentiable)
        .dtypes(Dtypes::INT)
        .samples(|| samples(&Fill::Values(vec![0.0, 1.0, 3.0, 7.0, 70.0])))
        .errors(|| refuses_floats("integers"))
}

/// The definition of `gcd` or `lcm`.
pub(super) const fn divisors(schema: &'static str) -> OpDef {
    OpDef::binary(schema, shift_rule, Derivative::NotDifferentiable)
        .dtypes(Dtypes::INT)
        .samples(|| {
            // The least i8 is among them, whose magnitude is out of range.
            let x = Fill::Values(vec![12.0, -128.0, -18.0, 0.0, 50.0, 7.0, 100.0]);
            let y = Fill::Values(vec![8.0, 6.0, -128.0, 0.0, 35.0, -12.0, 1.0, 96.0]);
            let pair = |(a, b): &(&[usize], &[usize])| sample([tensor(a, x.clone()), tensor(b, y.clone())]);
            PAIRS.iter().map(pair).collect()
        })
        .errors(|| refuses_floats("integers"))
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    of_integers(args, |dtype| !dtype.is_inexact(), "integers or bool")
}

fn shift_rule(args: &Args<'_>) -> RuleResult<Typing> {
    of_integers(args, DType::is_integer, "integers")
}

/// The rule of an op on dtypes that satisfy `fits`; if `self` does, the error names the other argument.
fn of_integers(args: &Args<'_>, fits: fn(DType) -> bool, expected: &'static str) -> RuleResult<Typing> {
    let typing = rules::binary(args)?;
    let first_fits = match args.get(0) {
        Arg::Tensor(first) => fits(first.dtype()),
        Arg::Float(_) => false,
        _ => true,
    };
    let at_fault = usize::from(first_fits);
    rules::require(args, at_fault, typing.compute, fits(typing.compute), expected)?;
    Ok(typing)
}

fn samples(other: &Fill) -> Vec<Sample> {
    let pair =
        |(a, b): &(&[usize], &[usize])| sample([tensor(a, Fill::Index(100)), tensor(b, other.clone())]);
    PAIRS.iter().map(pair).collect()
}

fn refuses_floats(message: &'static str) -> Vec<ErrorSample> {
    let of = |dtype| fixed(&[2], dtype, Fill::Index(2));
    let beside = if message.ends_with("bool") {
        "`other` must be integers or bool"
    } else {
        "`other` must be integers"
    };
    vec![error([of(DType::F32), of(DType::F32)], message), error([of(DType::I64), of(DType::F32)], beside)]
}
