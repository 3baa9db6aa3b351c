//! Several threads that call at once, also while the table changes under them.

use super::{Context, Family, Scope};
use crate::call::{Prepared, refused};
use crate::case::Case;
use crate::memory::Arrangement;
use crate::outcome::{Failure, Steps, Stop};
use keyway::DType;
use keyway::dispatcher::op::Out;
use keyway::dispatcher::registry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The family.
pub const FAMILY: Family = Family {
    name: "threads",
    about: "threads that call at once, re-registration meanwhile, writes after the end of a call",
    cases,
    run,
};

const THREADS: usize = 4;
const CALLS: usize = 6;
/// How long a write after the end of a call is waited for.
const LATE: Duration = Duration::from_millis(20);

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let dtype = [DType::F32, DType::I64, DType::BOOL].into_iter().find(|&d| op.def.dtypes.has(d));
        let (Some(dtype), false) = (dtype, op.samples.is_empty()) else { continue };
        let nth = op.samples.len() / 2;
        for variant in ["together", "registering", "late"] {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let (_, inputs) = context.inputs()?;
    let prepared = Prepared::new(&inputs, context.target.device, |_| Arrangement::Contiguous)?;
    let bits = || -> Steps<Vec<Vec<u8>>> {
        let made = prepared.call(def, Out::New).map_err(|e| refused(context.target, def, e))?;
        Ok(made.iter().map(|t| t.to_bytes()).collect::<Result<_, _>>()?)
    };
    if context.case.variant == "late" {
        let made = prepared.call(def, Out::New).map_err(|e| refused(context.target, def, e))?;
        let read = || made.iter().map(|t| t.to_bytes()).collect::<Result<Vec<_>, _>>();
        let first = read()?;
        std::thread::sleep(LATE);
        if read()? != first {
            return Err(Failure::new("a result changed after it was read", "the same", "another").into());
        }
        return prepared.check_untouched(None);
    }
    let first = bits()?;
    let over = AtomicBool::new(false);
    let registering = context.case.variant == "registering";
    let results: Vec<Steps> = std::thread::scope(|scope| {
        if registering {
            scope.spawn(|| {
                // A change of priority publishes a new table; who serves stays the same.
                while !over.load(Ordering::Relaxed) {
                    registry::set_priority(context.target.plugin, 0);
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
        }
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..CALLS {
                        if bits()? != first {
                            let what = "another result when several threads call";
                            return Err(Failure::new(what, "the bits of one thread", "others").into());
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let joined = workers
            .into_iter()
            .map(|w| {
                w.join().unwrap_or_else(|_| Err(Stop::from(Failure::new("a panic", "a result", "none"))))
            })
            .collect();
        over.store(true, Ordering::Relaxed);
        joined
    });
    results.into_iter().collect()
}
