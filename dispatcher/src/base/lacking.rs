//! The backends that the search refused or did not find, and the devices that it found, for the error of a call that no
//! backend serves.

use std::collections::BTreeSet;
use std::sync::RwLock;

static SENTENCE: RwLock<String> = RwLock::new(String::new());

/// The kinds of device that a plugin serves now.
static DEVICES: RwLock<BTreeSet<&'static str>> = RwLock::new(BTreeSet::new());

/// Records whether a plugin serves this kind of device.
pub(crate) fn set_device(name: &'static str, served: bool) {
    let mut devices = DEVICES.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    if served {
        devices.insert(name)
    } else {
        devices.remove(name)
    };
}

/// Whether tensors can be on this kind of device.
pub(crate) fn is_there(name: &str) -> bool {
    name == "cpu" || DEVICES.read().unwrap_or_else(|poisoned| poisoned.into_inner()).contains(name)
}

/// The kinds of device that tensors can be on, the host's memory first, which needs no plugin.
pub(crate) fn devices() -> String {
    let devices = DEVICES.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let others = devices.iter().copied().filter(|&name| name != "cpu");
    let all: Vec<String> = ["cpu"].into_iter().chain(others).map(|name| format!("`{name}`")).collect();
    all.join(", ")
}

/// Stores the sentence; an empty one means that nothing is amiss.
pub fn set(sentence: String) {
    *SENTENCE.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = sentence;
}

/// The sentence appended to an error's message; empty if no library is missing.
pub(crate) fn after() -> String {
    match &*SENTENCE.read().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        sentence if sentence.is_empty() => String::new(),
        sentence => format!(". {sentence}"),
    }
}
