//! Memory that a kernel needs while it runs.

use keyway_sdk::author::{Error, Plain, Scratch, parallel_for};
use std::ops::{Deref, DerefMut, Range};
use std::sync::OnceLock;

/// Bytes that come from Rust's own allocator, which is quicker than a call to the host.
const LITTLE: usize = 1 << 16;

/// Values to work with. Many of them come from the host's allocator: a limit on memory holds for them, and where there is
/// no more the call fails and the program goes on.
pub enum Buffer<T> {
    /// Few values.
    Few(Vec<T>),
    /// Many values.
    Many(Scratch<T>),
}

impl<T: Plain> Buffer<T> {
    /// `n` zeros.
    pub fn zeroed(n: usize) -> Result<Buffer<T>, Error> {
        match n.checked_mul(size_of::<T>()) {
            Some(0..=LITTLE) => Ok(Buffer::Few(vec![T::default(); n])),
            _ => Scratch::zeroed(n).map(Buffer::Many),
        }
    }

    /// `n` values uninitialised.
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

    /// `n` times `value`.
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

/// As [`parallel_for`], for pieces that may fail: with the error of one that did. The others may have run.
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
