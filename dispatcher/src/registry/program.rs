//! Handlers that the program itself registers by name, each under the first free of the dispatch keys reserved for
//! them.

use super::state::lock;
use super::{Handler, KeyHandler};
use crate::base::error::{Error, Result};
use crate::base::key::DispatchKey;

/// Registers a handler of the program for every op, and returns its dispatch key. Handlers registered later act first.
///
/// # Errors
/// [`Error::Registration`] for an empty name or one in use, and if all keys of the program are in use.
pub fn register_interceptor(name: &str, handler: Box<Handler>) -> Result<DispatchKey> {
    let refused =
        |reason: String| Err(Error::Registration { what: "interceptor", name: name.to_string(), reason });
    if name.trim().is_empty() {
        return refused("it needs a name".to_string());
    }
    let mut batch = lock();
    if let Some(present) = batch.state.functional.iter().find(|f| f.name == name) {
        let owner = present.plugin.map_or("this program", |p| p.name);
        return refused(format!(
            "{owner} has registered one of this name; find it by its name, or use another"
        ));
    }
    let mut keys = (DispatchKey::PROGRAM_FIRST.0..=DispatchKey::PROGRAM_LAST.0).map(DispatchKey);
    let Some(key) = keys.find(|key| !batch.state.functional.iter().any(|f| f.key == *key)) else {
        let present: Vec<&str> = batch
            .state
            .functional
            .iter()
            .filter(|f| f.key >= DispatchKey::PROGRAM_FIRST && f.key <= DispatchKey::PROGRAM_LAST)
            .map(|f| f.name.as_str())
            .collect();
        return refused(format!(
            "a program can have {} of them, and has: {}",
            present.len(),
            present.join(", ")
        ));
    };
    batch.functional(KeyHandler {
        key,
        name: name.to_string(),
        applies: |_| true,
        handler,
        plugin: None,
        interposer: None,
    })?;
    batch.publish();
    Ok(key)
}
