//! Data derived from a tensor, cached with the storage that it is derived from.

use super::{TensorImpl, TensorRef};
use crate::device::{StreamRef, current_stream_ref, same_stream};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of cached entries of one storage; the oldest is evicted first.
const MAX_ENTRIES: usize = 8;

/// Data derived from a tensor's elements, such as packed weights.
pub(crate) struct Derived {
    /// The kind of data: a number chosen by its creator.
    pub(crate) key: u64,
    /// The version of the memory from which it was computed.
    pub(crate) version: u32,
    /// The data.
    pub(crate) value: TensorRef,
}

/// The elements from which derived data was computed, as the plugin read them: a call may have broadcast the tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Elements {
    /// Address of the first.
    pub(crate) data: usize,
    /// The dtype code.
    pub(crate) dtype: u16,
    /// Sizes.
    pub(crate) sizes: SmallVec<[i64; 8]>,
    /// Strides.
    pub(crate) strides: SmallVec<[i64; 8]>,
}

/// Derived data and the elements from which it was computed.
struct Entry {
    derived: Derived,
    elements: Elements,
    /// The stream on which the data was computed: only in its order is it known to be complete.
    stream: StreamRef,
}

impl Entry {
    fn is_of(&self, key: u64, elements: &Elements, stream: &StreamRef) -> bool {
        self.derived.key == key && self.elements == *elements && same_stream(&self.stream, stream)
    }
}

/// The cache of a storage.
#[derive(Default)]
struct Cache(Mutex<VecDeque<Entry>>);

impl Cache {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TensorImpl {
    /// The data of this kind that was derived from these elements of this tensor, if its memory has not been changed since.
    pub(crate) fn derived(&self, key: u64, elements: &Elements) -> Option<TensorRef> {
        let storage = self.storage()?;
        let cache: &Cache = storage.extension()?;
        let now = storage.version();
        let mut entries = cache.lock();
        // Dropped after the lock is released: entries may own much memory, and refer to other storages.
        let mut gone: Vec<Entry> = Vec::new();
        while let Some(at) = entries.iter().position(|e| e.derived.version != now) {
            gone.extend(entries.remove(at));
        }
        let stream = current_stream_ref(self.device());
        let found = entries.iter().find(|e| e.is_of(key, elements, &stream)).map(|e| e.derived.value.clone());
        drop(entries);
        drop(gone);
        found
    }

    /// Caches derived data until the memory is freed, its version changes, or the entry is evicted as the oldest. Data
    /// of an outdated version is not cached.
    pub(crate) fn keep_derived(&self, derived: Derived, elements: Elements) {
        let Some(storage) = self.storage() else { return };
        if storage.version() != derived.version {
            return;
        }
        let Some(cache) = storage.extension_or_init(Cache::default) else { return };
        let entry = Entry { derived, elements, stream: current_stream_ref(self.device()) };
        let mut entries = cache.lock();
        let same = entries.iter().position(|e| e.is_of(entry.derived.key, &entry.elements, &entry.stream));
        let oldest = if entries.len() >= MAX_ENTRIES { Some(0) } else { None };
        let gone = same.or(oldest).and_then(|at| entries.remove(at));
        entries.push_back(entry);
        drop(entries);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::base::key::Device;
    use crate::memory::Shared;
    use crate::tensor::TensorImpl;

    fn new(sizes: &[usize]) -> TensorRef {
        TensorImpl::empty(sizes, DType::F32, Device::CPU).unwrap()
    }

    fn elements(tensor: &TensorImpl) -> Elements {
        let numbers = |list: &[usize]| list.iter().map(|&n| n as i64).collect();
        Elements {
            data: tensor.raw().get().data.addr(),
            dtype: tensor.dtype().code(),
            sizes: numbers(tensor.sizes()),
            strides: numbers(tensor.strides()),
        }
    }

    fn keep(tensor: &TensorRef, key: u64, value: &TensorRef) {
        let version = tensor.version();
        tensor.keep_derived(Derived { key, version, value: value.clone() }, elements(tensor));
    }

    fn found(tensor: &TensorRef, key: u64) -> Option<TensorRef> {
        tensor.derived(key, &elements(tensor))
    }

    #[test]
    fn data_goes_with_the_version_and_the_memory() {
        let (tensor, value) = (new(&[4, 3]), new(&[2]));
        assert!(found(&tensor, 1).is_none());
        keep(&tensor, 1, &value);
        assert!(found(&tensor, 1).is_some_and(|found| Shared::ptr_eq(&found, &value)));
        assert!(found(&tensor, 2).is_none(), "another key");
        tensor.bump_version();
        assert!(found(&tensor, 1).is_none());
        assert_eq!(Shared::strong_count(&value), 1, "an outdated value is dropped");
        tensor.keep_derived(Derived { key: 1, version: 0, value: value.clone() }, elements(&tensor));
        assert!(found(&tensor, 1).is_none(), "computed from an earlier version");
        keep(&tensor, 1, &value);
        assert_eq!(Shared::strong_count(&value), 2);
        drop(tensor);
        assert_eq!(Shared::strong_count(&value), 1);
    }

    #[test]
    fn views_have_data_of_their_own() {
        let tensor = new(&[4, 3]);
        let row = |at: usize| TensorImpl::view(&tensor, 3 * at, &[3], None, false).unwrap();
        let transposed = TensorImpl::view(&tensor, 0, &[3, 4], Some(&[1, 3]), false).unwrap();
        let values: Vec<TensorRef> = (0..3).map(|_| new(&[1])).collect();
        keep(&row(0), 1, &values[0]);
        keep(&row(1), 1, &values[1]);
        keep(&transposed, 1, &values[2]);
        for (view, value) in [row(0), row(1), transposed].iter().zip(&values) {
            assert!(found(view, 1).is_some_and(|found| Shared::ptr_eq(&found, value)));
        }
        assert!(found(&tensor, 1).is_none() && found(&row(2), 1).is_none());
        // The same tensor as a call broadcasts it.
        let mut expanded = elements(&row(0));
        expanded.sizes.insert(0, 5);
        expanded.strides.insert(0, 0);
        assert!(row(0).derived(1, &expanded).is_none());
    }

    #[test]
    fn few_are_cached_and_the_oldest_are_evicted_first() {
        let (tensor, value) = (new(&[4]), new(&[1]));
        (0..3 * MAX_ENTRIES as u64).for_each(|key| keep(&tensor, key, &value));
        assert_eq!(Shared::strong_count(&value), 1 + MAX_ENTRIES);
        assert!(found(&tensor, 0).is_none() && found(&tensor, 3 * MAX_ENTRIES as u64 - 1).is_some());
        // The same key again replaces the existing entry.
        keep(&tensor, 3 * MAX_ENTRIES as u64 - 1, &new(&[1]));
        assert_eq!(Shared::strong_count(&value), MAX_ENTRIES);
    }

    #[test]
    fn threads_share_one_list() {
        let (tensor, value) = (new(&[4]), new(&[1]));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (tensor, value) = (tensor.clone(), value.clone());
                scope.spawn(move || {
                    for i in 0..200u64 {
                        keep(&tensor, (i + thread) % 5, &value);
                        found(&tensor, i % 5);
                        if i % 50 == 0 {
                            tensor.bump_version();
                        }
                    }
                });
            }
        });
        assert!(Shared::strong_count(&value) <= 1 + MAX_ENTRIES);
        assert!(found(&tensor, 77).is_none());
    }
}
