//! Claims are honest both ways: a dtype that a backend registers works, one that it does not register is
//! refused or answered rightly, never wrongly.

use super::{Context, Family, Scope, factor};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare;
use crate::inputs;
use crate::outcome::{Failure, Steps};
use crate::target::Service;
use keyway::DType;
use keyway::dispatcher::ledger::last_served;
use keyway::dispatcher::op::Out;

/// The family.
pub const FAMILY: Family =
    Family { name: "claims", about: "claimed dtypes work; others are refused or right", cases, run };

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| op.samples.iter().any(super::has_tested)) {
        let Ok(entry) = op.def.entry() else { continue };
        for dtype in DType::REAL {
            let claimed = scope.target.service(entry, dtype) == Service::Kernel;
            let variant = match (claimed, op.def.dtypes.has(dtype)) {
                (true, _) => "claimed",
                (false, false) => "unclaimed",
                // What the op makes sense for and nobody claims is `values` to judge.
                (false, true) => continue,
            };
            cases.push(Case::of(FAMILY.name, op.def, dtype, 0, variant));
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let oracle = context.oracle()?;
    let mut answered = 0;
    let mut refusal = "no sample fits".to_string();
    for (nth, sample) in (def.samples)().iter().enumerate().filter(|(_, s)| super::has_tested(s)) {
        let inputs = inputs::of_sample(&sample.args, context.dtype(), nth as u64);
        let prepared = Prepared::contiguous(&inputs, context.target.device)?;
        match prepared.call(def, Out::New) {
            Ok(got) => {
                if context.served_by_target() {
                    answered += 1;
                } else {
                    refusal = format!("sample {nth} is answered by {}", last_served().name());
                }
                // What the oracle has no answer to was answered all the same: only a refusal is right then.
                let expected = oracle(&inputs).map_err(|unknown| {
                    Failure::new(
                        format!("sample {nth} is answered"),
                        "a refusal",
                        format!("a result ({unknown})"),
                    )
                })?;
                compare::outputs(&expected, &got, factor(def, sample)).map_err(|mut failure| {
                    failure.what = format!("sample {nth}: {}", failure.what);
                    failure
                })?;
            }
            Err(error) => refusal = error.to_string(),
        }
    }
    if context.case.variant == "claimed" && answered == 0 {
        let what = "a registered kernel answers no sample";
        return Err(Failure::new(what, "a result of its own, or no such kernel", refusal).into());
    }
    Ok(())
}
