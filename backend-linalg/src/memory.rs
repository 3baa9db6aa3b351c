//! Scratch memory, from the host's allocator.

use faer::dyn_stack::{MemStack, StackReq};
use keyway_sdk::author::{Error, Plain, Scratch};
use std::mem::MaybeUninit;

/// Scratch memory of a task, reused for each of its matrices: elements that the kernel uses, and a stack for `faer`.
pub struct Workspace<T: Plain> {
    elements: Scratch<T>,
    stack: Scratch<u8>,
}

impl<T: Plain> Workspace<T> {
    /// The memory for `elements` elements, and a stack.
    ///
    /// # Errors
    /// Memory that does not suffice.
    pub fn new(elements: usize, stack: StackReq) -> Result<Workspace<T>, Error> {
        let bytes = stack.size_bytes().saturating_add(stack.align_bytes());
        Ok(Workspace { elements: Scratch::zeroed(elements)?, stack: Scratch::zeroed(bytes)? })
    }

    /// Both parts.
    pub fn parts(&mut self) -> (&mut [T], &mut MemStack) {
        let bytes: &mut [u8] = &mut self.stack;
        // SAFETY: `MaybeUninit<u8>` has the layout of `u8`. The stack may leave bytes without a value; nothing reads them as
        // `u8`, since `stack` is accessed here only.
        let bytes = unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) };
        (&mut self.elements, MemStack::new(bytes))
    }
}
