//! What `var` and `std` share: the arguments `(self, dim, correction, keepdim)`.

use super::cases;
use crate::Tensor;
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::rules::{reduced_dims, reduced_sizes, require};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Strides};

pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    require(args, 0, t.dtype(), t.dtype().is_float(), "a float dtype; cast integers first")?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    Ok(Plan::one(t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(3)?), t.dtype(), Strides::Contiguous))
}

/// For a derivative: the input, the dimensions that were reduced (none means all), and by what the squares
/// were divided.
pub(super) fn parts<'a>(b: &Backward<'a>) -> Result<(Tensor, &'a [i64], f64)> {
    let dims = if let Arg::Ints(dims) = b.arg(1) { dims } else { &[] };
    let count = b.sizes(0).iter().product::<usize>() as f64 / b.grad(0)?.numel() as f64;
    Ok((b.input(0)?, dims, (count - b.float(2)?).max(0.0)))
}

pub(super) fn samples() -> Vec<Sample> {
    let input = |sizes: &[usize]| tensor(sizes, Fill::Distinct(-2.0, 2.0));
    // One element alone has no deviation, and the derivative of its root none either.
    cases::over_dims(input, &[SampleArg::Float(0.5)]).split_off(1)
}

pub(super) fn errors() -> Vec<ErrorSample> {
    cases::dim_errors(&[SampleArg::Float(0.5)])
}
