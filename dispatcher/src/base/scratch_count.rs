//! Counters of the scratch memory of the kernels that a thread calls, on any thread of the pool.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static COUNT: RefCell<Option<Arc<AtomicU64>>> = const { RefCell::new(None) };
}

/// The counter of this thread; `None` while the thread ends.
fn current() -> Option<Arc<AtomicU64>> {
    COUNT.try_with(|count| count.borrow().clone()).ok().flatten()
}

/// A guard: while it lives, scratch memory of kernels that this thread calls, or works for, is counted.
#[derive(Debug)]
#[must_use = "counting ends when the guard is dropped"]
pub struct Counting {
    before: Option<Arc<AtomicU64>>,
    /// Not `Send`: the counter belongs to the thread.
    _thread: PhantomData<*const ()>,
}

impl Counting {
    fn into(count: Option<Arc<AtomicU64>>) -> Counting {
        let before = COUNT.try_with(|now| now.replace(count)).ok().flatten();
        Counting { before, _thread: PhantomData }
    }

    /// Starts or continues to count.
    pub fn begin() -> Counting {
        Counting::into(Some(current().unwrap_or_default()))
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let before = self.before.take();
        let _ = COUNT.try_with(|now| now.replace(before));
    }
}

/// The counter of a thread, shared with the threads that do a part of its work.
pub(crate) struct Shared(Option<Arc<AtomicU64>>);

impl Shared {
    pub(crate) fn of_this_thread() -> Shared {
        Shared(current())
    }

    /// Counts this thread's scratch memory in the counter while the result lives.
    pub(crate) fn count(&self) -> Option<Counting> {
        self.0.as_ref().map(|count| Counting::into(Some(count.clone())))
    }
}

/// Adds memory that a kernel allocated.
pub(crate) fn add(bytes: u64) {
    let _ = COUNT.try_with(|count| {
        if let Some(count) = &*count.borrow() {
            count.fetch_add(bytes, Ordering::Relaxed);
        }
    });
}

/// Bytes that kernels called by this thread have allocated since it started to count; 0 if it does not count.
pub fn so_far() -> u64 {
    current().map_or(0, |count| count.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::parallel_for;

    #[test]
    fn what_the_pool_takes_for_a_thread_counts_for_it_alone() {
        add(1);
        assert_eq!(so_far(), 0, "nothing is counted unless asked for");
        let outer = Counting::begin();
        parallel_for(100, 1, &|range| add(range.len() as u64));
        assert_eq!(so_far(), 100);
        let inner = Counting::begin();
        add(5);
        drop(inner);
        std::thread::scope(|scope| scope.spawn(|| add(1000)).join().unwrap());
        assert_eq!(so_far(), 105);
        drop(outer);
        assert_eq!(so_far(), 0);
        // Pool threads retain no counter.
        parallel_for(100, 1, &|_| assert_eq!(so_far(), 0));
    }
}
