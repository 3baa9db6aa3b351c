//! Results of custom functions that share memory with an input: the effect of an in-place change of that input on them.
//!
//! Such a result has the derivative of its function, not that of a view, so it is not a view of the input. An in-place change of
//! the result would need a history that leads to the input through the function; it is refused. An in-place change of the input
//! changes the result too, which from then on is the function of the input's current value.

use super::custom::again;
use super::hooks;
use super::meta;
use super::node::Edge;
use keyway_dispatcher::tensor::TensorRef;

/// The input that a result shares memory with.
#[derive(Clone)]
pub(crate) struct Alias {
    /// The index of the input among the function's inputs.
    index: usize,
    input: TensorRef,
    /// The root tensor of the shared memory: neither a view nor an aliasing result.
    root: TensorRef,
    /// Number of times that the history of the root had been rebased when the result got its own history.
    seen: u32,
}

impl Alias {
    pub(super) fn of(index: usize, input: &TensorRef) -> Alias {
        let owner = owner(input);
        let root = meta::alias(owner).flatten().map_or_else(|| owner.clone(), |alias| alias.root);
        let seen = meta::times_rebased(&root);
        Alias { index, input: input.clone(), root, seen }
    }

    fn is_stale(&self) -> bool {
        meta::times_rebased(&self.root) != self.seen
    }
}

/// The base of a view, or the tensor itself.
fn owner(tensor: &TensorRef) -> &TensorRef {
    tensor.base().unwrap_or(tensor)
}

/// Rebases the history of a result on that of its input, if the input was changed in place.
#[cold]
pub(super) fn refresh(tensor: &TensorRef) {
    // The input may itself be such a result, and so on: iterative, since the recursion could be as deep as the graph.
    let mut stale: Vec<(TensorRef, Alias)> = Vec::new();
    let mut next = tensor.clone();
    while let Some(Some(alias)) =
        meta::alias(&next).filter(|alias| alias.as_ref().is_some_and(Alias::is_stale))
    {
        let input = owner(&alias.input).clone();
        stale.push((std::mem::replace(&mut next, input), alias));
    }
    while let Some((tensor, mut alias)) = stale.pop() {
        alias.seen = meta::times_rebased(&alias.root);
        let Some(old) = meta::recorded_edge(&tensor) else { continue };
        let Some(node) = again(&old.node, alias.index, meta::edge(&alias.input)) else { continue };
        let edge = Edge { node, output: old.output };
        hooks::copy_hooks(&old, &edge);
        meta::set_alias(&tensor, Some(alias));
        meta::rebase_history(&tensor, edge);
    }
}
