//! The `out=` and in-place forms.

use super::{Context, Family, Scope, factor, has_out};
use crate::array::Array;
use crate::call::{Prepared, damaged};
use crate::case::Case;
use crate::compare;
use crate::memory::{Arrangement, Placed};
use crate::oracle::Value;
use crate::outcome::{Failure, Steps, Stop};
use crate::target::Service;
use keyway::dispatcher::op::Out;
use keyway::ops::def::Forms;
use keyway::{DType, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "out",
    about: "out= filled with garbage, strided, empty, wrong; in-place forms; refusals that wrote",
    cases,
    run,
};

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    scope.each(|op, dtype, nth, _| {
        let mut push = |variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        if has_out(op.def) {
            push("garbage");
            push("strided");
            if nth == 0 {
                ["empty", "wrong_shape", "wrong_dtype"].into_iter().for_each(&mut push);
            }
        }
        if op.def.forms == Forms::InPlace {
            push("in_place");
        }
        // A kernel gets outputs even if the op has no `out=` form: it may refuse after it has written to them.
        let registered = op.def.entry().is_ok_and(|e| scope.target.service(e, dtype) == Service::Kernel);
        if !has_out(op.def) && registered && !op.def.rule.is_view() {
            push(WATCHED);
        }
    });
}

/// The variant of ops without an `out=` form: their kernels still write to outputs of the suite.
const WATCHED: &str = "watched";

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (sample, inputs) = context.inputs()?;
    let expected = context.expected(&inputs)?;
    let device = context.target.device;
    let prepared = context.place(&inputs)?;
    let variant = context.case.variant.as_str();
    match variant {
        "garbage" | "strided" => {
            let arrangement =
                if variant == "strided" { Arrangement::Stepped } else { Arrangement::Contiguous };
            let outs = expected
                .iter()
                .map(|e| Placed::garbage(&e.sizes, e.dtype, arrangement, device))
                .collect::<Result<Vec<_>, _>>()?;
            let given: Vec<_> = outs.iter().map(|o| o.tensor.as_ref()).collect();
            let made = prepared.call_watched(def.entry()?, Out::Given(&given), &outs)?;
            made.map_err(|e| context.refused(e))?;
            let got: Vec<Tensor> = outs.iter().map(|o| o.tensor.clone()).collect();
            compare::outputs(&expected, &got, factor(def, &sample))?;
            // A strided output has gaps, which the kernel must not write.
            for (nth, out) in outs.iter().enumerate() {
                if let Some(damage) = out.damage(false)? {
                    return Err(damaged(&format!("output {nth}"), damage).into());
                }
            }
            Ok(())
        }
        WATCHED => {
            let outs = expected
                .iter()
                .map(|e| Placed::garbage(&e.sizes, e.dtype, Arrangement::Contiguous, device))
                .collect::<Result<Vec<_>, _>>()?;
            let given: Vec<_> = outs.iter().map(|o| o.tensor.as_ref()).collect();
            let made = prepared.call_watched(def.entry()?, Out::Given(&given), &outs)?;
            made.map_err(|e| context.refused(e))?;
            let got: Vec<Tensor> = outs.iter().map(|o| o.tensor.clone()).collect();
            Ok(compare::outputs(&expected, &got, factor(def, &sample))?)
        }
        "empty" => {
            // The form that replaces an empty `out` is for ops of one output.
            let [expected] = &expected[..] else { return Ok(()) };
            let mut out = Placed::garbage(&[0], expected.dtype, Arrangement::Contiguous, device)?.tensor;
            prepared
                .with_args(&prepared.tensors(), |values| def.run_out(values, &mut out))
                .map_err(|e| context.refused(e))?;
            Ok(compare::outputs(std::slice::from_ref(expected), &[out], factor(def, &sample))?)
        }
        "wrong_shape" => {
            let outs = expected
                .iter()
                .map(|e| {
                    let larger: Vec<usize> = e.sizes.iter().copied().chain([3]).collect();
                    Placed::garbage(&larger, e.dtype, Arrangement::Contiguous, device)
                })
                .collect::<Result<Vec<_>, _>>()?;
            must_refuse(&prepared, context, &outs, "an `out` of another shape")
        }
        "wrong_dtype" => {
            let lesser = |dtype: DType| if dtype.is_float() { DType::I32 } else { DType::BOOL };
            if expected.iter().all(|e| e.dtype == DType::BOOL) {
                return Ok(());
            }
            let outs = expected
                .iter()
                .map(|e| Placed::garbage(&e.sizes, lesser(e.dtype), Arrangement::Contiguous, device))
                .collect::<Result<Vec<_>, _>>()?;
            must_refuse(&prepared, context, &outs, "an `out` of a lesser kind of dtype")
        }
        "in_place" => in_place(context, &prepared, &expected, factor(def, &sample)),
        other => Err(Stop::Skipped(format!("there is no variant `{other}`"))),
    }
}

fn must_refuse(prepared: &Prepared, context: &Context<'_>, outs: &[Placed], what: &str) -> Steps {
    let def = context.def()?;
    let given: Vec<_> = outs.iter().map(|o| o.tensor.as_ref()).collect();
    if prepared.call(def, Out::Given(&given)).is_ok() {
        return Err(Failure::new(format!("{what} is accepted"), "an error", "no error").into());
    }
    for (nth, out) in outs.iter().enumerate() {
        if let Some(damage) = out.damage(true)? {
            return Err(damaged(&format!("the refused `out` {nth}"), damage).into());
        }
    }
    Ok(())
}

/// Checks the in-place form on argument 0 of a prepared call: correct if the result has its shape, otherwise refused with
/// the target unchanged.
pub(super) fn in_place(context: &Context<'_>, prepared: &Prepared, expected: &[Array], factor: f64) -> Steps {
    let def = context.def()?;
    let Some(target) = prepared.placed.first() else {
        return Err(Stop::Skipped("the sample has no tensor to write to".into()));
    };
    // The first argument must be the tensor: a scalar cannot be written to.
    if !matches!(context.inputs()?.1.get(0), Value::Array(_)) {
        return Ok(());
    }
    let held = target.tensor.dtype();
    let rank = |d: DType| u8::from(d != DType::BOOL) + u8::from(d.is_float());
    let fits = expected.len() == 1
        && expected[0].sizes == target.tensor.shape()
        && rank(expected[0].dtype) <= rank(held);
    match prepared.call_watched(def.entry()?, Out::InPlace, &[])? {
        Ok(_) if !fits => Err(Failure::new(
            "an in-place call whose result does not fit is accepted",
            "an error",
            format!("a result in {held} {:?}", target.tensor.shape()),
        )
        .into()),
        Ok(_) => {
            let expected = expected[0].cast(held);
            Ok(compare::outputs(&[expected], std::slice::from_ref(&target.tensor), factor)?)
        }
        Err(error) if fits => Err(context.refused(error)),
        Err(_) => match target.damage(true)? {
            Some(damage) => Err(damaged("the target of a refused in-place call", damage).into()),
            None => Ok(()),
        },
    }
}
