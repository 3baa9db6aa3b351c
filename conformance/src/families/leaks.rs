//! Memory comes back: a device's own statistics, and the size of the process.

use super::{Context, Family, Scope};
use crate::call::{Prepared, refused};
use crate::case::Case;
use crate::memory::Arrangement;
use crate::outcome::{Failure, Steps};
use keyway::DType;
use keyway::dispatcher::abi::device::{memory_stats, synchronize};
use keyway::dispatcher::op::Out;

/// The family.
pub const FAMILY: Family =
    Family { name: "leaks", about: "memory in use returns to where it was", cases, run };

const CALLS: usize = 40;
/// Growth of the process that is no leak: caches of the allocators. A leak of less than this over all calls
/// stays unseen, unless the device's statistics show it.
const ALLOWED: u64 = 24 << 20;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let dtype = [DType::F32, DType::I64, DType::BOOL].into_iter().find(|&d| op.def.dtypes.has(d));
        let (Some(dtype), Some(nth)) = (dtype, op.typical()) else { continue };
        cases.push(Case::of(FAMILY.name, op.def, dtype, nth, ""));
    }
}

/// Resident bytes of this process; 0 where the system does not say.
pub fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * 4096)
}

fn run(context: &Context<'_>) -> Steps {
    let (def, device) = (context.def()?, context.target.device);
    let (_, inputs) = context.inputs()?;
    let prepared = Prepared::new(&inputs, device, |_| Arrangement::Contiguous)?;
    let call = || prepared.call(def, Out::New).map(drop).map_err(|e| refused(context.target, def, e));
    for _ in 0..3 {
        call()?;
    }
    let in_use = || -> Steps<Option<u64>> {
        // An asynchronous device frees when its work is done.
        synchronize(device)?;
        Ok(memory_stats(device)?.map(|s| s.in_use))
    };
    let (before, size) = (in_use()?, resident());
    for _ in 0..CALLS {
        call()?;
    }
    let (after, grown) = (in_use()?, resident().saturating_sub(size));
    if let (Some(before), Some(after)) = (before, after)
        && after > before
    {
        return Err(Failure::new(
            format!("memory in use after {CALLS} calls"),
            format!("{before} bytes, as before"),
            format!("{after} bytes"),
        )
        .into());
    }
    if grown > ALLOWED {
        let got = format!("{grown} bytes more");
        return Err(Failure::new(format!("the process grew in {CALLS} calls"), "no growth", got).into());
    }
    Ok(())
}
