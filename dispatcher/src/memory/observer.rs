//! Observers of allocations: callbacks on the creation and the end of each storage, for memory accounting.
//!
//! Without observers a storage costs nothing additional: allocating reads one flag for observers, host allocators and
//! streams, and only a storage that was reported has a number to report at its end.

use super::Storage;
use super::allocator::CHOICES;
use crate::base::key::Device;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Callbacks on the storages of all threads, called on the thread that creates or drops one.
///
/// A callback may create and drop storages, and start and stop observers: storages that it creates are not reported to any
/// observer, and the end of a storage that was reported before is reported after the callback has returned. A panic is
/// caught and logged as a warning.
pub trait StorageObserver: Send + Sync {
    /// Called when a storage was created, with its unique number, its device, its size in bytes, and the name of its
    /// allocator.
    fn made(&self, number: u64, device: Device, bytes: usize, allocator: &str);

    /// Called when the last handle of the storage with this number was dropped, whether its creation was reported to this
    /// observer or not.
    fn dropped(&self, number: u64);
}

static OBSERVERS: RwLock<Vec<(u64, Arc<dyn StorageObserver>)>> = RwLock::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A guard: dropping it stops the observer.
#[derive(Debug)]
#[must_use = "the observation ends when the guard is dropped"]
pub struct Observation(u64);

/// Calls `observer` for every storage that any thread creates from now on, until the returned guard is dropped.
pub fn observe_storages(observer: Arc<dyn StorageObserver>) -> Observation {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    OBSERVERS.write().unwrap_or_else(PoisonError::into_inner).push((number, observer));
    CHOICES.fetch_add(1, Ordering::Relaxed);
    Observation(number)
}

impl Drop for Observation {
    fn drop(&mut self) {
        CHOICES.fetch_sub(1, Ordering::Relaxed);
        let mut observers = OBSERVERS.write().unwrap_or_else(PoisonError::into_inner);
        let at = observers.iter().position(|(number, _)| *number == self.0);
        let ended = at.map(|at| observers.remove(at));
        drop(observers);
        drop(ended);
    }
}

thread_local! {
    /// Whether an observer's callback runs further up on this thread's stack.
    static REPORTING: Cell<bool> = const { Cell::new(false) };
    /// The ids of the storages that were dropped by such a callback.
    static DROPPED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Calls every observer without holding the lock: a callback may start and stop observers.
fn call_all(callback: impl Fn(&dyn StorageObserver)) {
    let observers = OBSERVERS.read().unwrap_or_else(PoisonError::into_inner).clone();
    for (_, observer) in observers {
        if catch_unwind(AssertUnwindSafe(|| callback(&*observer))).is_err() {
            crate::base::log::warn(
                "a storage observer panicked; the storage is unharmed, its report is incomplete",
            );
        }
    }
}

/// Calls every observer, then reports storages that their callbacks dropped.
fn report(callback: impl Fn(&dyn StorageObserver)) {
    REPORTING.set(true);
    call_all(callback);
    // A thread that ends may have dropped its list already; the list is empty then.
    while let Ok(Some(number)) = DROPPED.try_with(|dropped| dropped.borrow_mut().pop()) {
        call_all(|observer| observer.dropped(number));
    }
    REPORTING.set(false);
}

/// The number of a reported storage; dropping it reports the storage's end.
pub(super) struct Reported(u64);

impl Drop for Reported {
    fn drop(&mut self) {
        if !REPORTING.get() {
            return report(|observer| observer.dropped(self.0));
        }
        let _ = DROPPED.try_with(|dropped| dropped.borrow_mut().push(self.0));
    }
}

/// Reports a new storage.
#[cold]
pub(super) fn made(storage: &Storage) {
    let is_observed = || !OBSERVERS.read().unwrap_or_else(PoisonError::into_inner).is_empty();
    if storage.bytes() == 0 || REPORTING.get() || !is_observed() {
        return;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    report(|observer| observer.made(number, storage.device(), storage.bytes(), storage.allocator()));
    let _ = storage.0.rare.get_or_init(Box::default).reported.set(Reported(number));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Noting(Mutex<Vec<(u64, usize)>>, Mutex<Vec<u64>>);

    impl StorageObserver for Noting {
        fn made(&self, number: u64, _: Device, bytes: usize, _: &str) {
            self.0.lock().unwrap().push((number, bytes));
        }
        fn dropped(&self, number: u64) {
            self.1.lock().unwrap().push(number);
        }
    }

    #[test]
    fn storages_are_reported_once_as_they_come_and_go() {
        let before = Storage::from_vec(vec![0u8; 7001]);
        let noting = Arc::new(Noting::default());
        let observation = observe_storages(noting.clone());
        let (a, b) = (Storage::allocate(Device::CPU, 7002).unwrap(), Storage::from_vec(vec![0u8; 7003]));
        let clone = a.clone();
        drop((before, a, b));
        let made = noting.0.lock().unwrap().clone();
        let number = |bytes| made.iter().find(|(_, b)| *b == bytes).map(|(number, _)| *number);
        // Concurrent tests create storages too, but of other sizes.
        assert!(number(7001).is_none());
        let (a, b) = (number(7002).unwrap(), number(7003).unwrap());
        let gone = |number| noting.1.lock().unwrap().iter().filter(|n| **n == number).count();
        assert_eq!((gone(a), gone(b)), (0, 1));
        std::thread::spawn(move || drop(clone)).join().unwrap();
        assert_eq!((gone(a), gone(b)), (1, 1));
        drop(observation);
        drop(Storage::from_vec(vec![0u8; 7004]));
        assert!(noting.0.lock().unwrap().iter().all(|(_, bytes)| *bytes != 7004));
    }

    /// Panics, registers another observer, and drops a storage that it was given, in its callback on one of 7005 bytes.
    struct Careless(Arc<Noting>, Mutex<Option<Storage>>, Mutex<Option<Observation>>);

    impl StorageObserver for Careless {
        fn made(&self, _: u64, _: Device, bytes: usize, _: &str) {
            if bytes == 7005 {
                drop(Storage::from_vec(vec![0u8; 7007]));
                *self.2.lock().unwrap() = Some(observe_storages(self.0.clone()));
                drop(self.1.lock().unwrap().take());
                panic!("an observer's defect");
            }
        }
        fn dropped(&self, _: u64) {}
    }

    #[test]
    fn a_callback_may_allocate_observe_and_panic() {
        let noting = Arc::new(Noting::default());
        let first = observe_storages(noting.clone());
        let inner = Storage::from_vec(vec![0u8; 7006]);
        let number =
            |bytes| noting.0.lock().unwrap().iter().find(|(_, b)| *b == bytes).map(|(number, _)| *number);
        let inner_number = number(7006).unwrap();
        let careless = Arc::new(Careless(noting.clone(), Mutex::new(Some(inner)), Mutex::new(None)));
        let second = observe_storages(careless.clone());
        drop(Storage::from_vec(vec![0u8; 7005]));
        // Reported by both registrations of the same observer, after the callback that dropped it.
        let ends = noting.1.lock().unwrap().iter().filter(|n| **n == inner_number).count();
        assert_eq!(ends, 2);
        assert!(number(7005).is_some());
        assert!(number(7007).is_none(), "a callback's own storages are not reported");
        drop((first, second));
        drop(careless.2.lock().unwrap().take());
    }
}
