//! Step counters on the device, and steps that cannot be captured.

use super::adam::AdamOptions;
use super::group::refuse;
use super::moments::Moments;
use crate::{DType, Device, Result, Tensor, graph};

/// The number of steps so far, in f64 on the device, so that each replay of captured work increments it.
#[derive(Debug)]
pub(super) struct Clock(Tensor);

impl Clock {
    /// A counter that starts at this number of steps.
    pub(super) fn new(device: Device, steps: i64) -> Result<Clock> {
        Ok(Clock(Tensor::full_with((), steps as f64, (DType::F64, device))?))
    }

    /// Counts one step.
    pub(super) fn advance(&self) -> Result<()> {
        self.0.add_(1.0).map(drop)
    }

    /// The count, waited for.
    pub(super) fn steps(&self) -> Result<i64> {
        Ok(self.0.item::<f64>()? as i64)
    }

    /// Sets the count.
    pub(super) fn set(&self, steps: i64) -> Result<()> {
        self.0.fill_(steps as f64).map(drop)
    }

    /// `eps` and the learning rate of this step, with Adam's bias corrections folded in: `1 - beta^t` is computed as
    /// `1 - exp(t ln beta)`.
    pub(super) fn numbers(&self, o: &AdamOptions) -> Result<[Tensor; 2]> {
        let correction = |beta: f64| self.0.mul(beta.ln())?.exp()?.mul(-1.0)?.add(1.0);
        let root = correction(o.beta2)?.sqrt()?;
        Ok([root.mul(o.eps)?, root.mul(o.lr)?.div(&correction(o.beta1)?)?])
    }
}

/// The steps that all parameters have had.
pub(super) fn common_steps(owner: &'static str, moments: &[Option<Moments>]) -> Result<i64> {
    let mut counts = moments.iter().flatten().map(|m| m.steps);
    let steps = counts.next().unwrap_or(0);
    match counts.find(|&other| other != steps) {
        None => Ok(steps),
        Some(other) => {
            let got = format!("parameters with {steps} and {other}");
            Err(refuse(owner, "capturable", "used where all parameters have had as many steps", got).into())
        }
    }
}

/// Refuses a step in which other parameters have gradients than in earlier steps, since all share the count.
pub(super) fn check_same<M>(
    owner: &'static str,
    grads: &[Option<Tensor>],
    moments: &[Option<M>],
) -> Result<()> {
    if moments.iter().all(Option::is_none) {
        return Ok(());
    }
    let differs = |(grad, moments): (&Option<Tensor>, &Option<M>)| grad.is_some() != moments.is_some();
    let Some(nth) = grads.iter().zip(moments).position(differs) else { return Ok(()) };
    let expected =
        "used with gradients of the same parameters in each step; give others an optimiser of their own";
    let got = match grads[nth] {
        Some(_) => format!("the first gradient of parameter {nth} after steps of others"),
        None => format!("no gradient of parameter {nth}, which has had steps"),
    };
    Err(refuse(owner, "capturable", expected, got).into())
}

/// Refuses to capture a step whose scalars are computed by the host.
pub(super) fn refuse_captured(owner: &'static str, parameter: &Tensor) -> Result<()> {
    let reason = "its corrections follow the number of the step, which the host counts";
    graph::refuse(owner, parameter.device(), reason, "call `capturable` after `new`")
}

/// Refuses to capture a first step, which creates the state of later ones.
pub(super) fn refuse_first(owner: &'static str, parameter: &Tensor) -> Result<()> {
    let reason = "the first step creates the state of a parameter, and each replay would create it again";
    graph::refuse(owner, parameter.device(), reason, "make one step before the capture")
}
