//! Thread-local free lists of small blocks, and the counters of every thread.
//!
//! A thread writes only its own counters, with plain loads and stores; a reader sums all counters.

use super::pool::{self, List};
use super::size_class::{self, SMALL_CLASSES};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of bytes and of blocks of each class in a thread's list.
const LOCAL_BYTES: usize = 64 << 10;
const LOCAL_BLOCKS: usize = 64;
/// The change of a thread's bytes in use after which it is added to the shared count.
const FLUSH: isize = 64 << 10;

/// The counters of one thread, or of all events without a thread. `in_use` may be negative, because a thread may free a
/// block that another thread allocated.
#[derive(Default)]
struct Counters {
    in_use: AtomicIsize,
    allocations: AtomicUsize,
    frees: AtomicUsize,
    hits: AtomicUsize,
}

static SHARED: Counters = Counters {
    in_use: AtomicIsize::new(0),
    allocations: AtomicUsize::new(0),
    frees: AtomicUsize::new(0),
    hits: AtomicUsize::new(0),
};
static PEAK: AtomicIsize = AtomicIsize::new(0);

/// The counters of all threads, including ended ones, and the counters that a new thread may reuse.
struct Registry {
    all: Vec<&'static Counters>,
    idle: Vec<&'static Counters>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { all: Vec::new(), idle: Vec::new() });

fn registry() -> MutexGuard<'static, Registry> {
    // Only pushes happen under the lock, so a poisoned registry is consistent.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Acquires the lock while the process forks.
pub(super) fn held() -> Box<dyn std::any::Any> {
    Box::new(registry())
}

struct Local {
    lists: [Cell<List>; SMALL_CLASSES],
    lengths: [Cell<usize>; SMALL_CLASSES],
    counters: Cell<Option<&'static Counters>>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            lists: [const { Cell::new(List::EMPTY) }; SMALL_CLASSES],
            lengths: [const { Cell::new(0) }; SMALL_CLASSES],
            counters: Cell::new(None),
        }
    };
}

impl Local {
    #[inline]
    fn counters(&self) -> &'static Counters {
        self.counters.get().unwrap_or_else(|| self.register())
    }

    #[cold]
    fn register(&self) -> &'static Counters {
        let mut registry = registry();
        let counters = registry.idle.pop().unwrap_or_else(|| {
            // Retained for the life of the process and reused by later threads.
            let counters: &'static Counters = Box::leak(Box::default());
            registry.all.push(counters);
            counters
        });
        self.counters.set(Some(counters));
        counters
    }

    #[inline]
    fn pop(&self, class: usize) -> Option<NonNull<u8>> {
        let mut list = self.lists[class].get();
        let block = list.pop()?;
        self.lists[class].set(list);
        self.lengths[class].set(self.lengths[class].get() - 1);
        Some(block)
    }

    /// # Safety
    /// The caller passes ownership of `block`, a block of this class.
    #[inline]
    unsafe fn push(&self, class: usize, block: NonNull<u8>) {
        let mut list = self.lists[class].get();
        // SAFETY: the caller passes ownership of the block.
        unsafe { list.push(block) };
        self.lists[class].set(list);
        self.lengths[class].set(self.lengths[class].get() + 1);
    }

    /// Moves a batch of blocks of a class from the shared list to this thread's list, and returns one of them.
    #[cold]
    fn refill(&self, class: usize) -> Option<NonNull<u8>> {
        pool::take(class, capacity(size_class::size(class)) / 2, |block| {
            // SAFETY: the pool passed ownership of the block.
            unsafe { self.push(class, block) };
        });
        self.pop(class)
    }

    /// Moves all but `keep` blocks of a class to the shared lists.
    #[cold]
    fn spill(&self, class: usize, keep: usize) {
        while self.lengths[class].get() > keep {
            let Some(block) = self.pop(class) else { break };
            // SAFETY: this thread's list owned the block.
            unsafe { pool::free(class, block) };
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        for class in 0..SMALL_CLASSES {
            self.spill(class, 0);
        }
        if let Some(counters) = self.counters.take() {
            registry().idle.push(counters);
        }
    }
}

#[inline]
fn capacity(size: usize) -> usize {
    (LOCAL_BYTES / size).min(LOCAL_BLOCKS)
}

/// Adds to a counter that only this thread writes.
#[inline]
fn bump(counter: &AtomicUsize) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

/// Adds to this thread's bytes in use.
#[inline]
fn change(counters: &Counters, bytes: isize) {
    let now = counters.in_use.load(Relaxed) + bytes;
    counters.in_use.store(now, Relaxed);
    if now.abs() >= FLUSH {
        flush(counters, now);
    }
}

