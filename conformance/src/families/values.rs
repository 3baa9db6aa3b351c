//! Results against the oracle, on row-major inputs.

use super::{Context, Family, Scope, composites};
use crate::case::Case;
use crate::compare;
use crate::outcome::Steps;
use crate::target::Service;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "values",
    about: "results against the oracle, each sample and dtype; by kernel and by decomposition; of composite layouts, values that cancel, zeros of both signs, extremes",
    cases,
    run,
};

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    scope.each(|op, dtype, nth, _| {
        cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
        // With its kernel and without it, as if a gradient is required.
        let fused = op.def.entry().is_ok_and(|entry| scope.target.service(entry, dtype) == Service::Kernel);
        if fused && op.def.decomposition.is_some() && super::has_tested(&op.samples[nth]) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, PARTS));
        }
    });
    composites::cases(scope, FAMILY.name, composites::Dtypes::Each, cases);
}

/// The variant that runs the op's decomposition, although there is a kernel.
const PARTS: &str = "parts";

fn run(context: &Context<'_>) -> Steps {
    if composites::is_about(context.case) {
        return composites::values::run(context);
    }
    let def = context.def()?;
    let (sample, inputs) = context.inputs()?;
    let expected = context.expected(&inputs)?;
    let prepared = context.place_bare(&inputs)?;
    let got = match context.case.variant.as_str() {
        PARTS => {
            let parts = prepared.call_parts(def.entry()?);
            parts.map_err(|e| context.refused(e))?
        }
        _ => context.call(&prepared)?,
    };
    Ok(compare::outputs(&expected, &got, super::factor(def, &sample))?)
}
