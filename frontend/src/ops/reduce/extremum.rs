//! What `amax` and `amin` share, with arguments `(self, dim, keepdim)`, and what `max` and `min` do, which
//! go along one dimension and also give places.

use super::cases;
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::rules::{not_empty, reduced_dim, reduced_dims, reduced_sizes, require};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, plain, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Strides};

pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    not_empty(args, t.sizes(), mask)?;
    Ok(Plan::one(t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(2)?), t.dtype(), Strides::Contiguous))
}

/// Shares the gradient among all elements that equal the result.
pub(super) fn to_ties(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    g.set(0, || {
        let (x, out) = (b.input(0)?, b.unreduce(&b.output(0)?, 0, b.arg(1), b.bool(2)?)?);
        let grad = b.unreduce(b.grad(0)?, 0, b.arg(1), b.bool(2)?)?;
        let ties = x.eq(&out)?.to_dtype(x.dtype())?;
        let dims = if let Arg::Ints(dims) = b.arg(1) { dims } else { &[] };
        grad.div(&ties.sum_dims(dims, true)?)?.mul(&ties)
    })
}

fn distinct(sizes: &[usize]) -> SampleArg {
    tensor(sizes, Fill::Distinct(-2.0, 2.0))
}

pub(super) fn samples() -> Vec<Sample> {
    cases::over_dims(distinct, &[])
}

pub(super) fn errors() -> Vec<ErrorSample> {
    cases::dim_errors(&[])
}

pub(super) fn rule_along(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    require(args, 0, t.dtype(), t.dtype() != DType::BOOL, "a number; cast bool first")?;
    let mask = reduced_dim(args, 1, t.ndim())?;
    not_empty(args, t.sizes(), mask)?;
    let sizes = reduced_sizes(t.sizes(), mask, args.bool(2)?);
    let values = Plan::one(t.dtype(), sizes.clone(), t.dtype(), Strides::Contiguous);
    Ok(values.and(sizes, DType::I64, Strides::Contiguous))
}

/// Gives the gradient to the element at the place that the second output names.
pub(super) fn to_place(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    g.set(0, || {
        let sizes = b.sizes(0);
        let places = b.unreduce(&b.output(1)?, 0, b.arg(1), b.bool(2)?)?;
        let grad = b.unreduce(b.grad(0)?, 0, b.arg(1), b.bool(2)?)?;
        let mut along = vec![1; sizes.len()];
        let mut n = 1;
        if !sizes.is_empty() {
            let dim = wrap_dim("max", b.int(1)?, sizes.len())?;
            n = sizes[dim];
            along[dim] = n;
        }
        let all = Tensor::from_vec((0..n as i64).collect(), &along)?.to_device(b.device(0))?;
        grad.mul(&places.eq(&all)?.to_dtype(grad.dtype())?)
    })
}

pub(super) fn samples_along() -> Vec<Sample> {
    let call = |sizes: &[usize], dim: i64, keep| {
        sample([distinct(sizes), SampleArg::Int(dim), SampleArg::Bool(keep)])
    };
    vec![
        call(&[], 0, false),
        call(&[5], 0, false),
        call(&[3, 4], 0, true),
        call(&[3, 4], -1, false),
        call(&[2, 3, 4], 1, false),
        call(&[2, 0, 4], 2, true),
        call(&[2, 3, 2, 2], -2, false),
        call(&[2, 3, 1, 2, 2], 1, true),
    ]
}

pub(super) fn errors_along() -> Vec<ErrorSample> {
    vec![
        error([plain(&[3]), SampleArg::Int(1), SampleArg::Bool(false)], "out of range"),
        error([plain(&[3, 0]), SampleArg::Int(1), SampleArg::Bool(false)], "not empty"),
    ]
}
