//! A caching allocator of device memory: segments from the driver, split into blocks, each block for one stream.
//!
//! A freed block may be reused on its stream immediately, since the stream's work is in order. Another stream never uses it
//! while it is cached; when memory is exhausted, whole segments are freed to the driver, which synchronises with the
//! device. Blocks of an ended stream or pool, whose work has finished, are available to all.

use super::ranges::Range;
use keyway_sdk::Error;
use std::collections::{BTreeMap, BTreeSet};

/// The source of segments.
pub trait Source {
    /// Allocates bytes from the driver.
    fn take(&self, bytes: u64) -> Result<u64, Error>;
    /// Frees a segment, after all work of the device.
    fn give(&self, at: u64) -> Result<(), Error>;
    /// Whether segments can currently be freed.
    fn may_give(&self) -> bool {
        true
    }
    /// Whether memory grows in place, by the functions below, instead of by segments.
    fn grows(&self) -> bool {
        false
    }
    /// Reserves an address range for all memory of the device; returns its start and its size.
    fn reserve(&self) -> Result<(u64, u64), Error>;
    /// Releases the address range.
    fn unreserve(&self, at: u64, bytes: u64) -> Result<(), Error>;
    /// Maps memory to reserved addresses.
    fn map(&self, at: u64, bytes: u64) -> Result<(), Error>;
    /// Unmaps memory, after all work of the device.
    fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error>;
}

/// The granularity of block sizes.
const GRAIN: u64 = 512;
/// Blocks of up to this size are allocated from segments of [`SMALL_SEGMENT`] bytes.
const SMALL: u64 = 1 << 20;
pub(super) const SMALL_SEGMENT: u64 = 2 << 20;
/// Larger blocks are allocated from segments of at least this size, which are multiples of [`STEP`]...
pub(super) const LARGE_SEGMENT: u64 = 20 << 20;
/// ... or have a segment of their own, above this block size.
const ALONE: u64 = 10 << 20;
pub(super) const STEP: u64 = 2 << 20;

/// The owner of unowned blocks: work that used them has finished. No stream has this address.
pub(super) const UNOWNED: usize = usize::MAX - 1;

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) bytes: u64,
    /// The requested bytes.
    pub(super) requested: u64,
    /// The owner: a stream by its address, which is even, a pool by its number, which is odd, or [`UNOWNED`].
    pub(super) stream: usize,
    pub(super) free: bool,
    /// The address of the block's segment.
    pub(super) segment: u64,
}

/// The size of a segment, and whether it is for small blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) bytes: u64,
    pub(super) small: bool,
}

/// The cache of one device.
#[derive(Default, Debug)]
pub struct Cache {
    pub(super) segments: BTreeMap<u64, Segment>,
    pub(super) blocks: BTreeMap<u64, Block>,
    /// The growing segments.
    pub(super) ranges: BTreeMap<u64, Range>,
    /// The free blocks, sorted by stream, size class (small or not), bytes and address.
    free: BTreeSet<(usize, bool, u64, u64)>,
    pub(super) held: u64,
}

fn round(bytes: u64, to: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(to)
}

impl Cache {
    /// Bytes allocated from the driver.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Allocates a block for a stream. Returns it, and whether it was cached.
    pub fn allocate(
        &mut self,
        source: &impl Source,
        bytes: u64,
        stream: usize,
    ) -> Result<(u64, bool), Error> {
        let none = Error::OutOfMemory { requested: bytes, available: 0 };
        let Some(size) = round(bytes.max(1), GRAIN) else { return Err(none) };
        let small = size <= SMALL;
        if let Some(at) = self.cached((size, bytes), small, stream) {
            return Ok((at, true));
        }
        if source.grows() {
            self.grow(source, size, small, stream)?;
            return Ok((self.cached((size, bytes), small, stream).ok_or(none)?, false));
        }
        let wanted = if small {
            SMALL_SEGMENT
        } else if size < ALONE {
            LARGE_SEGMENT
        } else {
            round(size, STEP).ok_or_else(|| none.clone())?
        };
        // Blocks cached for other streams can be used after a synchronisation with the device only.
        let taken = match source.take(wanted) {
            Err(Error::OutOfMemory { .. }) => {
                if source.may_give() {
                    self.empty(source)?;
                }
                match source.take(wanted) {
                    Err(Error::OutOfMemory { .. }) => source.take(size).map(|at| (at, size)),
                    other => other.map(|at| (at, wanted)),
                }
            }
            other => other.map(|at| (at, wanted)),
        };
        let (at, whole) = taken?;
        self.held += whole;
        self.segments.insert(at, Segment { bytes: whole, small });
        self.add_free(at, whole, stream, at);
        Ok((self.cached((size, bytes), small, stream).ok_or(none)?, false))
    }

