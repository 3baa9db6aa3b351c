//! The cache of plans: factorisations of lengths, with their twiddle factors.

use std::sync::{Arc, Mutex};

/// The number of plans that a cache holds at most.
const PLANS: usize = 64;
/// The sum of the lengths of the plans that a cache holds at most, unless one plan alone exceeds it.
const LENGTHS: usize = 1 << 22;

/// A plan, its length and its direction.
struct Entry<P: ?Sized> {
    len: usize,
    forward: bool,
    plan: Arc<P>,
}

/// Plans of one kind, the most recently used one last.
pub struct Cache<P: ?Sized>(Mutex<Vec<Entry<P>>>);

impl<P: ?Sized> Cache<P> {
    /// An empty cache.
    pub const fn new() -> Cache<P> {
        Cache(Mutex::new(Vec::new()))
    }

    /// The plan of a length and direction, made by `make` unless it is cached. Two threads may make the same plan.
    pub fn get(&self, len: usize, forward: bool, make: impl FnOnce() -> Arc<P>) -> Arc<P> {
        if let Some(plan) = self.found(len, forward) {
            return plan;
        }
        let plan = make();
        let mut entries = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        entries.retain(|entry| (entry.len, entry.forward) != (len, forward));
        entries.push(Entry { len, forward, plan: plan.clone() });
        let mut sum: usize = entries.iter().map(|entry| entry.len).sum();
        while entries.len() > 1 && (entries.len() > PLANS || sum > LENGTHS) {
            sum -= entries.remove(0).len;
        }
        plan
    }

    fn found(&self, len: usize, forward: bool) -> Option<Arc<P>> {
        let mut entries = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let at = entries.iter().rposition(|entry| (entry.len, entry.forward) == (len, forward))?;
        let entry = entries.remove(at);
        let plan = entry.plan.clone();
        entries.push(entry);
        Some(plan)
    }
}
