//! `sgd_step`
//!
//! Arguments:
//! - `self`: the parameters.
//! - `momentum_buffers`: the momentum buffers, one for each parameter; empty without momentum.
//! - `lr`: the learning rate.
//! - `momentum`: the decay rate of the buffers.
//! - `dampening`: subtracted from 1 for the factor of the gradient in the buffers.
//! - `weight_decay`: the L2 penalty: the factor of a parameter that is added to its gradient.
//! - `nesterov`: whether to use Nesterov momentum.
//! - `first`: whether this is the first step, in which the buffers are set.

use super::lists::{self, list, plan, refs, tensors};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, in_format_of, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Out, Plan, Rule};

/// The coefficients of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// The learning rate.
    pub lr: f64,
    /// The decay rate of the momentum buffers.
    pub momentum: f64,
    /// The dampening of the gradient in the buffers, except in the first step.
    pub dampening: f64,
    /// The L2 penalty: the factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Whether to use Nesterov momentum.
    pub nesterov: bool,
    /// Whether this is the first step, in which the buffers are still uninitialized.
    pub first: bool,
}

/// Whether a kernel serves the step of such a parameter. The decomposition would copy it.
///
/// # Errors
/// The errors of starting the runtime.
pub(crate) fn is_served(parameter: &Tensor) -> Result<bool> {
    lists::is_served(&DEF, parameter)
}

/// Updates parameters and their momentum buffers in place. Without momentum there are no buffers.
///
/// # Errors
/// Errors of the backend.
pub(crate) fn in_place(
    parameters: &[&Tensor],
    grads: &[&Tensor],
    buffers: &[&Tensor],
    step: Step,
) -> Result<()> {
    let [parameters, grads, buffers] = [parameters, grads, buffers].map(refs);
    let changed = [&parameters[..], &buffers].concat();
    let Step { lr, momentum, dampening, weight_decay, nesterov, first } = step;
    DEF.call(
        &[
            Arg::Tensors(&parameters),
            Arg::Tensors(&grads),
            Arg::Tensors(&buffers),
            lr.into(),
            momentum.into(),
            dampening.into(),
            weight_decay.into(),
            nesterov.into(),
            first.into(),
        ],
        Out::Given(&changed),
    )?;
    Ok(())
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let has_buffers = args.float(4)? != 0.0 || !args.tensors(2)?.is_empty();
    let plan = plan(args, if has_buffers { &[0, 2] } else { &[0] }, &[1])?;
    [3, 5, 6].into_iter().try_for_each(|i| args.float(i).map(drop))?;
    [7, 8].into_iter().try_for_each(|i| args.bool(i).map(drop))?;
    Ok(plan)
}

/// A parameter and its buffer after a step.
fn stepped(p: &Tensor, grad: &Tensor, buffer: Option<&Tensor>, o: Step) -> Result<(Tensor, Option<Tensor>)> {
    let buffer = match buffer {
        None => None,
        Some(buffer) => {
            let (made, share) = match o.first {
                true => (grad.clone(), 1.0),
                false => {
                    let share = 1.0 - o.dampening;
                    (buffer.mul(o.momentum)?.add_with(grad, share)?, share)
                }
            };
            let decay = share * o.weight_decay;
            Some(if decay == 0.0 { made } else { made.add_with(p, decay)? })
        }
    };
    if let (false, Some(buffer)) = (o.nesterov, &buffer) {
        return Ok((p.add_with(buffer, -o.lr)?, Some(buffer.clone())));
    }
    let shrunk = if o.weight_decay == 0.0 { p.clone() } else { p.mul(1.0 - o.lr * o.weight_decay)? };
    let moved = shrunk.add_with(grad, -o.lr)?;
    match buffer {
        Some(buffer) => Ok((moved.add_with(&buffer, -o.lr * o.momentum)?, Some(buffer))),
        None => Ok((moved, None)),
    }
}

