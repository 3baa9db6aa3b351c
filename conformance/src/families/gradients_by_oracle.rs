//! Derivatives on a device without f64: those of f32 against finite differences of the oracle, which computes in f64. The
//! oracle has no second derivatives: these are compared with differences of the first ones, in f32, which the first part
//! tests; the steps are as large as that precision requires.

use super::Context;
use super::weighted::{analytic, moved, weight_of, weighted, widened};
use crate::array::{Array, round_to};
use crate::inputs;
use crate::oracle::Inputs;
use crate::outcome::{Failure, Mismatch, Steps, Stop};

/// The step of the finite difference, and the tolerance of the derivative: relative to itself, and to the largest
/// derivative in its neighbourhood, which bounds the magnitude of its addends.
#[derive(Clone, Copy)]
struct Precision {
    step: f64,
    rtol: f64,
    atol: f64,
}

const FIRST: Precision = Precision { step: 1e-4, rtol: 1e-4, atol: 1e-4 };
const SECOND: Precision = Precision { step: 1e-2, rtol: 2e-2, atol: 1e-2 };

/// Checks the first derivatives of the case's op at its sample, or with `second` its second derivatives.
pub(super) fn check(context: &Context<'_>, second: bool) -> Steps {
    let oracle = context.oracle()?;
    check_by(context, second, |inputs| oracle(inputs).ok())
}

/// As [`check`], with another reference that computes the op in f64; it returns nothing if it cannot.
pub(super) fn check_by(
    context: &Context<'_>,
    second: bool,
    oracle: impl Fn(&Inputs) -> Option<Vec<Array>>,
) -> Steps {
    let (sample, inputs) = context.inputs()?;
    let (weight, narrow) = (weight_of(context), context.dtype());
    let Precision { step, rtol, atol } = if second { SECOND } else { FIRST };
    let made = analytic(context, &sample, &inputs, second)?;
    let value = |tensor: usize, element: usize, by: f64| -> Steps<Option<f64>> {
        if !second {
            let there = oracle(&moved(&widened(&inputs, narrow), tensor, element, by));
            return Ok(there.and_then(|outputs| weighted(&outputs, weight)));
        }
        let first = analytic(context, &sample, &moved(&inputs, tensor, element, by), false)?;
        let of = |array: &Array| -> f64 {
            array.values.iter().enumerate().map(|(nth, v)| weight(nth) * v.float()).sum()
        };
        Ok(Some(first.iter().flatten().map(of).sum()))
    };
    let start = arrays(&inputs);
    let largest = made.iter().flatten().flat_map(Array::floats).fold(1.0, |most: f64, v| most.max(v.abs()));
    let mut judged = false;
    for (tensor, gradient) in made.iter().enumerate() {
        let Some(gradient) = gradient else { continue };
        for (element, got) in gradient.floats().into_iter().enumerate() {
            // A step in the narrow dtype is rounded to that dtype.
            let at = start[tensor].values[element].float();
            let hold = |v: f64| if second { round_to(v, narrow) } else { v };
            let (up, down) = (hold(at + step) - at, hold(at - step) - at);
            let (Some(high), Some(low)) = (value(tensor, element, up)?, value(tensor, element, down)?) else {
                continue;
            };
            judged = true;
            let numeric = (high - low) / (up - down);
            if (got - numeric).abs() <= atol * largest + rtol * numeric.abs() {
                continue;
            }
            let order = if second { "second derivative" } else { "derivative" };
            let what = format!("{order} of {} with respect to tensor {tensor}", context.case.name());
            let mut failure = Failure::new(what, numeric.to_string(), got.to_string());
            let index = crate::array::unravelled(&gradient.sizes, element);
            let of = gradient.numel();
            failure.mismatch =
                Some(Mismatch { output: tensor, element: index, wrong: 1, of, rtol, atol: atol * largest });
            return Err(failure.into());
        }
    }
    if made.iter().flatten().any(|gradient| gradient.numel() > 0) && !judged {
        return Err(Stop::Skipped("the oracle has no finite values beside the sample".to_string()));
    }
    Ok(())
}

fn arrays(inputs: &Inputs) -> Vec<Array> {
    let mut all = Vec::new();
    inputs::map_arrays(&mut inputs.clone(), |array| all.push(array.clone()));
    all
}
