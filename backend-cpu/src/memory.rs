//! A caching allocator for tensor memory.
//!
//! Three ranges, distinguished by the size alone, so that `free` needs no header:
//! - up to 4 KiB: size classes with thread-local free lists, without a lock;
//! - below 1 MiB: size classes with shared free lists under one lock;
//! - above: mapped blocks aligned to 2 MiB, with huge pages where the system has them, cached in a bounded best-fit list,
//!   because the first touch of fresh pages costs more than most kernels.
//!
//! Rejected alternatives: one system call per block (page faults would bound every large result), and 2 MiB arenas for all
//! sizes (a small program would hold tens of megabytes that it never uses).
//!
//! Sizes in the statistics are those of the blocks, which are rounded up from the requested sizes.

mod fork;
mod large;
mod local;
mod pool;
mod size_class;
mod system;

#[cfg(test)]
mod tests;

pub use fork::watch as watch_forks;
use local::Event;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Every block starts at a multiple of this.
pub const ALIGNMENT: usize = 64;

/// The error of a failed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutOfMemory {
    /// The requested size in bytes.
    pub requested: usize,
    /// The limit of [`set_memory_limit`], if any.
    pub limit: Option<usize>,
    /// Bytes in use when the request failed.
    pub in_use: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory for {} bytes: {} bytes are in use", self.requested, self.in_use)?;
        match self.limit {
            Some(limit) => write!(f, " of a limit of {limit}; raise the limit or free tensors"),
            None => write!(f, "; free tensors or use smaller ones"),
        }
    }
}

impl std::error::Error for OutOfMemory {}

/// Current and cumulative statistics of the allocator. The peaks of small blocks are tracked to within 64 KiB per thread;
/// all other values are exact if no other thread allocates concurrently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Bytes of allocated blocks.
    pub in_use: usize,
    /// Bytes reserved from the system: in use or cached.
    pub reserved: usize,
    /// Bytes cached for reuse.
    pub cached: usize,
    /// Largest `in_use` since [`reset_peak`].
    pub peak_in_use: usize,
    /// Largest `reserved` since [`reset_peak`].
    pub peak_reserved: usize,
    /// Successful allocations of at least one byte.
    pub allocations: usize,
    /// Frees of at least one byte.
    pub frees: usize,
    /// Allocations served from a cache.
    pub cache_hits: usize,
    /// The limit of [`set_memory_limit`], if any.
    pub limit: Option<usize>,
}

/// Bytes reserved from the system.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
static PEAK_RESERVED: AtomicUsize = AtomicUsize::new(0);
/// `usize::MAX` is no limit.
static MEMORY_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Allocates an uninitialised block of at least `bytes` bytes, aligned to [`ALIGNMENT`]. For zero bytes it returns a
/// dangling pointer with this alignment.
///
/// # Errors
/// [`OutOfMemory`] if the system has no more memory, if the limit of [`set_memory_limit`] would be exceeded, or if `align`
/// is above [`ALIGNMENT`] or not a power of two.
#[inline]
pub fn allocate(bytes: usize, align: usize) -> Result<NonNull<u8>, OutOfMemory> {
    if align > ALIGNMENT || !align.is_power_of_two() {
        return Err(out_of_memory(bytes));
    }
    if bytes == 0 {
        return Ok(dangling());
    }
    if bytes <= size_class::SMALL_MAX {
        return local::allocate(bytes).ok_or_else(|| out_of_memory(bytes));
    }
    allocate_shared(bytes).ok_or_else(|| out_of_memory(bytes))
}

/// Frees a block.
///
/// # Safety
/// `ptr` was returned by [`allocate`] with the same `bytes`, has not been freed since, and the block is not used any more.
#[inline]
pub unsafe fn free(ptr: NonNull<u8>, bytes: usize) {
    if bytes == 0 {
        return;
    }
    if bytes <= size_class::SMALL_MAX {
        // SAFETY: the caller passes ownership of a live block of a small class.
        unsafe { local::free(ptr, bytes) }
    } else {
        // SAFETY: the caller passes ownership of a live block of this size.
        unsafe { free_shared(ptr, bytes) }
    }
}

