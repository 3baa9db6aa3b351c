//! Results, `out=` and in-place targets, and arguments in every order of their dimensions: without gaps, stepped from an
//! offset, and with strides that coincide with other sizes, each between guard bands.

use super::out::in_place;
use super::{Context, Family, Scope, factor, has_out, names_sizes, tensors};
use crate::array::Array;
use crate::axis_order::{SPACINGS, Spacing, Strides, count, orders, strides};
use crate::call::{Prepared, damaged};
use crate::case::Case;
use crate::compare;
use crate::growth::enlarged;
use crate::memory::{GUARD, Placed, read};
use crate::oracle::Inputs;
use crate::outcome::{Failure, Steps, Stop};
use crate::target::Service;
use keyway::dispatcher::op::Out;
use keyway::ops::def::{Forms, OpFlags};
use keyway::{Device, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "orders",
    about: "out=, in-place targets and arguments in every order of their dimensions, dense, stepped and with gaps",
    cases,
    run,
};

/// Only the outputs.
const OUT: &str = "out";
/// The variant of outputs, and arguments of the same rank, in the same order.
const ALL: &str = "all";
/// The variant of the target of an in-place call.
const IN_PLACE: &str = "in_place";
/// The arguments; results are new.
const ARGUMENTS: &str = "arguments";
/// As [`ALL`], with larger tensors, in addition to the results for row-major ones, which the family `large` tests.
const LARGE: &str = "large";

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    scope.each(|op, dtype, nth, sample| {
        // Integers of other widths run the same code.
        let kinds = || scope.served(op.def) == Some(dtype) || scope.others(op.def).contains(&dtype);
        if op.def.is(OpFlags::STRIDE_DEPENDENT) || !(dtype.is_float() || kinds()) {
            return;
        }
        let mut push = |variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        let registered = op.def.entry().is_ok_and(|e| scope.target.service(e, dtype) == Service::Kernel);
        if has_out(op.def) || registered && !op.def.rule.is_view() {
            push(OUT);
            push(ALL);
        }
        if op.def.forms == Forms::InPlace {
            push(IN_PLACE);
        }
        if tensors(sample).any(|t| t.sizes.iter().any(|&size| size > 1)) {
            push(ARGUMENTS);
        }
    });
    let judged = |op: &&super::Op| !op.def.rule.is_view() && crate::oracle::find(op.def.name()).is_some();
    for op in scope.ops.iter().filter(judged) {
        let dtypes = scope.served(op.def).into_iter().chain(scope.others(op.def));
        for (dtype, nth) in dtypes.filter_map(|dtype| Some((dtype, op.typical()?))) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, LARGE));
        }
    }
}

/// The number of elements of the largest tensor of [`LARGE`]: enough for whole vectors and register tiles.
const ELEMENTS: f64 = 3_000.0;
/// The maximum number of orders that [`LARGE`] tries.
const MOST_LARGE: usize = 12;
/// Tolerance of [`LARGE`], a multiple of the dtype's: two fast paths may add in different orders.
const LOOSE: f64 = 100.0;

/// One layout of all tensors of a call.
#[derive(Clone, Copy)]
struct Layout {
    nth: usize,
    spacing: Spacing,
}

impl Layout {
    fn of(self, sizes: &[usize]) -> Strides {
        strides(sizes, self.nth % count(sizes), self.spacing)
    }

    fn place(self, array: &Array, context: &Context<'_>) -> keyway::Result<Placed> {
        Placed::strided(array, &self.of(&array.sizes), context.target.device, GUARD)
    }
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    if context.case.variant == LARGE {
        return large(context);
    }
    let (sample, inputs) = context.inputs()?;
    let expected = context.expected(&inputs)?;
    let factor = factor(def, &sample);
    let variant = context.case.variant.as_str();
    let arguments = arrays(&inputs);
    let leading = match variant {
        ARGUMENTS | IN_PLACE => arguments.iter().max_by_key(|sizes| count(sizes)).cloned(),
        _ => expected.iter().map(|e| e.sizes.clone()).max_by_key(|sizes| count(sizes)),
    };
    let leading = leading.unwrap_or_default();
    for nth in orders(&leading, context.case.sample) {
        for spacing in SPACINGS {
            let layout = Layout { nth, spacing };
            one(context, &inputs, &expected, layout, factor).map_err(|stop| {
                described(stop, || format!("{variant} of strides {:?}", layout.of(&leading).strides))
            })?;
        }
    }
    Ok(())
}

