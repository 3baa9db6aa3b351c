//! What the search for backends refused or did not find, so that the error of a call that nobody serves can say it.

use std::sync::RwLock;

static SENTENCE: RwLock<String> = RwLock::new(String::new());

/// Keeps the sentence; an empty one says that nothing is amiss.
pub fn set(sentence: String) {
    *SENTENCE.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = sentence;
}

/// The sentence behind an error's own words; empty if nothing is amiss.
pub(crate) fn after() -> String {
    match &*SENTENCE.read().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        sentence if sentence.is_empty() => String::new(),
        sentence => format!(". {sentence}"),
    }
}
