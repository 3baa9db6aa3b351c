//! Connectionist temporal classification: the states of an alignment, and the recursions as tensor ops.
//!
//! The states of a target of `n` labels are the `2 n + 1` symbols of the target with a blank before, between and after its labels
//! (A. Graves and others, "Connectionist temporal classification", 2006). Before the first step only state 0 has a probability.

use crate::error::Result;
use crate::ops::composite::{tensor, widened};
use crate::ops::rules::{require, wrong_shape};
use crate::{DType, Device, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::Args;

/// Checks the arguments `(log_probs, targets, input_lengths, target_lengths, blank)` from argument `first` on; returns the
/// sizes `[steps, batch, classes]`.
///
/// # Errors
/// Arguments of unsupported shape or dtype, and lengths out of range.
pub(super) fn check(args: &Args<'_>, first: usize) -> RuleResult<[usize; 3]> {
    let (probabilities, targets) = (args.tensor(first)?, args.tensor(first + 1)?);
    require(args, first, probabilities.dtype(), probabilities.dtype().is_float(), "a float dtype")?;
    require(args, first + 1, targets.dtype(), targets.dtype().is_integer(), "integers: labels")?;
    let &[steps, batch, classes] = probabilities.sizes() else {
        return Err(wrong_shape(args, first, "[steps, batch, classes]".into(), probabilities.sizes()));
    };
    lengths(args, first + 2, batch, steps)?;
    let most = if targets.ndim() == 2 { targets.sizes()[1] } else { targets.sizes().iter().product() };
    let sum = lengths(args, first + 3, batch, most)?;
    let fits = match targets.sizes() {
        [rows, _] => *rows == batch,
        [all] => *all == sum,
        _ => false,
    };
    if !fits {
        let expected = format!("[{batch}, labels], or [{sum}] as the sum of `target_lengths`");
        return Err(wrong_shape(args, first + 1, expected, targets.sizes()));
    }
    let blank = args.int(first + 4)?;
    if blank < 0 || blank as usize >= classes {
        return Err(Error::Value {
            op: args.name(),
            argument: args.op.schema.param_name(first + 4),
            expected: format!("a class in 0..{classes}"),
            got: blank.to_string(),
        });
    }
    Ok([steps, batch, classes])
}

/// Checks a list of lengths; returns their sum.
fn lengths(args: &Args<'_>, i: usize, batch: usize, most: usize) -> RuleResult<usize> {
    let given = args.ints(i)?;
    let wrong = |expected: String, got: String| Error::Value {
        op: args.name(),
        argument: args.op.schema.param_name(i),
        expected,
        got,
    };
    if given.len() != batch {
        let expected = format!("a length for each of {batch} sequences");
        return Err(wrong(expected, format!("{} lengths", given.len())));
    }
    let mut sum = 0;
    for (nth, &length) in given.iter().enumerate() {
        match usize::try_from(length) {
            Ok(length) if length <= most => sum += length,
            _ => {
                let expected = format!("lengths from 0 to {most}");
                return Err(wrong(expected, format!("{length} for sequence {nth} of the batch")));
            }
        }
    }
    Ok(sum)
}

/// A logarithm of 0 whose derivatives are numbers, for gradients that are differentiated again.
pub(super) const FINITE: f64 = -1e30;
/// The loss above which no alignment reaches a target.
const UNREACHED: f64 = 1e29;

/// The alignments of a batch, as tensors.
pub(super) struct Alignment {
    /// `[steps, batch, classes]`, f16 and bf16 as f32.
    log_probs: Tensor,
    /// The class of each state, `[batch, states]`.
    symbols: Tensor,
    /// Whether a transition over one state is allowed.
    skips: Tensor,
    /// The log-probabilities of the states before the first step.
    pub(super) begin: Tensor,
    /// Whether an alignment may end in a state.
    ends: Tensor,
    /// The logarithm of 0: minus infinity, or [`FINITE`].
    none: f64,
    lengths: Vec<usize>,
}

impl Alignment {
    /// The alignments of arguments that the rule has checked; reads the labels on the host.
    pub(super) fn new(args: &Args<'_>, first: usize, none: f64) -> Result<Alignment> {
        let log_probs = widened(&tensor(args, first)?)?;
        let (batch, classes) = (log_probs.shape()[1], log_probs.shape()[2]);
        let targets = tensor(args, first + 1)?;
        let padded = if targets.rank() == 2 { Some(targets.shape()[1]) } else { None };
        let labels = targets.to_dtype(DType::I64)?.to_device(Device::CPU)?.to_vec::<i64>()?;
        let count: Vec<usize> = args.ints(first + 3)?.iter().map(|&n| n as usize).collect();
        let blank = args.int(first + 4)?;
        let states = 2 * count.iter().max().copied().unwrap_or(0) + 1;
        let mut symbols = vec![blank; batch * states];
        let (mut skips, mut begin) = (vec![false; batch * states], vec![none; batch * states]);
        let (mut ends, mut offset) = (skips.clone(), 0);
        for (nth, &count) in count.iter().enumerate() {
            let from = padded.map_or(offset, |width| nth * width);
            let own = &labels[from..from + count];
            offset += count;
            if let Some(label) = own.iter().find(|&&l| l < 0 || l as usize >= classes || l == blank) {
                return Err(Error::Value {
                    op: args.name(),
                    argument: args.op.schema.param_name(first + 1),
                    expected: format!("labels in 0..{classes} other than the blank {blank}"),
                    got: format!("{label} in sequence {nth} of the batch"),
                }
                .into());
            }
            for (k, &label) in own.iter().enumerate() {
                let at = nth * states + 2 * k + 1;
                symbols[at] = label;
                skips[at] = k > 0 && own[k - 1] != label;
            }
            begin[nth * states] = 0.0;
            ends[nth * states + 2 * count] = true;
            if count > 0 {
                ends[nth * states + 2 * count - 1] = true;
            }
        }
        let mask =
            |values: Vec<bool>| Tensor::from_vec(values, (batch, states))?.to_device(log_probs.device());
        let begin = Tensor::from_vec(begin, (batch, states))?.to_dtype(log_probs.dtype())?;
        let lengths = args.ints(first + 2)?.iter().map(|&n| n as usize).collect();
        Ok(Alignment {
            symbols: Tensor::from_vec(symbols, (batch, states))?.to_device(log_probs.device())?,
            skips: mask(skips)?,
            begin: begin.to_device(log_probs.device())?,
            ends: mask(ends)?,
            none,
            log_probs,
            lengths,
        })
    }

    /// The number of steps.
    pub(super) fn steps(&self) -> usize {
        self.log_probs.shape()[0]
    }

    /// The states that `n` steps earlier reach each state; with a negative `n`, later.
    fn shifted(&self, states: &Tensor, n: i64) -> Result<Tensor> {
        let (all, by) = (states.shape()[1], n.unsigned_abs() as usize);
        let missing = states.new_full((states.shape()[0], by.min(all)), self.none)?;
        if by >= all {
            return Ok(missing);
        }
        match n > 0 {
            true => Tensor::cat(&[missing, states.narrow(1, 0, all - by)?], 1),
            false => Tensor::cat(&[states.narrow(1, by, all - by)?, missing], 1),
        }
    }

    /// `new` for the sequences that have step `t`, otherwise `old`.
    fn active(&self, t: usize, new: Tensor, old: &Tensor) -> Result<Tensor> {
        if self.lengths.iter().all(|&length| t < length) {
            return Ok(new);
        }
        let has: Vec<bool> = self.lengths.iter().map(|&length| t < length).collect();
        let has = Tensor::from_vec(has, (self.lengths.len(), 1))?.to_device(new.device())?;
        has.where_cond(&new, old)
    }

    /// The log-probability of each state's symbol at step `t`.
    fn emission(&self, t: usize) -> Result<Tensor> {
        self.log_probs.select(0, t)?.gather(1, &self.symbols)
    }

    /// The log-probability of the symbols up to step `t` and of the state after it, from those before the step.
    pub(super) fn forward(&self, t: usize, before: &Tensor) -> Result<Tensor> {
        let near = before.logaddexp(&self.shifted(before, 1)?)?;
        let far = self.skips.where_cond(&self.shifted(before, 2)?, self.none)?;
        self.active(t, near.logaddexp(&far)?.add(&self.emission(t)?)?, before)
    }

    /// The log-probability of the symbols from step `t` on given the state before it, from those after the step.
    fn backward(&self, t: usize, after: &Tensor) -> Result<Tensor> {
        let next = after.add(&self.emission(t)?)?;
        let near = next.logaddexp(&self.shifted(&next, -1)?)?;
        let far = self.shifted(&self.skips.where_cond(&next, self.none)?, -2)?;
        self.active(t, near.logaddexp(&far)?, after)
    }

    /// The negative log-likelihoods, from the log-probabilities after the last step.
    pub(super) fn losses(&self, last: &Tensor) -> Result<Tensor> {
        self.ends.where_cond(last, self.none)?.logsumexp(1)?.neg()
    }

    /// The gradient of the log-probabilities: minus the probability of each class at each step given the target, times `grad`.
    pub(super) fn gradient(&self, grad: &Tensor, zero_infinity: bool) -> Result<Tensor> {
        let steps = self.steps();
        let mut states = vec![self.begin.clone()];
        for t in 0..steps {
            let next = self.forward(t, &states[t])?;
            states.push(next);
        }
        let losses = self.losses(&states[steps])?.unsqueeze(1)?;
        let unreached = losses.gt(UNREACHED)?;
        let grad = grad.unsqueeze(1)?.neg()?;
        let end = self.begin.zeros_like()?;
        let (mut after, mut slopes) = (self.ends.where_cond(&end, self.none)?, Vec::new());
        for t in (0..steps).rev() {
            let share = states[t + 1].add(&after)?.add(&losses)?.exp()?;
            let replaced = if zero_infinity { 0.0 } else { f64::NAN };
            let share = unreached.where_cond(replaced, &share)?;
            let zeros = self.log_probs.select(0, t)?.zeros_like()?;
            let made = zeros.scatter_add(1, &self.symbols, &share)?.mul(&grad)?;
            slopes.push(self.active(t, made, &zeros)?);
            after = self.backward(t, &after)?;
        }
        slopes.reverse();
        if slopes.is_empty() {
            return self.log_probs.zeros_like();
        }
        let made = Tensor::stack(&slopes, 0)?;
        // A gradient that is not finite affects no sequence without a loss.
        if zero_infinity { unreached.where_cond(0.0, &made) } else { Ok(made) }
    }
}
