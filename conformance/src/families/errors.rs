//! Calls that must fail do, with the stated message, and change nothing.

use super::{Context, Family, Scope, preferred};
use crate::call::Prepared;
use crate::case::Case;
use crate::inputs;
use crate::outcome::{Failure, Steps, Stop};
use keyway::DType;
use keyway::dispatcher::op::Out;

/// The family.
pub const FAMILY: Family =
    Family { name: "errors", about: "error samples fail with their message and change nothing", cases, run };

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let dtype = preferred(op.def).unwrap_or(DType::F32);
        for nth in 0..(op.def.errors)().len() {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let errors = (def.errors)();
    let Some(sample) = errors.get(context.case.sample) else {
        return Err(Stop::Skipped(format!("the op has {} error samples", errors.len())));
    };
    let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    let prepared = Prepared::bare(&inputs, context.target.device)?;
    match prepared.call(def, Out::New) {
        Ok(_) => Err(Failure::new(
            "a wrong call is accepted",
            format!("an error that says `{}`", sample.message),
            "a result",
        )
        .into()),
        Err(error) if !error.to_string().contains(sample.message) => {
            let text = error.to_string();
            match context.refused(error) {
                // What is not there cannot find the mistake.
                Stop::Unsupported(reason) => Err(Stop::Unsupported(reason)),
                _ => {
                    let expected = format!("`{}`", sample.message);
                    Err(Failure::new("the error says something else", expected, text).into())
                }
            }
        }
        Err(_) => prepared.check_untouched(None),
    }
}
