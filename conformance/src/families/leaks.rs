//! Memory comes back: a device's own statistics, and the size of the process.

use super::determinism::enlarged;
use super::{Context, Family, Scope, preferred, tensors};
use crate::call::Prepared;
use crate::case::Case;
use crate::inputs;
use crate::outcome::{Failure, Steps, Stop};
use crate::process::resident;
use keyway::dispatcher::device::{memory_stats, synchronize};
use keyway::dispatcher::op::Out;
use keyway::ops::sample::Sample;
use std::process::id;

/// The family.
pub const FAMILY: Family =
    Family { name: "leaks", about: "memory in use returns to where it was", cases, run };

const CALLS: usize = 40;
/// Elements of the largest tensor of a call, memory that is kept grows with them; and where tensors of several shapes may
/// make a result that is larger than all of them.
const ELEMENTS: [f64; 2] = [300_000.0, 20_000.0];
/// Growth of the process that is no leak: caches of the allocators. A leak of less than this over all calls
/// stays unseen, unless the device's statistics show it.
const ALLOWED: u64 = 24 << 20;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let (Some(dtype), Some(nth)) = (preferred(op.def), op.typical()) else { continue };
        cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
    }
}

fn run(context: &Context<'_>) -> Steps {
    let device = context.target.device;
    let given = context.sample()?;
    let place = |sample: &Sample| -> Steps<Prepared> {
        let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
        Ok(context.place(&inputs)?)
    };
    let mut sizes = tensors(&given).map(|t| &t.sizes);
    let first = sizes.next();
    let elements = if sizes.all(|other| Some(other) == first) { ELEMENTS[0] } else { ELEMENTS[1] };
    let mut prepared = place(&enlarged(&given, elements))?;
    if prepared.call(context.def()?, Out::New).is_err() {
        // An argument that names sizes does not go with other sizes.
        prepared = place(&given)?;
    }
    // One call after the other: what waits in an asynchronous device's queue is held, and no leak.
    let call = || -> Steps {
        context.call(&prepared)?;
        Ok(synchronize(device)?)
    };
    for _ in 0..3 {
        call()?;
    }
    let in_use = || -> Steps<Option<u64>> {
        // An asynchronous device frees when its work is done.
        synchronize(device)?;
        Ok(memory_stats(device)?.map(|s| s.in_use))
    };
    let (before, size) = (in_use()?, resident(id()));
    for _ in 0..CALLS {
        call()?;
    }
    let (after, grown) = (in_use()?, resident(id()).saturating_sub(size));
    if grown > ALLOWED {
        let got = format!("{grown} bytes more");
        return Err(Failure::new(format!("the process grew in {CALLS} calls"), "no growth", got).into());
    }
    match (before, after) {
        (Some(before), Some(after)) if after > before => Err(Failure::new(
            format!("memory in use after {CALLS} calls"),
            format!("{before} bytes, as before"),
            format!("{after} bytes"),
        )
        .into()),
        (Some(_), Some(_)) => Ok(()),
        // The device's memory may be none of the process's.
        _ => Err(Stop::Skipped("the device reports no statistics".to_string())),
    }
}
