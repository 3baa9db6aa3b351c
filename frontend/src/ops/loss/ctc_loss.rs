//! `ctc_loss`
//!
//! Arguments:
//! - `log_probs`: log-probabilities of the classes, `[steps, batch, classes]`.
//! - `targets`: labels, `[batch, labels]` with padding, or those of all sequences in one dimension.
//! - `input_lengths`: the number of steps of each sequence.
//! - `target_lengths`: the number of labels of each sequence.
//! - `blank`: the class that separates labels.
//! - `zero_infinity`: whether a target that no alignment reaches has the loss 0 instead of infinity.

use super::ctc_samples::{calls, refused};
use super::ctc_states::{Alignment, FINITE, check};
use super::{Reduction, ctc_loss_backward, wrong};
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::error::Result;
use crate::ops::composite::{cast, one, whole, wide, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

/// The options of [`Tensor::ctc_loss_with`].
///
/// ```
/// use keyway::nn::{CtcLossOptions, Reduction};
/// let options = CtcLossOptions { blank: 4, ..Default::default() };
/// assert!(!options.zero_infinity && options.reduction == Reduction::Mean);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CtcLossOptions {
    /// The class that separates labels.
    pub blank: usize,
    /// Whether a target that no alignment reaches has loss and gradient 0; otherwise its loss is infinite.
    pub zero_infinity: bool,
    /// The reduction over the losses of the batch. The mean is that of the losses, each divided by the number of its labels.
    pub reduction: Reduction,
}

impl Tensor {
    /// The mean connectionist temporal classification loss (A. Graves and others, 2006) of log-probabilities
    /// `[steps, batch, classes]`, or `[steps, classes]` for one sequence: the negative logarithm of the probability of all
    /// alignments that become the target once repeated classes are merged and blanks (class 0) removed. Targets are
    /// `[batch, labels]` with any padding, or the labels of all sequences in one dimension. Each loss is divided by the number of
    /// labels, 1 for an empty target. A target that no alignment reaches has an infinite loss.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// // Two steps, each with the probabilities 0.4 of the blank and 0.6 of class 1.
    /// let log_probs = Tensor::new([[0.4f32, 0.6], [0.4, 0.6]])?.log()?;
    /// let loss = log_probs.ctc_loss(&Tensor::new([1i64])?, &[2], &[1])?;
    /// // `1 1`, `1 blank` and `blank 1`.
    /// assert!((loss.item::<f32>()? + 0.84f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; targets that are not integers, or not of these shapes; a length for more or fewer sequences,
    /// or one above the number of steps or labels; a label that is no class, or the blank.
    pub fn ctc_loss(
        &self,
        targets: &Tensor,
        input_lengths: &[usize],
        target_lengths: &[usize],
    ) -> Result<Tensor> {
        self.ctc_loss_with(targets, input_lengths, target_lengths, CtcLossOptions::default())
    }

    /// [`Tensor::ctc_loss`] with options.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::CtcLossOptions};
    /// let log_probs = Tensor::new([[0.4f32, 0.6]])?.log()?;
    /// // A repeated label needs three steps.
    /// let target = Tensor::new([1i64, 1])?;
    /// assert_eq!(log_probs.ctc_loss(&target, &[1], &[2])?.item::<f32>()?, f32::INFINITY);
    /// let options = CtcLossOptions { zero_infinity: true, ..Default::default() };
    /// assert_eq!(log_probs.ctc_loss_with(&target, &[1], &[2], options)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a blank that is no class; [`Reduction::BatchMean`].
    pub fn ctc_loss_with(
        &self,
        targets: &Tensor,
        input_lengths: &[usize],
        target_lengths: &[usize],
        options: CtcLossOptions,
    ) -> Result<Tensor> {
        let CtcLossOptions { blank, zero_infinity, reduction } = options;
        if self.rank() == 2 {
            let options = CtcLossOptions {
                reduction: if reduction == Reduction::None { Reduction::Sum } else { reduction },
                ..options
            };
            return self.unsqueeze(1)?.ctc_loss_with(targets, input_lengths, target_lengths, options);
        }
        let lengths = |given: &[usize]| given.iter().map(|n| n.to_i64()).collect::<Vec<i64>>();
        let (inputs, labels) = (lengths(input_lengths), lengths(target_lengths));
        let losses = DEF.run(&[
            self.into(),
            targets.into(),
            Arg::Ints(&inputs),
            Arg::Ints(&labels),
            whole(blank),
            Arg::Bool(zero_infinity),
        ])?;
        match reduction {
            Reduction::None => Ok(losses),
            Reduction::Sum => losses.sum_all(),
            Reduction::Mean => {
                let counts: Vec<f64> = labels.iter().map(|&n| n.max(1) as f64).collect();
                let counts = Tensor::from_vec(counts, labels.len())?.to_dtype(wide(losses.dtype()))?;
                let losses_each = losses.div(&counts.to_device(losses.device())?)?;
                cast(losses_each.mean_all()?, losses.dtype())
            }
            Reduction::BatchMean => Err(wrong("ctc_loss", "reduction", "none, mean or sum", "`batchmean`")),
        }
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let [_, batch, _] = check(args, 0)?;
    let dtype = args.tensor(0)?.dtype();
    let mut plan = Plan::one(dtype, Dims::from_slice(&[batch]), dtype, Strides::Contiguous);
    plan.cast = 0b1;
    plan.cast_index = 0b10;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let alignment = Alignment::new(args, 0, f64::NEG_INFINITY)?;
    let mut states = alignment.begin.clone();
    for t in 0..alignment.steps() {
        states = alignment.forward(t, &states)?;
    }
    let mut losses = alignment.losses(&states)?;
    if args.bool(5)? {
        losses = losses.eq(f64::INFINITY)?.where_cond(0.0, &losses)?;
    }
    cast(losses, args.tensor(0)?.dtype())
}

/// `ctc_loss`: the loss of each sequence.
pub static DEF: OpDef = OpDef::new(
    "ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, \
     bool zero_infinity=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || {
            let (log_probs, targets) = (b.input(0)?, b.input(1)?);
            if is_grad_enabled() {
                let (log_probs, targets) = ((&log_probs).into(), (&targets).into());
                let values = [log_probs, targets, b.arg(2), b.arg(3), b.arg(4), b.arg(5)];
                let alignment = Alignment::new(&Args { op: DEF.entry()?, values: &values }, 0, FINITE)?;
                return alignment.gradient(&widened(b.grad(0)?)?, b.bool(5)?);
            }
            let (grad, log_probs, targets) = (b.grad(0)?.into(), (&log_probs).into(), (&targets).into());
            let args = [grad, log_probs, targets, b.arg(2), b.arg(3), b.arg(4), b.arg(5)];
            ctc_loss_backward::DEF.run(&args)
        })
    }),
    || calls(|_| Vec::new()),
)
.dtypes(Dtypes::FLOAT)
.errors(|| refused(|_| Vec::new()))
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);
