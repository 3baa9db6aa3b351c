//! A caching allocator for tensor memory.
//!
//! Three ranges, distinguished by the size alone, so that `free` needs no header:
//! - up to 4 KiB: size classes with lists local to the thread, no lock;
//! - below 1 MiB: size classes with shared lists under one lock;
//! - above: mapped blocks aligned to 2 MiB, with huge pages where the system has them, cached in a bounded best-fit list,
//!   because the first touch of fresh pages costs more than most kernels.
//!
//! Alternatives turned down: one system call per block (page faults bound every large result), and 2 MiB arenas for all sizes
//! (a small program would hold tens of megabytes it never uses).
//!
//! Sizes in the statistics are those of the blocks, which are rounded up from the sizes asked for.

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

/// No block can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutOfMemory {
    /// Bytes asked for.
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

/// What the allocator holds and has done. The peaks of small blocks are followed to within 64 KiB
/// for each thread; everything else is exact when no other thread is allocating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Bytes of blocks handed out.
    pub in_use: usize,
    /// Bytes held from the system: in use or cached.
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

/// Bytes held from the system.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
static PEAK_RESERVED: AtomicUsize = AtomicUsize::new(0);
/// `usize::MAX` is no limit.
static MEMORY_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// A block of at least `bytes` bytes at a multiple of [`ALIGNMENT`], not initialised. For zero bytes
/// a dangling pointer, aligned likewise.
///
/// # Errors
/// [`OutOfMemory`] when the system has no more, when the limit of [`set_memory_limit`] would be
/// passed, or when `align` is above [`ALIGNMENT`] or not a power of two.
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

/// Gives a block back.
///
/// # Safety
/// `ptr` came from [`allocate`] with the same `bytes`, was not freed since, and nothing uses the
/// block any more.
#[inline]
pub unsafe fn free(ptr: NonNull<u8>, bytes: usize) {
    if bytes == 0 {
        return;
    }
    if bytes <= size_class::SMALL_MAX {
        // SAFETY: the caller passes a live block of a small class and gives it up.
        unsafe { local::free(ptr, bytes) }
    } else {
        // SAFETY: the caller passes a live block of this size and gives it up.
        unsafe { free_shared(ptr, bytes) }
    }
}

/// Returns cached blocks to the system: large ones, shared ones and those of the calling thread.
/// Other threads keep their small blocks, at most some 1 MiB each.
pub fn empty_cache() {
    local::drain();
    pool::empty();
    large::empty();
}

/// What the allocator holds and has done.
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
/// released to the system at once.
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
    // A pointer to no memory: the address is the alignment itself.
    NonNull::without_provenance(const { std::num::NonZero::new(ALIGNMENT).unwrap() })
}

fn memory_limit() -> Option<usize> {
    Some(MEMORY_LIMIT.load(Relaxed)).filter(|limit| *limit != usize::MAX)
}

#[cold]
fn out_of_memory(requested: usize) -> OutOfMemory {
    OutOfMemory { requested, limit: memory_limit(), in_use: local::totals().in_use }
}

/// Whether what is in use, already counting the new block, is within the limit.
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
        // SAFETY: the caller gives up a live large block.
        unsafe { large::free(ptr) }
    } else {
        let (class, size) = size_class::of(bytes);
        // SAFETY: the caller gives up a live block of this class.
        unsafe { pool::free(class, ptr) };
        size
    };
    local::count_shared(Event::Free, size);
}

/// Counts memory taken from the system.
fn reserve(bytes: usize) {
    let now = RESERVED.fetch_add(bytes, Relaxed) + bytes;
    PEAK_RESERVED.fetch_max(now, Relaxed);
}

/// Counts memory released to the system.
fn release(bytes: usize) {
    RESERVED.fetch_sub(bytes, Relaxed);
}
