//! Lists of tensors that are gone through together, as a step of an optimiser does: elements at one place of all lists are read
//! once and written once, whatever the number and the sizes of the tensors.

use super::cells::{Cells, copy_all, is_dense};
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Error, Float, Tensor, parallel_for};
use std::ops::Range;

/// Elements that are gone through at once: of each list they stay in the first cache.
const BLOCK: usize = 1024;

/// The tensors at one place of the lists, by their first elements.
struct Group<T, const W: usize> {
    changed: [*mut T; W],
    read: *const T,
    /// The elements of the groups so far, this one included.
    end: usize,
}

fn refused<X>(what: &str) -> Result<X, Error> {
    Err(Error::Unsupported { what: what.to_string() })
}

/// The addresses from a tensor's first element to its last, and none where it has no elements.
fn reach<T>(t: &Tensor<'_>) -> Range<usize> {
    let begin = t.data_ptr().addr();
    let last: i64 = t.sizes().iter().zip(t.strides()).map(|(&n, &s)| (n - 1).max(0) * s).sum();
    begin..begin + if t.numel() == 0 { 0 } else { (last as usize + 1) * size_of::<T>() }
}

/// Where each changed tensor lies, in the order of the addresses.
struct Places(Vec<(Range<usize>, usize)>);

impl Places {
    /// Of outputs, which must not meet each other.
    fn new<T>(outputs: &[Tensor<'_>]) -> Option<Places> {
        let mut all: Vec<_> = outputs.iter().map(|t| reach::<T>(t)).zip(0..).collect();
        all.retain(|(range, _)| !range.is_empty());
        all.sort_unstable_by_key(|(range, _)| range.start);
        all.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start).then_some(Places(all))
    }

    /// Whether a tensor meets no output, or is exactly the one of this number.
    fn allow<T>(&self, t: &Tensor<'_>, own: Option<usize>) -> bool {
        let range = reach::<T>(t);
        let first = self.0.partition_point(|(place, _)| place.end <= range.start);
        match self.0.get(first) {
            _ if range.is_empty() => true,
            Some((place, nth)) => range.end <= place.start || (Some(*nth) == own && *place == range),
            None => true,
        }
    }
}

/// Goes through the lists `changed` and the list `read` of a call, whose outputs are the changed tensors, list by list: `step` is
/// given elements at the same places of all of them.
///
/// # Errors
/// `Unsupported`, before anything is written, for tensors of one group that do not lie in one order without gaps, and for outputs
/// that share memory with each other or with another argument than their own.
pub(super) fn for_each_block<T: Float, const W: usize>(
    call: &Call<'_>,
    changed: [usize; W],
    read: usize,
    step: impl Fn([&mut [T]; W], &[T]) + Sync,
) -> Result<(), Error> {
    let reads = call.tensors(read)?;
    let count = reads.len();
    let outputs = (0..W * count).map(|nth| call.output(nth)).collect::<Result<Vec<_>, _>>()?;
    let Some(places) = Places::new::<T>(&outputs) else {
        return refused("parameters that share memory");
    };
    let mut apart = Vec::new();
    for (list, &argument) in changed.iter().enumerate() {
        let own = call.tensors(argument)?;
        if own.len() != count {
            return refused("lists of different lengths");
        }
        for (nth, t) in own.iter().enumerate() {
            let number = list * count + nth;
            if !places.allow::<T>(&t, Some(number)) {
                return refused("parameters that share memory");
            }
            if t.data_ptr() != outputs[number].data_ptr() {
                apart.push((argument, nth, number));
            }
        }
    }
    let mut groups: Vec<Group<T, W>> = Vec::with_capacity(count);
    let mut end = 0;
    for (nth, t) in reads.iter().enumerate() {
        let outs: [&Tensor<'_>; W] = std::array::from_fn(|list| &outputs[list * count + nth]);
        if !is_dense(t.sizes(), t.strides()) || outs.iter().any(|out| out.strides() != t.strides()) {
            return refused("a parameter, its gradient and what is kept of it in different orders");
        }
        if !places.allow::<T>(&t, None) {
            return refused("parameters that share memory");
        }
        end += t.numel();
        let changed = outs.map(|out| out.data_ptr().cast());
        groups.push(Group { changed, read: t.data_ptr().cast_const().cast(), end });
    }
    for (argument, nth, number) in apart {
        let from = &Cells::<T>::list(call, argument)?[nth];
        copy_all(&Cells::output(call, number)?, from)?;
    }
    let groups = Groups(groups);
    parallel_for(end, Cost::Medium.grain(), |range| groups.each_block(range, &step))
}

struct Groups<T, const W: usize>(Vec<Group<T, W>>);

// SAFETY: the pointers are those of a call's tensors, whose elements threads part among each other by their numbers.
unsafe impl<T: Sync, const W: usize> Sync for Groups<T, W> {}

impl<T: Float, const W: usize> Groups<T, W> {
    fn each_block(&self, range: Range<usize>, step: &impl Fn([&mut [T]; W], &[T])) {
        let mut at = range.start;
        let first = self.0.partition_point(|group| group.end <= at);
        let mut begin = first.checked_sub(1).map_or(0, |before| self.0[before].end);
        for group in &self.0[first..] {
            while at < group.end.min(range.end) {
                let (offset, len) = (at - begin, BLOCK.min(group.end.min(range.end) - at));
                // SAFETY: every tensor of a group is dense with as many elements as `read`, of which these are within the
                // group; the outputs share no memory with each other or with what is read, and a range is one thread's.
                unsafe {
                    let changed = group
                        .changed
                        .map(|first| std::slice::from_raw_parts_mut(first.add(offset), len));
                    step(changed, std::slice::from_raw_parts(group.read.add(offset), len));
                }
                at += len;
            }
            if at >= range.end {
                return;
            }
            begin = group.end;
        }
    }
}
