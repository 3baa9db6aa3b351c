//! The nesting of a thread's work: calls of ops that are implemented with other ops, and backward passes.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static BACKWARD: Cell<u32> = const { Cell::new(0) };
}

/// The number of running calls on this thread that call other ops: decompositions, ops of the host, conversions of
/// arguments, fallbacks, and calls by plugins.
pub fn depth() -> u32 {
    DEPTH.get()
}

/// Whether this thread runs a backward pass.
pub fn in_backward() -> bool {
    BACKWARD.get() != 0
}

/// A guard: while it lives, calls of this thread are nested in another one.
#[derive(Debug)]
pub(crate) struct Nested(PhantomData<*const ()>);

impl Nested {
    #[inline]
    pub(crate) fn enter() -> Nested {
        DEPTH.set(DEPTH.get() + 1);
        Nested(PhantomData)
    }
}

impl Drop for Nested {
    #[inline]
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// A guard: while it lives, this thread runs a backward pass. For the layer that implements it.
#[derive(Debug)]
pub struct BackwardGuard(PhantomData<*const ()>);

impl BackwardGuard {
    /// Starts a pass, which may be nested in another.
    #[must_use = "the pass is over when the guard is dropped"]
    pub fn enter() -> BackwardGuard {
        BACKWARD.set(BACKWARD.get() + 1);
        BackwardGuard(PhantomData)
    }

    /// The nesting depth of this pass among the passes of this thread, itself included.
    #[must_use]
    pub fn depth(&self) -> u32 {
        BACKWARD.get()
    }
}

impl Drop for BackwardGuard {
    fn drop(&mut self) {
        BACKWARD.set(BACKWARD.get() - 1);
    }
}
