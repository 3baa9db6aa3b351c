//! An LRU cache of plans.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// Maximum number of kinds cached per device.
const CAPACITY: usize = 256;

/// A value for each recently used kind of call.
pub struct LruCache<K, V> {
    values: HashMap<K, (V, u64)>,
    /// The number of lookups so far.
    uses: u64,
}

impl<K, V> Default for LruCache<K, V> {
    fn default() -> LruCache<K, V> {
        LruCache { values: HashMap::new(), uses: 0 }
    }
}

impl<K: Copy + Eq + Hash, V> LruCache<K, V> {
    /// The value of a kind, created if missing; the least recently used kind is evicted.
    pub fn get<E>(&mut self, key: &K, make: impl FnOnce() -> Result<V, E>) -> Result<&V, E> {
        self.uses += 1;
        if self.values.len() >= CAPACITY && !self.values.contains_key(key) {
            let oldest = self.values.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            oldest.and_then(|key| self.values.remove(&key));
        }
        let (value, used) = match self.values.entry(*key) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(slot) => slot.insert((make()?, 0)),
        };
        *used = self.uses;
        Ok(value)
    }
}