fn compose(args: &Args<'_>) -> Result<Vec<Tensor>> {
    let [parameters, grads, buffers] = [tensors(args, 0)?, tensors(args, 1)?, tensors(args, 2)?];
    let step = Step {
        lr: args.float(3)?,
        momentum: args.float(4)?,
        dampening: args.float(5)?,
        weight_decay: args.float(6)?,
        nesterov: args.bool(7)?,
        first: args.bool(8)?,
    };
    let mut made = [Vec::new(), Vec::new()];
    for (nth, (p, grad)) in parameters.iter().zip(&grads).enumerate() {
        let buffer = buffers.get(nth).map(widened).transpose()?;
        let (moved, buffer) = stepped(&widened(p)?, &widened(grad)?, buffer.as_ref(), step)?;
        let news = [Some((p, moved)), buffers.get(nth).zip(buffer)];
        for (list, (like, new)) in made.iter_mut().zip(news.into_iter().flatten()) {
            let new = in_format_of(like, cast(new, like.dtype())?)?;
            // The first buffer equals the gradient, and must be a copy of it.
            list.push(if new.ptr_eq(grad) { new.copy()? } else { new });
        }
    }
    Ok(made.into_iter().flatten().collect())
}

/// The arguments of a call for parameters of these sizes; the numbers are `[lr, momentum, dampening, weight_decay]`.
fn call(shapes: &[&[usize]], numbers: [f64; 4], nesterov: bool, first: bool) -> Vec<SampleArg> {
    let buffers: &[&[usize]] = if numbers[1] == 0.0 { &[] } else { shapes };
    let lists = [shapes, shapes, buffers].map(|shapes| list(shapes, -2.0, 2.0));
    let flags = [nesterov, first].map(SampleArg::Bool);
    lists.into_iter().chain(numbers.map(SampleArg::Float)).chain(flags).collect()
}

fn samples() -> Vec<Sample> {
    let one = |shapes: &[&[usize]], numbers, nesterov, first| sample(call(shapes, numbers, nesterov, first));
    // Too many elements for finite differences of each.
    let many = |shapes: &[&[usize]], numbers, nesterov, first| Sample {
        smooth: false,
        ..one(shapes, numbers, nesterov, first)
    };
    vec![
        one(&[&[5]], [0.25, 0.0, 0.0, 0.0], false, false),
        one(&[&[3, 4], &[4], &[]], [0.25, 0.5, 0.0, 0.0], false, false),
        // Empty tensors between others, and more elements than SIMD lanes or a thread block.
        many(&[&[0], &[7, 41], &[2, 0, 3], &[1030], &[1]], [0.5, 0.75, 0.25, 0.125], false, false),
        one(&[&[2, 3, 4, 5], &[3], &[2, 3]], [0.25, 0.5, 0.0, 0.5], true, false),
        one(&[&[6], &[2, 2]], [0.25, 0.5, 0.5, 0.25], false, true),
        one(&[&[6]], [0.25, 0.5, 0.0, 0.0], true, true),
        // More tensors than the arguments of one kernel launch can hold.
        many(&[&[3][..]; 200], [0.25, 0.5, 0.0, 0.0], false, false),
        one(&[&[3], &[2, 3]], [0.25, 0.0, 0.0, 0.5], false, false),
    ]
}

fn errors() -> Vec<ErrorSample> {
    let usual = || call(&[&[3, 2], &[5]], [0.5; 4], false, false);
    let with = |i: usize, arg: SampleArg| {
        let mut args = usual();
        args[i] = arg;
        args
    };
    vec![
        error(call(&[], [0.5; 4], false, false), "one tensor at least"),
        error(with(1, list(&[&[3, 2]], 0.0, 1.0)), "a tensor for each of the 2 parameters"),
        error(with(2, list(&[&[3, 2], &[4]], 0.0, 1.0)), "of shape [5], that of parameter 1"),
        error(with(2, list(&[], 0.0, 1.0)), "a tensor for each of the 2 parameters"),
    ]
}

/// `sgd_step`: a gradient descent step for a list of parameters. With `d = grad + weight_decay * p` for a parameter `p`, its
/// buffer becomes `v = momentum * v + (1 - dampening) * d`, or `d` in the `first` step, and the parameter `p - lr * v`; with
/// `nesterov`, `(1 - lr * weight_decay) * p - lr * grad - lr * momentum * v`, without the last product if the list of buffers
/// is empty, as it may be without momentum. The results are the parameters, then the buffers. In f32 and f64 each operation is
/// rounded separately, those of `d` one by one; f16 and bf16 are computed in f32 and rounded once.
pub static DEF: OpDef = OpDef::new(
    "sgd_step(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffers, float lr, float momentum, \
     float dampening, float weight_decay, bool nesterov, bool first) -> Tensor[]",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
