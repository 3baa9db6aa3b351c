//! Views share memory with their base, other results share none; overlapping memory is handled correctly or refused.

use super::{Context, Family, Scope, is_in, preferred, with_sizes};
use crate::array::Array;
use crate::call::Prepared;
use crate::case::Case;
use crate::compare;
use crate::inputs;
use crate::memory::{Arrangement, Placed, read};
use crate::oracle::Value;
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::op::{Out, Rule};
use keyway::ops::def::{Forms, OpDef};
use keyway::ops::sample::{Sample, TensorSample};
use keyway::ops::{linalg, pointwise};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "aliasing",
    about: "views share memory, other results do not; overlapping memory is right or refused",
    cases,
    run,
};

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    scope.each(|op, dtype, nth, sample| {
        // Memory layout does not depend on the dtype.
        let first = preferred(op.def) == Some(dtype) || !super::has_tested(sample);
        let mut push = |variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        if first && super::tensors(sample).next().is_some() {
            push(if op.def.rule.is_view() { "view" } else { "fresh" });
        }
        let long = |sizes: &[usize]| sizes.len() == 1 && sizes[0] > 3;
        if is_in(op.def, &[pointwise::ALL])
            && op.def.forms == Forms::InPlace
            && super::tensors(sample).next().is_some_and(|t| long(&t.sizes))
        {
            push("overlap");
        }
        if first && def_writes(op.def) && super::tensors(sample).next().is_some_and(|t| longer(&t.sizes) > 1)
        {
            STRIDED.iter().for_each(|arrangement| push(arrangement.name()));
        }
    });
    for op in scope.ops.iter().filter(|op| is_in(op.def, &[pointwise::ALL, linalg::ALL])) {
        if let (Some(dtype), Some(nth)) = (preferred(op.def), op.samples.iter().position(has_twins)) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, TWICE));
        }
        let square = |sample: &Sample| has_twins(sample) && with_sizes(sample, &SQUARES[0]).is_some();
        let Some(nth) = op.samples.iter().position(square) else { continue };
        for dtype in scope.served(op.def).into_iter().chain(scope.others(op.def)) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, TRANSPOSED));
        }
    }
}

/// Arrangements of the first argument, as the target of an op's result.
const STRIDED: [Arrangement; 4] =
    [Arrangement::Transposed, Arrangement::Sliced, Arrangement::Stepped, Arrangement::ChannelsLast];

fn longer(sizes: &[usize]) -> usize {
    sizes.iter().filter(|&&size| size > 1).count()
}

fn def_writes(def: &OpDef) -> bool {
    def.forms == Forms::InPlace && !def.rule.is_view()
}

/// The variant in which one tensor is passed for all arguments of its shape and dtype.
const TWICE: &str = "twice";

/// The variant in which that tensor is square and passed transposed: the same memory, in another order.
const TRANSPOSED: &str = "twice_transposed";
const SQUARES: [[usize; 2]; 3] = [[5, 5], [33, 33], [64, 64]];

/// Whether a sample has two tensors of the same shape and dtype with several elements.
fn has_twins(sample: &Sample) -> bool {
    let mut tensors = super::tensors(sample);
    let Some(first) = tensors.next() else { return false };
    let alike = |t: &TensorSample| t.sizes == first.sizes && t.role == first.role;
    first.sizes.iter().product::<usize>() > 1 && tensors.any(alike)
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (_, inputs) = context.inputs()?;
    if context.case.variant == "overlap" {
        return overlap(context);
    }
    if context.case.variant == TWICE {
        return twice(context);
    }
    if context.case.variant == TRANSPOSED {
        return exchanged(context);
    }
    if let Some(arrangement) = Arrangement::from_name(&context.case.variant) {
        return in_place(context, arrangement);
    }
    let prepared = context.place(&inputs)?;
    let got = context.call(&prepared)?;
    let Some(base) = prepared.placed.first() else { return Ok(()) };
    for (nth, output) in got.iter().enumerate() {
        let shared = prepared.placed.iter().any(|p| p.tensor.shares_storage(output));
        let expected = def.rule.is_view();
        // A conversion may return its argument unchanged; the host does, or the parts.
        let free = matches!(def.rule, Rule::Host(_))
            || def.decomposition.is_some() && !matches!(def.rule, Rule::Structured(_));
        if shared != expected && (expected || !free) {
            let say = |shared| if shared { "memory of an input" } else { "memory of its own" };
            return Err(Failure::new(
                format!("output {nth} is in the wrong memory"),
                say(expected),
                say(shared),
            )
            .into());
        }
        if expected && base.tensor.version() != output.version() {
            let versions = (base.tensor.version(), output.version());
            return Err(Failure::new(
                "a view counts its changes apart from its base",
                "one version",
                format!("{versions:?}"),
            )
            .into());
        }
    }
    Ok(())
}

/// Calls `x.op(x)`, and `x.op_(x)` if the result fits: the kernel reads the same memory twice, and writes to it.
fn twice(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (sample, mut inputs) = context.inputs()?;
    let mut first: Option<Array> = None;
    inputs::map_arrays(&mut inputs, |array| {
        let first = first.get_or_insert_with(|| array.clone());
        if array.sizes == first.sizes && array.dtype == first.dtype {
            array.clone_from(first);
        }
    });
    let expected = context.expected(&inputs)?;
    for out in [Out::New, Out::InPlace] {
        let prepared = context.place(&inputs)?;
        let mut tensors = prepared.tensors();
        let Some(one) = tensors.first().cloned() else { return Ok(()) };
        for tensor in &mut tensors {
            if tensor.shape() == one.shape() && tensor.dtype() == one.dtype() {
                *tensor = one.clone();
            }
        }
        let [made] = &expected[..] else { return Ok(()) };
        let fits = def.forms == Forms::InPlace && made.sizes == one.shape() && made.dtype == one.dtype();
        if matches!(out, Out::InPlace) && !fits {
            continue;
        }
        let got = prepared.call_with(def, &tensors, out).map_err(|e| context.refused(e))?;
        compare::outputs(&expected, &got, super::factor(def, &sample))?;
    }
    Ok(())
}

