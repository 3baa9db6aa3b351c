//! Interned names: small integers for the life of the process.
//!
//! Devices, layouts and dtypes are open sets: nothing in the host matches on a closed enum of them.

use std::sync::{LazyLock, RwLock};

/// A growing list of names; a name's number is its index.
pub struct Interner {
    names: RwLock<Vec<&'static str>>,
    capacity: usize,
}

impl Interner {
    fn new(built_in: &[&'static str], filled_to: usize, capacity: usize) -> Interner {
        let mut names = built_in.to_vec();
        names.resize(filled_to.max(names.len()), "");
        Interner { names: RwLock::new(names), capacity }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<&'static str>> {
        self.names.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The number of a name that is already interned.
    pub fn get(&self, name: &str) -> Option<u16> {
        if name.is_empty() {
            return None;
        }
        self.read().iter().position(|n| *n == name).map(|i| i as u16)
    }

    /// The number of a name, which is interned if it is new; `None` if the list is full.
    pub fn intern(&self, name: &str) -> Option<u16> {
        if let Some(known) = self.get(name) {
            return Some(known);
        }
        let mut names = self.names.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = names.iter().position(|n| *n == name) {
            return Some(known as u16);
        }
        if names.len() >= self.capacity || name.is_empty() {
            return None;
        }
        names.push(String::leak(name.to_string()));
        Some(names.len() as u16 - 1)
    }

    /// Removes a name that was just interned for a registration that then failed. Its number stays unused: another thread
    /// may have read it.
    pub(crate) fn forget(&self, id: u16) {
        let mut names = self.names.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(name) = names.get_mut(id as usize) {
            *name = "";
        }
    }

    /// The name of a number, if it is assigned.
    pub fn known(&self, id: u16) -> Option<&'static str> {
        self.read().get(id as usize).copied().filter(|name| !name.is_empty())
    }

    /// The name of a number; `?` for an unassigned number.
    pub fn name(&self, id: u16) -> &'static str {
        self.known(id).unwrap_or("?")
    }

    /// The count of assigned numbers, including reserved ones.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether no number has been assigned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The maximum number of device names.
pub const MAX_DEVICES: usize = 1024;

/// The maximum number of dtype names.
pub const MAX_DTYPES: usize = 128;
/// The maximum number of layout names.
pub const MAX_LAYOUTS: usize = 64;

/// Device names; `cpu` is 0, because host memory exists without a plugin.
pub static DEVICES: LazyLock<Interner> = LazyLock::new(|| Interner::new(&["cpu"], 1, MAX_DEVICES));
/// Layout names; `strided` is 0 and its sub-layout `channels_last` is 1.
pub static LAYOUTS: LazyLock<Interner> =
    LazyLock::new(|| Interner::new(&["strided", "channels_last"], 2, MAX_LAYOUTS));
/// Dtype names; the index of a built-in one is its code.
pub static DTYPES: LazyLock<Interner> = LazyLock::new(|| {
    use keyway_sdk::abi::codes::dtype::VENDOR_FIRST;
    Interner::new(&crate::base::dtype::BUILT_IN, VENDOR_FIRST as usize, MAX_DTYPES)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let first = DEVICES.intern("test.example/npu").unwrap();
        assert_eq!(DEVICES.intern("test.example/npu"), Some(first));
        assert_eq!(DEVICES.name(first), "test.example/npu");
        assert_eq!(DEVICES.get("cpu"), Some(0));
    }

    #[test]
    fn a_full_list_refuses() {
        let small = Interner::new(&["a"], 1, 2);
        assert_eq!(small.intern("b"), Some(1));
        assert_eq!(small.intern("c"), None);
        assert_eq!(small.name(9), "?");
    }

    #[test]
    fn a_forgotten_name_is_unknown_and_its_number_unused() {
        let names = Interner::new(&["a"], 1, 8);
        let b = names.intern("b").unwrap();
        names.forget(b);
        assert_eq!((names.get("b"), names.name(b)), (None, "?"));
        let again = names.intern("b").unwrap();
        assert_ne!(again, b);
        assert_eq!(names.name(again), "b");
    }
}
