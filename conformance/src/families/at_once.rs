//! Concurrent calls on several threads, each compared with its result when no other thread calls.

use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::registry;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

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

/// A call that is made again and again.
pub struct Repeated<'a> {
    /// The bytes of its results.
    call: Box<dyn Fn() -> Steps<Vec<Vec<u8>>> + Sync + 'a>,
    expected: Vec<Vec<u8>>,
}

impl<'a> Repeated<'a> {
    /// Makes the call once, on this thread.
    ///
    /// # Errors
    /// Those of the call.
    pub fn new(call: impl Fn() -> Steps<Vec<Vec<u8>>> + Sync + 'a) -> Steps<Repeated<'a>> {
        let expected = call()?;
        Ok(Repeated { call: Box::new(call), expected })
    }
}

/// Makes each call on a thread of its own, several times; with a plugin's name, while the table is published again and again.
///
/// # Errors
/// Other results than those of a lone call.
pub fn at_once(calls: &[&Repeated<'_>], registering: Option<&'static str>) -> Steps {
    let (start, over) = (Barrier::new(calls.len()), AtomicBool::new(false));
    let (begun, met) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let plugin = registry::plugins().into_iter().find(|p| Some(p.name) == registering);
    let priority = plugin.map_or(0, |p| p.priority());
    let results: Vec<Steps> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let pause = if registering.is_some() { REGISTERING } else { INTERRUPTING };
            while !over.load(Ordering::Relaxed) {
                if let Some(plugin) = registering {
                    // Setting the same priority again publishes a new table; the candidates remain the same.
                    registry::set_priority(plugin, priority);
                }
                std::thread::sleep(pause);
            }
        });
        let workers: Vec<_> = calls
            .iter()
            .map(|repeated| {
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
                        if (repeated.call)()? != repeated.expected {
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