/// `x.op(x.t())` and `x.t().op(x)`.
fn exchanged(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    for (sizes, first_turned) in SQUARES.into_iter().flat_map(|sizes| [(sizes, false), (sizes, true)]) {
        let sample =
            with_sizes(&context.sample()?, &sizes).ok_or_else(|| Stop::Skipped("no square".into()))?;
        let mut inputs = context.values_of(&sample, 0);
        let Value::Array(one) = inputs.get(0).clone() else { return Ok(()) };
        let other = Array::from_fn(one.dtype, sizes, |at| one.at(&[at[1], at[0]]));
        let mut nth = 0;
        inputs::map_arrays(&mut inputs, |array| {
            if array.dtype == one.dtype {
                *array = if (nth == 0) == first_turned { other.clone() } else { one.clone() };
            }
            nth += 1;
        });
        // For example bounds that must be in order.
        let expected = context.expected(&inputs)?;
        let prepared = context.place(&inputs)?;
        let mut tensors = prepared.tensors();
        // The row-major tensor, at either index.
        let Some(plain) = tensors.get(usize::from(first_turned)).cloned() else { return Ok(()) };
        for (nth, tensor) in tensors.iter_mut().enumerate().filter(|(_, t)| t.dtype() == plain.dtype()) {
            *tensor = if (nth == 0) == first_turned { plain.transpose(0, 1)? } else { plain.clone() };
        }
        let got = prepared.call_with(def, &tensors, Out::New).map_err(|e| context.refused(e))?;
        compare::outputs(&expected, &got, super::factor(def, &sample))?;
        prepared.check_untouched(None)?;
    }
    Ok(())
}

/// Writes the result into the first argument, which is not row-major, and checks that nothing else is written.
fn in_place(context: &Context<'_>, arrangement: Arrangement) -> Steps {
    let def = context.def()?;
    let (sample, inputs) = context.inputs()?;
    let expected = context.expected(&inputs)?;
    let (Value::Array(first), [made]) = (inputs.get(0), &expected[..]) else { return Ok(()) };
    if !arrangement.suits(&first.sizes) || (&made.sizes, made.dtype) != (&first.sizes, first.dtype) {
        return Ok(());
    }
    let nth = std::cell::Cell::new(0);
    let prepared = Prepared::new(&inputs, context.target.device, |_| {
        let first = nth.replace(nth.get() + 1) == 0;
        if first { arrangement } else { Arrangement::Contiguous }
    })?;
    prepared.call(def, Out::InPlace).map_err(|e| context.refused(e))?;
    let got = prepared.tensors().into_iter().next();
    compare::outputs(&expected, got.as_slice(), super::factor(def, &sample))?;
    prepared.check_untouched(Some(0))
}

/// Calls `x[1..].op_(...)` with arguments that begin one element earlier: correct, or refused as an overlap.
fn overlap(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (sample, full) = context.inputs()?;
    let device = context.target.device;
    let Value::Array(base) = full.get(0).clone() else { return Ok(()) };
    let (n, dtype) = (base.numel(), base.dtype);
    let part = |from: usize| Array::new(dtype, [n - 1], base.values[from..from + n - 1].to_vec());
    // Arguments of the same shape become the first part of the base; the others are cut to fit.
    let mut inputs = full.clone();
    inputs::map_arrays(&mut inputs, |array| {
        if array.sizes == [n] {
            *array = if array.dtype == dtype {
                part(0)
            } else {
                Array::new(array.dtype, [n - 1], array.values[..n - 1].to_vec())
            };
        }
    });
    inputs.0[0] = Value::Array(part(0));
    let expected = context.expected(&inputs)?;
    let [expected] = &expected[..] else { return Err(Stop::Skipped("several outputs".into())) };
    if expected.sizes != [n - 1] || expected.dtype != dtype {
        return Ok(());
    }
    let whole = Placed::new(&base, Arrangement::Contiguous, device)?;
    let before = whole.tensor.narrow(0, 0, n - 1)?;
    let after = whole.tensor.narrow(0, 1, n - 1)?;
    let prepared = context.place(&inputs)?;
    let mut tensors = prepared.tensors();
    for tensor in &mut tensors {
        if tensor.shape() == [n - 1] && tensor.dtype() == dtype {
            *tensor = before.clone();
        }
    }
    match prepared.call_with(def, &tensors, Out::Given(&[after.as_ref()])) {
        Ok(_) => Ok(compare::outputs(std::slice::from_ref(expected), &[after], super::factor(def, &sample))?),
        Err(keyway::Error::Dispatch(keyway::dispatcher::Error::Overlap { .. })) => {
            match read(&whole.tensor)? {
                Some(now) if now == base => Ok(()),
                _ => Err(Failure::new("a refused overlap changed the memory", "unchanged", "changed").into()),
            }
        }
        Err(error) => Err(context.refused(error)),
    }
}
