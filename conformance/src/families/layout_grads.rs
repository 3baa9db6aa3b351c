//! Gradients of the ops with kernels for composite layouts, at every stored coordinate, and of the strided tensors among their
//! arguments: in each form of entries, against one-sided differences of the oracle. Each of several duplicates has the gradient
//! at its coordinate.

use super::kernels::{self, Change};
use super::weighted::{moved, one_sided, weight_of, weighted, widened};
use super::{Context, Family, Scope, has_tested, placements, tensors};
use crate::array::{Array, Number, unravelled};
use crate::case::Case;
use crate::inputs;
use crate::known_layouts::{self, Known};
use crate::memory::{Arrangement, Placed, read};
use crate::oracle::{self, Inputs};
use crate::outcome::{Failure, Steps, Stop};
use crate::recorder;
use keyway::autograd::{BackwardOptions, grad};
use keyway::dispatcher::Error as DispatchError;
use keyway::dispatcher::op::{OpEntry, Out};
use keyway::dispatcher::registry::KernelEntry;
use keyway::ops::def::Derivative;
use keyway::ops::sample::{Role, Sample, TensorSample};
use keyway::{DType, Device, Error, Tensor};
use std::collections::{BTreeMap, BTreeSet};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "layout_grads",
    about: "gradients through kernels of composite layouts, at every stored element",
    cases,
    run,
};

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let mut seen = BTreeSet::new();
    for kernel in scope.target.kernels.iter().filter(|k| !k.layout.is_strided()) {
        let differentiable = |op: &&super::Op| {
            op.def.name() == kernel.op
                && oracle::find(kernel.op).is_some()
                && matches!(op.def.derivative, Derivative::Formula { .. } | Derivative::Composite)
        };
        let Some(op) = scope.ops.iter().find(differentiable) else { continue };
        let of = |dtype: &DType| {
            let same = |k: &&KernelEntry| {
                (k.op, k.device, k.layout, k.dtype) == (kernel.op, kernel.device, kernel.layout, dtype.code())
            };
            scope.target.kernels.iter().any(|k| same(&&**k))
        };
        let key = kernels::key_of(kernel);
        if let Some(dtype) = [DType::F64, DType::F32].into_iter().find(of)
            && seen.insert((kernel.op, key.clone()))
        {
            cases.push(Case::of(FAMILY.name, op.def, dtype, 0, key));
        }
    }
}

/// The outcome of one call.
enum CallOutcome {
    /// The gradients were checked and are correct.
    Judged,
    /// Another plugin, or none, served the call.
    NotServed,
    /// The kernel ran it, and its gradient has no kernel.
    Refused(String),
}

fn run(context: &Context<'_>) -> Steps {
    let (def, dtype) = (context.def()?, context.dtype());
    let is_it = |k: &&&'static KernelEntry| {
        k.op == def.name() && k.dtype == dtype.code() && kernels::key_of(k) == context.case.variant
    };
    let kernel = *context
        .target
        .kernels
        .iter()
        .find(is_it)
        .ok_or_else(|| Stop::Skipped("there is no such kernel".to_string()))?;
    let device = Device { kind: kernel.device, index: 0 };
    let (mut judged, mut refusal) = (0, None);
    for change in [Change::None, Change::Matrices] {
        if judged > 0 {
            break;
        }
        for (nth, sample) in (def.samples)().iter().enumerate().filter(|(_, s)| has_tested(s)) {
            let sample = kernels::reshaped(sample, change);
            let inputs = inputs::of_sample(&sample.args, dtype, context.seed + nth as u64);
            for placement in 0..placements::count(kernel.layout, &sample) {
                let placed = placements::place(kernel.layout, &sample, &inputs, placement, device)?;
                let Some(placed) = placed else { continue };
                let came = judge(context, kernel, &sample, &placed).map_err(|stop| match stop {
                    Stop::Failed(mut failure) => {
                        failure.what = format!("sample {nth}, {}: {}", placed.name, failure.what);
                        Stop::Failed(failure)
                    }
                    other => other,
                })?;
                match came {
                    CallOutcome::Judged => judged += 1,
                    CallOutcome::NotServed => {}
                    CallOutcome::Refused(why) => {
                        refusal.get_or_insert(format!("sample {nth}, {}: {why}", placed.name));
                    }
                }
            }
        }
    }
    match (judged, refusal) {
        (0, Some(why)) => {
            // An op whose backward pass always fails is as good as not differentiable.
            let what = "the gradient of calls that the kernel serves";
            Err(Failure::new(what, "one of some call at least", why).into())
        }
        (0, None) => Err(Stop::Unsupported("no sample has a gradient".to_string())),
        _ => Ok(()),
    }
}

