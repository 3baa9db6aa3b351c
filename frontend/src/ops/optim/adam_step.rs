//! `adam_step`
//!
//! Arguments:
//! - `self`: the parameters.
//! - `exp_avgs`: the first moments of the parameters.
//! - `exp_avg_sqs`: the second moments of the parameters.
//! - `eps`: added to the root of the second moment.

use super::lists::{self, list, plan, refs, tensors};
use crate::error::Result;
use crate::ops::composite::{cast, in_format_of, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::index::adam_rows::{Step, root};
use crate::ops::rules::{require, wrong_shape, wrong_value};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Out, Plan, Rule};

/// Parameters with their gradients and moments, in lists of equal length.
#[derive(Default, Debug)]
pub(crate) struct Lists<'a> {
    /// The parameters.
    pub parameters: Vec<&'a Tensor>,
    /// The gradients of the parameters.
    pub grads: Vec<&'a Tensor>,
    /// The first moments.
    pub means: Vec<&'a Tensor>,
    /// The second moments.
    pub squares: Vec<&'a Tensor>,
}

/// Whether a kernel serves the step of such a parameter. The decomposition would copy it.
///
/// # Errors
/// The errors of starting the runtime.
pub(crate) fn is_served(parameter: &Tensor) -> Result<bool> {
    lists::is_served(&DEF, parameter)
}

/// Updates parameters and moments in place. If `tensors` is given, it holds `eps` and `rate` and replaces those of `step`.
///
/// # Errors
/// Errors of the backend.
pub(crate) fn in_place(lists: &Lists<'_>, step: &Step, tensors: Option<&[Tensor; 2]>) -> Result<()> {
    let [parameters, grads, means, squares] =
        [&lists.parameters, &lists.grads, &lists.means, &lists.squares].map(|list| refs(list));
    let changed = [&parameters[..], &means, &squares].concat();
    let Step { beta1, beta2, eps, rate, decay, shrink } = *step;
    DEF.call(
        &[
            Arg::Tensors(&parameters),
            Arg::Tensors(&grads),
            Arg::Tensors(&means),
            Arg::Tensors(&squares),
            beta1.into(),
            beta2.into(),
            tensors.map_or(eps.into(), |[eps, _]| eps.into()),
            tensors.map_or(rate.into(), |[_, rate]| rate.into()),
            decay.into(),
            shrink.into(),
        ],
        Out::Given(&changed),
    )?;
    Ok(())
}

/// Refuses an argument that is neither a number nor a 0-d f64 tensor, which is not rounded to the dtype of the parameters.
fn check_number(args: &Args<'_>, i: usize) -> RuleResult<()> {
    match args.get(i) {
        Arg::Tensor(t) => {
            require(args, i, t.dtype(), t.dtype() == DType::F64, "f64, as a number is")?;
            if t.ndim() == 0 {
                return Ok(());
            }
            Err(wrong_shape(args, i, "of no dimensions, as a number is".into(), t.sizes()))
        }
        Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) => Ok(()),
        _ => Err(wrong_value(args, i, "a number, or an f64 tensor of no dimensions".into())),
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = plan(args, &[0, 2, 3], &[1])?;
    [4, 5, 8, 9].into_iter().try_for_each(|i| args.float(i).map(drop))?;
    [6, 7].into_iter().try_for_each(|i| check_number(args, i))?;
    Ok(plan)
}

/// A factor in the compute dtype of a step.
enum Factor {
    Number(f64),
    Tensor(Tensor),
}

impl Factor {
    fn of(args: &Args<'_>, i: usize, dtype: DType) -> Result<Factor> {
        Ok(match args.get(i) {
            Arg::Tensor(t) => Factor::Tensor(cast(Tensor::from_ref(t.clone()), dtype)?),
            _ => Factor::Number(args.float(i)?),
        })
    }

    fn arg(&self) -> Arg<'_> {
        match self {
            Factor::Number(number) => Arg::Float(*number),
            Factor::Tensor(t) => t.into(),
        }
    }
}

