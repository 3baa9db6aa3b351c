//! Several threads that call concurrently, also while the dispatch table changes.

use super::at_once::{Repeated, at_once};
use super::{Context, Family, Scope, composites, tensors};
use crate::call::Prepared;
use crate::case::Case;
use crate::outcome::{Failure, Steps};
use keyway::dispatcher::memory::Storage;
use keyway::dispatcher::parallel::{num_threads, set_num_threads};
use keyway::ops::sample::Sample;
use std::time::Duration;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "threads",
    about: "threads that call at once, on small and on large tensors, re-registration meanwhile, writes after the end of a call; composite layouts",
    cases,
    run,
};

const THREADS: usize = 4;
/// The number of elements of the largest tensor of a call, long enough that calls overlap.
const ELEMENTS: f64 = 6_000.0;
/// The same on a device whose memory the host cannot read, on which a call is long at any size.
const ON_DEVICE: f64 = 600.0;
/// The number of elements of the variant with large tensors, above the size of kernels' local buffers: if all have one
/// shape, and if they have several; then [`Context::place_enlarged`] uses an eighth.
const LARGE: [f64; 2] = [60_000.0, 480_000.0];
const LARGE_APART: f64 = 3_000.0;
/// The maximum number of steps of such a call, and of elements of its result.
const STEPS: usize = 6_000_000;
const RESULTS: usize = 400_000;
/// The number of threads of the pool during these calls.
const POOL: usize = 2;
/// The time in which a write after the end of a call is detected.
const LATE: Duration = Duration::from_millis(20);

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for variant in ["together", "registering", "late"] {
        scope.one_each(FAMILY.name, variant, cases);
    }
    scope.others_each(FAMILY.name, "together", cases);
    scope.one_each(FAMILY.name, "large", cases);
    if !scope.quick {
        scope.others_each(FAMILY.name, "large", cases);
    }
    composites::cases(scope, FAMILY.name, composites::Dtypes::Usual, cases);
}

/// Elements of the largest tensor of a call.
fn elements(context: &Context<'_>) -> Steps<f64> {
    let is_near = Storage::allocate(context.target.device, 1)?.is_host_accessible();
    if context.case.variant != "large" {
        return Ok(if is_near { ELEMENTS } else { ON_DEVICE });
    }
    let sample = context.sample()?;
    let mut sizes = tensors(&sample).map(|t| &t.sizes);
    let first = sizes.next();
    let alike = sizes.all(|other| Some(other) == first || other.len() == 1);
    Ok(if is_near { LARGE[usize::from(!alike)] } else { LARGE_APART })
}

fn run(context: &Context<'_>) -> Steps {
    if composites::is_about(context.case) {
        return composites::threads::run(context);
    }
    let elements = elements(context)?;
    let (prepared, sample) = match context.case.variant.as_str() {
        "large" => context.place_scaled(elements, STEPS, RESULTS)?,
        _ => context.place_enlarged(elements)?,
    };
    if context.case.variant == "late" {
        return late(context, &prepared);
    }
    if context.case.variant != "large" {
        return together(context, &prepared, &sample);
    }
    let before = num_threads();
    set_num_threads(POOL);
    let result = together(context, &prepared, &sample);
    set_num_threads(before);
    result
}

/// Calls on several threads concurrently, each with different arguments.
fn together(context: &Context<'_>, prepared: &Prepared, sample: &Sample) -> Steps {
    // Each thread has its own values, so that a result of another thread is detected.
    let mut calls = vec![Repeated::new(|| context.bits(prepared))?];
    for thread in 1..THREADS as u64 {
        let own = context.place(&context.values_of(sample, thread))?;
        // Other values may be invalid: for example indices that must be sorted.
        calls.extend(Repeated::new(move || context.bits(&own)));
    }
    let registering = context.case.variant == "registering";
    at_once(&calls.iter().collect::<Vec<_>>(), registering.then_some(context.target.plugin))
}

/// A result and the inputs remain unchanged after they were read.
fn late(context: &Context<'_>, prepared: &Prepared) -> Steps {
    let made = context.call(prepared)?;
    let read = || made.iter().map(|t| t.to_bytes()).collect::<Result<Vec<_>, _>>();
    let first = read()?;
    std::thread::sleep(LATE);
    if read()? != first {
        return Err(Failure::new("a result changed after it was read", "the same", "another").into());
    }
    prepared.check_untouched(None)
}
