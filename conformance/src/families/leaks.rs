//! Memory, file descriptors and threads are released, by the device's statistics and the resident size of the process.

use super::{Context, Family, Scope, is_in, preferred, tensors};
use crate::case::Case;
use crate::outcome::{Failure, Steps, Stop};
use crate::process::{NONE_LEFT, held, resident};
use keyway::dispatcher::device::{memory_stats, synchronize};
use keyway::dispatcher::memory::Storage;
use keyway::ops::pointwise;
use std::process::id;
use std::time::Duration;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "leaks",
    about: "the device's memory in use, descriptors and threads return to where they were",
    cases,
    run,
};

const CALLS: usize = 40;
/// The number of calls after which growth is checked; without growth the remaining calls are skipped.
const FIRST_CALLS: usize = 12;
/// The growth of the process in the first calls from which it may reach [`ALLOWED`] in total: half of their share.
const SIGN: u64 = ALLOWED * FIRST_CALLS as u64 / CALLS as u64 / 2;
/// The number of calls in an 8-byte dtype, besides the usual one: the same amount of memory in fewer calls.
const WIDE_CALLS: usize = 12;
/// The number of elements of the largest tensor of a call, since leaked memory grows with them; and for tensors of several
/// shapes, whose result may be larger than all of them.
const ELEMENTS: [f64; 2] = [300_000.0, 20_000.0];
/// The same on a device whose memory the host cannot read: it is not memory of the process, and the device's statistics
/// count every byte of it. Leaks of copies on the host are tested by the family `device`.
const ON_DEVICE: [f64; 2] = [20_000.0, 6_000.0];
/// The same if the device's statistics, which count every byte, suffice.
const FEW: f64 = 3_000.0;
/// The growth of the process that is not a leak: caches of the allocators. A smaller leak over all calls is not detected,
/// unless the device's statistics show it.
const ALLOWED: u64 = 24 << 20;
/// The permitted growth of descriptors and threads after all calls: those of a pool that grows once.
const ALLOWED_HELD: usize = 8;
/// The number of checks for the end of a thread.
const TRIES: usize = 20;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    scope.one_each(FAMILY.name, "", cases);
    for op in scope.ops {
        let wide = scope.others(op.def).into_iter().find(|dtype| dtype.size() == 8);
        if let (Some(dtype), Some(nth)) = (wide.filter(|&d| Some(d) != preferred(op.def)), op.typical()) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let device = context.target.device;
    let given = context.sample()?;
    let mut sizes = tensors(&given).map(|t| &t.sizes);
    let first = sizes.next();
    let many = if Storage::allocate(device, 1)?.is_host_accessible() { ELEMENTS } else { ON_DEVICE };
    let mut elements = if sizes.all(|other| Some(other) == first) { many[0] } else { many[1] };
    let wide = context.case.def.is_some_and(|def| preferred(def) != context.case.dtype);
    // Element-wise ops have one loop for all dtypes: for them the device's statistics suffice.
    if wide && context.case.def.is_some_and(|def| is_in(def, &[pointwise::ALL])) {
        elements = FEW;
    }
    let most = if wide { WIDE_CALLS } else { CALLS };
    let (prepared, _) = context.place_enlarged(elements)?;
    // Each call is synchronised: work in an asynchronous device's queue holds memory, which is not a leak.
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
    let (before, size, there) = (in_use()?, resident(id()), held());
    let grown = || resident(id()).saturating_sub(size);
    let holds_more = || held().iter().zip(there).any(|(now, there)| *now > there);
    let mut calls = 0;
    while calls < FIRST_CALLS || calls < most && (grown() > SIGN || holds_more()) {
        call()?;
        calls += 1;
    }
    held_as_before(there, calls)?;
    let (after, grown) = (in_use()?, grown());
    if grown > ALLOWED {
        let got = format!("{grown} bytes more");
        return Err(Failure::new(format!("the process grew in {calls} calls"), "no growth", got).into());
    }
    match (before, after) {
        (Some(before), Some(after)) if after > before => Err(Failure::new(
            format!("memory in use after {calls} calls"),
            format!("{before} bytes, as before"),
            format!("{after} bytes"),
        )
        .into()),
        (Some(_), Some(_)) => Ok(()),
        // The device's memory may not belong to the process.
        _ => Err(Stop::Skipped("the device reports no statistics".to_string())),
    }
}

/// Checks that there are no more descriptors and threads than before these calls, except those of a pool that grows once.
pub fn held_as_before(before: [usize; 2], calls: usize) -> Steps {
    for (nth, what) in ["descriptors", "threads"].into_iter().enumerate() {
        let more = || held()[nth].saturating_sub(before[nth]);
        let mut tries = 0..TRIES;
        while more() > ALLOWED_HELD && tries.next().is_some() {
            std::thread::sleep(Duration::from_millis(5));
        }
        if held()[nth] == NONE_LEFT {
            let what = "file descriptors: a kernel may leak one in each call";
            return Err(Failure::new(what, "fewer than the process may open", "its limit (EMFILE)").into());
        }
        if more() > ALLOWED_HELD {
            let (what, got) = (format!("{what} after {calls} calls"), format!("{} more", more()));
            return Err(Failure::new(what, "as many as before", got).into());
        }
    }
    Ok(())
}