fn judge(
    context: &Context<'_>,
    kernel: &'static KernelEntry,
    sample: &Sample,
    placed: &placements::Call,
) -> Steps<CallOutcome> {
    let (def, entry) = (context.def()?, context.entry()?);
    let before = recorder::served_by(kernel);
    let made = placed.prepared.call_entry(entry, &placed.tensors, Out::New);
    // The results of this call are tested by `kernels`.
    if made.is_err() || recorder::served_by(kernel) == before {
        return Ok(CallOutcome::NotServed);
    }
    let leaf = |(t, s): (&Tensor, &TensorSample)| match s.role {
        Role::Tested => t.detach().requires_grad_(true),
        Role::Fixed(_) => Ok(t.clone()),
    };
    let leaves = placed.tensors.iter().zip(tensors(sample)).map(leaf).collect::<keyway::Result<Vec<_>>>()?;
    let gradients = match pass(context, entry, placed, &leaves) {
        Ok(gradients) => gradients,
        Err(Error::Dispatch(DispatchError::MissingKernel(missing))) => {
            return Ok(CallOutcome::Refused(missing.to_string()));
        }
        Err(error) => return Err(Failure::from(error).into()),
    };
    let Some(gradients) = gradients else { return Ok(CallOutcome::NotServed) };
    let (weight, narrow) = (weight_of(context), context.dtype());
    let wide = widened(&placed.inputs, narrow);
    let value = |inputs: &Inputs| weighted(&kernels::by_oracle(def, inputs, placed)?, weight);
    let middle = value(&wide);
    for (nth, (leaf, gradient)) in leaves.iter().zip(gradients).enumerate() {
        if !leaf.requires_grad() {
            continue;
        }
        let mut differences = BTreeMap::new();
        for (element, got) in at_stored(leaf, gradient.as_ref(), &placed.stored[nth])? {
            let sides = *differences
                .entry(element)
                .or_insert_with(|| one_sided(middle?, |by| value(&moved(&wide, nth, element, by))));
            // A discontinuity, an infinite slope, or the end of the domain.
            let Some((low, high, mut allowed)) = sides else { continue };
            if narrow != DType::F64 {
                allowed += 1e-3 * (1.0 + low.abs().max(high.abs()));
            }
            let got = got.float();
            if !(got >= low - allowed && got <= high + allowed) {
                let at = unravelled(leaf.shape(), element);
                let what = format!("d {} / d tensor {nth} at {at:?}", def.name());
                let expected =
                    if high - low > allowed { format!("{low} to {high}") } else { high.to_string() };
                return Err(Failure::new(what, expected, got.to_string()).into());
            }
        }
    }
    Ok(CallOutcome::Judged)
}

/// The gradients of the weighted sum of the outputs; `None` if no output has any.
fn pass(
    context: &Context<'_>,
    entry: &'static OpEntry,
    placed: &placements::Call,
    leaves: &[Tensor],
) -> keyway::Result<Option<Vec<Option<Tensor>>>> {
    let weight = weight_of(context);
    let outputs = placed.prepared.call_entry(entry, leaves, Out::New)?;
    let outputs: Vec<Tensor> = outputs.into_iter().filter(Tensor::requires_grad).collect();
    if outputs.is_empty() {
        return Ok(None);
    }
    let start = |out: &Tensor| {
        let values = (0..out.elem_count()).map(|nth| Number::Float(weight(nth)));
        let values = Array::new(out.dtype(), out.shape(), values.collect());
        Ok(Placed::new(&values, Arrangement::Contiguous, out.device())?.tensor)
    };
    let start = outputs.iter().map(start).collect::<keyway::Result<Vec<_>>>()?;
    let wanted: Vec<Tensor> = leaves.iter().filter(|t| t.requires_grad()).cloned().collect();
    let options =
        BackwardOptions { gradients: Some(start), allow_unused: true, ..BackwardOptions::default() };
    let mut made = grad(&outputs, &wanted, options)?.into_iter();
    Ok(Some(leaves.iter().map(|t| t.requires_grad().then(|| made.next()).flatten().flatten()).collect()))
}

/// The gradient at each coordinate that a leaf stores, once for each entry; 0 without a gradient.
fn at_stored(leaf: &Tensor, gradient: Option<&Tensor>, stored: &[bool]) -> Steps<Vec<(usize, Number)>> {
    let positions = stored.iter().enumerate().filter(|(_, stored)| **stored).map(|(position, _)| position);
    let invalid = || Failure::new("a gradient", "components that fit each other", "others");
    let Some(gradient) = gradient else {
        return Ok(positions.map(|position| (position, Number::Float(0.0))).collect());
    };
    if gradient.shape() != leaf.shape() {
        let (expected, got) = (format!("{:?}", leaf.shape()), format!("{:?}", gradient.shape()));
        return Err(Failure::new("the shape of a gradient", expected, got).into());
    }
    let coo = |t: &Tensor| known_layouts::find(t.layout()) == Some(Known::Coo);
    if coo(leaf) && coo(gradient) {
        let of_leaf = known_layouts::by_entry(leaf)?.ok_or_else(invalid)?;
        let of_gradient = known_layouts::by_entry(gradient)?.ok_or_else(invalid)?;
        // With the leaf's own pattern there is one gradient for each entry.
        if of_leaf.iter().map(|e| e.0).eq(of_gradient.iter().map(|e| e.0)) {
            return Ok(of_gradient);
        }
    }
    let dense = read(gradient)?.ok_or_else(invalid)?;
    Ok(positions.map(|position| (position, dense.values[position])).collect())
}
