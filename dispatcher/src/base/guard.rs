//! The dispatch keys that a thread includes in and excludes from every call, while guards live.
//!
//! Guards may be dropped in any order. Dropping one has no effect on the others: the state of a key is determined by the
//! latest live guard that includes, excludes or clears it.

use super::key::KeySet;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

/// The change of one guard, and the state before it.
#[derive(Clone, Copy)]
struct Change {
    number: u64,
    before: (KeySet, KeySet),
    /// The keys that it decides about: the keys of the next two fields, and keys that it neither adds nor removes.
    decides: KeySet,
    included: KeySet,
    excluded: KeySet,
}

impl Change {
    const NONE: Change = Change {
        number: 0,
        before: (KeySet::EMPTY, KeySet::EMPTY),
        decides: KeySet::EMPTY,
        included: KeySet::EMPTY,
        excluded: KeySet::EMPTY,
    };

    fn after(&self) -> (KeySet, KeySet) {
        let (included, excluded) = self.before;
        (included.minus(self.decides).union(self.included), excluded.minus(self.decides).union(self.excluded))
    }
}

/// The number of guards of a thread that are stored inline, without an allocation; there are rarely more.
const NEAR: usize = 16;

/// The state of a thread. It needs no drop, so that it can be used until the thread's very end.
struct Local {
    keys: Cell<(KeySet, KeySet)>,
    made: Cell<u64>,
    live: Cell<usize>,
    /// The changes of the first live guards, in the order of their creation.
    near: [Cell<Change>; NEAR],
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            keys: Cell::new((KeySet::EMPTY, KeySet::EMPTY)),
            made: Cell::new(0),
            live: Cell::new(0),
            near: [const { Cell::new(Change::NONE) }; NEAR],
        }
    };
    /// The changes of the live guards beyond the first [`NEAR`].
    static FAR: RefCell<Vec<Change>> = const { RefCell::new(Vec::new()) };
}

impl Local {
    #[inline(always)]
    fn get(&self, at: usize) -> Change {
        self.near.get(at).map_or_else(|| far(at - NEAR), Cell::get)
    }

    #[inline(always)]
    fn set(&self, at: usize, change: Change) {
        match self.near.get(at) {
            Some(cell) => cell.set(change),
            None => set_far(at - NEAR, change),
        }
    }

    /// Removes the change at this index. Later changes are reapplied to the state before it.
    #[cold]
    fn remove(&self, at: usize) {
        let mut keys = self.get(at).before;
        for later in at + 1..self.live.get() {
            let change = Change { before: keys, ..self.get(later) };
            keys = change.after();
            self.set(later - 1, change);
        }
        self.live.set(self.live.get() - 1);
        self.keys.set(keys);
    }
}

#[cold]
fn far(at: usize) -> Change {
    // At the end of a thread its list may be destroyed.
    FAR.try_with(|far| far.borrow()[at]).unwrap_or(Change::NONE)
}

#[cold]
fn set_far(at: usize, change: Change) {
    let _ = FAR.try_with(|far| {
        let mut far = far.borrow_mut();
        let room = far.len().max(at + 1);
        far.resize(room, Change::NONE);
        far[at] = change;
    });
}

/// The keys that this thread includes in and excludes from every call.
#[inline]
pub fn local_keys() -> (KeySet, KeySet) {
    LOCAL.with(|local| local.keys.get())
}

/// Reverts its change of the thread's included and excluded keys when dropped; guards may be dropped in any order.
#[derive(Debug)]
pub struct KeyGuard {
    number: u64,
    // Not `Send`: the keys belong to the thread that created the guard.
    _not_send: PhantomData<*const ()>,
}

impl KeyGuard {
    fn of(decides: KeySet, included: KeySet, excluded: KeySet) -> KeyGuard {
        LOCAL.with(|local| {
            let (number, live) = (local.made.get() + 1, local.live.get());
            let change = Change { number, before: local.keys.get(), decides, included, excluded };
            local.made.set(number);
            local.set(live, change);
            local.live.set(live + 1);
            local.keys.set(change.after());
            KeyGuard { number, _not_send: PhantomData }
        })
    }

