//! Counts and times the calls of a thread, by op and by who served them: a functionality key above all others.
//!
//! Decisions:
//! - the time of a row is its own: what the ops inside a composed op take stands in rows of their own, so the times of
//!   all rows add up to the time spent in ops;
//! - a profile sees the thread that started it, with all that this thread calls: also the ops of a backward pass and
//!   the casts that a call needs;
//! - while nothing is profiled no call is routed through the key, so it costs nothing.

mod report;

pub use report::{DeviceMemory, Report, Row, device_memory};

use keyway_dispatcher::call::redispatch;
use keyway_dispatcher::error::Result as DispatchResult;
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway_dispatcher::ledger::{self, Fallback};
use keyway_dispatcher::op::{Call, Outputs};
use keyway_dispatcher::registry::{FunctionalEntry, register_functional};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What is known of the calls of one op that were served in one way.
#[derive(Clone, Copy, Default)]
struct Tally {
    calls: u64,
    own: Duration,
    total: Duration,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.calls += other.calls;
        self.own += other.own;
        self.total += other.total;
    }
}

/// By op and by who served it.
type Tallies = HashMap<(&'static str, &'static str), Tally>;

thread_local! {
    static TALLIES: RefCell<Tallies> = RefCell::default();
    /// Time taken so far by the calls inside the one that runs now.
    static INSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Registers the profiler's key.
pub(crate) fn install() -> DispatchResult<()> {
    register_functional(FunctionalEntry {
        key: DispatchKey::PROFILER,
        name: "profiler".to_string(),
        applies: |_| true,
        handler: Box::new(handle),
        plugin: None,
        interposer: None,
    })
}

fn handle(call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
    let before = INSIDE.replace(Duration::ZERO);
    let start = Instant::now();
    let result = redispatch(call, below);
    let total = start.elapsed();
    let own = total.saturating_sub(INSIDE.replace(before + total));
    let served = if result.is_ok() { ledger::last_served().name() } else { "(failed)" };
    let tally = Tally { calls: 1, own, total };
    TALLIES.with_borrow_mut(|tallies| tallies.entry((call.args.name(), served)).or_default().add(tally));
    result
}

/// A profile of this thread that is being taken; dropping it ends it.
#[must_use = "calls are counted only while the profile lives"]
pub struct Profile {
    start: Instant,
    fallbacks: Vec<Fallback>,
    /// What the profile around this one had counted when this one began.
    outer: Tallies,
    // Sets the thread's keys back when dropped; not `Send`, as they belong to the thread.
    _key: KeyGuard,
}

/// Counts and times every call of this thread while the result lives.
///
/// A profile within another takes its own figures, which are added to the outer one when it ends.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], &[2])?;
/// let profile = profiler::profile();
/// for _ in 0..3 {
///     x.mul(&x)?;
/// }
/// let report = profile.report();
/// assert_eq!((report.rows[0].op.as_str(), report.rows[0].calls), ("mul", 3));
/// # Ok(()) }
/// ```
pub fn profile() -> Profile {
    Profile {
        start: Instant::now(),
        fallbacks: ledger::fallbacks(),
        outer: TALLIES.take(),
        _key: KeyGuard::include(KeySet::of(DispatchKey::PROFILER)),
    }
}

impl Profile {
    /// What was counted so far; counting goes on.
    pub fn report(&self) -> Report {
        let rows = TALLIES.with_borrow(|tallies| {
            tallies.iter().map(|((op, served), tally)| Row::new(op, served, tally)).collect()
        });
        Report::new(rows, self.start.elapsed(), self.fallbacks_since())
    }

    /// The calls that ran on another device than they asked for, those of other threads included.
    fn fallbacks_since(&self) -> Vec<Fallback> {
        let before = |f: &Fallback| {
            let same = |b: &&Fallback| (b.op, &b.from, &b.to) == (f.op, &f.from, &f.to);
            self.fallbacks.iter().find(same).map_or(0, |b| b.calls)
        };
        let since = ledger::fallbacks().into_iter().map(|f| Fallback { calls: f.calls - before(&f), ..f });
        since.filter(|f| f.calls > 0).collect()
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        TALLIES.with_borrow_mut(|tallies| {
            for (key, tally) in std::mem::replace(tallies, std::mem::take(&mut self.outer)) {
                tallies.entry(key).or_default().add(tally);
            }
        });
    }
}
