//! Atomics and allocator of the lock-free code: the standard library's, or loom's for the models that `cargo xtask
//! loom` runs in every interleaving of their threads.

#[cfg(not(loom))]
pub(super) use std::alloc::{alloc, dealloc};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(super) use loom::alloc::{alloc, dealloc};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
