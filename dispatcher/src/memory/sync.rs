//! The atomics and the allocator of what is free of locks here: the standard library's, and loom's for the models that
//! `cargo xtask loom` runs in every order of their threads' steps.

#[cfg(not(loom))]
pub(super) use std::alloc::{alloc, dealloc};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(super) use loom::alloc::{alloc, dealloc};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
