//! A cache of pinned (page-locked) host memory: allocating it takes far longer than ordinary memory.
//!
//! Blocks have size classes, four for each power of two. A block that is freed while copies use it waits for their events
//! before it is reused. At most [`MOST_CACHED`] bytes are cached for each device; `empty_cache` releases all of them.

use super::{ALIGNMENT, DeviceEntry, Event, StreamRef, check, ensure, misaligned, raw_of, synchronize_with};
use crate::base::error::{Error, Result};
use crate::base::key::Device;
use crate::base::message::take_message;
use keyway_sdk::abi::codes::status;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of bytes cached for one device.
const MOST_CACHED: usize = 256 << 20;
/// The smallest block: a page, the unit of page locking.
const SMALLEST: usize = 4096;

/// Pinned host memory of one device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// Bytes used by storages.
    pub in_use: usize,
    /// Freed, but still used by copies.
    pub pending: usize,
    /// Cached for reuse.
    pub cached: usize,
}

/// A block as its plugin gave it.
struct Memory {
    entry: &'static DeviceEntry,
    device: Device,
    pointer: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is plain bytes of its owner, which `pinned_free` takes back on any thread.
unsafe impl Send for Memory {}
// SAFETY: as for Send.
unsafe impl Sync for Memory {}

impl Memory {
    fn free(self) {
        let Some(free) = self.entry.api.pinned_free else { return };
        let index = u32::from(self.device.index);
        // SAFETY: the block is from `pinned_allocate` of the same table with the same size; it is consumed here, and the
        // caller has waited for the copies that used it.
        let code = unsafe { free(index, self.pointer.as_ptr().cast(), self.bytes as u64) };
        if code != status::OK {
            let (device, bytes) = (self.device, self.bytes);
            crate::base::log::warn(&format!(
                "{device}: freeing {bytes} pinned bytes failed: {}",
                take_message()
            ));
        }
    }
}

#[derive(Default)]
struct Pool {
    stats: Stats,
    free: BTreeMap<usize, Vec<Memory>>,
    pending: Vec<(Memory, Vec<Event>)>,
}

impl Pool {
    /// Caches an unused block; returns it if the cache is full.
    fn keep(&mut self, memory: Memory) -> Option<Memory> {
        if self.stats.cached + memory.bytes > MOST_CACHED {
            return Some(memory);
        }
        self.stats.cached += memory.bytes;
        self.free.entry(memory.bytes).or_default().push(memory);
        None
    }

    fn take(&mut self, bytes: usize) -> Option<Memory> {
        let memory = self.free.get_mut(&bytes)?.pop()?;
        self.stats.cached -= bytes;
        Some(memory)
    }
}

/// By the plugin's table and the device's index: blocks are freed by the plugin that allocated them, even if another plugin
/// provides the device by then.
static POOLS: Mutex<BTreeMap<(usize, u16), Pool>> = Mutex::new(BTreeMap::new());

fn pools() -> MutexGuard<'static, BTreeMap<(usize, u16), Pool>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a device's pool, under its lock. `work` must not call plugins.
fn with_pool<R>(entry: &'static DeviceEntry, device: Device, work: impl FnOnce(&mut Pool) -> R) -> R {
    work(pools().entry((std::ptr::from_ref(entry.api).addr(), device.index)).or_default())
}

/// The size of the block for `bytes` bytes: at most a quarter larger. `None` on overflow.
fn size_class(bytes: usize) -> Option<usize> {
    if bytes <= SMALLEST {
        return Some(SMALLEST);
    }
    let below = 1usize << (usize::BITS - 1 - (bytes - 1).leading_zeros());
    bytes.checked_next_multiple_of(below / 4).filter(|class| *class <= isize::MAX as usize)
}

/// Pinned host memory for copies from and to a device; after the drop, it is reused once the copies that used it have
/// finished.
pub(crate) struct Block {
    /// Taken in `drop` alone.
    memory: ManuallyDrop<Memory>,
    /// For each stream on which a copy was enqueued, the event at the end of the last one.
    uses: Mutex<Vec<(Device, usize, Event)>>,
    /// A copy may use it indefinitely, because its end could not be recorded: it is never reused.
    lost: AtomicBool,
}

/// Allocates pinned host memory for a device; `None` if the device has none.
pub(crate) fn allocate(entry: &'static DeviceEntry, device: Device, bytes: usize) -> Result<Option<Block>> {
    let (Some(allocate), Some(_)) = (entry.api.pinned_allocate, entry.api.pinned_free) else {
        return Ok(None);
    };
    let Some(class) = size_class(bytes) else {
        let detail = "more than an address can count".to_string();
        return Err(Error::OutOfMemory { device, requested: bytes as u64, detail });
    };
    sweep(entry, device);
    let memory = match with_pool(entry, device, |pool| pool.take(class)) {
        Some(memory) => memory,
        None => {
            ensure(entry, device)?;
            let mut out = std::ptr::null_mut();
            let mut ask = || {
                // SAFETY: the function writes one pointer; the table is valid for the life of the process.
                unsafe { allocate(u32::from(device.index), class as u64, &mut out) }
            };
            let mut code = ask();
            if code == status::OUT_OF_MEMORY {
                empty(entry, device);
                code = ask();
            }
            if code == status::OUT_OF_MEMORY {
                let detail = take_message();
                return Err(Error::OutOfMemory { device, requested: bytes as u64, detail });
            }
            check(entry, device, "pinned_allocate", code)?;
            match NonNull::new(out.cast::<u8>()) {
                None => return Err(misaligned(entry, "pinned_allocate", out)),
                Some(pointer) => {
                    let memory = Memory { entry, device, pointer, bytes: class };
                    if out.addr() % ALIGNMENT != 0 {
                        memory.free();
                        return Err(misaligned(entry, "pinned_allocate", out));
                    }
                    memory
                }
            }
        }
    };
    with_pool(entry, device, |pool| pool.stats.in_use += class);
    Ok(Some(Block { memory: ManuallyDrop::new(memory), uses: Mutex::default(), lost: false.into() }))
}

/// Reclaims the blocks whose copies have finished.
fn sweep(entry: &'static DeviceEntry, device: Device) {
    let waiting = with_pool(entry, device, |pool| std::mem::take(&mut pool.pending));
    if waiting.is_empty() {
        return;
    }
    // The plugin is called outside the lock.
    let (done, waiting): (Vec<_>, Vec<_>) = waiting
        .into_iter()
        .partition(|(_, events)| events.iter().all(|event| matches!(event.is_done(), Ok(true))));
    let surplus: Vec<Memory> = with_pool(entry, device, |pool| {
        pool.pending.extend(waiting);
        let done = done.into_iter().map(|(memory, _)| memory);
        done.filter_map(|memory| {
            pool.stats.pending -= memory.bytes;
            pool.keep(memory)
        })
        .collect()
    });
    surplus.into_iter().for_each(Memory::free);
}

/// Frees the cached blocks of a device.
pub(crate) fn empty(entry: &'static DeviceEntry, device: Device) {
    sweep(entry, device);
    let free = with_pool(entry, device, |pool| {
        pool.stats.cached = 0;
        std::mem::take(&mut pool.free)
    });
    free.into_values().flatten().for_each(Memory::free);
}

/// The pinned host memory that was allocated for a device.
///
/// # Errors
/// `NoDevice`.
pub fn stats(device: Device) -> Result<Stats> {
    let entry = super::entry_of(device)?;
    sweep(entry, device);
    Ok(with_pool(entry, device, |pool| pool.stats))
}

impl Block {
    /// The first byte.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.memory.pointer
    }

