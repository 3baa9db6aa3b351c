//! The allocator's locks across `fork`: a lock held by another thread would stay locked in the child, which has the forking
//! thread alone. So the forking thread acquires all of them first.

use super::{large, local, pool};
use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static HELD: RefCell<Vec<Box<dyn std::any::Any>>> = const { RefCell::new(Vec::new()) };
}

/// Registers the fork handlers, once.
pub fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handlers are functions of this library, which is never unloaded. Without them a fork is safe only if no
        // lock is held at that moment.
        #[cfg(unix)]
        unsafe {
            libc::pthread_atfork(Some(prepare), Some(resume), Some(resume));
        }
    });
}

#[cfg(unix)]
extern "C" fn prepare() {
    // No thread holds two of these locks, so any order is free of deadlocks.
    let held = vec![local::held(), pool::held(), large::held()];
    // A thread that is ending has no thread-local storage left, and stores none.
    let _ = HELD.try_with(|all| all.replace(held));
}

#[cfg(unix)]
extern "C" fn resume() {
    drop(HELD.try_with(RefCell::take));
}
