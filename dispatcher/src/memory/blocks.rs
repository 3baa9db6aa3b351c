//! Cached allocation of small blocks: the host's own objects (tensors, storages, graph nodes) and small host memory.
//!
//! A call creates and drops a few objects of the same few sizes. A thread-local free list for each size serves them in a
//! few instructions; the system's allocator takes some hundred for a malloc/free pair. A block freed on another thread than
//! its own joins that thread's list. Each list is bounded, and a thread that ends frees its blocks.

use super::sync::{alloc, dealloc};
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;

/// The granularity of block sizes, and the maximum alignment.
const STEP: usize = 64;
/// The number of size classes: 1 to this many steps.
const CLASSES: usize = 12;
/// The maximum number of cached blocks of one size on each thread.
const MAX_CACHED: usize = 64;

/// A link of a free list: a free block stores the address of the next one.
type Link = Option<NonNull<u8>>;

struct Lists {
    first: [Cell<Link>; CLASSES],
    lengths: [Cell<usize>; CLASSES],
}

thread_local! {
    static LISTS: Lists = const {
        Lists { first: [const { Cell::new(None) }; CLASSES], lengths: [const { Cell::new(0) }; CLASSES] }
    };
}

/// The size class of this layout; `None` if such blocks are not cached. Under loom, which tracks the allocator, none is
/// cached.
const fn class(layout: Layout) -> Option<usize> {
    let steps = layout.size().div_ceil(STEP);
    if cfg!(loom) || steps == 0 || steps > CLASSES || layout.align() > STEP { None } else { Some(steps - 1) }
}

/// The actual layout of the blocks of a class.
const fn block(class: usize) -> Layout {
    match Layout::from_size_align((class + 1) * STEP, STEP) {
        Ok(layout) => layout,
        Err(_) => panic!("a few steps make a layout"),
    }
}

impl Lists {
    #[inline]
    fn pop(&self, class: usize) -> Link {
        let block = self.first[class].get()?;
        // SAFETY: a block in a list is free, and `push` wrote the next one's address to its start.
        self.first[class].set(unsafe { block.cast::<Link>().read() });
        self.lengths[class].set(self.lengths[class].get() - 1);
        Some(block)
    }

    /// Adds a block to the list. Returns whether it was cached.
    ///
    /// # Safety
    /// The caller passes ownership of `free`, a block of this class.
    #[inline]
    unsafe fn push(&self, class: usize, free: NonNull<u8>) -> bool {
        let length = self.lengths[class].get();
        if length >= MAX_CACHED {
            return false;
        }
        // SAFETY: the caller passes ownership of the block, and it is larger and better aligned than an address.
        unsafe { free.cast::<Link>().write(self.first[class].get()) };
        self.first[class].set(Some(free));
        self.lengths[class].set(length + 1);
        true
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        for class in 0..CLASSES {
            while let Some(free) = self.pop(class) {
                // SAFETY: blocks of a class were allocated with the class's layout, and the list owned this one.
                unsafe { dealloc(free.as_ptr(), block(class)) };
            }
        }
    }
}

#[cold]
fn from_system(layout: Layout) -> NonNull<u8> {
    // SAFETY: callers make no objects of no size: `class` is `None` for those, and `take` refuses them.
    NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| std::alloc::handle_alloc_error(layout))
}

/// Allocates uninitialised memory of this layout; null if memory is exhausted.
#[inline]
pub(super) fn take_bytes(layout: Layout) -> *mut u8 {
    let (cached, layout) = match class(layout) {
        Some(class) => (LISTS.try_with(|lists| lists.pop(class)).ok().flatten(), block(class)),
        None => (None, layout),
    };
    // SAFETY: callers request no empty layout, and a block is at least one step.
    cached.map_or_else(|| unsafe { alloc(layout) }, NonNull::as_ptr)
}

/// Frees memory of [`take_bytes`].
///
/// # Safety
/// `memory` must be from [`take_bytes`] with the same layout; the caller no longer uses it.
#[inline]
pub(super) unsafe fn give_bytes(memory: NonNull<u8>, layout: Layout) {
    let layout = match class(layout) {
        Some(class) => {
            // SAFETY: the caller passes ownership of a block of this class.
            if LISTS.try_with(|lists| unsafe { lists.push(class, memory) }).unwrap_or(false) {
                return;
            }
            block(class)
        }
        None => layout,
    };
    // SAFETY: `take_bytes` allocated it with this layout, and no list has it.
    unsafe { dealloc(memory.as_ptr(), layout) };
}

/// Memory for a `T`, not initialised.
#[inline]
pub(super) fn take<T>() -> NonNull<T> {
    const { assert!(size_of::<T>() > 0) };
    let layout = const { Layout::new::<T>() };
    let found = match const { class(Layout::new::<T>()) } {
        // When a thread ends, its lists are gone, and the system's allocator is used.
        Some(class) => LISTS
            .try_with(|lists| lists.pop(class))
            .ok()
            .flatten()
            .unwrap_or_else(|| from_system(block(class))),
        None => from_system(layout),
    };
    found.cast()
}

/// Frees the memory of a `T`.
///
/// # Safety
/// `memory` must be from [`take`] of the same type; the caller no longer uses it, its value moved or dropped.
#[inline]
pub(super) unsafe fn give<T>(memory: NonNull<T>) {
    // SAFETY: `take` allocated it with this layout; the caller passes ownership.
    unsafe { give_bytes(memory.cast(), const { Layout::new::<T>() }) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_again_and_none_overlap() {
        let first = take::<[u64; 20]>();
        // SAFETY: taken above, freed once.
        unsafe { give(first) };
        let again = take::<[u64; 20]>();
        let other = take::<[u64; 20]>();
        assert_eq!(first, again);
        assert!(other.as_ptr().addr().abs_diff(again.as_ptr().addr()) >= 160);
        // SAFETY: taken above, freed once each.
        unsafe {
            give(again);
            give(other);
        }
    }

    #[test]
    fn blocks_beyond_the_cache_are_freed_and_blocks_may_change_threads() {
        let all: Vec<usize> =
            (0..3 * MAX_CACHED).map(|_| take::<[u64; 3]>().as_ptr().expose_provenance()).collect();
        let there = std::thread::spawn(move || {
            for address in all {
                let pointer = std::ptr::with_exposed_provenance_mut::<[u64; 3]>(address);
                // SAFETY: taken by the other thread, which no longer uses them; each is freed once.
                unsafe { give(NonNull::new(pointer).unwrap()) };
            }
            LISTS.with(|lists| lists.lengths[0].get())
        });
        assert_eq!(there.join().unwrap(), MAX_CACHED);
    }

    #[test]
    fn large_objects_are_not_cached() {
        assert_eq!(class(Layout::new::<[u64; 1000]>()), None);
        let large = take::<[u64; 1000]>();
        // SAFETY: taken above, freed once.
        unsafe { give(large) };
    }
}
