//! `rnn_layer_backward`
//!
//! Arguments:
//! - `grad_output`: the gradient of the outputs of all steps; None for 0.
//! - `grad_hidden`: the gradient of the last state; None for 0.
//! - `grad_cell`: the gradient of the last cell state; None for 0.
//! - `hidden`: the initial state, `[batch, width]`.
//! - `cell`: the initial cell state of an LSTM, `[batch, hidden]`.
//! - `weight_hh`: the weight of the state, `[gates * hidden, width]`.
//! - `weight_hr`: the projection of an LSTM, `[width, hidden]`.
//! - `output`: the outputs of the forward call.
//! - `saved`: the values that the forward call saved.
//! - `batch_sizes`: the number of sequences that have each step.
//! - `reverse`: whether the steps of the forward call ran against the order of time.
//! - `mode`: `rnn_tanh`, `rnn_relu`, `gru` or `lstm`.

use super::checks::{Layer, Positions, Sizes, shaped, sizes};
use super::samples::{Kind, gates, layers};
use super::steps::{Gradients, Incoming};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, optional, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::require;
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample, uniform};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

const POSITIONS: Positions = Positions { hidden: 3, batch_sizes: 9, mode: 11, weight_hr: 6 };

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let dtype = args.promote(0b0_1111_1111)?;
    require(args, 3, dtype, dtype.is_float(), "a float dtype")?;
    let Sizes { mode, batch, hidden, out, rows } = sizes(args, &POSITIONS, dtype)?;
    shaped(args, 0, &[rows, out])?;
    shaped(args, 1, &[batch, out])?;
    shaped(args, 2, &[batch, hidden])?;
    shaped(args, 7, &[rows, out])?;
    let saved: &[usize] = if mode.saved() > 0 { &[rows, mode.saved() * hidden] } else { &[0] };
    shaped(args, 8, saved)?;
    let columns = mode.gates() * hidden;
    let some = |present, sizes: &[usize]| Dims::from_slice(if present { sizes } else { &[0] });
    let others = [
        some(true, &[batch, out]),
        some(args.optional_tensor(4)?.is_some(), &[batch, hidden]),
        some(true, &[columns, out]),
        some(true, &[columns]),
        some(args.optional_tensor(6)?.is_some(), &[out, hidden]),
    ];
    let first = Plan::one(dtype, Dims::from_slice(&[rows, columns]), dtype, Strides::Contiguous);
    let mut plan = others.into_iter().fold(first, |plan, sizes| plan.and(sizes, dtype, Strides::Contiguous));
    plan.cast = 0b0_1111_1111;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 6]> {
    let some = |i: usize| -> Result<Option<Tensor>> { optional(args, i)?.map(|t| widened(&t)).transpose() };
    let own = tensor(args, 3)?;
    let hidden = widened(&own)?;
    let layer = Layer {
        mode: Layer::mode(args.str(11)?),
        cell: some(4)?.map_or_else(|| hidden.new_zeros(0), Ok)?,
        hidden,
        weight_hh: widened(&tensor(args, 5)?)?,
        bias_hh: None,
        weight_hr: some(6)?,
        steps: Layer::steps(args.ints(9)?, args.bool(10)?),
        reverse: args.bool(10)?,
    };
    let incoming = Incoming { output: some(0)?, hidden: some(1)?, cell: some(2)?, saved: None };
    let saved = some(8)?.filter(|_| layer.mode.saved() > 0);
    let Gradients { projected, hidden, cell, weight_hh, bias_hh, weight_hr } =
        layer.backward(&widened(&tensor(args, 7)?)?, saved.as_ref(), &incoming)?;
    let weight_hr = weight_hr.map_or_else(|| hidden.new_zeros(0), Ok)?;
    let [a, b, c, d, e, f] =
        [projected, hidden, cell, weight_hh, bias_hh, weight_hr].map(|t| cast(t, own.dtype())?.contiguous());
    Ok([a?, b?, c?, d?, e?, f?])
}

/// The arguments of a call, with the gradients of `given`.
fn call(
    (mode, hidden, projection): Kind,
    batches: &[i64],
    reverse: bool,
    given: [bool; 3],
) -> Vec<SampleArg> {
    let rows = batches.iter().sum::<i64>() as usize;
    let batch = batches.first().map_or(2, |&n| n as usize);
    let (columns, out) = (gates(mode) * hidden, projection.unwrap_or(hidden));
    let some = |present, sizes: &[usize]| if present { plain(sizes) } else { SampleArg::None };
    let lstm = mode == "lstm";
    let saved = match mode {
        "lstm" => uniform(&[rows, 5 * hidden], 0.1, 0.9),
        "gru" => uniform(&[rows, 4 * hidden], 0.1, 0.9),
        _ => plain(&[0]),
    };
    vec![
        some(given[0], &[rows, out]),
        some(given[1], &[batch, out]),
        some(given[2] && lstm, &[batch, hidden]),
        plain(&[batch, out]),
        some(lstm, &[batch, hidden]),
        uniform(&[columns, out], -1.0 / (out as f64).sqrt(), 1.0 / (out as f64).sqrt()),
        some(projection.is_some(), &[projection.unwrap_or(0), hidden]),
        uniform(&[rows, out], -0.9, 0.9),
        saved,
        SampleArg::Ints(batches.to_vec()),
        SampleArg::Bool(reverse),
        SampleArg::Str(mode),
    ]
}

fn samples() -> Vec<Sample> {
    let nth = layers().into_iter().enumerate();
    nth.map(|(nth, (kind, batches, reverse))| {
        let made = sample(call(kind, batches, reverse, [nth % 4 != 1, nth % 4 != 2, nth % 4 != 3]));
        made.tolerance_factor(8.0, "the error of a step passes through all steps before it")
    })
    .collect()
}

fn errors() -> Vec<ErrorSample> {
    let with = |i: usize, arg: SampleArg| {
        let mut all = call(("lstm", 3, None), &[2, 1], false, [true; 3]);
        all[i] = arg;
        all
    };
    vec![
        error(with(11, SampleArg::Str("")), "rnn_tanh, rnn_relu, gru or lstm"),
        error(with(0, plain(&[2, 3])), "of shape [3, 3]"),
        error(with(1, plain(&[1, 3])), "of shape [2, 3]"),
        error(with(2, plain(&[2, 1])), "of shape [2, 3]"),
        error(with(7, plain(&[3, 2])), "of shape [3, 3]"),
        error(with(8, plain(&[3, 12])), "of shape [3, 15]"),
        error(with(9, SampleArg::Ints(vec![3])), "batch sizes that do not grow, from 2"),
    ]
}

/// `rnn_layer_backward`: the gradients of the projected input, the states, the weight and the bias of the state, and the
/// projection, by backpropagation through time. Absent gradients have the shape `[0]`. Used where they are not differentiated
/// again.
pub static DEF: OpDef = OpDef::new(
    "rnn_layer_backward(Tensor? grad_output, Tensor? grad_hidden, Tensor? grad_cell, Tensor hidden, Tensor? cell, \
     Tensor weight_hh, Tensor? weight_hr, Tensor output, Tensor saved, int[] batch_sizes, bool reverse, str mode) -> \
     (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Missing("`rnn_layer` uses tensor ops where its gradients are differentiated again"),
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()));
