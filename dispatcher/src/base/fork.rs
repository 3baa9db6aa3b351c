//! Support for `fork`. A child process has only the forking thread, and locks held by other threads would stay locked in it
//! forever.
//!
//! So the thread pool is created again in the child (detected by [`generation`]), and the forking thread holds short leaf
//! locks while the process is copied ([`protect`]).

use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static LOCKS: Mutex<Vec<fn() -> Held>> = Mutex::new(Vec::new());

thread_local! {
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

/// A guard of a locked lock, released on drop.
pub type Held = Box<dyn Any>;

/// The number of forks between the process that loaded this library and this process.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Registers `lock` to be called before each fork; its result is dropped after the fork, in the parent and in the child. A
/// holder of that lock must neither block nor call foreign code.
pub fn protect(lock: fn() -> Held) {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if !locks.iter().any(|known| std::ptr::fn_addr_eq(*known, lock)) {
        locks.push(lock);
    }
}

/// The handler before a fork.
pub(crate) fn prepare() {
    let locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut held: Vec<Held> = locks.iter().map(|lock| lock()).collect();
    held.push(Box::new(locks));
    // A thread that is ending has no thread-local storage left, and stores none.
    let _ = HELD.try_with(|all| all.replace(held));
}

/// The handler in the parent after a fork.
pub(crate) fn in_parent() {
    drop(HELD.try_with(RefCell::take));
}

/// The handler in the child after a fork.
pub(crate) fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    drop(HELD.try_with(RefCell::take));
}
