//! Memory comes back: a device's own statistics, and the size of the process.

use super::{Context, Family, Scope, tensors};
use crate::case::Case;
use crate::outcome::{Failure, Steps, Stop};
use crate::process::resident;
use keyway::dispatcher::device::{memory_stats, synchronize};
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
    scope.one_each(FAMILY.name, "", cases);
}

fn run(context: &Context<'_>) -> Steps {
    let device = context.target.device;
    let given = context.sample()?;
    let mut sizes = tensors(&given).map(|t| &t.sizes);
    let first = sizes.next();
    let elements = if sizes.all(|other| Some(other) == first) { ELEMENTS[0] } else { ELEMENTS[1] };
    let (prepared, _) = context.place_enlarged(elements)?;
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
