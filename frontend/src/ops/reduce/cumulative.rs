//! Shared parts of `cummax` and `cummin`: arguments `(self, dim)`, results `(values, indices)`.

use super::scan::running;
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::composite::{counting, in_format_of, tensor};
use crate::ops::def::{Decompose, Derivative, OpDef, OpFlags};
use crate::ops::rules::{has_order, kept};
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor as filled};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Outputs, Plan, Rule};

/// The definition of `cummax` or `cummin`.
pub(super) const fn extremum(schema: &'static str, decomposition: Decompose) -> OpDef {
    let derivative = Derivative::Formula { saves: 0, saves_outputs: 0b10, formula: to_place };
    OpDef::new(schema, Rule::Structured(rule), derivative, samples)
        .errors(|| vec![error([plain(&[3]), SampleArg::Int(1)], "out of range")])
        .with(OpFlags::EXACT)
        .decomposed(decomposition)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    has_order(args, 0, t.dtype())?;
    args.dim(1, t.ndim())?;
    let sizes = Dims::from_slice(t.sizes());
    let strides = kept(t, &sizes);
    Ok(Plan::one(t.dtype(), sizes.clone(), t.dtype(), strides.clone()).and(sizes, DType::I64, strides))
}

/// The cumulative extremum; `reaches` is whether an element is at least as extreme as another. NaN is more extreme than every
/// number, and the last NaN counts.
pub(super) fn compose(
    args: &Args<'_>,
    reaches: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> RuleResult<Outputs> {
    let (x, dim) = (tensor(args, 0)?, args.int(1)?);
    let mut along = vec![1; x.rank()];
    if x.rank() > 0 {
        let dim = args.dim(1, x.rank())?;
        along[dim] = x.shape()[dim];
    }
    let places = counting(&along, x.device())?.expand(x.shape())?;
    let made = running(vec![x.copy()?, places.copy()?], dim, |before, after| {
        let mut later = reaches(&after[0], &before[0])?;
        if x.dtype().is_float() {
            later = later.logical_and(&before[0].isnan()?.logical_not()?)?.logical_or(&after[0].isnan()?)?;
        }
        let choose = |i: usize| later.where_cond(&after[i], &before[i]);
        Ok(vec![choose(0)?, choose(1)?])
    })?;
    made.into_iter().map(|t| Ok(in_format_of(&x, t)?.into_ref())).collect()
}

/// Adds each gradient to the element whose index is in the second output.
fn to_place(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    g.set(0, || {
        let grad = b.grad(0)?;
        grad.new_zeros(b.sizes(0))?.scatter_add(b.int(1)?, &b.output(1)?, grad)
    })
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dim| sample([filled(sizes, Fill::Distinct(-2.0, 2.0)), SampleArg::Int(dim)]);
    let ties = |sizes: &[usize], dim| {
        let values = Fill::Values(vec![1.0, 1.0, 0.0, -0.0, 2.0, 2.0, 2.0, -1.0, 3.0, 1.0, -1.0]);
        Sample { smooth: false, ..sample([filled(sizes, values), SampleArg::Int(dim)]) }
    };
    let mut samples = vec![
        call(&[], 0),
        call(&[1], 0),
        call(&[7], -1),
        call(&[3, 4], 0),
        call(&[3, 4], 1),
        call(&[2, 3, 4], 1),
        call(&[2, 5, 2, 3], -3),
        call(&[2, 1, 2, 3, 2], 3),
        call(&[2, 0, 4], 1),
        call(&[0, 3], 1),
        call(&[100], 0),
    ];
    samples.extend([ties(&[33], 0), ties(&[3, 11], 1), ties(&[4, 5], 0)]);
    samples
}

/// Calls an op that [`extremum`] defines.
pub(super) fn call(def: &'static OpDef, x: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
    def.run_pair(&[x.into(), Arg::Int(dim)])
}
