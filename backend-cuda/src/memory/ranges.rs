//! Memory that grows in place: an address range for each stream and size class, large enough for all memory of a device, to
//! which memory is mapped from its start, piece by piece. So slightly larger blocks each time need no new segment each time
//! (expandable segments).
//!
//! Memory is released at the end of a range alone: free blocks in the middle remain mapped and available to their stream. A
//! range belongs to a stream and a size class, as the blocks of a segment do, and passes to the next stream when its stream
//! ends. The driver does not synchronise when memory is unmapped, so the device is synchronised first.

use super::cache::{Cache, LARGE_SEGMENT, SMALL_SEGMENT, STEP, Segment, Source, UNOWNED};
use keyway_sdk::Error;

/// A segment that grows at its end.
#[derive(Debug)]
pub struct Range {
    /// The owner, as for a block. Only the owner grows the range.
    user: usize,
    /// The size of the address range in bytes.
    reserved: u64,
    /// The bytes of the mapped pieces, in order.
    pieces: Vec<u64>,
}

impl Cache {
    /// Grows a user's range by a block at its end.
    pub(super) fn grow(
        &mut self,
        source: &impl Source,
        size: u64,
        small: bool,
        user: usize,
    ) -> Result<(), Error> {
        let piece = if small { SMALL_SEGMENT } else { LARGE_SEGMENT };
        let first = self.grow_by(source, size, (small, user), piece);
        if !matches!(first, Err(Error::OutOfMemory { .. })) {
            return first;
        }
        if source.may_give() {
            self.empty(source)?;
        }
        let again = self.grow_by(source, size, (small, user), piece);
        if !matches!(again, Err(Error::OutOfMemory { .. })) || small {
            return again;
        }
        self.grow_by(source, size, (small, user), STEP)
    }

    fn grow_by(
        &mut self,
        source: &impl Source,
        size: u64,
        (small, user): (bool, usize),
        piece: u64,
    ) -> Result<(), Error> {
        let at = self.range_of(source, small, user)?;
        loop {
            let (Some(range), Some(segment)) = (self.ranges.get_mut(&at), self.segments.get_mut(&at)) else {
                return Ok(());
            };
            let end = at + segment.bytes;
            let last = self.blocks.range(at..end).next_back();
            let free = last.filter(|(_, block)| block.free && block.stream == user);
            if free.is_some_and(|(_, block)| block.bytes >= size) {
                return Ok(());
            }
            // A request that does not fit is refused before any memory is allocated.
            let (last, left) = (free.map_or(0, |(_, block)| block.bytes), range.reserved - segment.bytes);
            if size - last > left || piece > left {
                return Err(Error::OutOfMemory { requested: size, available: left });
            }
            source.map(end, piece)?;
            range.pieces.push(piece);
            segment.bytes += piece;
            self.held += piece;
            self.add_free(end, piece, user, at);
        }
    }

    /// The start of a user's range: its own, otherwise an unowned one, otherwise a new one.
    fn range_of(&mut self, source: &impl Source, small: bool, user: usize) -> Result<u64, Error> {
        let segments = &self.segments;
        let of = |wanted: usize| {
            let is = |(at, range): &(&u64, &Range)| {
                range.user == wanted && segments.get(at).is_some_and(|segment| segment.small == small)
            };
            self.ranges.iter().find(is).map(|(at, _)| *at)
        };
        if let Some(at) = of(user) {
            return Ok(at);
        }
        if let Some(at) = of(UNOWNED) {
            if let Some(range) = self.ranges.get_mut(&at) {
                range.user = user;
            }
            self.take_over_last(at, user);
            return Ok(at);
        }
        let (at, reserved) = source.reserve()?;
        self.segments.insert(at, Segment { bytes: 0, small });
        self.ranges.insert(at, Range { user, reserved, pieces: Vec::new() });
        Ok(at)
    }

