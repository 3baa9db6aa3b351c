//! `adam_rows`
//!
//! Arguments:
//! - `self`: the table of parameters, whose rows are updated.
//! - `exp_avg`: the first moments, of the table's shape.
//! - `exp_avg_sq`: the second moments, of the table's shape.
//! - `index`: the rows, one for each row of `grad`.
//! - `grad`: the gradients of these rows.
//! - `eps`: added to the root of the second moment.

use super::geometry::index as index_of;
use super::unique::Unique;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::index::geometry::wrong_shape;
use crate::ops::rules::kept;
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, plain, sample, uniform};
use crate::{DType, Layout};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Out, Plan, Rule};
use keyway_dispatcher::registry::serving::{Candidate, server};

/// The coefficients of an Adam step, with the bias corrections folded into `eps` and `rate`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The decay rate of the first moment.
    pub beta1: f64,
    /// The decay rate of the second moment.
    pub beta2: f64,
    /// Added to the root of the uncorrected second moment.
    pub eps: f64,
    /// The factor of the quotient of the uncorrected moments.
    pub rate: f64,
    /// The L2 penalty: the factor of the row that is added to its gradient.
    pub decay: f64,
    /// The decoupled weight decay: the factor of the row before the step.
    pub shrink: f64,
}

/// Updates the rows at `index` of a table and of both moments in place, in one pass; returns whether a kernel serves the
/// op.
///
/// # Errors
/// Errors of the backend.
pub(crate) fn in_place(tables: [&Tensor; 3], index: &Tensor, grad: &Tensor, step: Step) -> Result<bool> {
    let [table, ..] = tables;
    let direct = |t: &&Tensor| {
        t.as_ref().is_strided()
            && t.is_contiguous()
            && t.dtype() == grad.dtype()
            && t.device() == grad.device()
    };
    // The decomposition would copy the tables.
    let served = server(DEF.entry()?, table.device(), Layout::STRIDED, table.dtype());
    if !tables.iter().all(direct) || !matches!(served, Some(Candidate::Kernel(_))) {
        return Ok(false);
    }
    let [table, first, second] = tables;
    let Step { beta1, beta2, eps, rate, decay, shrink } = step;
    DEF.call(
        &[
            table.into(),
            first.into(),
            second.into(),
            index.into(),
            grad.into(),
            beta1.into(),
            beta2.into(),
            eps.into(),
            rate.into(),
            decay.into(),
            shrink.into(),
        ],
        Out::Given(&tables.map(Tensor::as_ref)),
    )?;
    Ok(true)
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (table, index) = (float_tensor(args, 0)?, index_of(args, 3)?);
    let Some((_, row)) = table.sizes().split_first() else {
        return Err(wrong_shape(args, 0, "of one dimension or more, whose first are rows".into(), &[]));
    };
    for i in [1, 2] {
        if args.tensor(i)?.sizes() != table.sizes() {
            let expected = format!("of the table's shape {:?}", table.sizes());
            return Err(wrong_shape(args, i, expected, args.tensor(i)?.sizes()));
        }
    }
    if index.ndim() != 1 {
        return Err(wrong_shape(args, 3, "of one dimension".into(), index.sizes()));
    }
    let grad = args.tensor(4)?;
    if grad.sizes().split_first() != Some((&index.numel(), row)) {
        let expected = format!("a row of {row:?} for each of the {} indices", index.numel());
        return Err(wrong_shape(args, 4, expected, grad.sizes()));
    }
    (5..11).try_for_each(|i| args.float(i).map(drop))?;
    let sizes = || Dims::from_slice(table.sizes());
    let mut plan = Plan::one(table.dtype(), sizes(), table.dtype(), kept(table, table.sizes()));
    for i in [1, 2] {
        let mean = args.tensor(i)?;
        plan = plan.and(sizes(), table.dtype(), kept(mean, mean.sizes()));
    }
    plan.cast = 0b1_0111;
    plan.cast_index = 0b1000;
    plan.alias = true;
    Ok(plan)
}

