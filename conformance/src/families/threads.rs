//! Several threads that call concurrently, also while the dispatch table changes.

use super::{Context, Family, Scope, tensors};
use crate::call::Prepared;
use crate::case::Case;
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::memory::Storage;
use keyway::dispatcher::parallel::{num_threads, set_num_threads};
use keyway::dispatcher::registry;
use keyway::ops::sample::Sample;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The family.
pub const FAMILY: Family = Family {
    name: "threads",
    about: "threads that call at once, on small and on large tensors, re-registration meanwhile, writes after the end of a call",
    cases,
    run,
};

const THREADS: usize = 4;
/// Minimum number of calls of each thread, and their minimum duration.
const CALLS: usize = 6;
const TOGETHER: Duration = Duration::from_millis(4);
/// The number of calls during which another thread began one, in all threads together. If each thread has a core nearly all
/// calls overlap; if threads share one, calls overlap only when preempted, which is limited by this duration.
const MEETINGS: usize = 32;
const LONGEST: Duration = Duration::from_millis(40);
/// The sleep time of a thread that wakes to preempt the others, or to publish a new table.
const INTERRUPTING: Duration = Duration::from_micros(20);
const REGISTERING: Duration = Duration::from_micros(200);
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
/// The number of threads of the pool meanwhile.
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
    let elements = elements(context)?;
    let (prepared, sample) = match context.case.variant.as_str() {
        "large" => context.place_scaled(elements, STEPS, RESULTS)?,
        _ => context.place_enlarged(elements)?,
    };
    if context.case.variant == "late" {
        return late(context, &prepared);
    }
    if context.case.variant != "large" {
        return together(context, prepared, &sample);
    }
    let before = num_threads();
    set_num_threads(POOL);
    let result = together(context, prepared, &sample);
    set_num_threads(before);
    result
}

/// Calls on several threads concurrently, each with different arguments.
fn together(context: &Context<'_>, prepared: Prepared, sample: &Sample) -> Steps {
    // Each thread has its own values, so that a result of another thread is detected.
    let mut calls = vec![(context.bits(&prepared)?, prepared)];
    for thread in 1..THREADS as u64 {
        let own = context.place(&context.values_of(sample, thread))?;
        // Other values may be invalid: for example indices that must be sorted.
        if let Ok(expected) = context.bits(&own) {
            calls.push((expected, own));
        }
    }
    let (start, over) = (Barrier::new(calls.len()), AtomicBool::new(false));
    let (begun, met) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let registering = context.case.variant == "registering";
    let plugin = registry::plugins().into_iter().find(|p| p.name == context.target.plugin);
    let priority = plugin.map_or(0, |p| p.priority());
    let results: Vec<Steps> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let pause = if registering { REGISTERING } else { INTERRUPTING };
            while !over.load(Ordering::Relaxed) {
                if registering {
                    // Setting the same priority again publishes a new table; the candidates remain the same.
                    registry::set_priority(context.target.plugin, priority);
                }
                std::thread::sleep(pause);
            }
        });
        let workers: Vec<_> = calls
            .iter()
            .map(|(expected, prepared)| {
                scope.spawn(|| {
                    start.wait();
                    let since = Instant::now();
                    let mut made = 0;
                    let goes_on = |made| {
                        let (met, passed) = (met.load(Ordering::Relaxed), since.elapsed());
                        made < CALLS || passed < TOGETHER || met < MEETINGS && passed < LONGEST
                    };
                    while goes_on(made) {
                        let own = begun.fetch_add(1, Ordering::Relaxed) + 1;
                        if context.bits(prepared)? != *expected {
                            let what = "another result when several threads call";
                            return Err(Failure::new(what, "the bits of a lone thread", "others").into());
                        }
                        if begun.load(Ordering::Relaxed) != own {
                            met.fetch_add(1, Ordering::Relaxed);
                        }
                        made += 1;
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