    /// Sets the thread's included and excluded keys.
    pub(crate) fn set((included, excluded): (KeySet, KeySet)) -> KeyGuard {
        KeyGuard::of(KeySet::ALL, included, excluded)
    }

    /// Includes `keys` in every call of this thread while the guard lives.
    pub fn include(keys: KeySet) -> KeyGuard {
        KeyGuard::of(keys, keys, KeySet::EMPTY)
    }

    /// Excludes `keys` from every call of this thread while the guard lives.
    pub fn exclude(keys: KeySet) -> KeyGuard {
        KeyGuard::of(keys, KeySet::EMPTY, keys)
    }

    /// Neither includes nor excludes `keys` while the guard lives: cancels an exclusion.
    pub fn clear(keys: KeySet) -> KeyGuard {
        KeyGuard::of(keys, KeySet::EMPTY, KeySet::EMPTY)
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            let Some(top) = local.live.get().checked_sub(1) else { return };
            let last = local.get(top);
            if last.number == self.number {
                local.live.set(top);
                local.keys.set(last.before);
            } else if let Some(at) = (0..top).rev().find(|&at| local.get(at).number == self.number) {
                local.remove(at);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::DispatchKey;
    use super::*;
    use proptest::prelude::*;

    const A: KeySet = KeySet::of(DispatchKey::AUTOGRAD);
    const B: KeySet = KeySet::of(DispatchKey::PROFILER);

    #[test]
    fn guards_nest_and_restore() {
        let outer = KeyGuard::exclude(A);
        {
            let _inner = KeyGuard::include(A);
            assert_eq!(local_keys(), (A, KeySet::EMPTY));
        }
        assert_eq!(local_keys(), (KeySet::EMPTY, A));
        drop(outer);
        assert_eq!(local_keys(), (KeySet::EMPTY, KeySet::EMPTY));
    }

    #[test]
    fn a_guard_that_is_dropped_early_leaves_the_later_ones() {
        let off = KeyGuard::exclude(A);
        let other = KeyGuard::include(B);
        drop(off);
        assert_eq!(local_keys(), (B, KeySet::EMPTY));
        let (first, second) = (KeyGuard::exclude(A), KeyGuard::exclude(A));
        drop(first);
        assert_eq!(local_keys(), (B, A));
        drop(other);
        assert_eq!(local_keys(), (KeySet::EMPTY, A));
        drop(second);
        assert_eq!(local_keys(), (KeySet::EMPTY, KeySet::EMPTY));
    }

    proptest! {
        #[test]
        fn what_counts_is_the_last_that_lives(steps in prop::collection::vec((0usize..4, any::<prop::sample::Index>()), 0..80)) {
            let (mut live, mut kinds): (Vec<KeyGuard>, Vec<usize>) = (Vec::new(), Vec::new());
            for (kind, at) in steps {
                // More guards are created than dropped, so that the inline storage overflows.
                if kind == 3 && !live.is_empty() {
                    let at = at.index(live.len());
                    drop(live.remove(at));
                    kinds.remove(at);
                } else {
                    let kind = kind % 3;
                    let make = [KeyGuard::exclude, KeyGuard::include, KeyGuard::clear][kind];
                    live.push(make(if kind == 0 { A } else { A.union(B) }));
                    kinds.push(kind);
                }
                let mut expected = (KeySet::EMPTY, KeySet::EMPTY);
                for kind in &kinds {
                    expected = match kind {
                        0 => (expected.0.minus(A), expected.1.union(A)),
                        1 => (expected.0.union(A.union(B)), expected.1.minus(A.union(B))),
                        _ => (expected.0.minus(A.union(B)), expected.1.minus(A.union(B))),
                    };
                }
                prop_assert_eq!(local_keys(), expected);
            }
            drop(live);
            prop_assert_eq!(local_keys(), (KeySet::EMPTY, KeySet::EMPTY));
        }
    }
}
