//! Models of the counted pointer and of the published pointer: loom runs each in every interleaving of its threads that the
//! memory orderings allow.

use super::published::Published;
use super::{Shared, Weak};
use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A value that loom checks: unordered accesses of two threads are an error if one of them changes it. Dropping is a
/// change.
struct Watched {
    number: UnsafeCell<u64>,
    dropped: Arc<AtomicUsize>,
}

// SAFETY: loom runs one thread at a time, and reports what would be a race.
unsafe impl Sync for Watched {}
// SAFETY: as for Sync.
unsafe impl Send for Watched {}

impl Watched {
    fn new(number: u64) -> (Watched, Arc<AtomicUsize>) {
        let dropped = Arc::new(AtomicUsize::new(0));
        let value = Watched { number: UnsafeCell::new(0), dropped: dropped.clone() };
        value.change(number);
        (value, dropped)
    }

    fn read(&self) -> u64 {
        // SAFETY: loom checks that there are no concurrent writes.
        self.number.with(|number| unsafe { *number })
    }

    fn change(&self, to: u64) {
        // SAFETY: loom checks that there are no concurrent reads or writes.
        self.number.with_mut(|number| unsafe { *number = to });
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.change(u64::MAX);
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// A reference to a watched value, and the number of its drops. Loom itself reports blocks that are leaked or freed twice.
fn owned() -> (Shared<Watched>, Arc<AtomicUsize>) {
    let (value, dropped) = Watched::new(7);
    (Shared::new(value), dropped)
}

fn read_and_drop(value: Shared<Watched>) {
    assert_eq!(value.read(), 7);
}

fn upgrade_and_read(weak: Weak<Watched>) {
    if let Some(value) = weak.upgrade() {
        assert_eq!(value.read(), 7);
    }
}

#[test]
fn the_last_of_two_references_drops_the_value() {
    loom::model(|| {
        let (a, dropped) = owned();
        let b = a.clone();
        let other = thread::spawn(move || read_and_drop(b));
        read_and_drop(a);
        other.join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_weak_reference_upgrades_or_finds_nothing() {
    loom::model(|| {
        let (a, dropped) = owned();
        let weak = Shared::downgrade(&a);
        let other = thread::spawn(move || upgrade_and_read(weak));
        read_and_drop(a);
        other.join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn two_strong_and_a_weak_reference_go_at_once() {
    loom::model(|| {
        let (a, dropped) = owned();
        let (b, weak) = (a.clone(), Shared::downgrade(&a));
        let threads =
            [thread::spawn(move || read_and_drop(b)), thread::spawn(move || upgrade_and_read(weak))];
        read_and_drop(a);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_change_comes_after_what_other_references_read() {
    loom::model(|| {
        let (mut a, dropped) = owned();
        let b = a.clone();
        let other = thread::spawn(move || read_and_drop(b));
        if let Some(value) = Shared::get_mut(&mut a) {
            value.change(8);
        }
        drop(a);
        other.join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_change_comes_after_what_a_weak_reference_read() {
    loom::model(|| {
        let (mut a, _) = owned();
        let weak = Shared::downgrade(&a);
        let other = thread::spawn(move || upgrade_and_read(weak));
        if let Some(value) = Shared::get_mut(&mut a) {
            value.change(8);
        }
        other.join().unwrap();
    });
}

#[test]
fn one_of_two_references_takes_the_value_out() {
    loom::model(|| {
        let (a, dropped) = owned();
        let b = a.clone();
        let take = |value| Shared::into_inner(value).inspect(|value: &Watched| value.change(8)).is_some();
        let other = thread::spawn(move || take(b));
        let here = take(a);
        assert!(here != other.join().unwrap());
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_reader_sees_a_published_value_whole() {
    loom::model(|| {
        let current = Arc::new(Published::new());
        let reader = {
            let current = current.clone();
            thread::spawn(move || current.get().map_or(0, Watched::read))
        };
        current.publish(Watched::new(1).0);
        assert!(reader.join().unwrap() <= 1);
        assert_eq!(current.get().map(Watched::read), Some(1));
    });
}

/// Publishes the next number, as each registration does, under the lock that all registrations take.
fn publish_next(current: &Published<Watched>, mut last: loom::sync::MutexGuard<'_, u64>) -> &'static Watched {
    *last += 1;
    current.publish(Watched::new(*last).0)
}

#[test]
fn the_first_value_is_made_once_and_replaces_no_later_one() {
    loom::model(|| {
        let state = Arc::new((Published::new(), Mutex::new(0)));
        let lock = |state: &Arc<(Published<Watched>, Mutex<u64>)>| -> u64 {
            let (current, last) = &**state;
            current.get_or_first(|| last.lock().unwrap(), |last| publish_next(current, last)).read()
        };
        let reader = {
            let state = state.clone();
            thread::spawn(move || [lock(&state), lock(&state)])
        };
        let writer = {
            let state = state.clone();
            thread::spawn(move || publish_next(&state.0, state.1.lock().unwrap()).read())
        };
        let here = [lock(&state), lock(&state)];
        let there = reader.join().unwrap();
        let registered = writer.join().unwrap();
        let last = *state.1.lock().unwrap();
        for seen in [here, there] {
            assert!(1 <= seen[0] && seen[0] <= seen[1] && seen[1] <= last, "a reader went back: {seen:?}");
        }
        assert!(last <= 2, "the first value was made {last} times");
        assert_eq!(state.0.get().map(Watched::read), Some(last));
        assert!(registered <= last);
    });
}
