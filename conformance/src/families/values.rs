//! Results against the oracle, on row-major inputs.

use super::{Context, Family, Scope};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare;
use crate::outcome::Steps;

/// The family.
pub const FAMILY: Family =
    Family { name: "values", about: "results against the oracle, each sample and dtype", cases, run };

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    scope.each(|op, dtype, nth, _| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, "")));
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (sample, inputs) = context.inputs()?;
    let expected = context.expected(&inputs)?;
    let prepared = Prepared::bare(&inputs, context.target.device)?;
    let got = context.call(&prepared)?;
    Ok(compare::outputs(&expected, &got, super::factor(def, &sample))?)
}