/// The square root, with a derivative of 0 at 0, where the gradient has always been 0.
pub(crate) fn root(square: &Tensor) -> Result<Tensor> {
    let none = square.eq(0.0)?;
    square.masked_fill(&none, 1.0)?.sqrt()?.masked_fill(&none, 0.0)
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 3]> {
    let [table, first, second] = [tensor(args, 0)?, tensor(args, 1)?, tensor(args, 2)?];
    let (index, all) = (cast(tensor(args, 3)?, DType::I64)?, cast(tensor(args, 4)?, table.dtype())?);
    let number = |i| -> Result<f64> { Ok(args.float(i)?) };
    let [beta1, beta2, eps] = [number(5)?, number(6)?, number(7)?];
    let [rate, decay, shrink] = [number(8)?, number(9)?, number(10)?];
    // Gradients of equal indices are added first.
    let Unique { values: index, inverse: nth, .. } = index.unique_all()?;
    let rows = |t: &Tensor| widened(&cast(t.index_select(0, &index)?, all.dtype())?);
    let own = rows(&table)?;
    let grad = own.zeros_like()?.index_add(0, &nth, &widened(&all)?)?;
    let grad = if decay == 0.0 { grad } else { grad.add_with(&own, decay)? };
    let means = [
        rows(&first)?.mul(beta1)?.add_with(&grad, 1.0 - beta1)?,
        rows(&second)?.mul(beta2)?.addcmul_with(&grad, &grad, 1.0 - beta2)?,
    ];
    let moved = own.mul(shrink)?.addcdiv_with(&means[0], &root(&means[1])?.add(eps)?, -rate)?;
    let [mean, square] = means;
    let put = |table: &Tensor, made: Tensor| {
        cast(table.clone(), all.dtype())?.index_copy(0, &index, &cast(made, all.dtype())?)
    };
    Ok([put(&table, moved)?, put(&first, mean)?, put(&second, square)?])
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], at: &[i32], numbers: [f64; 6]| {
        let mut grad = sizes.to_vec();
        grad[0] = at.len();
        let index = Fill::Values(at.iter().map(|&k| f64::from(k)).collect());
        // Second moments away from 0, where the root is steep.
        let tensors = [
            plain(sizes),
            plain(sizes),
            uniform(sizes, 0.5, 2.0),
            fixed(&[at.len()], DType::I64, index),
            plain(&grad),
        ];
        sample(tensors.into_iter().chain(numbers.map(SampleArg::Float)))
    };
    let numbers = [0.875, 0.75, 0.125, 0.25, 0.0, 1.0];
    vec![
        call(&[5, 3], &[0, 2, 3], numbers),
        call(&[6, 70], &[1, 5], [0.5, 0.875, 0.25, 0.5, 0.125, 0.75]),
        call(&[4], &[3], [0.0, 0.0, 1.0, 1.0, 0.0, 0.5]),
        call(&[3, 2, 2], &[2, 0], numbers),
        call(&[40, 4], &[3, 7, 8, 9, 11, 12, 17, 18, 21, 22, 23, 29, 31, 33, 38, 39], numbers),
        call(&[3, 4], &[2, 0, 2, 2], numbers),
        // More gradients for one row than SIMD lanes, and a distant duplicate.
        call(&[3, 4], &[2, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1], numbers),
        call(&[40, 2], &(0..640).map(|k| k * 7 % 40).collect::<Vec<i32>>(), numbers),
        call(&[3, 4], &[], numbers),
        call(&[2, 0], &[1], numbers),
    ]
}

fn errors() -> Vec<ErrorSample> {
    let call = |mean: &[usize], at: f64, grad: &[usize]| {
        let tensors = [
            plain(&[3, 2]),
            plain(&[3, 2]),
            uniform(mean, 0.5, 2.0),
            fixed(&[1], DType::I64, Fill::Values(vec![at])),
            plain(grad),
        ];
        tensors.into_iter().chain([0.5; 6].map(SampleArg::Float))
    };
    vec![
        error(call(&[3], 0.0, &[1, 2]), "of the table's shape [3, 2]"),
        error(call(&[3, 2], 3.0, &[1, 2]), "index 3"),
        error(call(&[3, 2], 0.0, &[2, 2]), "for each of the 1 indices"),
    ]
}

/// `adam_rows`: an Adam step on the rows at `index` of a table; other rows are unchanged. With `g = grad + decay * p` for a row
/// `p`, the moments become `m = beta1 * m + (1 - beta1) * g` and `v = beta2 * v + (1 - beta2) * g^2`, and the row
/// `shrink * p - rate * m / (sqrt(v) + eps)`. Gradients with equal indices are added first. f16 and bf16 are computed in f32
/// and rounded once. The derivative of `sqrt(v)` is defined as 0 where `v` is 0.
pub static DEF: OpDef = OpDef::new(
    "adam_rows(Tensor self, Tensor exp_avg, Tensor exp_avg_sq, Tensor index, Tensor grad, \
     float beta1, float beta2, float eps, float rate, float decay, float shrink) -> (Tensor, Tensor, \
     Tensor)",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
