//! Shared parts of `var` and `std`, with and without the mean: arguments `(self, dim, correction, keepdim)`.

use super::{cases, mean, sum};
use crate::Tensor;
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::composite::{cast, centred, float_tensor, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{keeping, kept, reduced_count, reduced_dims, reduced_sizes};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, sample, tensor as filled};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Outputs, Plan, Rule};

pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = float_tensor(args, 0)?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    Ok(keeping(t, t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(3)?), t.dtype()))
}

/// The variance, with f16 and bf16 widened to f32.
fn wide_variance(args: &Args<'_>) -> Result<Tensor> {
    let given = args.tensor(0)?;
    if !given.is_strided() {
        // The variance of a single element is NaN, but unstored elements of the result would be 0.
        let reason = "leaves nothing unstored once the mean is taken away; convert with `to_dense()` first";
        return Err(Error::Layout { op: args.name(), layout: given.layout(), reason }.into());
    }
    let x = widened(&tensor(args, 0)?)?;
    let mask = reduced_dims(args, 1, x.rank())?;
    let divisor = (reduced_count(x.shape(), mask) as f64 - args.float(2)?).max(0.0);
    let squares = centred(&x, args.optional_ints(1)?.unwrap_or(&[]))?.square()?;
    sum::DEF.run(&[(&squares).into(), args.get(1), args.get(3)])?.div(divisor)
}

/// The variance: the mean squared deviation from the mean.
pub(super) fn variance(args: &Args<'_>) -> RuleResult<Outputs> {
    one(wide_variance(args).and_then(|made| cast(made, args.tensor(0)?.dtype())))
}

/// The standard deviation: the root of [`variance`].
pub(super) fn deviation(args: &Args<'_>) -> RuleResult<Outputs> {
    one(wide_variance(args).and_then(|made| cast(made.sqrt()?, args.tensor(0)?.dtype())))
}

/// The inputs of a derivative: the input, the reduced dimensions (empty for all), and the divisor of the sum of squares.
pub(super) fn parts<'a>(b: &Backward<'a>) -> Result<(Tensor, &'a [i64], f64)> {
    let dims = if let Arg::Ints(dims) = b.arg(1) { dims } else { &[] };
    let count = b.sizes(0).iter().product::<usize>() as f64 / b.grad(0)?.elem_count() as f64;
    Ok((b.input(0)?, dims, (count - b.float(2)?).max(0.0)))
}

pub(super) fn samples() -> Vec<Sample> {
    let input = |sizes: &[usize]| filled(sizes, Fill::Distinct(-2.0, 2.0));
    // A single element has no deviation, and the root no derivative there.
    let mut samples = cases::over_dims(input, &[SampleArg::Float(0.5)]).split_off(1);
    // Equal values, and values that differ only in their last digits.
    let large = [10001.0, 9998.5, 10000.25, 9999.0, 10003.0];
    samples.extend([vec![1234.567], large.to_vec()].map(|values| {
        let args = [
            filled(&[2, 40], Fill::Values(values)),
            SampleArg::Ints(vec![1]),
            SampleArg::Float(1.0),
            SampleArg::Bool(false),
        ];
        Sample { smooth: false, ..sample(args) }
    }));
    samples
}

pub(super) fn errors() -> Vec<ErrorSample> {
    cases::dim_errors(&[SampleArg::Float(0.5)])
}

/// The definition of `var_mean` or `std_mean`.
pub(super) const fn beside_mean(schema: &'static str) -> OpDef {
    OpDef::new(schema, Rule::Structured(rule_of_both), Derivative::Composite, samples)
        .dtypes(Dtypes::FLOAT)
        .errors(errors)
}

fn rule_of_both(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rule(args)?;
    let t = args.tensor(0)?;
    let sizes = plan.outputs[0].sizes.clone();
    let strides = kept(t, &sizes);
    Ok(plan.and(sizes, t.dtype(), strides))
}

/// The result of the op `spread`, and the mean.
pub(super) fn with_mean(args: &Args<'_>, spread: &'static OpDef) -> RuleResult<Outputs> {
    let around = spread.run(&[args.get(0), args.get(1), args.get(2), args.get(3)])?;
    let middle = mean::DEF.run(&[args.get(0), args.get(1), args.get(3)])?;
    Ok(Outputs::from_iter([around.into_ref(), middle.into_ref()]))
}
