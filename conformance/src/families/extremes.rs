//! Signed zeros, infinities, NaN, denormals, integer limits, and values where functions overflow.

use super::{Context, Family, Op, Scope, allowed, factor, is_in, names_sizes, tensors, tested};
use crate::array::{Array, Number, wrapped};
use crate::case::Case;
use crate::oracle::{Inputs, Value};
use crate::outcome::{Failure, Steps};
use crate::{compare, extremes, inputs};
use keyway::dispatcher::op::Out;
use keyway::ops::def::{OpDef, OpFlags};
use keyway::ops::sample::{Role, Sample, SampleArg};
use keyway::ops::{conv, linalg, loss, norm, pointwise, reduce};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "extremes",
    about: "NaN, infinities, signed zeros, denormals, integer limits",
    cases,
    run,
};

/// The variants for reductions and norms, whose sample is a matrix that is filled with short rows of extremes, or short
/// columns: along one of the two dimensions of the op a NaN is not combined with every other value. For floats there is a
/// matrix for each set of other arguments, such as `dim`.
const ROWS: &str = "rows";
const COLUMNS: &str = "columns";

/// The variants of all other ops, with the value that replaces one element of a tensor; the tensor's index follows.
const ONE: [(&str, f64); 2] = [("nan", f64::NAN), ("inf", f64::INFINITY)];

/// The variant for convolutions: an infinite element at the beginning of the second row of an image, which no kernel tap of
/// the preceding output positions reads.
const EDGE: &str = "edge";

/// The variant for normalisation with given statistics that include an infinite mean.
const MEAN: &str = "infinite-mean";

/// The variant for integer products: values with any bits set, whose products need all bits of the dtype.
const BITS: &str = "bits";

/// The op-specific variants of a sample.
fn own_variants(def: &OpDef, sample: &Sample) -> Vec<&'static str> {
    let mut variants = Vec::new();
    let rank = tensors(sample).next().map_or(0, |t| t.sizes.len());
    if tensors(sample).any(|t| t.sizes.contains(&0)) {
        return variants;
    }
    if is_in(def, &[conv::ALL]) && rank > 3 {
        variants.push(EDGE);
    }
    if def.name() == "batch_norm" && matches!(sample.args.get(1), Some(SampleArg::Tensor(_))) {
        variants.push(MEAN);
    }
    variants
}

/// The sample's inputs in an op-specific variant.
fn own_inputs(context: &Context<'_>) -> Steps<Option<(Sample, Inputs)>> {
    let (sample, mut inputs) = context.inputs()?;
    let changed = match (context.case.variant.as_str(), context.def()?.name()) {
        // The image is the second tensor of these ops.
        (EDGE, "conv_weight_grad") | (MEAN, _) => 1,
        (EDGE, _) => 0,
        _ => return Ok(None),
    };
    if let Some(Value::Array(array)) = inputs.0.get_mut(changed) {
        let second_row = array.sizes.last().copied().unwrap_or(0).min(array.values.len() - 1);
        let at = if context.case.variant == EDGE { second_row } else { 0 };
        array.values[at] = Number::Float(f64::INFINITY);
    }
    Ok(Some((sample, inputs)))
}

/// The indices of the tensors under test, at most three, in which such a value must affect only the results that depend on
/// it. The zero padding of a convolution may or may not be multiplied, and targets of a loss are probabilities.
fn positions(def: &OpDef, sample: &Sample) -> Vec<usize> {
    let all = tensors(sample).enumerate();
    let tested =
        all.filter(|(_, t)| t.role == Role::Tested && !t.sizes.contains(&0)).map(|(position, _)| position);
    let bordered = match def.name() {
        "conv" | "conv_act" | "conv_input_grad" => Some(1),
        "conv_weight_grad" => Some(0),
        _ => None,
    };
    let loss = is_in(def, &[loss::ALL]);
    tested.filter(|&position| Some(position) != bordered && !(loss && position > 0)).take(3).collect()
}

fn takes_rows(def: &OpDef, sample: &Sample) -> bool {
    let matrix = tensors(sample).next().is_some_and(|t| t.sizes.len() == 2 && t.sizes[1] > 1);
    is_in(def, &[reduce::ALL, norm::ALL])
        && matrix
        && tensors(sample).count() == 1
        && tested(sample).count() == 1
}

