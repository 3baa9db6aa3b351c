//! Registrations are correct in both directions: a registered dtype works, an unregistered one is refused or computed
//! correctly. A registration that no call can select is incorrect too.

use super::{Context, Family, Scope, factor};
use crate::case::Case;
use crate::compare;
use crate::inputs;
use crate::outcome::{Failure, Steps};
use crate::target::Service;
use keyway::DType;
use keyway::dispatcher::ledger::last_served;
use keyway::dispatcher::op::Out;

/// The definition of this family of cases.
pub const FAMILY: Family =
    Family { name: "claims", about: "claimed dtypes work; others are refused or right", cases, run };

/// The variant of a case about unreachable registrations.
const WITHOUT_EFFECT: &str = "without_effect";

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let without_effect = scope.target.without_effect();
    cases.extend(without_effect.keys().map(|subject| Case::about(FAMILY.name, subject, WITHOUT_EFFECT)));
    for op in scope.ops.iter().filter(|op| op.samples.iter().any(super::has_tested)) {
        let Ok(entry) = op.def.entry() else { continue };
        for dtype in DType::REAL {
            let claimed = scope.target.service(entry, dtype) == Service::Kernel;
            let variant = match (claimed, op.def.dtypes.has(dtype)) {
                (true, _) => "claimed",
                (false, false) => "unclaimed",
                // Dtypes that the op allows and no library claims are tested by `values`.
                (false, true) => continue,
            };
            cases.push(Case::of(FAMILY.name, op.def, dtype, 0, variant));
        }
    }
}

/// Fails: the case exists because a registration has no effect.
fn without_effect(context: &Context<'_>) -> Steps {
    let clauses = context.target.without_effect().remove(context.case.name()).unwrap_or_default();
    let expected = format!(
        "only what Keyway {} can call: remove the registration, correct its names, or, if it is meant for another Keyway or \
         beside another plugin, judge it there or list it as a known failure",
        env!("CARGO_PKG_VERSION")
    );
    Err(Failure::new("what is registered has no effect", expected, clauses.join("; ")).into())
}

fn run(context: &Context<'_>) -> Steps {
    if context.case.variant == WITHOUT_EFFECT && !context.case.is_about_op() {
        return without_effect(context);
    }
    let def = context.def()?;
    let oracle = context.oracle()?;
    let mut answered = 0;
    let mut refusal = "no sample fits".to_string();
    for (nth, sample) in (def.samples)().iter().enumerate().filter(|(_, s)| super::has_tested(s)) {
        let inputs = inputs::of_sample(&sample.args, context.dtype(), nth as u64);
        let prepared = context.place(&inputs)?;
        match prepared.call(def, Out::New) {
            Ok(got) => {
                if context.served_by_target() {
                    answered += 1;
                } else {
                    refusal = format!("sample {nth} is answered by {}", last_served().name());
                }
                // The call returned a result although the oracle has no expected value: only a refusal is right then.
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