    /// Adds a free block, and merges it with free blocks before it.
    pub(super) fn add_free(&mut self, at: u64, bytes: u64, stream: usize, segment: u64) {
        self.blocks.insert(at, Block { bytes, requested: 0, stream, free: true, segment });
        self.settle(at);
    }

    /// Removes bytes from the end of a free block.
    pub(super) fn cut_free(&mut self, at: u64, block: Block, bytes: u64) {
        let small = self.segments.get(&block.segment).is_some_and(|segment| segment.small);
        self.free.remove(&(block.stream, small, block.bytes, at));
        self.blocks.remove(&at);
        if block.bytes > bytes {
            self.add_free(at, block.bytes - bytes, block.stream, block.segment);
        }
    }

    /// Passes the unowned free block at the end of a segment to a user.
    pub(super) fn take_over_last(&mut self, segment: u64, user: usize) {
        let end = segment + self.segments.get(&segment).map_or(0, |segment| segment.bytes);
        let last = self.blocks.range(segment..end).next_back().map(|(at, block)| (*at, *block));
        if let Some((at, block)) = last.filter(|(_, block)| block.free && block.stream == UNOWNED) {
            self.cut_free(at, block, block.bytes);
            self.add_free(at, block.bytes, user, segment);
        }
    }

    /// The smallest free block that fits, split to size: of the stream's own blocks, otherwise an unowned one.
    fn cached(&mut self, (size, requested): (u64, u64), small: bool, stream: usize) -> Option<u64> {
        let least = |of: usize| {
            self.free.range((of, small, size, 0)..=(of, small, u64::MAX, u64::MAX)).next().copied()
        };
        let found = least(stream).or_else(|| least(UNOWNED))?;
        let (_, _, bytes, at) = found;
        let rest = bytes - size;
        let splits = rest >= if small { GRAIN } else { SMALL };
        self.free.remove(&found);
        let block = self.blocks.get_mut(&at)?;
        block.free = false;
        block.requested = requested;
        block.stream = stream;
        let segment = block.segment;
        if splits {
            block.bytes = size;
            let block = Block { bytes: rest, requested: 0, stream: found.0, free: true, segment };
            self.blocks.insert(at + size, block);
            self.free.insert((found.0, small, rest, at + size));
        }
        Some(at)
    }

    /// Returns a block to the cache.
    pub fn free(&mut self, at: u64) -> Result<(), Error> {
        match self.blocks.get_mut(&at) {
            Some(block) if !block.free => (block.free, block.requested) = (true, 0),
            _ => {
                return Err(Error::InvalidArgument {
                    argument: "pointer",
                    expected: "memory of this device that is in use".into(),
                    got: format!("{at:#x}"),
                });
            }
        }
        self.settle(at);
        Ok(())
    }

    /// Merges a free block with its free neighbours, and adds it to the free list.
    fn settle(&mut self, at: u64) {
        let Some(&own) = self.blocks.get(&at) else { return };
        let joins = |other: &Block| other.free && other.segment == own.segment && other.stream == own.stream;
        let small = self.segments.get(&own.segment).is_some_and(|segment| segment.small);
        let (mut begin, mut bytes) = (at, own.bytes);
        if let Some((&next, &block)) = self.blocks.range(at + 1..).next().filter(|(_, block)| joins(block)) {
            self.free.remove(&(block.stream, small, block.bytes, next));
            self.blocks.remove(&next);
            bytes += block.bytes;
        }
        if let Some((&before, &block)) = self.blocks.range(..at).next_back().filter(|(_, block)| joins(block))
        {
            self.free.remove(&(block.stream, small, block.bytes, before));
            self.blocks.remove(&at);
            begin = before;
            bytes += block.bytes;
        }
        self.blocks.insert(begin, Block { bytes, ..own });
        self.free.insert((own.stream, small, bytes, begin));
    }

    /// Frees segments without a block in use to the driver.
    pub fn empty(&mut self, source: &impl Source) -> Result<(), Error> {
        // The blocks of a pool, whose number is odd, are used by each launch of its graph.
        let is_used = |block: &&Block| !block.free || block.stream % 2 == 1;
        let used: BTreeSet<u64> = self.blocks.values().filter(is_used).map(|b| b.segment).collect();
        let whole = self.segments.keys().copied().filter(|at| !self.is_range(*at));
        let gone: Vec<u64> = whole.filter(|at| !used.contains(at)).collect();
        for at in gone {
            source.give(at)?;
            let Some(segment) = self.segments.remove(&at) else { continue };
            self.held -= segment.bytes;
            let end = at + segment.bytes;
            self.free.retain(|(_, _, _, block)| !(at..end).contains(block));
            self.blocks.retain(|block, _| !(at..end).contains(block));
        }
        self.shrink(source)
    }

