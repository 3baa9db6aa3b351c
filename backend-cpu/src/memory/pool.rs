//! Shared free lists by size class, under one lock.

use super::size_class::{self, CLASSES};
use super::system;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of cached bytes, independent of the cap.
const MOST_CACHED: usize = 32 << 20;

static CAP: AtomicUsize = AtomicUsize::new(MOST_CACHED);
static POOL: Mutex<Pool> = Mutex::new(Pool { lists: [List::EMPTY; CLASSES], bytes: 0 });

/// An intrusive free list: each block has the address of the next one in its first bytes.
///
/// Invariant: each block in the list is free, is in no other list, and has at least the size and alignment of a pointer.
#[derive(Clone, Copy)]
pub(super) struct List(Option<NonNull<u8>>);

// SAFETY: a list owns its blocks, and blocks are not tied to a thread.
unsafe impl Send for List {}

impl List {
    pub(super) const EMPTY: List = List(None);

    /// # Safety
    /// The caller passes ownership of `block`, a block of a size class.
    #[inline]
    pub(super) unsafe fn push(&mut self, block: NonNull<u8>) {
        // SAFETY: blocks of size classes have at least 64 bytes and are aligned to 64, and the caller passes ownership of
        // this one.
        unsafe { block.cast::<Option<NonNull<u8>>>().write(self.0) };
        self.0 = Some(block);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<NonNull<u8>> {
        let block = self.0?;
        // SAFETY: by the list's invariant the block is free and `push` wrote the next address there.
        self.0 = unsafe { block.cast::<Option<NonNull<u8>>>().read() };
        Some(block)
    }
}

struct Pool {
    lists: [List; CLASSES],
    bytes: usize,
}

fn pool() -> MutexGuard<'static, Pool> {
    // No operation under the lock panics midway, so a poisoned pool is consistent.
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Acquires the lock while the process forks.
pub(super) fn held() -> Box<dyn std::any::Any> {
    Box::new(pool())
}

/// Allocates a block for `bytes`. Returns the block, its size, and whether it was cached.
pub(super) fn allocate(bytes: usize) -> Option<(NonNull<u8>, usize, bool)> {
    let (class, size) = size_class::of(bytes);
    let cached = {
        let mut pool = pool();
        let block = pool.lists[class].pop();
        pool.bytes -= if block.is_some() { size } else { 0 };
        block
    };
    if let Some(block) = cached {
        return Some((block, size, true));
    }
    let block = system::allocate_block(size).or_else(|| {
        super::empty_cache();
        system::allocate_block(size)
    })?;
    Some((block, size, false))
}

/// Calls `take` with up to `count` blocks of a class, removed from its list.
pub(super) fn take(class: usize, count: usize, mut take: impl FnMut(NonNull<u8>)) {
    let mut pool = pool();
    for _ in 0..count {
        let Some(block) = pool.lists[class].pop() else {
            break;
        };
        pool.bytes -= size_class::size(class);
        take(block);
    }
}

/// # Safety
/// The caller passes ownership of `block`, a block of this class.
pub(super) unsafe fn free(class: usize, block: NonNull<u8>) {
    let size = size_class::size(class);
    {
        let mut pool = pool();
        if pool.bytes + size <= CAP.load(Relaxed) {
            pool.bytes += size;
            // SAFETY: the caller passes ownership of the block.
            unsafe { pool.lists[class].push(block) };
            return;
        }
    }
    // SAFETY: the caller passes ownership of the block, whose size is that of its class.
    unsafe { system::free_block(block, size) };
}

pub(super) fn empty() {
    let mut taken = [List::EMPTY; CLASSES];
    {
        let mut pool = pool();
        std::mem::swap(&mut pool.lists, &mut taken);
        pool.bytes = 0;
    }
    for (class, list) in taken.iter_mut().enumerate() {
        while let Some(block) = list.pop() {
            // SAFETY: the list owned the block, whose size is that of its class.
            unsafe { system::free_block(block, size_class::size(class)) };
        }
    }
}

#[cfg(test)]
pub(super) fn set_limit(bytes: Option<usize>) {
    let cap = bytes.unwrap_or(MOST_CACHED).min(MOST_CACHED);
    CAP.store(cap, Relaxed);
    if pool().bytes > cap {
        empty();
    }
}