fn compose(args: &Args<'_>) -> Result<Vec<Tensor>> {
    let [parameters, grads, means, squares] =
        [tensors(args, 0)?, tensors(args, 1)?, tensors(args, 2)?, tensors(args, 3)?];
    let number = |i| -> Result<f64> { Ok(args.float(i)?) };
    let [beta1, beta2, decay, shrink] = [number(4)?, number(5)?, number(8)?, number(9)?];
    let mut made = [Vec::new(), Vec::new(), Vec::new()];
    for (((p, grad), mean), square) in parameters.iter().zip(&grads).zip(&means).zip(&squares) {
        let own = widened(p)?;
        let [eps, rate] = [Factor::of(args, 6, own.dtype())?, Factor::of(args, 7, own.dtype())?];
        let grad = widened(grad)?;
        let grad = if decay == 0.0 { grad } else { grad.add_with(&own, decay)? };
        let first = widened(mean)?.mul(beta1)?.add_with(&grad, 1.0 - beta1)?;
        let second = widened(square)?.mul(beta2)?.addcmul_with(&grad, &grad, 1.0 - beta2)?;
        let quotient = first.mul(rate.arg())?.div(&root(&second)?.add(eps.arg())?)?;
        let moved = own.mul(shrink)?.sub(&quotient)?;
        for (list, (like, new)) in made.iter_mut().zip([(p, moved), (mean, first), (square, second)]) {
            list.push(in_format_of(like, cast(new, like.dtype())?)?);
        }
    }
    Ok(made.into_iter().flatten().collect())
}

/// The arguments of a call for parameters of these sizes; `eps` and `rate` are among `last`.
fn call(shapes: &[&[usize]], last: [SampleArg; 6]) -> Vec<SampleArg> {
    // Second moments away from 0, where the root is steep.
    let lists =
        [list(shapes, -2.0, 2.0), list(shapes, -2.0, 2.0), list(shapes, -2.0, 2.0), list(shapes, 0.5, 2.0)];
    lists.into_iter().chain(last).collect()
}

fn samples() -> Vec<Sample> {
    let numbers =
        |shapes: &[&[usize]], numbers: [f64; 6]| sample(call(shapes, numbers.map(SampleArg::Float)));
    // Too many elements for finite differences of each.
    let many = |shapes: &[&[usize]], own: [f64; 6]| Sample { smooth: false, ..numbers(shapes, own) };
    let usual = [0.875, 0.75, 0.125, 0.25, 0.0, 1.0];
    let tensor = |value: f64| fixed(&[], DType::F64, Fill::Values(vec![value]));
    let [beta1, beta2, _, _, decay, shrink] = usual.map(SampleArg::Float);
    vec![
        numbers(&[&[5]], usual),
        numbers(&[&[3, 4], &[4], &[]], usual),
        // Empty tensors between others, and more elements than SIMD lanes or a thread block.
        many(&[&[0], &[7, 41], &[2, 0, 3], &[1030], &[1]], [0.5, 0.875, 0.25, 0.5, 0.125, 0.75]),
        numbers(&[&[2, 3, 4, 5], &[3], &[2, 3]], [0.5, 0.5, 0.5, 0.5, 0.0, 0.5]),
        numbers(&[&[6]], [0.0, 0.0, 1.0, 1.0, 0.5, 1.0]),
        // More tensors than the arguments of one kernel launch can hold.
        many(&[&[3][..]; 200], usual),
        sample(call(&[&[3, 2], &[5]], [beta1, beta2, tensor(0.125), tensor(0.25), decay, shrink])),
    ]
}

fn errors() -> Vec<ErrorSample> {
    let usual = [0.5; 6].map(SampleArg::Float);
    let with = |i: usize, arg: SampleArg| {
        let mut args = call(&[&[3, 2], &[5]], usual.clone());
        args[i] = arg;
        args
    };
    let other = |dtype| fixed(&[], dtype, Fill::Values(vec![0.5]));
    vec![
        error(call(&[], usual.clone()), "one tensor at least"),
        error(with(1, list(&[&[3, 2]], 0.0, 1.0)), "a tensor for each of the 2 parameters"),
        error(with(2, list(&[&[3, 2], &[4]], 0.0, 1.0)), "of shape [5], that of parameter 1"),
        error(with(7, fixed(&[1], DType::F64, Fill::Values(vec![0.5]))), "of no dimensions"),
        error(with(6, other(DType::I64)), "f64, as a number is"),
    ]
}

/// `adam_step`: an Adam step for a list of parameters. With `g = grad + decay * p` for a parameter `p`, its moments become
/// `m = beta1 * m + (1 - beta1) * g` and `v = beta2 * v + (1 - beta2) * g^2`, and the parameter
/// `shrink * p - rate * m / (sqrt(v) + eps)`. The results are the parameters, then the first moments, then the second moments.
/// `eps` and `rate` are numbers, or 0-d f64 tensors, whose values may change between replays of captured work. In f32 and f64
/// each operation is rounded separately, in the order of the formula; f16 and bf16 are computed in f32 and rounded once. The
/// derivative of `sqrt(v)` is defined as 0 where `v` is 0.
pub static DEF: OpDef = OpDef::new(
    "adam_step(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, float beta1, \
     float beta2, Tensor eps, Tensor rate, float decay, float shrink) -> Tensor[]",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
