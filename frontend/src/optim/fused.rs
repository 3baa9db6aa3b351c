//! Parameters that one call of a fused step serves.

use super::group::Group;
use crate::Tensor;
use crate::ops::optim::go_together;

/// Parameters of one group, dtype and device whose `key` is the same, by their numbers among all.
pub(super) struct Batch<K> {
    pub(super) key: K,
    pub(super) members: Vec<usize>,
}

/// Those parameters that have a gradient: in batches, or to be stepped one by one.
pub(super) struct Batches<K> {
    pub(super) together: Vec<Batch<K>>,
    pub(super) alone: Vec<usize>,
}

/// The parameters of all groups, each with the number of its group.
pub(super) fn numbered<O>(groups: &[Group<O>]) -> Vec<(usize, &Tensor)> {
    let all = groups.iter().enumerate();
    all.flat_map(|(nth, group)| group.parameters.iter().map(move |parameter| (nth, parameter))).collect()
}

impl<K: PartialEq> Batches<K> {
    /// Those go together whose gradient, and what is remembered of them, lie as they do. `memory` gives that and the key.
    pub(super) fn new<'a>(
        parameters: &[(usize, &'a Tensor)],
        grads: &'a [Option<Tensor>],
        memory: impl Fn(usize) -> (Vec<&'a Tensor>, K),
    ) -> Batches<K> {
        let mut made = Batches { together: Vec::new(), alone: Vec::new() };
        for (nth, &(group, parameter)) in parameters.iter().enumerate() {
            let Some(grad) = &grads[nth] else { continue };
            let (mut tensors, key) = memory(nth);
            tensors.extend([parameter, grad]);
            if !go_together(&tensors) {
                made.alone.push(nth);
                continue;
            }
            let fits = |batch: &&mut Batch<K>| {
                let (first_group, first) = parameters[batch.members[0]];
                batch.key == key
                    && first_group == group
                    && first.dtype() == parameter.dtype()
                    && first.device() == parameter.device()
            };
            match made.together.iter_mut().find(fits) {
                Some(batch) => batch.members.push(nth),
                None => made.together.push(Batch { key, members: vec![nth] }),
            }
        }
        made
    }
}