    /// Frees memory at the ends of all ranges, and the ranges that are then empty.
    pub(super) fn shrink(&mut self, source: &impl Source) -> Result<(), Error> {
        let all: Vec<u64> = self.ranges.keys().copied().collect();
        for at in all {
            while let (Some(range), Some(segment)) = (self.ranges.get_mut(&at), self.segments.get_mut(&at)) {
                let Some(&piece) = range.pieces.last() else {
                    source.unreserve(at, range.reserved)?;
                    self.ranges.remove(&at);
                    self.segments.remove(&at);
                    break;
                };
                let end = at + segment.bytes;
                let last = self.blocks.range(at..end).next_back().map(|(begin, block)| (*begin, *block));
                // Memory of a pool is used by each launch of its graph.
                let Some((begin, block)) =
                    last.filter(|(_, block)| block.free && block.stream % 2 == 0 && block.bytes >= piece)
                else {
                    break;
                };
                source.unmap(end - piece, piece)?;
                range.pieces.pop();
                segment.bytes -= piece;
                self.held -= piece;
                self.cut_free(begin, block, piece);
            }
        }
        Ok(())
    }

    /// Whether a segment grows.
    pub(super) fn is_range(&self, segment: u64) -> bool {
        self.ranges.contains_key(&segment)
    }

    /// Makes the ranges of an ended user unowned.
    pub(super) fn leave_ranges(&mut self, user: usize) {
        self.ranges.values_mut().filter(|range| range.user == user).for_each(|range| range.user = UNOWNED);
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::tests::Limited;
    use super::*;

    #[test]
    fn blocks_that_grow_take_one_range_and_not_a_segment_each() {
        for (grows, held) in [(false, 242 << 20), (true, 40 << 20)] {
            let (source, mut cache) = (Limited::new(1 << 30).growing(grows), Cache::default());
            for size in 12..32 {
                let (at, _) = cache.allocate(&source, size << 20, 2).unwrap();
                cache.free(at).unwrap();
            }
            assert_eq!(cache.held(), held);
            assert_eq!(cache.ranges.len(), usize::from(grows));
            cache.empty(&source).unwrap();
            assert_eq!((cache.held(), source.left()), (0, 1 << 30));
            assert!(cache.segments.is_empty() && cache.ranges.is_empty() && source.reserved() == 0);
        }
    }

    #[test]
    fn a_range_is_its_users_until_that_ends() {
        let source = Limited::new(110 << 20).growing(true);
        let mut cache = Cache::default();
        let (first, _) = cache.allocate(&source, 30 << 20, 2).unwrap();
        cache.free(first).unwrap();
        let (other, hit) = cache.allocate(&source, 30 << 20, 4).unwrap();
        assert!(!hit && other != first);
        assert_eq!((cache.ranges.len(), cache.held()), (2, 80 << 20));
        // Memory is exhausted: free memory at the ends of ranges is released, and with it the first stream's range.
        let (large, _) = cache.allocate(&source, 45 << 20, 4).unwrap();
        assert_eq!((large, cache.ranges.len(), cache.held()), (other + (30 << 20), 1, 80 << 20));
        cache.free(large).unwrap();
        cache.free(other).unwrap();
        cache.retire(4);
        // A later stream continues in the range of the ended one, also beyond its free part.
        let (again, hit) = cache.allocate(&source, 90 << 20, 6).unwrap();
        assert!(!hit);
        assert_eq!((again, cache.held(), cache.ranges.len()), (other, 100 << 20, 1));
        // Less than a usual piece remains.
        let (rest, _) = cache.allocate(&source, 9 << 20, 8).unwrap();
        assert_eq!(cache.held(), 110 << 20);
        assert!(matches!(cache.allocate(&source, 9 << 20, 8), Err(Error::OutOfMemory { .. })));
        [again, rest].into_iter().for_each(|at| cache.free(at).unwrap());
        cache.empty(&source).unwrap();
        assert_eq!((cache.held(), source.left(), source.reserved()), (0, 110 << 20, 0));
    }

    #[test]
    fn what_a_graph_uses_stays_mapped() {
        let source = Limited::new(100 << 20).growing(true);
        let mut cache = Cache::default();
        let (scratch, _) = cache.allocate(&source, 1000, 3).unwrap();
        cache.free(scratch).unwrap();
        cache.empty(&source).unwrap();
        assert_eq!(cache.held(), SMALL_SEGMENT);
        cache.retire(3);
        cache.empty(&source).unwrap();
        assert_eq!((cache.held(), source.left()), (0, 100 << 20));
    }
}
