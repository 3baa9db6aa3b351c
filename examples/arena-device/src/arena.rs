//! The device's memory: one block, from which allocations are cut.
//!
//! An address is [`BASE`] plus an offset into the block. The host only does arithmetic with addresses (a view begins some
//! elements after its storage).

use keyway_sdk::Error;
use keyway_sdk::abi::device::RawMemoryStats;
use keyway_sdk::author::Element;
use keyway_sdk::half::{bf16, f16};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The address of the block's first byte: no current processor maps memory there.
const BASE: usize = 1 << 62;
/// Total bytes of memory.
pub const TOTAL: u64 = 1 << 30;
/// Allocations begin at multiples of this many bytes.
const ALIGN: usize = 64;

/// The block and its allocations.
pub struct Arena {
    /// The used prefix of the block.
    bytes: Vec<u8>,
    /// The offset of each allocation, with its size in bytes.
    live: BTreeMap<usize, usize>,
    stats: RawMemoryStats,
}

static ARENA: Mutex<Arena> = Mutex::new(Arena {
    bytes: Vec::new(),
    live: BTreeMap::new(),
    stats: RawMemoryStats {
        struct_size: 0,
        reserved: 0,
        in_use: 0,
        held: 0,
        peak_in_use: 0,
        peak_held: 0,
        allocations: 0,
        frees: 0,
        cache_hits: 0,
        limit: TOTAL,
    },
});

/// Locks the memory until the guard is dropped, for a kernel, an allocation or a copy.
pub fn lock() -> MutexGuard<'static, Arena> {
    // A kernel that panicked poisons the plugin; its memory can still be freed.
    ARENA.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Arena {
    /// Allocates at the first gap that is large enough, and returns the address.
    pub fn allocate(&mut self, bytes: u64) -> Result<usize, Error> {
        let available = self.stats.limit.saturating_sub(self.stats.in_use);
        let too_large = Error::OutOfMemory { requested: bytes, available };
        let size = usize::try_from(bytes).ok().and_then(|size| size.checked_next_multiple_of(ALIGN));
        let Some(size) = size.filter(|size| *size as u64 <= available) else { return Err(too_large) };
        let mut start = 0;
        for (&offset, &taken) in &self.live {
            if offset - start >= size {
                break;
            }
            start = offset + taken;
        }
        let end = start + size;
        if end as u64 > TOTAL {
            return Err(too_large);
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.live.insert(start, size);
        self.stats.allocations += 1;
        self.stats.in_use += size as u64;
        self.stats.peak_in_use = self.stats.peak_in_use.max(self.stats.in_use);
        self.stats.held = self.bytes.len() as u64;
        self.stats.peak_held = self.stats.held;
        Ok(BASE + start)
    }

    /// Frees memory.
    pub fn free(&mut self, address: usize) -> Result<(), Error> {
        let size = address.checked_sub(BASE).and_then(|offset| self.live.remove(&offset));
        let Some(size) = size else {
            return Err(Error::Failed {
                detail: format!("{address:#x} is no allocation: was it freed twice?"),
            });
        };
        self.stats.frees += 1;
        self.stats.in_use -= size as u64;
        Ok(())
    }

    /// The offset of an address, if all of its `bytes` bytes are in one allocation.
    pub fn locate(&self, address: usize, bytes: usize) -> Result<usize, Error> {
        if bytes == 0 {
            return Ok(0);
        }
        let inside = |offset: &usize| {
            let before = self.live.range(..=offset).next_back();
            before
                .is_some_and(|(start, size)| offset.checked_add(bytes).is_some_and(|end| end <= start + size))
        };
        address.checked_sub(BASE).filter(inside).ok_or_else(|| Error::Failed {
            detail: format!("{bytes} bytes at {address:#x} are not allocated: were they freed too early?"),
        })
    }

    /// Bytes of the block, already [located](Self::locate).
    pub fn bytes(&mut self, offset: usize, bytes: usize) -> &mut [u8] {
        &mut self.bytes[offset..offset + bytes]
    }

    /// Copies bytes within the block; both ranges are already [located](Self::locate).
    pub fn copy(&mut self, to: usize, from: usize, bytes: usize) {
        self.bytes.copy_within(from..from + bytes, to);
    }

    /// Reads one element.
    #[inline]
    pub fn read<T: Cell>(&self, offset: usize) -> T {
        T::read(&self.bytes[offset..offset + size_of::<T>()])
    }

    /// Overwrites one element.
    #[inline]
    pub fn write<T: Cell>(&mut self, offset: usize, value: T) {
        value.write(&mut self.bytes[offset..offset + size_of::<T>()]);
    }

    /// The statistics.
    pub fn stats(&mut self) -> &mut RawMemoryStats {
        &mut self.stats
    }
}

/// An element type as bytes of the block.
pub trait Cell: PartialOrd + Element {
    /// Reads an element from its bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Writes an element to its bytes.
    fn write(self, bytes: &mut [u8]);
}

macro_rules! cells {
    ($($t:ty),*) => {$(
        impl Cell for $t {
            #[inline]
            fn read(bytes: &[u8]) -> $t {
                bytes.try_into().map(<$t>::from_ne_bytes).unwrap_or_default()
            }
            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}
cells!(f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64);

impl Cell for bool {
    fn read(bytes: &[u8]) -> bool {
        bytes != [0]
    }
    fn write(self, bytes: &mut [u8]) {
        bytes.fill(u8::from(self));
    }
}
