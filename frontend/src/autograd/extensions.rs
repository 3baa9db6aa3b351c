//! Extensions that the interceptors of a program attach to tensors.

use super::meta;
use keyway_dispatcher::key::KeySet;
use keyway_dispatcher::tensor::TensorRef;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the program has registered any.
static ANY: AtomicBool = AtomicBool::new(false);

/// Notes that the program has registered an interceptor.
pub(crate) fn note_registered() {
    ANY.store(true, Ordering::Release);
}

/// The keys of the program's handlers, for a guard that excludes them from a backward pass; empty if there are none.
pub(crate) fn registered() -> KeySet {
    if ANY.load(Ordering::Relaxed) { KeySet::PROGRAM } else { KeySet::EMPTY }
}

/// Copies the extensions of `from` to `to`.
pub(crate) fn carry(from: &TensorRef, to: &TensorRef) {
    if from.keys().intersect(KeySet::PROGRAM) != KeySet::EMPTY {
        meta::extensions(from)
            .into_iter()
            .for_each(|(key, extension)| meta::set_extension(to, key, Some(extension)));
    }
}