    /// Passes the blocks in use of a pool to a stream.
    pub fn leave(&mut self, pool: usize, stream: usize) {
        let used = self.blocks.values_mut().filter(|block| block.stream == pool && !block.free);
        used.for_each(|block| block.stream = stream);
    }

    /// Makes the free blocks of an ended stream or pool unowned; its work has finished.
    pub fn retire(&mut self, stream: usize) {
        let own: Vec<(usize, bool, u64, u64)> =
            self.free.range((stream, false, 0, 0)..=(stream, true, u64::MAX, u64::MAX)).copied().collect();
        for entry in own.into_iter().filter(|_| stream != 0) {
            self.free.remove(&entry);
            if let Some(block) = self.blocks.get_mut(&entry.3) {
                block.stream = UNOWNED;
            }
            self.settle(entry.3);
        }
        if stream != 0 {
            self.leave_ranges(stream);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;

    /// Memory at fictional addresses with a limited size, as segments or at reserved addresses.
    #[derive(Default)]
    pub struct Limited {
        all: u64,
        left: RefCell<u64>,
        taken: RefCell<BTreeMap<u64, u64>>,
        ranges: RefCell<BTreeMap<u64, u64>>,
        grows: bool,
    }

    impl Limited {
        pub fn new(left: u64) -> Self {
            Limited { all: left, left: left.into(), ..Limited::default() }
        }

        /// Whether memory is allocated at reserved addresses.
        pub fn growing(self, grows: bool) -> Self {
            Limited { grows, ..self }
        }

        pub fn left(&self) -> u64 {
            *self.left.borrow()
        }

        /// The number of reserved ranges.
        pub fn reserved(&self) -> usize {
            self.ranges.borrow().len()
        }

        fn less(&self, bytes: u64) -> Result<(), Error> {
            let mut left = self.left.borrow_mut();
            *left =
                left.checked_sub(bytes).ok_or(Error::OutOfMemory { requested: bytes, available: *left })?;
            Ok(())
        }

        fn add(places: &RefCell<BTreeMap<u64, u64>>, bytes: u64) -> u64 {
            let mut places = places.borrow_mut();
            let at = places.last_key_value().map_or(1 << 30, |(at, bytes)| at + bytes);
            places.insert(at, bytes);
            at
        }
    }

    impl Source for Limited {
        fn take(&self, bytes: u64) -> Result<u64, Error> {
            assert!(!self.grows);
            self.less(bytes)?;
            Ok(Limited::add(&self.taken, bytes))
        }
        fn give(&self, at: u64) -> Result<(), Error> {
            *self.left.borrow_mut() += self.taken.borrow_mut().remove(&at).unwrap();
            Ok(())
        }
        fn grows(&self) -> bool {
            self.grows
        }
        fn reserve(&self) -> Result<(u64, u64), Error> {
            let all = self.all.next_multiple_of(STEP);
            Ok((Limited::add(&self.ranges, all), all))
        }
        fn unreserve(&self, at: u64, bytes: u64) -> Result<(), Error> {
            assert_eq!(self.ranges.borrow_mut().remove(&at), Some(bytes));
            assert!(self.taken.borrow().range(at..at + bytes).next().is_none(), "memory is mapped there");
            Ok(())
        }
        fn map(&self, at: u64, bytes: u64) -> Result<(), Error> {
            let ranges = self.ranges.borrow();
            let (begin, whole) = ranges.range(..=at).next_back().unwrap();
            assert!(at + bytes <= begin + whole);
            self.less(bytes)?;
            assert!(self.taken.borrow_mut().insert(at, bytes).is_none());
            Ok(())
        }
        fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error> {
            assert_eq!(self.taken.borrow_mut().remove(&at), Some(bytes));
            *self.left.borrow_mut() += bytes;
            Ok(())
        }
    }

    #[test]
    fn a_freed_block_serves_its_own_stream_alone() {
        let (source, mut cache) = (Limited::new(1 << 30), Cache::default());
        let (first, hit) = cache.allocate(&source, 1000, 2).unwrap();
        assert!(!hit);
        cache.free(first).unwrap();
        let (other, _) = cache.allocate(&source, 1000, 4).unwrap();
        assert_ne!(other, first);
        assert_eq!(cache.allocate(&source, 1000, 2).unwrap(), (first, true));
        assert!(cache.free(first + 512).is_err(), "no block begins there");
        cache.free(first).unwrap();
        assert!(cache.free(first).is_err(), "it is free");
        cache.retire(2);
        assert_eq!(cache.allocate(&source, 1000, 0).unwrap(), (first, true));
    }

    #[test]
    fn a_pool_keeps_what_is_free_in_it() {
        let (source, mut cache) = (Limited::new(1 << 30), Cache::default());
        let (stream, pool) = (16, 3);
        let (scratch, _) = cache.allocate(&source, 1000, pool).unwrap();
        let (kept, _) = cache.allocate(&source, 1000, pool).unwrap();
        cache.free(scratch).unwrap();
        assert_eq!(cache.allocate(&source, 1000, pool).unwrap(), (scratch, true));
        cache.free(scratch).unwrap();
        cache.leave(pool, stream);
        // Blocks in use pass to the stream again, free ones become unowned.
        cache.free(kept).unwrap();
        assert_eq!(cache.allocate(&source, 1000, stream).unwrap(), (kept, true));
        cache.free(kept).unwrap();
        cache.empty(&source).unwrap();
        assert_eq!(cache.held(), SMALL_SEGMENT);
        cache.retire(pool);
        assert_eq!(cache.allocate(&source, 1000, 0).unwrap(), (scratch, true));
        cache.free(scratch).unwrap();
        cache.empty(&source).unwrap();
        assert_eq!(cache.held(), 0);
    }

    #[test]
    fn pools_that_come_and_go_use_the_same_segments() {
        let (source, mut cache) = (Limited::new(1 << 30), Cache::default());
        for nth in 1..1000 {
            let (pool, stream) = (2 * nth + 1, 16 * nth);
            let [scratch, kept, large] =
                [1000, 5000, 3 << 20].map(|bytes| cache.allocate(&source, bytes, pool).unwrap().0);
            cache.free(scratch).unwrap();
            cache.leave(pool, stream);
            cache.retire(pool);
            cache.free(kept).unwrap();
            cache.free(large).unwrap();
            cache.retire(stream);
            assert_eq!(cache.held(), SMALL_SEGMENT + LARGE_SEGMENT);
        }
        assert_eq!(cache.blocks.len(), 2, "each segment is one block again");
    }

    #[test]
    fn where_memory_runs_out_cached_segments_go_back_first() {
        let (source, mut cache) = (Limited::new(64 << 20), Cache::default());
        let (large, _) = cache.allocate(&source, 40 << 20, 2).unwrap();
        assert!(matches!(cache.allocate(&source, 40 << 20, 4), Err(Error::OutOfMemory { .. })));
        cache.free(large).unwrap();
        assert_eq!(cache.held(), 40 << 20);
        let (again, hit) = cache.allocate(&source, 40 << 20, 4).unwrap();
        assert!(!hit);
        cache.free(again).unwrap();
        cache.empty(&source).unwrap();
        assert_eq!((cache.held(), source.left()), (0, 64 << 20));
        // A segment of the usual size does not fit, one of the block's size does.
        let source = Limited::new(6 << 20);
        assert!(Cache::default().allocate(&source, 5 << 20, 0).is_ok());
        // Even a segment of one step does not fit, only the requested bytes do.
        let source = Limited::new(1_000_000);
        let mut cache = Cache::default();
        let (at, _) = cache.allocate(&source, 32768, 0).unwrap();
        assert_eq!(cache.held(), 32768);
        cache.free(at).unwrap();
        cache.empty(&source).unwrap();
        assert_eq!(cache.held(), 0);
    }

    proptest! {
        #[test]
        fn blocks_never_overlap_and_all_come_back(
            steps in prop::collection::vec((0..4usize, prop_oneof![1..5000u64, 1..(30u64 << 20)], any::<bool>()), 1..80),
            grows in any::<bool>(),
            megabytes in prop_oneof![Just(60u64), Just(1024)],
        ) {
            let source = Limited::new(megabytes << 20).growing(grows);
            let mut cache = Cache::default();
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (stream, bytes, free) in steps {
                if free && !live.is_empty() {
                    let (at, _) = live.swap_remove(bytes as usize % live.len());
                    cache.free(at).unwrap();
                } else if let Ok((at, _)) = cache.allocate(&source, bytes, 2 * stream) {
                    prop_assert_eq!(at % 256, 0);
                    for (other, size) in &live {
                        prop_assert!(at + bytes <= *other || other + size <= at);
                    }
                    live.push((at, bytes));
                }
            }
            for (at, _) in live {
                cache.free(at).unwrap();
            }
            (1..4).for_each(|stream| cache.retire(2 * stream));
            let segments = cache.segments.values().filter(|segment| segment.bytes > 0).count();
            prop_assert_eq!(cache.blocks.len(), segments, "each segment is one block again");
            cache.empty(&source).unwrap();
            prop_assert_eq!((cache.held(), source.left(), source.reserved()), (0, megabytes << 20, 0));
            prop_assert!(cache.free.is_empty() && cache.blocks.is_empty());
        }
    }
}
