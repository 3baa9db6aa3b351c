//! The modes of a recurrent layer, and the checks of the arguments that both ops share.

use crate::ops::rules::{require, wrong_shape, wrong_value};
use crate::{DType, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::Args;

/// A recurrence, named as in PyTorch's modules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Tanh,
    Relu,
    Gru,
    Lstm,
}

impl Mode {
    fn of(name: &str) -> Option<Mode> {
        Some(match name {
            "rnn_tanh" => Mode::Tanh,
            "rnn_relu" => Mode::Relu,
            "gru" => Mode::Gru,
            "lstm" => Mode::Lstm,
            _ => return None,
        })
    }

    /// Number of gates: the rows of each weight are this many times the hidden width.
    pub(super) fn gates(self) -> usize {
        match self {
            Mode::Tanh | Mode::Relu => 1,
            Mode::Gru => 3,
            Mode::Lstm => 4,
        }
    }

    /// The width of a row of the values saved for backward, in multiples of the hidden width: the gates of an LSTM
    /// (i, f, g, o) and its cell state; those of a GRU (r, z), its product for n and n itself.
    pub(super) fn saved(self) -> usize {
        match self {
            Mode::Tanh | Mode::Relu => 0,
            Mode::Gru => 4,
            Mode::Lstm => 5,
        }
    }
}

/// The sizes of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) mode: Mode,
    /// The number of sequences.
    pub(super) batch: usize,
    /// Width of the cell.
    pub(super) hidden: usize,
    /// Width of the output: that of the projection, if there is one.
    pub(super) out: usize,
    /// The number of steps of all sequences.
    pub(super) rows: usize,
}

/// The positions of the arguments that both ops have.
pub(super) struct Positions {
    pub(super) hidden: usize,
    pub(super) batch_sizes: usize,
    pub(super) mode: usize,
    pub(super) weight_hr: usize,
}

/// The sizes of a layer, from the state, the weights and the batch sizes. `cell` and `weight_hh` follow `hidden`.
///
/// # Errors
/// Arguments of unsupported shape or dtype.
pub(super) fn sizes(args: &Args<'_>, at: &Positions, dtype: DType) -> RuleResult<Sizes> {
    let Some(mode) = Mode::of(args.str(at.mode)?) else {
        return Err(wrong_value(args, at.mode, "rnn_tanh, rnn_relu, gru or lstm".to_string()));
    };
    let state = args.tensor(at.hidden)?;
    let &[batch, out] = state.sizes() else {
        return Err(wrong_shape(args, at.hidden, "[batch, width]".into(), state.sizes()));
    };
    let weight = args.tensor(at.hidden + 2)?;
    let hidden = match args.optional_tensor(at.weight_hr)? {
        None => out,
        Some(t) => match t.sizes() {
            &[rows, hidden] if mode == Mode::Lstm && rows == out => hidden,
            got => {
                let expected = format!("[{out}, hidden], for mode lstm alone");
                return Err(wrong_shape(args, at.weight_hr, expected, got));
            }
        },
    };
    if hidden == 0 || out == 0 {
        return Err(wrong_shape(args, at.hidden, "of width 1 or more".into(), state.sizes()));
    }
    shaped(args, at.hidden + 2, &[mode.gates().saturating_mul(hidden), out])?;
    require(args, at.hidden + 2, weight.dtype(), dtype.is_float(), "a float dtype")?;
    match (mode, args.optional_tensor(at.hidden + 1)?) {
        (Mode::Lstm, Some(_)) => shaped(args, at.hidden + 1, &[batch, hidden])?,
        (Mode::Lstm, None) => {
            return Err(wrong_value(args, at.hidden + 1, "a tensor for mode lstm".to_string()));
        }
        (_, Some(_)) => {
            return Err(wrong_value(args, at.hidden + 1, "None for modes without a cell state".to_string()));
        }
        (_, None) => {}
    }
    let batches = args.ints(at.batch_sizes)?;
    let falls = batches.windows(2).all(|pair| pair[0] >= pair[1]) && batches.iter().all(|&n| n >= 0);
    if !falls || batches.first().is_some_and(|&n| n as usize != batch) {
        let expected = format!("batch sizes that do not grow, from {batch} for the first step on");
        return Err(wrong_value(args, at.batch_sizes, expected));
    }
    let rows = batches.iter().try_fold(0usize, |sum, &n| sum.checked_add(n as usize));
    let Some(rows) = rows else {
        return Err(wrong_value(args, at.batch_sizes, "sizes whose sum does not overflow".to_string()));
    };
    Ok(Sizes { mode, batch, hidden, out, rows })
}

/// Refuses a tensor argument of another shape; accepts a missing one.
pub(super) fn shaped(args: &Args<'_>, i: usize, shape: &[usize]) -> RuleResult<()> {
    match args.optional_tensor(i)? {
        Some(t) if t.sizes() != shape => Err(Error::Shape {
            op: args.name(),
            argument: args.op.schema.param_name(i),
            expected: format!("of shape {shape:?}"),
            got: t.sizes().into(),
        }),
        _ => Ok(()),
    }
}

/// The tensors and settings of a layer in its decomposition, f16 and bf16 as f32.
pub(super) struct Layer {
    pub(super) mode: Mode,
    /// The initial state.
    pub(super) hidden: Tensor,
    /// The initial cell state of an LSTM; of shape `[0]` for other modes.
    pub(super) cell: Tensor,
    pub(super) weight_hh: Tensor,
    pub(super) bias_hh: Option<Tensor>,
    pub(super) weight_hr: Option<Tensor>,
    /// The offset and the number of rows of each step, in the order of the recurrence.
    pub(super) steps: Vec<(usize, usize)>,
    pub(super) reverse: bool,
}

impl Layer {
    /// The steps of these batch sizes, and the mode of this name.
    pub(super) fn steps(batches: &[i64], reverse: bool) -> Vec<(usize, usize)> {
        let mut offset = 0;
        let mut steps: Vec<(usize, usize)> = batches
            .iter()
            .map(|&rows| {
                offset += rows as usize;
                (offset - rows as usize, rows as usize)
            })
            .collect();
        if reverse {
            steps.reverse();
        }
        steps
    }

    /// The mode of this name, which the rule has checked.
    pub(super) fn mode(name: &str) -> Mode {
        Mode::of(name).unwrap_or(Mode::Tanh)
    }
}
