//! Losses. `reduction` is `mean`, `sum` or `none`.

use super::{called, reduction};
use crate::handle::PyTensor;
use keyway::nn::{CtcLossOptions, TripletMarginOptions};
use pyo3::prelude::*;

type Input<'a, 'py> = &'a Bound<'py, PyTensor>;

/// Squares of small differences, absolute values of those above `delta`.
#[pyfunction]
#[pyo3(signature = (input, target, reduction="mean", delta=1.0))]
pub fn huber_loss(input: Input, target: Input, reduction: &str, delta: f64) -> PyResult<PyTensor> {
    let (target, reduction) = (&target.get().0, self::reduction(reduction)?);
    called(input, |x| x.huber_loss_with(target, delta, reduction))
}

/// `x` where the target is 1, `max(0, margin - x)` where it is -1.
#[pyfunction]
#[pyo3(signature = (input, target, margin=1.0, reduction="mean"))]
pub fn hinge_embedding_loss(input: Input, target: Input, margin: f64, reduction: &str) -> PyResult<PyTensor> {
    let (target, reduction) = (&target.get().0, self::reduction(reduction)?);
    called(input, |x| x.hinge_embedding_loss_with(target, margin, reduction))
}

/// `log(1 + exp(-target * input))`.
#[pyfunction]
#[pyo3(signature = (input, target, reduction="mean"))]
pub fn soft_margin_loss(input: Input, target: Input, reduction: &str) -> PyResult<PyTensor> {
    let (target, reduction) = (&target.get().0, self::reduction(reduction)?);
    called(input, |x| x.soft_margin_loss_with(target, reduction))
}

/// The hinge loss of several classes.
#[pyfunction]
#[pyo3(signature = (input, target, p=1, margin=1.0, weight=None, reduction="mean"))]
pub fn multi_margin_loss(
    input: Input,
    target: Input,
    p: i64,
    margin: f64,
    weight: Option<Input>,
    reduction: &str,
) -> PyResult<PyTensor> {
    let (target, reduction) = (&target.get().0, self::reduction(reduction)?);
    let weight = weight.map(|weight| &*weight.get().0);
    called(input, |x| x.multi_margin_loss_with(target, p, margin, weight, reduction))
}

/// The negative log-likelihood of counts by the Poisson distribution.
#[pyfunction]
#[pyo3(signature = (input, target, log_input=true, full=false, eps=1e-8, reduction="mean"))]
pub fn poisson_nll_loss(
    input: Input,
    target: Input,
    log_input: bool,
    full: bool,
    eps: f64,
    reduction: &str,
) -> PyResult<PyTensor> {
    let (target, reduction) = (&target.get().0, self::reduction(reduction)?);
    called(input, |x| x.poisson_nll_loss_with(target, log_input, full, eps, reduction))
}

/// The negative log-likelihood by normal distributions of the variances `var`, a tensor or a number.
#[pyfunction]
#[pyo3(signature = (input, target, var, full=false, eps=1e-6, reduction="mean"))]
pub fn gaussian_nll_loss(
    input: Input,
    target: Input,
    var: &Bound<'_, PyAny>,
    full: bool,
    eps: f64,
    reduction: &str,
) -> PyResult<PyTensor> {
    use crate::error::OrRaise;
    let (target, reduction) = (&target.get().0, self::reduction(reduction)?);
    let var = match var.cast::<PyTensor>() {
        Ok(var) => var.get().0.clone(),
        Err(_) => input.get().0.detach().full_like(var.extract::<f64>()?).or_raise()?,
    };
    called(input, |x| x.gaussian_nll_loss_with(target, &var, full, eps, reduction))
}

/// `max(0, |anchor - positive| - |anchor - negative| + margin)`, with norms of order `p`.
#[pyfunction]
#[pyo3(signature = (anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=false, reduction="mean"))]
#[allow(clippy::too_many_arguments)]
pub fn triplet_margin_loss(
    anchor: Input,
    positive: Input,
    negative: Input,
    margin: f64,
    p: f64,
    eps: f64,
    swap: bool,
    reduction: &str,
) -> PyResult<PyTensor> {
    let options = TripletMarginOptions { margin, p, eps, swap, reduction: self::reduction(reduction)? };
    let (positive, negative) = (&positive.get().0, &negative.get().0);
    called(anchor, |x| x.triplet_margin_loss_with(positive, negative, options))
}

/// `1 - cos(x1, x2)` where the target is 1, `max(0, cos(x1, x2) - margin)` where it is -1.
#[pyfunction]
#[pyo3(signature = (input1, input2, target, margin=0.0, reduction="mean"))]
pub fn cosine_embedding_loss(
    input1: Input,
    input2: Input,
    target: Input,
    margin: f64,
    reduction: &str,
) -> PyResult<PyTensor> {
    let (other, target, reduction) = (&input2.get().0, &target.get().0, self::reduction(reduction)?);
    called(input1, |x| x.cosine_embedding_loss_with(other, target, margin, reduction))
}

/// The connectionist temporal classification loss (Graves et al. 2006) of `log_probs`, `[steps, batch, classes]`.
#[pyfunction]
#[pyo3(signature = (log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=false))]
pub fn ctc_loss(
    log_probs: Input,
    targets: Input,
    input_lengths: Vec<usize>,
    target_lengths: Vec<usize>,
    blank: usize,
    reduction: &str,
    zero_infinity: bool,
) -> PyResult<PyTensor> {
    let options = CtcLossOptions { blank, zero_infinity, reduction: self::reduction(reduction)? };
    let targets = &targets.get().0;
    called(log_probs, |x| x.ctc_loss_with(targets, &input_lengths, &target_lengths, options))
}

/// `max(0, -target * (input1 - input2) + margin)`.
#[pyfunction]
#[pyo3(signature = (input1, input2, target, margin=0.0, reduction="mean"))]
pub fn margin_ranking_loss(
    input1: Input,
    input2: Input,
    target: Input,
    margin: f64,
    reduction: &str,
) -> PyResult<PyTensor> {
    let (other, target, reduction) = (&input2.get().0, &target.get().0, self::reduction(reduction)?);
    called(input1, |x| x.margin_ranking_loss_with(other, target, margin, reduction))
}