    /// The plugin that gave it.
    pub(crate) fn giver(&self) -> &'static str {
        self.memory.entry.plugin.name
    }

    /// Whether the devices of this table can copy from and to it without blocking.
    pub(crate) fn serves(&self, entry: &DeviceEntry) -> bool {
        self.memory.entry.is_same_table(entry)
    }

    fn uses(&self) -> MutexGuard<'_, Vec<(Device, usize, Event)>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the copies that were enqueued on other streams: copies of one stream are in order.
    pub(crate) fn wait_for_others(&self, device: Device, stream: &StreamRef) -> Result<()> {
        let own = (device, raw_of(stream).addr());
        let others: Vec<_> = {
            let mut uses = self.uses();
            let (own, others) = uses.drain(..).partition(|(d, s, _)| (*d, *s) == own);
            *uses = own;
            others
        };
        self.wait_for(others)
    }

    /// Waits for all copies that use it.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let all = std::mem::take(&mut *self.uses());
        self.wait_for(all)
    }

    fn wait_for(&self, mut uses: Vec<(Device, usize, Event)>) -> Result<()> {
        while let Some((_, _, event)) = uses.last() {
            if let Err(error) = event.synchronize() {
                // An error of earlier work is reported once, and does not concern later work.
                if matches!(event.is_done(), Ok(true)) {
                    uses.pop();
                }
                self.uses().append(&mut uses);
                return Err(error);
            }
            uses.pop();
        }
        Ok(())
    }

    /// Records that a copy which uses the block was just enqueued on a stream. If no event can be recorded, waits for the
    /// copy.
    pub(crate) fn note_copy(
        &self,
        entry: &'static DeviceEntry,
        device: Device,
        stream: &StreamRef,
    ) -> Result<()> {
        match Event::at_end_of(entry, device, stream) {
            Ok(event) => {
                let number = raw_of(stream).addr();
                let mut uses = self.uses();
                match uses.iter_mut().find(|(d, s, _)| (*d, *s) == (device, number)) {
                    Some((_, _, last)) => *last = event,
                    None => uses.push((device, number, event)),
                }
                Ok(())
            }
            Err(error) => {
                if synchronize_with(entry, device).is_err() {
                    self.lost.store(true, Ordering::Relaxed);
                }
                Err(error)
            }
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: nothing reads the field after this, which runs once.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        let (entry, device, bytes) = (memory.entry, memory.device, memory.bytes);
        let mut uses = std::mem::take(&mut *self.uses());
        uses.retain(|(_, _, event)| !matches!(event.is_done(), Ok(true)));
        let surplus = with_pool(entry, device, |pool| {
            pool.stats.in_use -= bytes;
            if self.lost.load(Ordering::Relaxed) {
                return None;
            }
            if uses.is_empty() {
                return pool.keep(memory);
            }
            pool.stats.pending += bytes;
            pool.pending.push((memory, uses.into_iter().map(|(_, _, event)| event).collect()));
            None
        });
        if let Some(memory) = surplus {
            memory.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_hold_what_is_asked_for_and_at_most_a_quarter_more() {
        assert_eq!(
            [1, 4096, 4097, 5120, 5121, 8192, 8193].map(|n| size_class(n).unwrap()),
            [4096, 4096, 5120, 5120, 6144, 8192, 10240]
        );
        for bytes in [4097, 10_000, 1 << 20, (1 << 20) + 1, 3 << 30, (1 << 40) - 1] {
            let class = size_class(bytes).unwrap();
            assert!(class >= bytes && class - bytes <= bytes / 4, "{bytes}: {class}");
            assert_eq!(size_class(class), Some(class), "a class is its own");
        }
        assert_eq!(size_class(usize::MAX), None);
        assert_eq!(size_class(isize::MAX as usize), None);
    }
}
