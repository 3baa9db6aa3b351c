//! Randomly drawn calls, different in each run, so that kernels cannot be fitted to them. Sizes are those of common
//! networks and primes near them, with broadcasts, strides, offsets, `out=`, in place, and values of several distributions.
//! They are limited by time (see [`crate::runner::Limits`]) and by the elements of a tensor. A failing call is shrunk, one
//! property at a time, as long as it fails; the report has the simplest failing call, and the command to reproduce it.

mod call;
mod draw;
mod judge;
pub(super) mod source;
mod tensors;

use super::{Context, Family, Op, Scope};
use crate::case::Case;
use crate::outcome::{Failure, Steps, Stop};
use crate::target::Service;
use crate::{call::last, oracle};
use call::Drawn;
use keyway::DType;
use keyway::ops::def::OpDef;
use source::Source;
use std::time::{Duration, Instant};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "drawn",
    about: "calls that a seed draws for each run: sizes of networks and primes near them, broadcast, strided, out=, in place",
    cases,
    run,
};

/// The number of calls of an op in a quick, an ordinary and a thorough run, if time allows.
const COUNTS: [usize; 3] = [1, 50, 2_500];
/// Calls of an op that networks consist of for each call of another.
const OFTEN: usize = 3;
/// The maximum number of shrinking attempts, and their time limit.
const TRIES: usize = 400;
const SHRINKING: Duration = Duration::from_secs(5);

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    let counts = if scope.quick { COUNTS[0] } else { COUNTS[1 + usize::from(scope.draws.thorough)] };
    let drawn: Vec<(&Op, Vec<DType>, usize)> = scope
        .ops
        .iter()
        .filter_map(|op| {
            let often = if draw::is_frequent(op.def) { OFTEN } else { 1 };
            let dtypes = dtypes(scope, op);
            (!dtypes.is_empty()).then_some((op, dtypes, often))
        })
        .collect();
    // One call of each op before a second one of any: the time may run out.
    for round in 0..counts {
        for (op, dtypes, often) in &drawn {
            for nth in (0..*often).map(|turn| round * often + turn) {
                let mut source = Source::named(op.def.name(), &[scope.draws.seed, nth as u64, 1]);
                let half = dtypes.contains(&DType::F32) && source.once_in(2);
                let dtype = if half { DType::F32 } else { source.one_of(dtypes) };
                cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
            }
        }
    }
    cases.extend(scope.draws.ids.iter().filter_map(|id| simpler_case(id)));
}

/// The dtypes in which an op is drawn: those that the target has a kernel for.
fn dtypes(scope: &Scope<'_>, op: &Op) -> Vec<DType> {
    let Ok(entry) = op.def.entry() else { return Vec::new() };
    let mut dtypes = scope.dtypes(op.def);
    dtypes.retain(|&dtype| {
        scope.target.service(entry, dtype) == Service::Kernel && draw::draw(op, dtype, 0, 0).is_some()
    });
    if oracle::find(op.def.name()).is_none() { Vec::new() } else { dtypes }
}

/// The case of an id with a path to a simpler call.
fn simpler_case(id: &str) -> Option<Case> {
    let parts: Vec<&str> = id.split('/').collect();
    let &[family, op, dtype, nth, path] = &parts[..] else { return None };
    let def: &'static OpDef = keyway::ops::all().find(|def| def.name() == op && family == FAMILY.name)?;
    let dtype = DType::REAL.into_iter().find(|d| d.name() == dtype)?;
    Some(Case::of(FAMILY.name, def, dtype, nth.parse().ok()?, path))
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let op = Op { def, samples: (def.samples)() };
    let drawn = draw::draw(&op, context.dtype(), context.draws, context.case.sample);
    let mut drawn = drawn.ok_or_else(|| Stop::Skipped("the op is not drawn in this dtype".to_string()))?;
    let judge = |drawn: &Drawn| judge::judge(context, &op.samples[drawn.sample], drawn);
    if !context.case.variant.is_empty() {
        for step in context.case.variant.split('.') {
            let next = step.parse().ok().and_then(|step: usize| drawn.simpler().into_iter().nth(step));
            drawn = next.ok_or_else(|| Stop::Skipped(format!("there is no step `{step}`")))?;
        }
        return judge(&drawn);
    }
    match judge(&drawn) {
        // A plugin that has panicked refuses all further calls.
        Err(Stop::Failed(failure)) if !failure.got.contains("panicked") => {
            Err(shrunk(context, drawn, failure, &judge).into())
        }
        other => other,
    }
}

/// The failure of the simplest call that fails as well.
fn shrunk(
    context: &Context<'_>,
    mut drawn: Drawn,
    mut failure: Failure,
    judge: &dyn Fn(&Drawn) -> Steps,
) -> Failure {
    let first = last::words();
    let (begun, mut tries) = (Instant::now(), 0);
    let (mut path, mut words) = (Vec::new(), first.clone());
    'simpler: loop {
        for (step, simpler) in drawn.simpler().into_iter().enumerate() {
            tries += 1;
            if tries > TRIES || begun.elapsed() > SHRINKING {
                break 'simpler;
            }
            if let Err(Stop::Failed(own)) = judge(&simpler) {
                if own.got.contains("panicked") {
                    break 'simpler;
                }
                (drawn, failure, words) = (simpler, own, last::words());
                path.push(step.to_string());
                continue 'simpler;
            }
        }
        break;
    }
    if let Some(words) = words {
        last::describe(words);
    }
    if let (false, Some(first)) = (path.is_empty(), first) {
        failure.what = format!("{}; as was drawn: {first}", failure.what);
        context.shrink_to(format!("{}/{}", context.case, path.join(".")));
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_with_a_path_is_a_case_of_its_own() {
        let case = simpler_case("drawn/add/f32/7/0.3.1").expect("a case");
        assert_eq!((case.to_string().as_str(), case.sample), ("drawn/add/f32/7/0.3.1", 7));
        for other in ["drawn/add/f32/7", "values/add/f32/7/0", "drawn/no_such/f32/7/0", "drawn/add/f32/x/0"] {
            assert!(simpler_case(other).is_none(), "{other}");
        }
    }
}