fn large(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let sample = enlarged(&context.sample()?, ELEMENTS);
    let inputs = context.values_of(&sample, 0);
    let row_major = context.place(&inputs)?;
    let made = row_major.call(def, Out::New);
    // An argument may specify sizes, or have values that are invalid with other sizes: offsets, indices.
    if names_sizes(&made) || made.is_err() && context.oracle()?(&inputs).is_err() {
        return Ok(());
    }
    let mut expected = Vec::new();
    for tensor in made.map_err(|e| context.refused(e))? {
        match read(&tensor)? {
            Some(array) => expected.push(array),
            None => {
                return Err(Failure::new("a result has bytes that are no value", "values", "others").into());
            }
        }
    }
    let sizes = expected.iter().map(|e| e.sizes.clone()).chain(arrays(&inputs));
    let leading = sizes.max_by_key(|sizes| count(sizes)).unwrap_or_default();
    let apart = count(&leading).div_ceil(MOST_LARGE);
    for nth in orders(&leading, 0).step_by(apart) {
        let layout = Layout { nth, spacing: SPACINGS[nth / apart % SPACINGS.len()] };
        let described =
            |stop| described(stop, || format!("{LARGE}, strides {:?}", layout.of(&leading).strides));
        one(context, &inputs, &expected, layout, factor(def, &sample)).map_err(described)?;
    }
    Ok(())
}

/// Makes a call into outputs of every order and spacing, each between guard bands, and compares each with the expected
/// values.
///
/// # Errors
/// The first layout with wrong values or a write outside of the output; errors of the call.
pub(super) fn outputs(
    expected: &[Array],
    factor: f64,
    device: Device,
    call: impl Fn(Out<'_>) -> Steps,
) -> Steps {
    let leading = expected.iter().map(|e| &e.sizes).max_by_key(|sizes| count(sizes));
    let leading = leading.cloned().unwrap_or_default();
    for (nth, spacing) in orders(&leading, 0).flat_map(|nth| SPACINGS.map(|spacing| (nth, spacing))) {
        let layout = Layout { nth, spacing };
        into(expected, layout, device, |out, _| call(out))
            .and_then(|got| Ok(compare::outputs(expected, &got, factor)?))
            .map_err(|stop| {
                described(stop, || format!("{OUT} of strides {:?}", layout.of(&leading).strides))
            })?;
    }
    Ok(())
}

/// Makes a call into outputs of one layout and returns their values.
fn into(
    expected: &[Array],
    layout: Layout,
    device: Device,
    call: impl FnOnce(Out<'_>, &[Placed]) -> Steps,
) -> Steps<Vec<Tensor>> {
    let garbage = |e: &Array| Placed::garbage_at(&e.sizes, e.dtype, &layout.of(&e.sizes), device);
    let outs = expected.iter().map(garbage).collect::<Result<Vec<_>, _>>()?;
    let given: Vec<_> = outs.iter().map(|o| o.tensor.as_ref()).collect();
    call(Out::Given(&given), &outs)?;
    for (nth, out) in outs.iter().enumerate() {
        if let Some(damage) = out.damage(false)? {
            return Err(damaged(&format!("output {nth}"), damage).into());
        }
    }
    Ok(outs.iter().map(|o| o.tensor.clone()).collect())
}

/// Sizes of the tensors of the inputs.
fn arrays(inputs: &Inputs) -> Vec<Vec<usize>> {
    super::placements::arrays(inputs).into_iter().map(|array| array.sizes.clone()).collect()
}

/// Whether the target has a kernel of the op for the dtype under test.
fn registered(context: &Context<'_>) -> bool {
    context.entry().is_ok_and(|op| context.target.service(op, context.dtype()) == Service::Kernel)
}

/// Adds the layout to a failure.
fn described(stop: Stop, layout: impl Fn() -> String) -> Stop {
    match stop {
        Stop::Failed(failure) => {
            Stop::Failed(Failure { what: format!("{} ({})", failure.what, layout()), ..failure })
        }
        other => other,
    }
}

fn one(context: &Context<'_>, inputs: &Inputs, expected: &[Array], layout: Layout, factor: f64) -> Steps {
    let def = context.def()?;
    let variant = context.case.variant.as_str();
    let row_major = Layout { nth: 0, spacing: Spacing::Dense };
    let mut first = true;
    let prepared = Prepared::place_each(inputs, |array| {
        let ordered = match variant {
            OUT => false,
            IN_PLACE => std::mem::take(&mut first),
            _ => true,
        };
        if ordered { layout } else { row_major }.place(array, context)
    })?;
    let compared = |got: &[Tensor]| match variant {
        LARGE => compare::pieces(expected, got, factor, LOOSE),
        _ => compare::outputs(expected, got, factor),
    };
    match variant {
        IN_PLACE => {
            in_place(context, &prepared, expected, factor)?;
            prepared.check_untouched(Some(0))
        }
        ARGUMENTS => {
            let got = context.call(&prepared)?;
            compare::outputs(expected, &got, factor)?;
            prepared.check_untouched(None)
        }
        // An op without kernels that write to outputs has none to pass.
        LARGE if !has_out(def) && !registered(context) => {
            let got = context.call(&prepared)?;
            compared(&got)?;
            prepared.check_untouched(None)
        }
        _ => {
            let got = into(expected, layout, context.target.device, |out, outs| {
                let made = prepared.call_watched(def.entry()?, out, outs)?;
                made.map(drop).map_err(|e| context.refused(e))
            })?;
            compared(&got)?;
            prepared.check_untouched(None)
        }
    }
}
