//! The pending nodes of a backward pass, with their accumulated gradients.

use super::node::Node;
use crate::Tensor;
use keyway_dispatcher::memory::Shared;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The gradient of each output of a node, if it has been computed.
pub(super) type Slots = SmallVec<[Option<Tensor>; 2]>;

/// An empty slot for each of `count` gradients.
#[inline]
pub(super) fn places<const N: usize>(count: usize) -> SmallVec<[Option<Tensor>; N]> {
    let mut places = SmallVec::new();
    (0..count).for_each(|_| places.push(None));
    places
}

/// A node and its accumulated gradients.
pub(super) struct Waiting {
    pub(super) node: Shared<Node>,
    pub(super) grads: Slots,
}

/// The maximum length of the list, which is searched linearly.
const LIST_LEN: usize = 8;

/// A priority queue of nodes, by sequence number. The newest few, with which nearly every search ends, are in a short list and
/// the others in a tree: each node of the list is newer than all nodes of the tree.
#[derive(Default)]
pub(super) struct Pending {
    /// Oldest first.
    list: SmallVec<[Waiting; LIST_LEN]>,
    tree: BTreeMap<u64, Waiting>,
}

impl Pending {
    /// The gradients of a node's outputs; adds the node to the pending ones.
    pub(super) fn slots(&mut self, node: &Shared<Node>) -> &mut Slots {
        let number = node.number;
        let older = self.list.iter().rposition(|w| w.node.number <= number);
        if let Some(at) = older
            && self.list[at].node.number == number
        {
            return &mut self.list[at].grads;
        }
        let waiting = || Waiting { node: node.clone(), grads: places(node.outputs.len()) };
        let at = older.map_or(0, |at| at + 1);
        // Older than every node of the list: it may be inserted there only if no node of the tree is newer and the list has room.
        if at == 0 && (!self.tree.is_empty() || self.list.len() == LIST_LEN) {
            return &mut self.tree.entry(number).or_insert_with(waiting).grads;
        }
        self.list.insert(at, waiting());
        if self.list.len() <= LIST_LEN {
            return &mut self.list[at].grads;
        }
        let oldest = self.list.remove(0);
        self.tree.insert(oldest.node.number, oldest);
        &mut self.list[at - 1].grads
    }

    /// Takes the newest node out.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.list.pop().or_else(|| self.tree.pop_last().map(|(_, waiting)| waiting))
    }

    /// The nodes that wait.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Shared<Node>> {
        self.list.iter().chain(self.tree.values()).map(|waiting| &waiting.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::node::{Body, Shape};
    use proptest::prelude::*;

    fn nodes(count: usize) -> Vec<Shared<Node>> {
        let leaf = Tensor::new(1.0f32).unwrap();
        let body = || Body::Accumulate(Shared::downgrade(leaf.as_ref()));
        let shape = || SmallVec::from_iter([Shape::of(leaf.as_ref())]);
        (0..count).map(|_| Node::new(body(), SmallVec::new(), shape())).collect()
    }

    proptest! {
        #[test]
        fn the_newest_comes_first_and_each_comes_once(steps in prop::collection::vec((0usize..40, any::<bool>()), 0..120)) {
            let nodes = nodes(40);
            let (mut pending, mut model) = (Pending::default(), BTreeMap::new());
            for (i, pop) in steps {
                if pop {
                    let popped = pending.pop().map(|w| (w.node.number, w.grads[0].is_some()));
                    prop_assert_eq!(popped, model.pop_last());
                } else {
                    let slots = pending.slots(&nodes[i]);
                    let seen = model.insert(nodes[i].number, true).is_some();
                    prop_assert_eq!(slots[0].replace(Tensor::new(1.0f32).unwrap()).is_some(), seen);
                }
            }
            prop_assert_eq!(pending.nodes().count(), model.len());
            while let Some((number, _)) = model.pop_last() {
                prop_assert_eq!(pending.pop().map(|w| w.node.number), Some(number));
            }
            prop_assert!(pending.pop().is_none());
        }
    }
}
