//! Support for `fork`. A child process has only the forking thread, and locks held by other threads would stay locked in it for
//! ever.
//!
//! So the pool of threads is created anew in the child (detected by [`generation`]), and short leaf locks are held by
//! the forking thread while the process is copied ([`protect`]).

use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static LOCKS: Mutex<Vec<fn() -> Held>> = Mutex::new(Vec::new());

thread_local! {
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

/// A lock that is held; dropped, it is given up.
pub type Held = Box<dyn Any>;

/// The number of forks between the process that loaded this library and the present one.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Registers `lock` to be called before each fork; its result is dropped after the fork, in the parent and in the
/// child. A holder of that lock must neither wait for anything nor call foreign code.
pub fn protect(lock: fn() -> Held) {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if !locks.iter().any(|known| std::ptr::fn_addr_eq(*known, lock)) {
        locks.push(lock);
    }
}

/// Before a fork.
pub(crate) fn prepare() {
    let locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut held: Vec<Held> = locks.iter().map(|lock| lock()).collect();
    held.push(Box::new(locks));
    // A thread that is ending holds none.
    let _ = HELD.try_with(|all| all.replace(held));
}

/// After a fork, in the parent.
pub(crate) fn in_parent() {
    drop(HELD.try_with(RefCell::take));
}

/// After a fork, in the child.
pub(crate) fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    drop(HELD.try_with(RefCell::take));
}