/// The indices of the samples with one matrix that differ in their other arguments.
pub(super) fn matrices(op: &Op) -> Vec<usize> {
    let mut seen: Vec<&[SampleArg]> = Vec::new();
    let samples = op.samples.iter().enumerate().filter(|(_, sample)| takes_rows(op.def, sample));
    let new = samples.filter(|(_, sample)| {
        let others = &sample.args[1..];
        let known = seen.contains(&others);
        seen.push(others);
        !known
    });
    new.map(|(nth, _)| nth).collect()
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        for dtype in scope.dtypes(op.def) {
            let mut push =
                |nth, variant: &str| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
            if is_in(op.def, &[pointwise::ALL]) {
                // A call for each set of arguments that are no tensors.
                (0..extremes::sets(op.def).len()).for_each(|nth| push(nth, ""));
            } else {
                // A NaN must occur along each dimension.
                let matrices = matrices(op);
                let count = if dtype.is_float() { matrices.len() } else { 1 };
                for nth in matrices.into_iter().take(count) {
                    push(nth, ROWS);
                    push(nth, COLUMNS);
                }
            }
            for (nth, sample) in op.samples.iter().enumerate().filter(|_| dtype.is_float()) {
                own_variants(op.def, sample).into_iter().for_each(|variant| push(nth, variant));
            }
            if is_in(op.def, &[linalg::ALL]) && dtype.is_integer() {
                op.three().into_iter().for_each(|nth| push(nth, BITS));
            }
            let elsewhere = !is_in(op.def, &[pointwise::ALL]) && !op.def.rule.is_view() && dtype.is_float();
            // The windows of a sample, for example, may skip the changed element.
            for nth in op.three().into_iter().filter(|_| elsewhere) {
                // The order of moments, and that of sums and products of an equation, determines whether an infinity
                // becomes a NaN.
                let ordered = is_in(op.def, &[norm::ALL]) || op.def.name() == "einsum";
                for (name, _) in ONE.iter().filter(|(_, number)| number.is_nan() || !ordered) {
                    for position in positions(op.def, &op.samples[nth]) {
                        push(nth, &format!("{name}-{position}"));
                    }
                }
            }
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let (def, dtype) = (context.def()?, context.dtype());
    let oracle = context.oracle()?;
    let one = context.case.variant.split_once('-').and_then(|(name, position)| {
        let (_, number) = ONE.iter().find(|(known, _)| *known == name)?;
        Some((*number, position.parse::<usize>().ok()?))
    });
    let (inputs, factor) = if let Some((sample, inputs)) = own_inputs(context)? {
        (inputs, factor(def, &sample))
    } else if let Some((number, position)) = one {
        let (sample, mut inputs) = context.inputs()?;
        let mut nth = 0;
        inputs::map_arrays(&mut inputs, |array| {
            let middle = array.values.len() / 2;
            if nth == position && array.dtype == dtype {
                array.values[middle] = Number::Float(number);
            }
            nth += 1;
        });
        (inputs, factor(def, &sample))
    } else if context.case.variant == BITS {
        let (sample, mut inputs) = context.inputs()?;
        let mut bits = 1_u64;
        inputs::map_arrays(&mut inputs, |array| {
            for value in array.values.iter_mut().filter(|_| array.dtype == dtype) {
                // Knuth's linear congruential generator; its upper bits are the most random ones.
                bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                *value = Number::Int(wrapped(i128::from(bits ^ bits >> 32), dtype));
            }
        });
        (inputs, factor(def, &sample))
    } else if [ROWS, COLUMNS].contains(&context.case.variant.as_str()) {
        let sample = context.sample()?;
        (lines(context, &sample)?, factor(def, &sample))
    } else {
        // A set of arguments may have no combination with an expected value, and then no call.
        match extremes::of_set(def, oracle, dtype, context.case.sample) {
            Some(inputs) => (inputs, allowed(def)),
            None => return Ok(()),
        }
    };
    let prepared = context.place_bare(&inputs)?;
    match (oracle(&inputs), prepared.call(def, Out::New)) {
        (_, refused) if context.case.variant == COLUMNS && names_sizes(&refused) => Ok(()),
        (Ok(expected), Ok(got)) => {
            compare::outputs(&expected, &got, factor)?;
            if def.is(OpFlags::SIGNED_ZEROS) {
                compare::zeros(&expected, &got)?;
            }
            Ok(())
        }
        (Ok(_), Err(error)) => Err(context.refused(error)),
        (Err(_), Err(_)) => Ok(()),
        // For example values that must be sorted, and no longer are.
        (Err(_), Ok(_)) if one.is_some() => Ok(()),
        (Err(unknown), Ok(_)) => {
            Err(Failure::new("what must be refused is answered", unknown.to_string(), "a result").into())
        }
    }
}

fn lines(context: &Context<'_>, sample: &Sample) -> Steps<Inputs> {
    let (def, dtype) = (context.def()?, context.dtype());
    let mut values = extremes::values(dtype);
    // Squares of the largest values, as in variances, overflow in the dtype but not in the oracle; next to the largest
    // values the others vanish, so that the order of a sum determines the result.
    let first = (def.samples)().iter().position(|s| takes_rows(def, s)) == Some(context.case.sample);
    if context.case.variant == COLUMNS || !first || is_in(def, &[norm::ALL]) {
        values.retain(|v| !v.float().is_finite() || v.float().abs() < 1e3);
    }
    let width = tensors(sample).next().map_or(1, |t| t.sizes[1]);
    let count = values.len();
    let sizes = if context.case.variant == ROWS { [count, width] } else { [width, count] };
    let array = Array::from_fn(dtype, sizes, |at| values[(at[0] + at[1]) % count]);
    let mut inputs = inputs::of_sample(&sample.args, dtype, context.sample_seed());
    if let Some(slot) = inputs.0.iter_mut().find(|v| matches!(v, Value::Array(_))) {
        *slot = Value::Array(array);
    }
    Ok(inputs)
}
