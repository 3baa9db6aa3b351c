//! The backends that the search refused or did not find, and the devices that it found, for the error of a call without a
//! backend.

use std::collections::BTreeSet;
use std::sync::RwLock;

static SENTENCE: RwLock<String> = RwLock::new(String::new());

/// The device types that a plugin currently provides.
static DEVICES: RwLock<BTreeSet<&'static str>> = RwLock::new(BTreeSet::new());

/// Records whether a plugin provides this device type.
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

/// The device types of tensors, host memory first, which needs no plugin.
pub(crate) fn devices() -> String {
    let devices = DEVICES.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let others = devices.iter().copied().filter(|&name| name != "cpu");
    let all: Vec<String> = ["cpu"].into_iter().chain(others).map(|name| format!("`{name}`")).collect();
    all.join(", ")
}

/// Stores the sentence; empty if there are no problems.
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
