//! `nll_loss_forward`
//!
//! Arguments:
//! - `weight`: the factor of the loss of each class.
//! - `self`: log probabilities, `[batch, classes, ..]`.

use super::nll_loss_backward;
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::composite::{cast, optional, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{require, wrong_shape};
use crate::ops::sample::{
    Fill, Sample, SampleArg, error, fixed, index, plain, sample, tensor as filled, uniform,
};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

/// The sizes of the loss of arguments `(self, target, weight)`: those of the input without the class dimension.
///
/// # Errors
/// Arguments of unsupported shape or dtype.
pub(super) fn check(args: &Args<'_>) -> RuleResult<Dims> {
    let (t, target) = (args.tensor(0)?, args.tensor(1)?);
    require(args, 0, t.dtype(), t.dtype().is_float(), "a float dtype")?;
    require(args, 1, target.dtype(), target.dtype().is_integer(), "integers: classes")?;
    if t.ndim() == 0 {
        let expected = "of one dimension or more, one for the classes".to_string();
        return Err(wrong_shape(args, 0, expected, t.sizes()));
    }
    let mut sizes = Dims::from_slice(t.sizes());
    let classes = sizes.remove(usize::from(t.ndim() > 1));
    if target.sizes() != sizes.as_slice() {
        let expected = format!("of shape {sizes:?}, that of the input without its classes");
        return Err(wrong_shape(args, 1, expected, target.sizes()));
    }
    check_weight(args, classes)?;
    Ok(sizes)
}

/// Refuses a weight, argument 2, that does not have one element per class.
pub(super) fn check_weight(args: &Args<'_>, classes: usize) -> RuleResult<()> {
    match args.optional_tensor(2)? {
        Some(weight) if weight.sizes() != [classes] => {
            let expected = format!("of shape [{classes}], a weight for each class");
            Err(wrong_shape(args, 2, expected, weight.sizes()))
        }
        _ => Ok(()),
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (sizes, dtype) = (check(args)?, args.tensor(0)?.dtype());
    require(args, 0, dtype, dtype.is_float(), "a float dtype")?;
    let mut plan =
        Plan::one(dtype, sizes.clone(), dtype, Strides::Contiguous).and(sizes, dtype, Strides::Contiguous);
    plan.cast = 0b101;
    plan.cast_index = 0b10;
    Ok(plan)
}

/// The weighted mean loss, in f32 for f16 and bf16, whose sums would overflow. The sum of weights is detached unless the class
/// weights require gradients.
pub(super) fn weighted_mean(loss: &Tensor, weights: &Tensor, learned: bool) -> Result<Tensor> {
    let total = |t: &Tensor| widened(t)?.sum_all();
    let all = if learned { total(weights)? } else { total(&weights.detach())? };
    cast(total(loss)?.div(&all)?, loss.dtype())
}

/// The gradient of the class weights: for each class the sum over its targets of the unweighted loss times the gradient of the
/// loss, and of the gradient of the weight output.
fn weight_gradient(b: &Backward<'_>) -> Result<Tensor> {
    let (x, target) = (b.input(0)?, b.input(1)?);
    let at = usize::from(x.rank() > 1);
    let classes = Arg::Int(x.shape()[at] as i64);
    // Without class weights the weight is 1, and 0 where the target is ignored.
    let (picked, counted) = DEF.run_pair(&[(&x).into(), (&target).into(), Arg::None, b.arg(3)])?;
    let counted = counted.detach();
    let parts = b.grad(0)?.mul(&picked)?.add(&b.grad(1)?.mul(&counted)?)?;
    let values = [(&parts).into(), (&target).into(), (&counted).into(), classes, b.arg(3)];
    let spread = nll_loss_backward::DEF.run(&values)?.neg()?;
    let dims: Vec<i64> = (0..x.rank()).filter(|&d| d != at).map(|d| d as i64).collect();
    if dims.is_empty() { Ok(spread) } else { spread.sum(&dims) }
}

/// A mask of the ignored targets, and the targets as indices in dimension `at`, with 0 for ignored ones.
pub(super) fn places(target: Tensor, ignored: i64, at: usize) -> Result<(Tensor, Tensor)> {
    let target = cast(target, DType::I64)?;
    let absent = target.eq(ignored)?;
    let places = target.masked_fill(&absent, 0)?.unsqueeze(at)?;
    Ok((absent, places))
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 2]> {
    let x = tensor(args, 0)?;
    let at = usize::from(x.rank() > 1);
    let (absent, places) = places(tensor(args, 1)?, args.int(3)?, at)?;
    let weights = match optional(args, 2)? {
        Some(weight) => cast(weight, x.dtype())?
            .gather(0, &places.reshape_as_sizes(&[places.elem_count()])?)?
            .reshape_as_sizes(absent.shape())?,
        None => Tensor::ones_with(absent.shape(), (x.dtype(), x.device()))?,
    };
    let weights = weights.masked_fill(&absent, 0)?;
    let picked = x.gather(at, &places)?.squeeze(at as i64)?.neg()?;
    // An ignored element, or one with a weight of 0, is excluded even if it is infinite or NaN.
    let loss = picked.mul(&weights)?.masked_fill(&weights.eq(0)?, 0)?;
    Ok([loss.contiguous()?, weights.contiguous()?])
}

/// `nll_loss_forward`: for each target the negated input at its class times the class's weight, and that weight; both are 0
/// where the target is ignored.
pub static DEF: OpDef = OpDef::new(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int ignore_index) -> (Tensor, \
     Tensor)",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0b10,
        formula: |b, g| {
            g.set(0, || {
                let sizes = b.sizes(0);
                let classes = sizes[usize::from(sizes.len() > 1)] as i64;
                let (target, weights) = (b.input(1)?, b.output(1)?);
                let values =
                    [b.grad(0)?.into(), (&target).into(), (&weights).into(), Arg::Int(classes), b.arg(3)];
                nll_loss_backward::DEF.run(&values)
            })?;
            g.set(2, || weight_gradient(b))
        },
    },
    || {
        let weight = fixed(&[3], DType::F64, Fill::Values(vec![0.5, 1.5, 2.0]));
        let learned = |x: &[usize], to: &[usize]| {
            sample([plain(x), index(to, 3), uniform(&[3], 0.5, 2.0), SampleArg::Int(1)])
        };
        // A class with a weight of 0 has no loss, even if its probability is 0.
        let impossible = || {
            let x = filled(&[2, 3], Fill::Values(vec![-0.5, f64::NEG_INFINITY, -1.0]));
            let rest = [
                fixed(&[2], DType::I64, Fill::Values(vec![1.0, 2.0])),
                fixed(&[3], DType::F64, Fill::Values(vec![0.5, 0.0, 2.0])),
                SampleArg::Int(-100),
            ];
            Sample { smooth: false, ..sample([x].into_iter().chain(rest)) }
        };
        vec![
            learned(&[3], &[]),
            learned(&[5, 3], &[5]),
            learned(&[2, 3, 2, 1, 2], &[2, 2, 1, 2]),
            sample([plain(&[3]), index(&[], 3), SampleArg::None, SampleArg::Int(-100)]),
            sample([plain(&[4, 3]), index(&[4], 3), SampleArg::None, SampleArg::Int(1)]),
            sample([plain(&[2, 3, 4]), index(&[2, 4], 3), weight, SampleArg::Int(-100)]),
            impossible(),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| vec![error([plain(&[2, 3]), index(&[3], 3), SampleArg::None, SampleArg::Int(-100)], "of shape")])
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()))
.with(OpFlags::AUTOCAST_F32);
