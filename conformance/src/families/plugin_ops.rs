//! Ops of the target's plugin, on the plugin's samples. They are compared with the plugin's reference; without one, with
//! their decomposition, their kernel for f64, or at least their own results on other strides. The report names the
//! reference.

use super::gradients::{CONSTANT, Function, constant};
use super::{Context, Family, Scope, gradients_by_oracle, has_tested, tensors, with_sizes};
use crate::array::{Array, Number};
use crate::call::{Prepared, damaged};
use crate::case::Case;
use crate::compare;
use crate::growth::enlarged;
use crate::inputs;
use crate::memory::{Arrangement, Placed, read};
use crate::oracle::{Inputs, Value};
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::op::{OpEntry, Out, Rule};
use keyway::ops::by_name;
use keyway::ops::sample::{Sample, SampleArg};
use keyway::{DType, Device, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family =
    Family { name: "plugin_ops", about: "ops that the library brings, on their own samples", cases, run };

const VALUES: &str = "values";
const OUT: &str = "out";
const GRADIENTS: &str = "gradients";
const SECOND: &str = "second";
const NO_SAMPLES: &str = "no_samples";
/// The prefix of the variants with the result in argument 0; its arrangement follows.
const IN_PLACE: &str = "in_place_";
/// The variant of the sample with its sizes multiplied, so that its largest tensor has about this many elements.
const LARGE: &str = "large";
const ELEMENTS: f64 = 6_000.0;
/// The variant of the sample of an element-wise op with other sizes: around the lengths of blocks and vectors, and of more
/// dimensions.
const EDGES: &str = "edges";
const EDGE_SIZES: [&[usize]; 8] =
    [&[1], &[63], &[64], &[65], &[127], &[128], &[2, 1, 3, 2, 5], &[2, 2, 1, 2, 1, 2, 2, 1, 2]];
/// Factor of the usual tolerance for sums of that many addends.
const LOOSE: f64 = 100.0;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let is_backward = |op: &OpEntry| {
        let backward = |other: &&super::Foreign| other.entry.spec.foreign.and_then(|f| f.backward);
        scope.foreign.iter().any(|other| backward(&other).is_some_and(|b| b.op == op.name))
    };
    for op in scope.foreign {
        // A backward op is tested by the gradients that it computes.
        if op.samples.is_empty() && !is_backward(op.entry) {
            cases.push(Case::of_foreign(FAMILY.name, op.entry, DType::F32, 0, NO_SAMPLES));
        }
        for dtype in scope.foreign_dtypes(op.entry) {
            for (nth, sample) in op.samples.iter().enumerate() {
                if !has_tested(sample) && dtype != scope.foreign_dtypes(op.entry)[0] {
                    continue;
                }
                let mut push = |variant: &str| {
                    cases.push(Case::of_foreign(FAMILY.name, op.entry, dtype, nth, variant));
                };
                push(VALUES);
                if tensors(sample).any(|t| t.sizes.iter().product::<usize>() > 1) {
                    push(LARGE);
                }
                let each = matches!(op.entry.spec.rule, Rule::Elementwise(..));
                if each && with_sizes(sample, EDGE_SIZES[0]).is_some() {
                    push(EDGES);
                }
                let suits = |a: &Arrangement| {
                    *a != Arrangement::Expanded && tensors(sample).any(|t| a.suits(&t.sizes))
                };
                Arrangement::STRIDED.iter().filter(|a| suits(a)).for_each(|a| push(a.name()));
                push(OUT);
                if op.entry.schema.outputs == Some(1)
                    && matches!(sample.args.first(), Some(SampleArg::Tensor(_)))
                {
                    Arrangement::STRIDED
                        .iter()
                        .filter(|a| suits(a))
                        .for_each(|a| push(&format!("{IN_PLACE}{}", a.name())));
                }
                let differentiable = op.entry.spec.foreign.is_some_and(|f| f.backward.is_some())
                    || op.entry.spec.decomposition.is_some();
                if differentiable && sample.smooth && [DType::F32, DType::F64].contains(&dtype) {
                    push(GRADIENTS);
                    push(CONSTANT);
                }
                if differentiable && sample.smooth && dtype == DType::F64 {
                    push(SECOND);
                }
            }
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let entry = context.entry()?;
    if context.case.variant == NO_SAMPLES {
        // Samples that cannot be read count as none.
        by_name::samples(entry.name)?;
        return Err(Stop::Skipped("it brings no samples".to_string()));
    }
    let (sample, inputs) = context.inputs()?;
    let device = context.target.device;
    let factor = sample.tolerance_factor.map_or(1.0, |(factor, _)| factor);
    match context.case.variant.as_str() {
        GRADIENTS | SECOND => gradients(context),
        CONSTANT => {
            context.judge_by("its gradients from contiguous gradients");
            constant(context)
        }
        EDGES => edges(context, &sample),
        LARGE => large(context, &sample),
        OUT => {
            let plain = call(context, &Prepared::bare(&inputs, device)?)?;
            let expected = arrays(&plain)?;
            let outs = expected
                .iter()
                .map(|e| Placed::garbage(&e.sizes, e.dtype, Arrangement::Contiguous, device))
                .collect::<Result<Vec<_>, _>>()?;
            let given: Vec<_> = outs.iter().map(|o| o.tensor.as_ref()).collect();
            let prepared = Prepared::contiguous(&inputs, device)?;
            prepared.call_watched(entry, Out::Given(&given), &outs)??;
            let got: Vec<Tensor> = outs.iter().map(|o| o.tensor.clone()).collect();
            compare::outputs(&expected, &got, factor)?;
            context.judge_by("its results in new tensors");
            for (nth, out) in outs.iter().enumerate() {
                if let Some(damage) = out.damage(false)? {
                    return Err(damaged(&format!("output {nth}"), damage).into());
                }
            }
            prepared.check_untouched(None)
        }
        variant if variant.starts_with(IN_PLACE) => {
            in_place(context, &variant[IN_PLACE.len()..], &inputs, factor)
        }
        variant => {
            let wanted = Arrangement::from_name(variant).unwrap_or(Arrangement::Contiguous);
            let arrange =
                |sizes: &[usize]| if wanted.suits(sizes) { wanted } else { Arrangement::Contiguous };
            let prepared = Prepared::new(&inputs, device, arrange)?;
            let made = call(context, &prepared)?;
            prepared.check_untouched(None)?;
            let expected = match expected(context, entry, &inputs, &made)? {
                Some(expected) => expected,
                None if wanted == Arrangement::Contiguous => {
                    context.judge_by("nothing but that it answers");
                    return Ok(());
                }
                None => {
                    context.judge_by("itself, on row-major tensors");
                    arrays(&call(context, &Prepared::bare(&inputs, device)?)?)?
                }
            };
            Ok(compare::outputs(&expected, &made, factor)?)
        }
    }
}

/// Checks the in-place result in argument 0, if that has its shape and dtype, and that nothing else is written.
fn in_place(context: &Context<'_>, arrangement: &str, inputs: &Inputs, factor: f64) -> Steps {
    let (entry, device) = (context.entry()?, context.target.device);
    let made = call(context, &Prepared::bare(inputs, device)?)?;
    let (Value::Array(first), [result]) = (inputs.get(0), &made[..]) else { return Ok(()) };
    if result.shape() != first.sizes || result.dtype() != first.dtype {
        return Ok(());
    }
    let wanted = Arrangement::from_name(arrangement).filter(|a| a.suits(&first.sizes));
    let nth = std::cell::Cell::new(0);
    let prepared = Prepared::new(inputs, device, |_| {
        let first = nth.replace(nth.get() + 1) == 0;
        wanted.filter(|_| first).unwrap_or(Arrangement::Contiguous)
    })?;
    prepared.call_entry(entry, &prepared.tensors(), Out::InPlace).map_err(|e| context.refused(e))?;
    context.judge_by("its results in new tensors");
    let got = prepared.tensors().into_iter().next();
    compare::outputs(&arrays(&made)?, got.as_slice(), factor)?;
    prepared.check_untouched(Some(0))
}

/// Checks the op on more elements, if it accepts such sizes and has an independent reference.
fn large(context: &Context<'_>, sample: &Sample) -> Steps {
    let entry = context.entry()?;
    let larger = enlarged(sample, ELEMENTS);
    let inputs = inputs::of_sample(&larger.args, context.dtype(), context.sample_seed());
    let prepared = Prepared::new(&inputs, context.target.device, |_| Arrangement::Contiguous)?;
    // Only the op knows which shapes are valid: a refusal is not a failure.
    let Ok(made) = prepared.call_entry(entry, &prepared.tensors(), Out::New) else {
        return Err(Stop::Skipped("the op does not take the sample with larger sizes".to_string()));
    };
    prepared.check_untouched(None)?;
    let Some(expected) = expected(context, entry, &inputs, &made)? else {
        return Err(Stop::Skipped("there is no reference for the result but the op itself".to_string()));
    };
    let factor = sample.tolerance_factor.map_or(1.0, |(factor, _)| factor);
    Ok(compare::outputs(&expected, &made, LOOSE * factor)?)
}

/// An element-wise op with the sizes of [`EDGE_SIZES`], row-major and in another order.
fn edges(context: &Context<'_>, sample: &Sample) -> Steps {
    let (entry, device) = (context.entry()?, context.target.device);
    let factor = sample.tolerance_factor.map_or(1.0, |(factor, _)| factor);
    for sizes in EDGE_SIZES {
        let Some(sample) = with_sizes(sample, sizes) else { continue };
        let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
        for arrangement in [Arrangement::Contiguous, Arrangement::Transposed] {
            let prepared = Prepared::new(&inputs, device, |sizes| arrangement.where_it_suits(sizes))?;
            let made = call(context, &prepared)?;
            prepared.check_untouched(None)?;
            let Some(expected) = expected(context, entry, &inputs, &made)? else {
                return Err(Stop::Skipped(
                    "there is no reference for the result but the op itself".to_string(),
                ));
            };
            compare::outputs(&expected, &made, factor)?;
        }
    }
    Ok(())
}

fn call(context: &Context<'_>, prepared: &Prepared) -> Steps<Vec<Tensor>> {
    let entry = context.entry()?;
    prepared.call_entry(entry, &prepared.tensors(), Out::New).map_err(|e| context.refused(e))
}

fn arrays(made: &[Tensor]) -> Steps<Vec<Array>> {
    let valid = |t: &Tensor| -> Steps<Array> {
        read(t)?.ok_or_else(|| Failure::new("invalid bytes", "elements", "bytes that are none").into())
    };
    made.iter().map(valid).collect()
}

/// The same values, floats as f64; also integers if the op computes them as floats.
fn widened(inputs: &Inputs, entry: &OpEntry, made: &[Tensor]) -> Inputs {
    let elementwise = matches!(entry.spec.rule, Rule::Elementwise(..));
    let all = elementwise && made.iter().any(|t| t.dtype().is_float());
    let mut wide = inputs.clone();
    inputs::map_arrays(&mut wide, |array| {
        if all || array.dtype.is_float() {
            *array = array.map(DType::F64, |v| Number::Float(v.float()));
        }
    });
    wide
}

/// These values in the dtypes and with the precision of the results.
fn as_made(values: Vec<Array>, made: &[Tensor]) -> Vec<Array> {
    let dtypes = made.iter().map(Tensor::dtype).chain(std::iter::repeat(DType::F64));
    let converted = values.into_iter().zip(dtypes).map(|(array, dtype)| match dtype.is_float() {
        true => array.map(dtype, |v| Number::Float(v.float())),
        false => array.cast(dtype),
    });
    converted.collect()
}

/// The expected values of an op of the target, in the dtypes of `made`, or in f64 if that is empty; `None` without an independent
/// reference. Records the reference.
///
/// # Errors
/// A reference or a decomposition that fails.
pub fn expected(
    context: &Context<'_>,
    entry: &'static OpEntry,
    inputs: &Inputs,
    made: &[Tensor],
) -> Steps<Option<Vec<Array>>> {
    let wide = widened(inputs, entry, made);
    let host = Prepared::bare(&wide, Device::CPU)?;
    let tensors = host.tensors();
    if let Some(reference) = host.with_args(&tensors, |args| by_name::reference(entry.name, args))? {
        context.judge_by("its own reference");
        return Ok(Some(as_made(arrays(&reference)?, made)));
    }
    let device = context.target.device;
    if entry.spec.decomposition.is_some() {
        context.judge_by("its own decomposition, on f64");
        return Ok(Some(as_made(arrays(&Prepared::bare(&wide, device)?.call_parts(entry)?)?, made)));
    }
    let floats = made.is_empty() || made.iter().any(|t| t.dtype().is_float());
    if context.dtype().is_float() && context.dtype() != DType::F64 && floats {
        let wide = Prepared::bare(&wide, device)?;
        if let Ok(wide) = wide.call_entry(entry, &wide.tensors(), Out::New) {
            context.judge_by("its kernel for f64");
            return Ok(Some(as_made(arrays(&wide)?, made)));
        }
    }
    Ok(None)
}

fn gradients(context: &Context<'_>) -> Steps {
    let function = Function::new(context)?;
    let differentiable = |tensors: &[Tensor]| tensors.iter().any(Tensor::requires_grad);
    let outputs = function.call(&function.inputs).map_err(|e| context.refused(e))?;
    if !differentiable(&function.inputs) || !differentiable(&outputs) {
        return Ok(());
    }
    let second = context.case.variant == SECOND;
    if context.dtype() != DType::F64 {
        let (_, inputs) = context.inputs()?;
        let entry = context.entry()?;
        if expected(context, entry, &super::weighted::widened(&inputs, context.dtype()), &[])?.is_none() {
            return Err(Stop::Skipped("nothing computes the op in f64".to_string()));
        }
        context.judge_by("differences of its values in f64");
        let in_f64 = |inputs: &Inputs| expected(context, entry, inputs, &[]).ok().flatten();
        return gradients_by_oracle::check_by(context, false, in_f64);
    }
    context.judge_by(if second { "differences of its gradients" } else { "differences of its values" });
    function.check(context, second)
}
