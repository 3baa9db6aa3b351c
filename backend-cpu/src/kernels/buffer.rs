//! Scratch memory of a kernel.

use keyway_sdk::author::{Error, Plain, Scratch, parallel_for};
use std::ops::{Deref, DerefMut, Range};
use std::sync::OnceLock;

/// The maximum number of bytes that are allocated by Rust's global allocator, which is faster than a call to the host.
const LITTLE: usize = 1 << 16;

/// Scratch values. Large buffers are allocated by the host, so that its memory limit applies, and failure is an error and
/// not an abort.
pub enum Buffer<T> {
    /// Allocated by Rust's global allocator.
    Few(Vec<T>),
    /// Allocated by the host.
    Many(Scratch<T>),
}

impl<T: Plain> Buffer<T> {
    /// Returns `n` zeros.
    pub fn zeroed(n: usize) -> Result<Buffer<T>, Error> {
        match n.checked_mul(size_of::<T>()) {
            Some(0..=LITTLE) => Ok(Buffer::Few(vec![T::default(); n])),
            _ => Scratch::zeroed(n).map(Buffer::Many),
        }
    }

    /// Returns `n` uninitialised values.
    ///
    /// # Safety
    /// Each must be written before it is read; the caller upholds this.
    pub unsafe fn unwritten(n: usize) -> Result<Buffer<T>, Error> {
        match n.checked_mul(size_of::<T>()) {
            Some(0..=LITTLE) => Buffer::zeroed(n),
            // SAFETY: as the caller guarantees.
            _ => unsafe { Scratch::unwritten(n) }.map(Buffer::Many),
        }
    }

    /// Returns `n` copies of `value`.
    pub fn filled(n: usize, value: T) -> Result<Buffer<T>, Error> {
        let mut buffer = Buffer::zeroed(n)?;
        buffer.fill(value);
        Ok(buffer)
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Buffer::Few(values) => values,
            Buffer::Many(values) => values,
        }
    }
}

impl<T> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Buffer::Few(values) => values,
            Buffer::Many(values) => values,
        }
    }
}

/// As [`parallel_for`], for fallible work items: returns one of the errors. Other items may have run.
pub fn try_parallel_for(
    n: usize,
    grain: usize,
    body: impl Fn(Range<usize>) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let failed = OnceLock::new();
    parallel_for(n, grain, |range| {
        if let Err(error) = body(range) {
            failed.get_or_init(|| error);
        }
    })?;
    failed.into_inner().map_or(Ok(()), Err)
}
