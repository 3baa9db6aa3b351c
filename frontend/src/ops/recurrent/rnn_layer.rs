//! `rnn_layer`
//!
//! Arguments:
//! - `projected`: the input times its weight, plus its bias: `[rows, gates * hidden]`, the rows of each step after those of the
//!   step before, with the longest sequence first.
//! - `hidden`: the initial state, `[batch, width]`.
//! - `cell`: the initial cell state of an LSTM, `[batch, hidden]`.
//! - `weight_hh`: the weight of the state, `[gates * hidden, width]`.
//! - `bias_hh`: added to the product of the state.
//! - `weight_hr`: the projection of an LSTM, `[width, hidden]`.
//! - `batch_sizes`: the number of sequences that have each step.
//! - `reverse`: whether the steps run against the order of time.
//! - `mode`: `rnn_tanh`, `rnn_relu`, `gru` or `lstm`.
//! - `save`: whether to return the values from which the backward op computes gradients.

use super::checks::{Layer, Positions, Sizes, shaped, sizes};
use super::rnn_layer_backward;
use super::samples::{Kind, gates, layers};
use super::steps::{Gradients, Incoming, Made};
use crate::Tensor;
use crate::autograd::{Backward, Grads, is_grad_enabled};
use crate::error::Result;
use crate::ops::composite::{cast, optional, wide, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::require;
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample, uniform};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

const POSITIONS: Positions = Positions { hidden: 1, batch_sizes: 6, mode: 8, weight_hr: 5 };

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let dtype = args.promote(0b11_1111)?;
    require(args, 0, dtype, dtype.is_float(), "a float dtype")?;
    let Sizes { mode, batch, hidden, out, rows } = sizes(args, &POSITIONS, dtype)?;
    shaped(args, 0, &[rows, mode.gates() * hidden])?;
    shaped(args, 4, &[mode.gates() * hidden])?;
    let cell: &[usize] = if args.optional_tensor(2)?.is_some() { &[batch, hidden] } else { &[0] };
    let saved: &[usize] =
        if args.bool(9)? && mode.saved() > 0 { &[rows, mode.saved() * hidden] } else { &[0] };
    let mut plan = Plan::one(dtype, Dims::from_slice(&[rows, out]), dtype, Strides::Contiguous)
        .and(Dims::from_slice(&[batch, out]), dtype, Strides::Contiguous)
        .and(Dims::from_slice(cell), dtype, Strides::Contiguous)
        .and(Dims::from_slice(saved), wide(dtype), Strides::Contiguous);
    plan.cast = 0b11_1111;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<[Tensor; 4]> {
    let given = [0, 1, 2, 3, 4, 5].map(|i| optional(args, i));
    let dtype = args.promote(0b11_1111)?;
    let [projected, hidden, cell, weight_hh, bias_hh, weight_hr] =
        given.map(|t| t.and_then(|t| t.map(|t| cast(t, wide(dtype))).transpose()));
    let (projected, hidden) = (required(projected?)?, required(hidden?)?);
    let layer = Layer {
        mode: Layer::mode(args.str(8)?),
        cell: cell?.map_or_else(|| hidden.new_zeros(0), Ok)?,
        hidden,
        weight_hh: required(weight_hh?)?,
        bias_hh: bias_hh?,
        weight_hr: weight_hr?,
        steps: Layer::steps(args.ints(6)?, args.bool(7)?),
        reverse: args.bool(7)?,
    };
    let Made { output, hidden, cell, saved } = layer.forward(&projected)?;
    let saved = saved.filter(|_| args.bool(9).unwrap_or(false));
    let saved = saved.map_or_else(|| projected.new_zeros(0), Ok)?;
    Ok([cast(output, dtype)?, cast(hidden, dtype)?, cast(cell, dtype)?, saved])
}

/// Calls the fused backward op unless the gradients are differentiated again or a saved value has one; otherwise runs tensor ops,
/// from the arguments on.
fn formula(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let incoming = |i: usize| if b.has_grad(i) { b.grad(i).map(|t| Some(t.clone())) } else { Ok(None) };
    let (hidden, cell, weight_hh) = (b.input(1)?, b.optional_input(2)?, b.input(3)?);
    let weight_hr = b.optional_input(5)?;
    if !is_grad_enabled() && !b.has_grad(3) {
        let (grad_output, grad_hidden) = (incoming(0)?, incoming(1)?);
        let grad_cell = if cell.is_some() { incoming(2)? } else { None };
        let (output, mut saved) = (b.output(0)?, b.output(3)?);
        if !b.bool(9)? {
            // The forward call saved nothing.
            let (projected, bias) = (b.input(0)?, b.optional_input(4)?);
            let args = [
                (&projected).into(),
                (&hidden).into(),
                Arg::optional(cell.as_ref()),
                (&weight_hh).into(),
                Arg::optional(bias.as_ref()),
                Arg::optional(weight_hr.as_ref()),
                b.arg(6),
                b.arg(7),
                b.arg(8),
                Arg::Bool(true),
            ];
            saved = DEF.run_all(&args)?.remove(3);
        }
        let args = [
            Arg::optional(grad_output.as_ref()),
            Arg::optional(grad_hidden.as_ref()),
            Arg::optional(grad_cell.as_ref()),
            (&hidden).into(),
            Arg::optional(cell.as_ref()),
            (&weight_hh).into(),
            Arg::optional(weight_hr.as_ref()),
            (&output).into(),
            (&saved).into(),
            b.arg(6),
            b.arg(7),
            b.arg(8),
        ];
        for (i, made) in rnn_layer_backward::DEF.run_all(&args)?.into_iter().enumerate() {
            g.set(i, || Ok(made))?;
        }
        return Ok(());
    }
    let wide = |t: Option<Tensor>| t.map(|t| widened(&t)).transpose();
    let hidden = widened(&hidden)?;
    let layer = Layer {
        mode: Layer::mode(b.str(8)?),
        cell: wide(cell)?.map_or_else(|| hidden.new_zeros(0), Ok)?,
        hidden,
        weight_hh: widened(&weight_hh)?,
        bias_hh: wide(b.optional_input(4)?)?,
        weight_hr: wide(weight_hr)?,
        steps: Layer::steps(b.ints(6)?, b.bool(7)?),
        reverse: b.bool(7)?,
    };
    let made = layer.forward(&widened(&b.input(0)?)?)?;
    let incoming = Incoming {
        output: wide(incoming(0)?)?,
        hidden: wide(incoming(1)?)?,
        cell: wide(incoming(2)?)?,
        saved: if b.bool(9)? && made.saved.is_some() { wide(incoming(3)?)? } else { None },
    };
    let Gradients { projected, hidden, cell, weight_hh, bias_hh, weight_hr } =
        layer.backward(&made.output, made.saved.as_ref(), &incoming)?;
    for (i, made) in [(0, projected), (1, hidden), (2, cell), (3, weight_hh), (4, bias_hh)] {
        g.set(i, || Ok(made))?;
    }
    match weight_hr {
        Some(made) => g.set(5, || Ok(made)),
        None => Ok(()),
    }
}