#[cold]
fn flush(counters: &Counters, bytes: isize) {
    counters.in_use.store(0, Relaxed);
    let now = SHARED.in_use.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(now, Relaxed);
}

/// Allocates a block of a small size. While a thread ends, its own lists are gone and the shared ones are used.
#[inline]
pub(super) fn allocate(bytes: usize) -> Option<NonNull<u8>> {
    let fast = LOCAL.try_with(|local| {
        let (class, size) = size_class::of(bytes);
        let counters = local.counters();
        change(counters, size as isize);
        if !super::within_limit() {
            change(counters, -(size as isize));
            return None;
        }
        if let Some(block) = local.pop(class).or_else(|| local.refill(class)) {
            bump(&counters.allocations);
            bump(&counters.hits);
            return Some(block);
        }
        let Some((block, _, hit)) = pool::allocate(bytes) else {
            change(counters, -(size as isize));
            return None;
        };
        bump(&counters.allocations);
        counters.hits.fetch_add(usize::from(hit), Relaxed);
        Some(block)
    });
    fast.unwrap_or_else(|_| super::allocate_shared(bytes))
}

/// # Safety
/// The caller passes ownership of `ptr`, a block of a small class for `bytes`.
#[inline]
pub(super) unsafe fn free(ptr: NonNull<u8>, bytes: usize) {
    let (class, size) = size_class::of(bytes);
    let fast = LOCAL.try_with(|local| {
        let counters = local.counters();
        // SAFETY: the caller passes ownership of the block.
        unsafe { local.push(class, ptr) };
        let most = capacity(size);
        if local.lengths[class].get() > most {
            local.spill(class, most / 2);
        }
        bump(&counters.frees);
        change(counters, -(size as isize));
    });
    if fast.is_err() {
        // SAFETY: the closure did not run, so the caller still owns the block.
        unsafe { super::free_shared(ptr, bytes) };
    }
}

/// Moves the calling thread's blocks to the shared lists.
pub(super) fn drain() {
    // A thread that is ending has already released its blocks.
    let _ = LOCAL.try_with(|local| {
        for class in 0..SMALL_CLASSES {
            local.spill(class, 0);
        }
    });
}

/// A change of the counters of events that are not counted per thread.
pub(super) enum Event {
    /// The bytes are about to be in use.
    Reserve,
    /// The reservation is cancelled.
    Cancel,
    /// A block was allocated; the bytes are those in excess of the reservation.
    Allocate {
        hit: bool,
    },
    Free,
}

pub(super) fn count_shared(event: Event, bytes: usize) {
    let bytes = bytes as isize;
    match event {
        Event::Reserve => {
            SHARED.in_use.fetch_add(bytes, Relaxed);
        }
        Event::Cancel => {
            SHARED.in_use.fetch_sub(bytes, Relaxed);
        }
        Event::Allocate { hit } => {
            let now = SHARED.in_use.fetch_add(bytes, Relaxed) + bytes;
            PEAK.fetch_max(now, Relaxed);
            SHARED.allocations.fetch_add(1, Relaxed);
            SHARED.hits.fetch_add(usize::from(hit), Relaxed);
        }
        Event::Free => {
            SHARED.in_use.fetch_sub(bytes, Relaxed);
            SHARED.frees.fetch_add(1, Relaxed);
        }
    }
}

#[derive(Default)]
pub(super) struct Totals {
    pub(super) in_use: usize,
    pub(super) allocations: usize,
    pub(super) frees: usize,
    pub(super) cache_hits: usize,
}

pub(super) fn totals() -> Totals {
    let registry = registry();
    let mut totals = Totals::default();
    let mut in_use = 0;
    for counters in registry.all.iter().copied().chain([&SHARED]) {
        in_use += counters.in_use.load(Relaxed);
        totals.allocations = totals.allocations.wrapping_add(counters.allocations.load(Relaxed));
        totals.frees = totals.frees.wrapping_add(counters.frees.load(Relaxed));
        totals.cache_hits = totals.cache_hits.wrapping_add(counters.hits.load(Relaxed));
    }
    // A sum computed while other threads move bytes between counters can be inconsistent, even negative.
    totals.in_use = usize::try_from(in_use).unwrap_or(0);
    totals
}

/// Raises the peak to the bytes in use, and returns the peak.
pub(super) fn note_peak(in_use: usize) -> usize {
    let in_use = in_use as isize;
    PEAK.fetch_max(in_use, Relaxed).max(in_use) as usize
}

pub(super) fn reset_peak() {
    PEAK.store(totals().in_use as isize, Relaxed);
}
