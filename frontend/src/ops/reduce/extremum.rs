//! Shared parts of the ops that find the largest or smallest element: `amax` and `amin` reduce several dimensions, with
//! arguments `(self, dim, keepdim)`; `max` and `min` reduce one dimension and also return indices; `argmax` and `argmin`
//! return only indices, along one dimension or all.

use super::cases;
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::composite::{cast, counting, divided_by_count, wide};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules::{has_order, keeping, kept, not_empty, reduced_dim, reduced_dims, reduced_sizes};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, plain, sample, tensor};
use crate::ops::sparse::lines::{at_entries, length};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

/// The definition of `amax` or `amin`.
pub(super) const fn over_dims(schema: &'static str) -> OpDef {
    let derivative = Derivative::Formula { saves: 0b1, saves_outputs: 0b1, formula: to_ties };
    OpDef::new(schema, Rule::Structured(rule), derivative, || cases::over_dims(distinct, &[]))
        .forms(Forms::Out)
        .errors(|| cases::dim_errors(&[]))
        .with(OpFlags::EXACT)
}

/// The definition of `max` or `min`.
pub(super) const fn along(schema: &'static str) -> OpDef {
    let derivative = Derivative::Formula { saves: 0, saves_outputs: 0b10, formula: to_place };
    OpDef::new(schema, Rule::Structured(rule_along), derivative, samples_along)
        .errors(errors_along)
        .with(OpFlags::EXACT)
}

/// The definition of `argmax` or `argmin`.
pub(super) const fn place(schema: &'static str) -> OpDef {
    OpDef::new(schema, Rule::Structured(rule_place), Derivative::NotDifferentiable, samples_place)
        .forms(Forms::Out)
        .errors(errors_along)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    has_order(args, 0, t.dtype())?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    not_empty(args, t.sizes(), mask)?;
    Ok(keeping(t, t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(2)?), t.dtype()))
}

/// Divides the gradient evenly among all elements that equal the result.
fn to_ties(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    g.set(0, || {
        if !b.input(0)?.as_ref().is_strided() {
            return to_stored_ties(b);
        }
        let (x, out) = (b.input(0)?, b.unsqueeze_reduced(&b.output(0)?, 0, b.arg(1), b.bool(2)?)?);
        let grad = b.unsqueeze_reduced(b.grad(0)?, 0, b.arg(1), b.bool(2)?)?;
        let ties = x.eq(&out)?.to_dtype(wide(x.dtype()))?;
        let dims = if let Arg::Ints(dims) = b.arg(1) { dims } else { &[] };
        divided_by_count(&grad, &ties.sum_keepdim(dims)?)?.mul(&cast(ties, x.dtype())?)
    })
}

/// The gradient of a sparse tensor at its stored entries. Unstored elements count as 0; where the result is 0 they take their
/// share of the gradient, which is dropped.
fn to_stored_ties(b: &Backward<'_>) -> Result<Tensor> {
    let x = b.input(0)?.detach().without_duplicates()?;
    let of_lines = |t: &Tensor| at_entries(&x, t, b.arg(1), b.bool(2)?);
    let (out, grad) = (of_lines(&b.output(0)?.detach())?, of_lines(b.grad(0)?)?);
    let dims = if let Arg::Ints(dims) = b.arg(1) { dims } else { &[] };
    // Counts may exceed the range of f16.
    let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let count = |these: &Tensor| {
        let these = x.map_stored_as(wide, |_| Ok(these.clone()))?;
        at_entries(&x, &these.sum_keepdim(dims)?, b.arg(1), true)
    };
    let ties = x.stored()?.eq(&out)?.to_dtype(wide)?;
    let unstored = count(&ties.ones_like()?)?.neg()?.add(length(x.shape(), b.output(0)?.shape()))?;
    let zeros = out.eq(0)?.to_dtype(wide)?.mul(&unstored)?;
    let shares = grad.to_dtype(wide)?.div(&count(&ties)?.add(&zeros)?)?.mul(&ties)?;
    x.with_stored(&shares.to_dtype(x.dtype())?)
}

fn distinct(sizes: &[usize]) -> SampleArg {
    tensor(sizes, Fill::Distinct(-2.0, 2.0))
}

/// The sizes of the result along one dimension, or of all elements.
fn sizes_along(args: &Args<'_>) -> RuleResult<Dims> {
    let t = args.tensor(0)?;
    let mask = reduced_dim(args, 1, t.ndim())?;
    not_empty(args, t.sizes(), mask)?;
    Ok(reduced_sizes(t.sizes(), mask, args.bool(2)?))
}

fn rule_along(args: &Args<'_>) -> RuleResult<Plan> {
    let (sizes, t) = (sizes_along(args)?, args.tensor(0)?);
    has_order(args, 0, t.dtype())?;
    let strides = kept(t, &sizes);
    Ok(keeping(t, t.dtype(), sizes.clone(), t.dtype()).and(sizes, DType::I64, strides))
}

fn rule_place(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    has_order(args, 0, t.dtype())?;
    Ok(keeping(t, t.dtype(), sizes_along(args)?, DType::I64))
}

/// Adds the gradient to the element whose index is in the second output.
fn to_place(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    g.set(0, || {
        let sizes = b.sizes(0);
        let places = b.unsqueeze_reduced(&b.output(1)?, 0, b.arg(1), b.bool(2)?)?;
        let grad = b.unsqueeze_reduced(b.grad(0)?, 0, b.arg(1), b.bool(2)?)?;
        let mut along = vec![1; sizes.len()];
        if !sizes.is_empty() {
            let dim = wrap_dim("max", b.int(1)?, sizes.len())?;
            along[dim] = sizes[dim];
        }
        grad.mul(&places.eq(&counting(&along, grad.device())?)?.to_dtype(grad.dtype())?)
    })
}

fn samples_along() -> Vec<Sample> {
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
        long_ties(),
        call(&[100], 0, false),
    ]
}

/// More equal elements than SIMD lanes; the first one counts.
fn long_ties() -> Sample {
    let equal = tensor(&[70], Fill::Values(vec![1.0]));
    Sample { smooth: false, ..sample([equal, SampleArg::Int(0), SampleArg::Bool(false)]) }
}

fn errors_along() -> Vec<ErrorSample> {
    vec![
        error([plain(&[3]), SampleArg::Int(1), SampleArg::Bool(false)], "out of range"),
        error([plain(&[3, 0]), SampleArg::Int(1), SampleArg::Bool(false)], "not empty"),
    ]
}

fn samples_place() -> Vec<Sample> {
    let call = |sizes: &[usize], dim: SampleArg, keep| sample([plain(sizes), dim, SampleArg::Bool(keep)]);
    vec![
        call(&[], SampleArg::None, false),
        call(&[3, 4], SampleArg::None, false),
        call(&[3, 4], SampleArg::Int(0), false),
        call(&[3, 700], SampleArg::Int(-1), true),
        call(&[7], SampleArg::Int(0), false),
        call(&[2, 3, 4], SampleArg::Int(1), false),
        call(&[2, 3, 2, 2], SampleArg::Int(-2), true),
        call(&[2, 1, 2, 3, 2], SampleArg::Int(3), false),
        call(&[0, 3], SampleArg::Int(1), false),
        long_ties(),
        // The conformance suite's NaN in the middle is after the first vectors.
        call(&[100], SampleArg::Int(0), false),
    ]
}