/// The arguments of a call.
fn call(
    (mode, hidden, projection): Kind,
    batches: &[i64],
    reverse: bool,
    bias: bool,
    save: bool,
) -> Vec<SampleArg> {
    let rows = batches.iter().sum::<i64>() as usize;
    let batch = batches.first().map_or(2, |&n| n as usize);
    let (columns, out) = (gates(mode) * hidden, projection.unwrap_or(hidden));
    let some = |present, sizes: &[usize]| if present { plain(sizes) } else { SampleArg::None };
    vec![
        plain(&[rows, columns]),
        plain(&[batch, out]),
        some(mode == "lstm", &[batch, hidden]),
        // Small weights, so that an error of a state does not grow.
        uniform(&[columns, out], -1.0 / (out as f64).sqrt(), 1.0 / (out as f64).sqrt()),
        some(bias, &[columns]),
        some(projection.is_some(), &[projection.unwrap_or(0), hidden]),
        SampleArg::Ints(batches.to_vec()),
        SampleArg::Bool(reverse),
        SampleArg::Str(mode),
        SampleArg::Bool(save),
    ]
}

fn samples() -> Vec<Sample> {
    let nth = layers().into_iter().enumerate();
    nth.map(|(nth, (kind, batches, reverse))| {
        let made = sample(call(kind, batches, reverse, nth % 3 != 1, nth % 4 != 3));
        // `relu` has a kink, and differences of a wide layer take minutes.
        Sample { smooth: kind.0 != "rnn_relu" && kind.1 < 10, ..made }
            .tolerance_factor(8.0, "the error of a step passes through all steps after it")
    })
    .collect()
}

fn errors() -> Vec<ErrorSample> {
    let with = |i: usize, arg: SampleArg| {
        let mut all = call(("lstm", 3, None), &[2, 1], false, true, false);
        all[i] = arg;
        all
    };
    vec![
        error(with(8, SampleArg::Str("lstn")), "rnn_tanh, rnn_relu, gru or lstm"),
        error(with(1, plain(&[2])), "[batch, width]"),
        error(with(0, plain(&[4, 12])), "of shape [3, 12]"),
        error(with(2, plain(&[2, 4])), "of shape [2, 3]"),
        error(with(2, SampleArg::None), "a tensor for mode lstm"),
        error(with(3, plain(&[9, 3])), "of shape [12, 3]"),
        error(with(4, plain(&[3])), "of shape [12]"),
        error(with(5, plain(&[2, 3])), "[3, hidden]"),
        error(with(6, SampleArg::Ints(vec![1, 2])), "batch sizes that do not grow, from 2"),
        error(with(6, SampleArg::Ints(vec![2, -1])), "batch sizes that do not grow, from 2"),
    ]
}

/// A tensor that the rule has found.
fn required(t: Option<Tensor>) -> Result<Tensor> {
    t.ok_or_else(|| crate::ops::def::no_result(&DEF))
}

/// `rnn_layer`: one direction of a recurrent layer over the projected input of all steps. Returns the outputs of all steps, the
/// last state, the last cell state (of shape `[0]` if there is none), and with `save` the values from which the backward op
/// computes gradients. The modes are those of [`Rnn`](crate::nn::Rnn), [`Gru`](crate::nn::Gru) and [`Lstm`](crate::nn::Lstm),
/// whose documentation has the formulas.
pub static DEF: OpDef = OpDef::new(
    "rnn_layer(Tensor projected, Tensor hidden, Tensor? cell, Tensor weight_hh, Tensor? bias_hh, Tensor? weight_hr, \
     int[] batch_sizes, bool reverse, str mode, bool save) -> (Tensor, Tensor, Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b11_1111, saves_outputs: 0b1001, formula },
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(errors)
.decomposed(|args| Ok(compose(args)?.into_iter().map(Tensor::into_ref).collect()))
.with(OpFlags::AUTOCAST_F32);
