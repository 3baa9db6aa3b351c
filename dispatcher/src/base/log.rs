//! The host's log: one line per event of interest to a user, to standard error or to a sink that the program sets.

use crate::base::message::shown;
pub use keyway_sdk::abi::codes::level::{ERROR, WARN};
use std::sync::RwLock;

/// Receives one line: severity (see `keyway_sdk::abi::codes::level`) and text.
pub type Sink = Box<dyn Fn(u32, &str) + Send + Sync>;

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// Sends log lines elsewhere.
pub fn set_sink(sink: Sink) {
    *SINK.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(sink);
}

/// Writes one line.
pub fn write(level: u32, text: &str) {
    match &*SINK.read().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some(sink) => sink(level, text),
        // The text contains paths and plugins' messages; they must not control the terminal.
        None if level == ERROR => eprintln!("keyway: error: {}", shown(text)),
        None if level == WARN => eprintln!("keyway: warning: {}", shown(text)),
        None => {}
    }
}

/// Writes one warning.
pub fn warn(text: &str) {
    write(WARN, text);
}