/// Returns cached blocks to the system: large ones, shared ones and those of the calling thread. Other threads retain their
/// small blocks, about 1 MiB each at most.
pub fn empty_cache() {
    local::drain();
    pool::empty();
    large::empty();
}

/// Returns the allocator's statistics.
pub fn stats() -> MemoryStats {
    let totals = local::totals();
    let reserved = RESERVED.load(Relaxed);
    MemoryStats {
        in_use: totals.in_use,
        reserved,
        cached: reserved.saturating_sub(totals.in_use),
        peak_in_use: local::note_peak(totals.in_use),
        peak_reserved: PEAK_RESERVED.load(Relaxed).max(reserved),
        allocations: totals.allocations,
        frees: totals.frees,
        cache_hits: totals.cache_hits,
        limit: memory_limit(),
    }
}

/// Resets the peaks to the current values.
pub fn reset_peak() {
    local::reset_peak();
    PEAK_RESERVED.store(RESERVED.load(Relaxed), Relaxed);
}

/// Caps the cached bytes; `None` restores the default, a quarter of the memory this process may use. Blocks above the cap are
/// released to the system immediately.
#[cfg(test)]
pub fn set_limit(bytes: Option<usize>) {
    large::set_limit(bytes);
    pool::set_limit(bytes);
}

/// Caps the bytes in use; `None` removes the cap.
pub fn set_memory_limit(bytes: Option<usize>) {
    MEMORY_LIMIT.store(bytes.unwrap_or(usize::MAX), Relaxed);
}

fn dangling() -> NonNull<u8> {
    // The dangling pointer of empty blocks: its address is the alignment.
    NonNull::without_provenance(const { std::num::NonZero::new(ALIGNMENT).unwrap() })
}

fn memory_limit() -> Option<usize> {
    Some(MEMORY_LIMIT.load(Relaxed)).filter(|limit| *limit != usize::MAX)
}

#[cold]
fn out_of_memory(requested: usize) -> OutOfMemory {
    OutOfMemory { requested, limit: memory_limit(), in_use: local::totals().in_use }
}

/// Whether the bytes in use, including the new block, are within the limit.
#[inline]
fn within_limit() -> bool {
    let limit = MEMORY_LIMIT.load(Relaxed);
    limit == usize::MAX || local::totals().in_use <= limit
}

fn allocate_shared(bytes: usize) -> Option<NonNull<u8>> {
    let is_large = bytes > size_class::MEDIUM_MAX;
    let size = if is_large { large::rounded(bytes)? } else { size_class::of(bytes).1 };
    local::count_shared(Event::Reserve, size);
    if !within_limit() {
        local::count_shared(Event::Cancel, size);
        return None;
    }
    let found = if is_large { large::allocate(size) } else { pool::allocate(bytes) };
    let Some((block, actual, hit)) = found else {
        local::count_shared(Event::Cancel, size);
        return None;
    };
    local::count_shared(Event::Allocate { hit }, actual - size);
    Some(block)
}

/// # Safety
/// As for [`free`], for a size above the small ones.
unsafe fn free_shared(ptr: NonNull<u8>, bytes: usize) {
    let size = if bytes > size_class::MEDIUM_MAX {
        // SAFETY: the caller passes ownership of a live large block.
        unsafe { large::free(ptr) }
    } else {
        let (class, size) = size_class::of(bytes);
        // SAFETY: the caller passes ownership of a live block of this class.
        unsafe { pool::free(class, ptr) };
        size
    };
    local::count_shared(Event::Free, size);
}

/// Counts bytes reserved from the system.
fn reserve(bytes: usize) {
    let now = RESERVED.fetch_add(bytes, Relaxed) + bytes;
    PEAK_RESERVED.fetch_max(now, Relaxed);
}

/// Counts bytes released to the system.
fn release(bytes: usize) {
    RESERVED.fetch_sub(bytes, Relaxed);
}
