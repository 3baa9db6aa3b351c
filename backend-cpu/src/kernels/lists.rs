//! Lists of tensors that are processed in one pass (foreach): corresponding elements of all lists are read once and written
//! once, for any number and sizes of tensors.

use super::cells::{Cells, copy_all};
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Error, Float, Group, parallel_for};
use std::ops::Range;

/// Elements that are processed at a time.
const BLOCK: usize = 1024;

/// Calls `step` with blocks of corresponding elements of the lists `changed`, whose tensors are also the outputs, and of
/// the list `read`.
///
/// # Errors
/// Errors of [`Call::groups`], before the first write.
pub(super) fn for_each_block<T: Float, const W: usize>(
    call: &Call<'_>,
    changed: [usize; W],
    read: usize,
    step: impl Fn([&mut [T]; W], &[T]) + Sync,
) -> Result<(), Error> {
    let found = call.groups(changed, read)?;
    for (from, to) in found.apart {
        copy_all(&Cells::<T>::of(to)?, &Cells::of(from)?)?;
    }
    let mut end = 0;
    let ends = found.groups.iter().map(|group| {
        end += group.count;
        end
    });
    let walk = Walk { ends: ends.collect(), groups: found.groups };
    parallel_for(walk.ends.last().copied().unwrap_or(0), Cost::Medium.grain(), |range| {
        walk.each_block(range, &step);
    })
}

/// The groups of tensors in sequence, each with the cumulative number of elements at its end.
struct Walk<const W: usize> {
    groups: Vec<Group<W>>,
    ends: Vec<usize>,
}

// SAFETY: the pointers are those of a call's tensors; threads access disjoint index ranges.
unsafe impl<const W: usize> Sync for Walk<W> {}

impl<const W: usize> Walk<W> {
    fn each_block<T: Float>(&self, range: Range<usize>, step: &impl Fn([&mut [T]; W], &[T])) {
        let mut at = range.start;
        let first = self.ends.partition_point(|&end| end <= at);
        for (group, &group_end) in self.groups.iter().zip(&self.ends).skip(first) {
            let (begin, end) = (group_end - group.count, group_end.min(range.end));
            while at < end {
                let (offset, len) = (at - begin, BLOCK.min(end - at));
                // SAFETY: every tensor of a group is dense with `count` elements of `T`, and the range is within them;
                // outputs do not overlap each other or the inputs (`Call::groups`), and a range belongs to one thread.
                unsafe {
                    let changed = group
                        .changed
                        .map(|first| std::slice::from_raw_parts_mut(first.cast::<T>().add(offset), len));
                    step(changed, std::slice::from_raw_parts(group.read.cast::<T>().add(offset), len));
                }
                at += len;
            }
            if at >= range.end {
                return;
            }
        }
    }
}
