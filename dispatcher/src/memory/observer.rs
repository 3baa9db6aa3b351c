//! Observers of storages as they come and go, for whoever accounts for memory.
//!
//! While there is none, a storage pays nothing for them: allocating asks one flag for observers, host allocators and streams, and
//! only a storage that was told of has anything to tell at its end.

use super::Storage;
use super::allocator::CHOICES;
use crate::base::key::Device;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Told of storages of all threads, on the thread that makes or drops one. It must not make or drop any meanwhile.
pub trait StorageObserver: Send + Sync {
    /// A storage came: a number of its own, its device, its bytes, and who gave them.
    fn made(&self, number: u64, device: Device, bytes: usize, allocator: &str);

    /// The last handle of the storage of this number went, whether this observer was told of it or not.
    fn dropped(&self, number: u64);
}

static OBSERVERS: RwLock<Vec<(u64, Arc<dyn StorageObserver>)>> = RwLock::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Ends an observation when dropped.
#[derive(Debug)]
#[must_use = "the observation ends when the guard is dropped"]
pub struct Observation(u64);

/// Tells `observer` of every storage that is made from now on, on whatever thread, while the result lives.
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

fn tell(what: impl Fn(&dyn StorageObserver)) {
    let observers = OBSERVERS.read().unwrap_or_else(PoisonError::into_inner);
    observers.iter().for_each(|(_, observer)| what(&**observer));
}

/// The mark of a storage that was told of.
pub(super) struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        tell(|observer| observer.dropped(self.0));
    }
}

/// Tells of a new storage.
#[cold]
pub(super) fn made(storage: &Storage) {
    if storage.bytes() == 0 || OBSERVERS.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
        return;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    tell(|observer| observer.made(number, storage.device(), storage.bytes(), storage.allocator()));
    let _ = storage.0.rare.get_or_init(Box::default).told.set(Told(number));
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
    fn storages_are_told_of_once_as_they_come_and_go() {
        let before = Storage::from_vec(vec![0u8; 7001]);
        let noting = Arc::new(Noting::default());
        let observation = observe_storages(noting.clone());
        let (a, b) = (Storage::allocate(Device::CPU, 7002).unwrap(), Storage::from_vec(vec![0u8; 7003]));
        let clone = a.clone();
        drop((before, a, b));
        let made = noting.0.lock().unwrap().clone();
        let number = |bytes| made.iter().find(|(_, b)| *b == bytes).map(|(number, _)| *number);
        // Tests beside this one make storages too, but of other sizes.
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
}
