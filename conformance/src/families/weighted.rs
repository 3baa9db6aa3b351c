//! Derivatives of a weighted sum of an op's outputs, by the backend and by differences.

use super::context::Context;
use super::samples::leaves;
use crate::array::{Array, Number};
use crate::inputs;
use crate::memory::{Arrangement, Placed, read};
use crate::oracle::Inputs;
use crate::outcome::Steps;
use keyway::autograd::{BackwardOptions, grad};
use keyway::dispatcher::op::Out;
use keyway::ops::sample::Sample;
use keyway::{DType, Tensor};

/// Ops that sort in descending order, so that of equal elements the first is dropped last.
const DESCENDING: [&str; 1] = ["topk"];

/// The sum of the outputs, each element multiplied by a weight that increases along every dimension: if equal elements may be
/// taken in either order, the derivative is between the derivatives of the two orders.
pub(super) fn weighted(outputs: &[Array], weight: Weight) -> Option<f64> {
    let sums = outputs
        .iter()
        .filter(|o| o.dtype.is_float())
        .map(|output| output.values.iter().enumerate().map(|(nth, v)| weight(nth) * v.float()).sum::<f64>());
    Some(sums.sum()).filter(|sum: &f64| sum.is_finite())
}

/// The weight of an element, by its index.
pub(super) type Weight = fn(usize) -> f64;

pub(super) fn weight_of(context: &Context<'_>) -> Weight {
    match DESCENDING.contains(&context.case.name()) {
        true => |_| 0.75,
        false => |nth| 0.5 + 0.25 * (nth % 64) as f64,
    }
}

/// The two one-sided derivatives of `value` at 0, where it is `middle`, if finite differences can determine them.
pub(super) fn one_sided(middle: f64, value: impl Fn(f64) -> Option<f64>) -> Option<(f64, f64, f64)> {
    const STEPS: [f64; 2] = [2e-5, 1e-5];
    let mut sides = [0.0; 2];
    let mut noise: f64 = 0.0;
    for (side, sign) in sides.iter_mut().zip([-1.0, 1.0]) {
        let slope = |step: f64| Some((value(sign * step)? - middle) / (sign * step));
        let (wide, narrow) = (slope(STEPS[0])?, slope(STEPS[1])?);
        noise = noise.max((wide - narrow).abs());
        // A jump, or an infinite slope.
        if (wide - narrow).abs() > 1e-2 * (1.0 + narrow.abs()) {
            return None;
        }
        // The remaining curvature is proportional to the step.
        *side = 2.0 * narrow - wide;
    }
    let allowed = 1e-4 + 1e-4 * sides[0].abs().max(sides[1].abs()) + noise + middle.abs() * 1e-9;
    Some((sides[0].min(sides[1]), sides[0].max(sides[1]), allowed))
}

/// The inputs with one element of one tensor changed by `by`.
pub(super) fn moved(inputs: &Inputs, tensor: usize, element: usize, by: f64) -> Inputs {
    let mut inputs = inputs.clone();
    let mut at = 0;
    inputs::map_arrays(&mut inputs, |array| {
        if at == tensor {
            array.values[element] = Number::Float(array.values[element].float() + by);
        }
        at += 1;
    });
    inputs
}

/// The gradients of the weighted sum of the op's outputs, `None` for a tensor without one; with `second`, those of the weighted
/// sum of the gradients.
pub(super) fn analytic(
    context: &Context<'_>,
    sample: &Sample,
    inputs: &Inputs,
    second: bool,
) -> Steps<Vec<Option<Array>>> {
    let (op, device, weight) = (context.entry()?, context.target.device, weight_of(context));
    let prepared = context.place_bare(inputs)?;
    let leaves = leaves(prepared.tensors(), sample)?;
    let outputs = prepared.call_entry(op, &leaves, Out::New).map_err(|e| context.refused(e))?;
    let outputs: Vec<Tensor> =
        outputs.into_iter().filter(|o| o.requires_grad() && o.dtype() == context.dtype()).collect();
    let wanted: Vec<Tensor> = leaves.iter().filter(|t| t.requires_grad()).cloned().collect();
    let start = |t: &Tensor| {
        let values: Vec<Number> = (0..t.elem_count()).map(|nth| Number::Float(weight(nth))).collect();
        Ok(Placed::new(&Array::new(t.dtype(), t.shape(), values), Arrangement::Contiguous, device)?.tensor)
    };
    let pass = |outputs: &[Tensor], create_graph: bool| -> keyway::Result<Vec<Option<Tensor>>> {
        if outputs.is_empty() {
            return Ok(vec![None; wanted.len()]);
        }
        let gradients = outputs.iter().map(start).collect::<keyway::Result<Vec<_>>>()?;
        let options = BackwardOptions {
            gradients: Some(gradients),
            create_graph,
            allow_unused: true,
            ..Default::default()
        };
        grad(outputs, &wanted, options)
    };
    let mut made = pass(&outputs, second).map_err(|e| context.refused(e))?;
    if second {
        let first: Vec<Tensor> = made.into_iter().flatten().filter(Tensor::requires_grad).collect();
        made = pass(&first, false).map_err(|e| context.refused(e))?;
    }
    let mut made = made.into_iter();
    let each = leaves.iter().map(|t| match t.requires_grad().then(|| made.next()).flatten().flatten() {
        Some(gradient) => Ok(read(&gradient)?),
        None => Ok(None),
    });
    each.collect()
}

/// The arguments with tensors of this float as f64.
pub(super) fn widened(inputs: &Inputs, narrow: DType) -> Inputs {
    let mut wide = inputs.clone();
    inputs::map_arrays(&mut wide, |array| {
        if array.dtype == narrow {
            *array = array.map(DType::F64, |v| Number::Float(v.float()));
        }
    });
    wide
}
