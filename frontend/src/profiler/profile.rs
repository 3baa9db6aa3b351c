//! Profiles of a thread, and the dispatch key that records for them.

use super::kind::{COPIES, Copies};
use super::record::{LOCAL, PROFILES, handle};
use super::report::Report;
use super::state::State;
use super::trace::Trace;
use keyway_dispatcher::error::Result as DispatchResult;
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway_dispatcher::ledger::{self, Fallback};
use keyway_dispatcher::op::OpEntry;
use keyway_dispatcher::registry::{KeyHandler, register_key_handler};
use keyway_dispatcher::scratch_count::Counting;
use std::time::Instant;

/// Default maximum number of events of a trace.
pub const MAX_EVENTS: usize = 100_000;

/// Registers the profiler's key.
pub(crate) fn install(copies: fn(&OpEntry) -> Copies) -> DispatchResult<()> {
    let _ = COPIES.set(copies);
    register_key_handler(KeyHandler {
        key: DispatchKey::PROFILER,
        name: "profiler".to_string(),
        applies: |_| true,
        handler: Box::new(handle),
        plugin: None,
        interposer: None,
    })
}

/// A running profile of this thread; dropping it ends it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32])?;
/// let profile = profiler::profile();
/// x.relu()?;
/// assert_eq!(profile.report().calls(), 1);
/// drop(profile);
/// x.relu()?; // Not counted.
/// # Ok(()) }
/// ```
#[must_use = "calls are counted only while the profile lives"]
pub struct Profile {
    number: u64,
    start: Instant,
    /// Maximum number of events; `None` without a trace.
    events: Option<usize>,
    fallbacks: Vec<Fallback>,
    // Restores the thread's keys when dropped; not `Send`, as they are thread-local.
    _key: KeyGuard,
    _scratch: Counting,
}

/// Counts and times every call of this thread while the result lives.
///
/// A nested profile has its own figures, which are added to the outer one when it ends. If the outer one ends first, the inner
/// one continues.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], 2)?;
/// let profile = profiler::profile();
/// for _ in 0..3 {
///     x.mul(&x)?;
/// }
/// let report = profile.report();
/// assert_eq!((report.rows[0].op.as_str(), report.rows[0].calls), ("mul", 3));
/// // Three times two arguments and a result, of 8 bytes each.
/// assert_eq!(report.rows[0].bytes, 72);
/// assert_eq!(report.rows[0].shapes[0].inputs, ["f32[2]", "f32[2]"]);
/// # Ok(()) }
/// ```
pub fn profile() -> Profile {
    Profile::begin(None)
}

/// As [`profile`], and records each call as an event of a [`Trace`], up to [`MAX_EVENTS`] of them.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], 2)?;
/// let profile = profiler::trace();
/// x.mul(&x)?;
/// let mut file = Vec::new();
/// profile.trace().write_json(&mut file)?;
/// let read = profiler::Trace::read_json(&file[..])?;
/// assert_eq!((read.report.calls(), read.events[0].name.as_ref()), (1, "mul"));
/// # Ok(()) }
/// ```
pub fn trace() -> Profile {
    trace_at_most(MAX_EVENTS)
}

/// As [`trace`], with another maximum number of events: the first ones are recorded, and the trace has the number left out.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, profiler};
/// let x = Tensor::new([1.0f32])?;
/// let profile = profiler::trace_at_most(1);
/// (x.relu()?, x.exp()?);
/// let trace = profile.trace();
/// assert_eq!((trace.events.len(), trace.dropped, trace.report.calls()), (1, 1, 2));
/// # Ok(()) }
/// ```
pub fn trace_at_most(events: usize) -> Profile {
    Profile::begin(Some(events))
}

impl Profile {
    fn begin(events: Option<usize>) -> Profile {
        let start = Instant::now();
        PROFILES.set(PROFILES.get() + 1);
        let number = LOCAL.with(|local| {
            let (number, mut states) = (local.number(), local.states.borrow_mut());
            // Events that are added to the outer profile later must have been recorded.
            let kept = events.max(states.last().and_then(State::room));
            states.push(State::new(number, start, kept));
            number
        });
        Profile {
            number,
            start,
            events,
            fallbacks: ledger::fallbacks(),
            _key: KeyGuard::include(KeySet::of(DispatchKey::PROFILER)),
            _scratch: Counting::begin(),
        }
    }

    /// The counts so far; the profile continues.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, profiler};
    /// let x = Tensor::new([1.0f32])?;
    /// let profile = profiler::profile();
    /// x.relu()?;
    /// assert_eq!(profile.report().calls(), 1);
    /// x.relu()?;
    /// assert_eq!(profile.report().calls(), 2);
    /// # Ok(()) }
    /// ```
    pub fn report(&self) -> Report {
        let (time, fallbacks) = (self.start.elapsed(), self.fallbacks_since());
        self.with_state(|state| state.report(time, fallbacks))
    }

    /// The records so far, with finished calls as events if the profile records them; the profile continues.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, profiler};
    /// let x = Tensor::new([1.0f32, -1.0])?;
    /// let profile = profiler::trace();
    /// x.relu()?;
    /// let trace = profile.trace();
    /// assert_eq!(trace.events[0].name.as_ref(), "relu");
    /// # Ok(()) }
    /// ```
    pub fn trace(&self) -> Trace {
        let report = self.report();
        self.with_state(|state| state.trace(report, self.events))
    }

    /// Reads the records that no nested profile holds.
    fn with_state<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        LOCAL.with(|local| match local.states.borrow().iter().find(|state| state.number == self.number) {
            Some(state) => read(state),
            None => read(&State::new(self.number, self.start, None)),
        })
    }

    /// The calls that ran on another device than requested, those of other threads included.
    fn fallbacks_since(&self) -> Vec<Fallback> {
        let before = |f: &Fallback| {
            let same = |b: &&Fallback| (&b.op, &b.from, &b.to) == (&f.op, &f.from, &f.to);
            self.fallbacks.iter().find(same).map_or((0, 0), |b| (b.calls, b.moves))
        };
        let since = ledger::fallbacks().into_iter().map(|f| {
            let (calls, moves) = before(&f);
            Fallback { calls: f.calls - calls, moves: f.moves - moves, ..f }
        });
        since.filter(|f| f.calls > 0).collect()
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        PROFILES.set(PROFILES.get().saturating_sub(1));
        // When a thread ends, its records no longer exist.
        let _ = LOCAL.try_with(|local| {
            let mut states = local.states.borrow_mut();
            let Some(at) = states.iter().rposition(|state| state.number == self.number) else { return };
            let own = states.remove(at);
            // Inner profiles continue, and are added to the outer one when they end.
            if let Some(outer) = at.checked_sub(1).and_then(|at| states.get_mut(at)) {
                outer.absorb(own);
            }
        });
    }
}
