//! Large blocks: mappings in a best-fit cache.

use super::system::{self, HUGE_PAGE};
use std::collections::{BTreeMap, HashMap};
use std::ptr::NonNull;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Bytes that may be cached regardless of recent use.
const SMALL_CACHE: usize = 16 << 20;
/// Sizes below this are rounded up to 64 KiB, others to a huge page.
const COARSE_FROM: usize = 16 << 20;

/// The maximum size of a mapping; sums of smaller sizes do not overflow.
const LARGEST: usize = isize::MAX as usize >> 15;

static LARGE: LazyLock<Mutex<Large>> =
    LazyLock::new(|| Mutex::new(Large { cap: default_cap(), ..Large::default() }));

/// The live and the cached blocks. Blocks are identified by their addresses; each mapping is in exactly one of `live` and
/// `cached`.
#[derive(Default)]
struct Large {
    /// The size of each allocated block, by address.
    live: HashMap<usize, usize>,
    /// Time of release of each free block, by size and address.
    cached: BTreeMap<(usize, usize), u64>,
    live_bytes: usize,
    cached_bytes: usize,
    /// Bytes recently in use: rises immediately and decays over some hundreds of releases, so that the cache follows the
    /// program's current demand.
    recent_bytes: usize,
    cap: usize,
    time: u64,
}

impl Large {
    /// Bytes that may be cached: the bytes recently in use, within the cap.
    fn allowance(&self) -> usize {
        self.recent_bytes.max(SMALL_CACHE).min(self.cap)
    }

    /// Removes cached blocks, oldest first, until at most `bytes` are cached, and returns them.
    fn evict(&mut self, bytes: usize) -> Vec<(usize, usize)> {
        let mut evicted = Vec::new();
        while self.cached_bytes > bytes {
            let oldest = self.cached.iter().min_by_key(|(_, time)| **time);
            let Some((&key, _)) = oldest else { break };
            self.cached.remove(&key);
            self.cached_bytes -= key.0;
            evicted.push(key);
        }
        evicted
    }

    fn enter(&mut self, block: NonNull<u8>, size: usize) {
        self.live.insert(block.as_ptr().expose_provenance(), size);
        self.live_bytes += size;
        self.recent_bytes = self.recent_bytes.max(self.live_bytes);
    }
}

fn default_cap() -> usize {
    system::physical_memory() / 4
}

fn large() -> MutexGuard<'static, Large> {
    // Only the collections' own allocations can fail under the lock, and they abort.
    LARGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Acquires the lock while the process forks.
pub(super) fn held() -> Box<dyn std::any::Any> {
    Box::new(large())
}

/// The size of the mapping for `bytes`; `None` if it is too large.
pub(super) fn rounded(bytes: usize) -> Option<usize> {
    let step = if bytes < COARSE_FROM { 64 << 10 } else { HUGE_PAGE };
    bytes.checked_next_multiple_of(step).filter(|size| *size <= LARGEST)
}

/// Allocates a block for a rounded size. Returns the block, its size, and whether it was cached. A cached block is used if
/// it wastes at most a quarter of the requested size.
pub(super) fn allocate(size: usize) -> Option<(NonNull<u8>, usize, bool)> {
    {
        let mut large = large();
        let best = large.cached.range((size, 0)..).next().map(|(key, _)| *key);
        if let Some((found, address)) = best.filter(|(found, _)| found - size <= size / 4) {
            large.cached.remove(&(found, address));
            large.cached_bytes -= found;
            let block = NonNull::new(std::ptr::with_exposed_provenance_mut(address))?;
            large.enter(block, found);
            return Some((block, found, true));
        }
    }
    let block = system::map(size).or_else(|| {
        super::empty_cache();
        system::map(size)
    })?;
    large().enter(block, size);
    Some((block, size, false))
}

/// Releases a block and returns its size. A block that is not live is ignored and has size 0.
///
/// # Safety
/// The caller passes ownership of `block`, which [`allocate`] returned.
pub(super) unsafe fn free(block: NonNull<u8>) -> usize {
    let (size, evicted) = {
        let mut large = large();
        let address = block.as_ptr().addr();
        let Some(size) = large.live.remove(&address) else {
            debug_assert!(false, "a large block was freed twice or with another size");
            return 0;
        };
        large.live_bytes -= size;
        large.recent_bytes = (large.recent_bytes - large.recent_bytes / 256).max(large.live_bytes);
        large.time += 1;
        let time = large.time;
        large.cached.insert((size, address), time);
        large.cached_bytes += size;
        // A block just released counts as recently used, so that a single block within the cap is always cached.
        let allowance = large.allowance().max(size.min(large.cap));
        (size, large.evict(allowance))
    };
    unmap_all(evicted);
    size
}

fn unmap_all(evicted: Vec<(usize, usize)>) {
    for (size, address) in evicted {
        if let Some(block) = NonNull::new(std::ptr::with_exposed_provenance_mut(address)) {
            // SAFETY: the block was cached, so it was not in use, and it was removed from the cache.
            unsafe { system::unmap(block, size) };
        }
    }
}

pub(super) fn empty() {
    let evicted = large().evict(0);
    unmap_all(evicted);
}

#[cfg(test)]
pub(super) fn set_limit(bytes: Option<usize>) {
    let evicted = {
        let mut large = large();
        large.cap = bytes.unwrap_or_else(default_cap);
        let allowance = large.allowance();
        large.evict(allowance)
    };
    unmap_all(evicted);
}
