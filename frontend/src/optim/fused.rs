//! Parameters that are updated by one fused call.
//!
//! Updated one by one are parameters whose tensors have different dimension orders, and parameters that share memory, for which
//! the order of the steps matters. Overlaps are found by sorting addresses, not by comparing pairs.

use super::group::Group;
use crate::ops::optim::go_together;
use crate::{DType, Device, Result, Tensor};

/// Parameters of one group, dtype and device with the same `key`, by index among all parameters.
pub(super) struct Batch<K> {
    pub(super) key: K,
    pub(super) members: Vec<usize>,
}

/// The parameters that have a gradient: in batches, or one by one, in order.
pub(super) struct Batches<K> {
    pub(super) together: Vec<Batch<K>>,
    pub(super) alone: Vec<usize>,
}

/// The parameters of all groups, each with the number of its group.
pub(super) fn numbered<O>(groups: &[Group<O>]) -> Vec<(usize, &Tensor)> {
    let all = groups.iter().enumerate();
    all.flat_map(|(nth, group)| group.parameters.iter().map(move |parameter| (nth, parameter))).collect()
}

/// Whether single ops would round after each operation, where the fused ops compute in f32 and round once.
pub(super) fn is_half(t: &Tensor) -> bool {
    matches!(t.dtype(), DType::F16 | DType::BF16)
}

/// Writes the result for a `widened` tensor back to the stored tensor; tensors that were not widened were changed in place.
pub(super) fn keep(place: &Tensor, computed: &Tensor) -> Result<()> {
    if place.dtype() != computed.dtype() {
        place.copy_(computed)?;
    }
    Ok(())
}

impl<K: PartialEq> Batches<K> {
    /// Batches the parameters whose gradient and state have the same strides and share no memory with another parameter, if a
    /// kernel exists for the step (`served`). `memory` returns the state and the key.
    pub(super) fn new<'a>(
        parameters: &[(usize, &'a Tensor)],
        grads: &'a [Option<Tensor>],
        served: impl Fn(&Tensor) -> Result<bool>,
        memory: impl Fn(usize) -> (Vec<&'a Tensor>, K),
    ) -> Result<Batches<K>> {
        let mut made = Batches { together: Vec::new(), alone: Vec::new() };
        let mut found = Vec::with_capacity(parameters.len());
        let mut places = Places::default();
        for (nth, &(_, parameter)) in parameters.iter().enumerate() {
            let Some(grad) = &grads[nth] else { continue };
            let (mut tensors, key) = memory(nth);
            tensors.push(parameter);
            tensors.iter().for_each(|t| places.push(nth, t, true));
            places.push(nth, grad, false);
            tensors.push(grad);
            found.push((nth, key, go_together(&tensors)));
        }
        let shared = places.shared(parameters.len());
        for (nth, key, fits) in found {
            let (group, parameter) = parameters[nth];
            if !fits || shared[nth] {
                made.alone.push(nth);
                continue;
            }
            let is_like = |batch: &&mut Batch<K>| {
                let (first_group, first) = parameters[batch.members[0]];
                batch.key == key
                    && first_group == group
                    && first.dtype() == parameter.dtype()
                    && first.device() == parameter.device()
            };
            match made.together.iter_mut().find(is_like) {
                Some(batch) => batch.members.push(nth),
                None if served(parameter)? => made.together.push(Batch { key, members: vec![nth] }),
                None => made.alone.push(nth),
            }
        }
        Ok(made)
    }
}

/// The memory of one tensor of a parameter.
struct Place {
    device: Device,
    begin: usize,
    end: usize,
    owner: usize,
    is_written: bool,
}

/// The memory that a step reads and writes.
#[derive(Default)]
struct Places(Vec<Place>);

impl Places {
    fn push(&mut self, owner: usize, t: &Tensor, is_written: bool) {
        if let Some(range) = t.as_ref().reach() {
            let (begin, end) = (range.start, range.end);
            self.0.push(Place { device: t.device(), begin, end, owner, is_written });
        }
    }

    /// Marks those of `count` parameters whose memory may overlap another's where one of both is written, so that the order of
    /// their steps matters. The time depends on the number of tensors, not on that of pairs.
    fn shared(mut self, count: usize) -> Vec<bool> {
        let mut shared = vec![false; count];
        self.0.sort_unstable_by_key(|place| (place.device, place.begin));
        let mut rest = &self.0[..];
        // Adjacent ranges without a gap.
        while let Some(first) = rest.first() {
            let (mut end, mut length) = (first.end, 1);
            let meets = |place: &&Place, end| place.device == first.device && place.begin < end;
            while let Some(place) = rest.get(length).filter(|place| meets(place, end)) {
                end = end.max(place.end);
                length += 1;
            }
            let (chain, later) = rest.split_at(length);
            rest = later;
            if chain.iter().any(|p| p.is_written) && chain.iter().any(|p| p.owner != first.owner) {
                chain.iter().for_each(|place| shared[place.owner] = true);
            }
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_meets_another_ones_memory_is_found(
            parts in prop::collection::vec((0usize..200, 1usize..20, 0usize..8, any::<bool>(), 0u16..2), 0..12),
        ) {
            let place = |&(begin, size, owner, is_written, index): &(usize, usize, usize, bool, u16)| {
                let device = Device { index, ..Device::CPU };
                Place { device, begin, end: begin + size, owner, is_written }
            };
            let all: Vec<Place> = parts.iter().map(place).collect();
            let shared = Places(parts.iter().map(place).collect()).shared(8);
            for a in &all {
                for b in &all {
                    let meet = a.device == b.device && a.begin < b.end && b.begin < a.end;
                    if meet && a.owner != b.owner && (a.is_written || b.is_written) {
                        prop_assert!(shared[a.owner] && shared[b.owner]);
                    }
                }
            }
            // A parameter that overlaps no other must not be marked.
            for (owner, is_shared) in shared.iter().enumerate() {
                let lonely = all.iter().filter(|a| a.owner == owner).all(|a| {
                    let others = all.iter().filter(|b| b.owner != owner && b.device == a.device);
                    others.into_iter().all(|b| a.end <= b.begin || b.end <= a.begin)
                });
                prop_assert!(!(lonely && *is_shared));
            }
        }
    }
}
