//! Large blocks: mappings in a best-fit cache.

use super::system::{self, HUGE_PAGE};
use std::collections::{BTreeMap, HashMap};
use std::ptr::NonNull;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Bytes that may be cached regardless of recent use.
const SMALL_CACHE: usize = 16 << 20;
/// Sizes below this are rounded to 64 KiB, others to a huge page.
const COARSE_FROM: usize = 16 << 20;

/// No machine maps more; sums of sizes below this do not overflow.
const LARGEST: usize = isize::MAX as usize >> 15;

static LARGE: LazyLock<Mutex<Large>> =
    LazyLock::new(|| Mutex::new(Large { cap: default_cap(), ..Large::default() }));

/// Blocks are identified by their addresses; each mapping is in `live` or in `cached`, never in both.
#[derive(Default)]
struct Large {
    /// Size of each block handed out.
    live: HashMap<usize, usize>,
    /// Time of release of each free block, by size and address.
    cached: BTreeMap<(usize, usize), u64>,
    live_bytes: usize,
    cached_bytes: usize,
    /// Bytes recently in use: rises at once and decays over some hundreds of releases, so that the cache follows the program's
    /// current demand.
    recent_bytes: usize,
    cap: usize,
    time: u64,
}

impl Large {
    /// Bytes that may be cached: the bytes recently in use, within the cap.
    fn allowance(&self) -> usize {
        self.recent_bytes.max(SMALL_CACHE).min(self.cap)
    }

    /// Takes cached blocks, oldest first, until the rest is within `bytes`.
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
    // Only the collections' own allocations can fail under the lock, and those abort.
    LARGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock, held while the process forks.
pub(super) fn held() -> Box<dyn std::any::Any> {
    Box::new(large())
}

/// The size of the mapping for `bytes`, if there can be one.
pub(super) fn rounded(bytes: usize) -> Option<usize> {
    let step = if bytes < COARSE_FROM { 64 << 10 } else { HUGE_PAGE };
    bytes.checked_next_multiple_of(step).filter(|size| *size <= LARGEST)
}

/// A block for a rounded size, its size, and whether it was cached. A cached block serves if at
/// most a quarter of the size asked for is wasted.
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

/// Releases a block; returns its size. A block that is not live is ignored and has size 0.
///
/// # Safety
/// The caller gives up `block`, which came from [`allocate`].
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
        // A block just released counts as recently used, so that a single one is always cached under the cap.
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
