//! Interposers among the dispatch keys: their op patterns, their order, and the assignment of keys.
//!
//! A key is only an identity: threads hold it to switch an interposer on and off, so it is fixed while its plugin is in
//! use. The declared order decides which of several acts first.

use super::state::{Batch, is_retired, lock};
use super::table::current;
use super::{Handler, KeyHandler};
use crate::base::error::{Error, Result};
use crate::base::key::{DispatchKey, KeySet};
use crate::base::plugin::PluginEntry;
use crate::op::OpEntry;
use keyway_sdk::abi::interposer::RawInterposer;
use serde::Serialize;
use std::cmp::Reverse;

/// The declaration of an interposer.
#[derive(Debug)]
pub struct InterposerSpec {
    /// Patterns of op names, in which `*` matches any text; empty for every op.
    pub ops: Vec<String>,
    /// The higher acts first.
    pub order: i32,
    /// Whether it acts on threads that have not switched it on.
    pub default_on: bool,
    pub(crate) raw: &'static RawInterposer,
    /// Creates its handler for a key.
    pub(crate) handler: fn(&'static RawInterposer, &'static PluginEntry, DispatchKey) -> Box<Handler>,
}

impl InterposerSpec {
    /// Whether it acts on the op of this name.
    pub fn wants(&self, op: &str) -> bool {
        self.ops.is_empty() || self.ops.iter().any(|pattern| matches(pattern, op))
    }
}

/// Whether `text` matches `pattern`, in which `*` matches any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

const KEYS: std::ops::RangeInclusive<u8> =
    DispatchKey::INTERPOSER_FIRST.number()..=DispatchKey::INTERPOSER_LAST.number();

/// The sort key of interposers: the highest acts first. Names decide among interposers of one plugin.
fn rank(entry: &KeyHandler) -> (i32, Reverse<usize>, Reverse<&str>) {
    let order = entry.interposer.as_ref().map_or(0, |spec| spec.order);
    (order, Reverse(entry.plugin.map_or(usize::MAX, |p| p.order)), Reverse(&entry.name))
}

/// The interposer that acts first on an op, among those of `keys` that act on it.
pub(crate) fn first_of(op: &OpEntry, keys: KeySet) -> Option<&'static KeyHandler> {
    let generation = current();
    let present = keys.0 & generation.op(op)?.functional;
    KEYS.filter(|key| present & (1 << key) != 0)
        .filter_map(|key| generation.functional[key as usize])
        .max_by_key(|entry| rank(entry))
}

/// The description of one interposer, for listings.
#[derive(Clone, Debug, Serialize)]
pub struct InterposerInfo {
    /// The name by which a thread switches it on and off.
    pub name: String,
    /// The plugin that brought it.
    pub plugin: &'static str,
    /// Patterns of op names, in which `*` matches any text; empty for every op.
    pub ops: Vec<String>,
    /// The higher acts first.
    pub order: i32,
    /// Whether it acts on threads that have not switched it on.
    pub default_on: bool,
    /// The interposer's dispatch key, for guards.
    #[serde(skip)]
    pub key: DispatchKey,
}

/// The interposers of plugins in use, in the order in which they act.
pub fn interposers() -> Vec<InterposerInfo> {
    listed(|_| true)
}

/// The interposers that act on an op if they are on, in the order in which they act.
pub fn interposers_of(op: &OpEntry) -> Vec<InterposerInfo> {
    listed(|spec| spec.wants(op.name))
}

fn listed(wanted: impl Fn(&InterposerSpec) -> bool) -> Vec<InterposerInfo> {
    let batch = lock();
    let mut entries: Vec<_> = batch.state.functional.iter().filter(|f| !is_retired(f.plugin)).collect();
    entries.sort_by_key(|entry| Reverse(rank(entry)));
    let info = |entry: &&&'static KeyHandler| {
        let spec = entry.interposer.as_ref().filter(|spec| wanted(spec))?;
        Some(InterposerInfo {
            name: entry.name.clone(),
            plugin: entry.plugin.map_or("keyway", |p| p.name),
            ops: spec.ops.clone(),
            order: spec.order,
            default_on: spec.default_on,
            key: entry.key,
        })
    };
    entries.iter().filter_map(info).collect()
}

impl Batch {
    /// Registers an interposer under a free key.
    pub(crate) fn interposer(
        &mut self,
        name: &str,
        spec: InterposerSpec,
        plugin: &'static PluginEntry,
    ) -> Result<()> {
        let refused =
            |reason: String| Err(Error::Registration { what: "interposer", name: name.to_string(), reason });
        let live = || self.state.functional.iter().filter(|f| !is_retired(f.plugin));
        if name.contains(char::is_whitespace) {
            return refused(format!("`name` of a plugin's (`{}`) interposer has a space", plugin.name));
        }
        if let Some(present) = live().find(|f| f.name == name) {
            let owner = present.plugin.map_or("keyway", |p| p.name);
            return refused(format!(
                "`{owner}` has brought one of this name; `{}` must use another",
                plugin.name
            ));
        }
        let Some(key) = self.free_interposer_key() else {
            let present: Vec<&str> =
                live().filter(|f| f.interposer.is_some()).map(|f| f.name.as_str()).collect();
            return refused(format!(
                "at most {} interposers can be active at once, and `{}` brings another; retire a plugin that brings one of: {}",
                KEYS.len(),
                plugin.name,
                present.join(", ")
            ));
        };
        self.functional(KeyHandler {
            key,
            name: name.to_string(),
            applies: |_| true,
            handler: (spec.handler)(spec.raw, plugin, key),
            plugin: Some(plugin),
            interposer: Some(spec),
        })
    }

    /// The next free key for an interposer. A retired interposer releases its key.
    fn free_interposer_key(&self) -> Option<DispatchKey> {
        let live =
            |key: &DispatchKey| self.state.functional.iter().any(|f| f.key == *key && !is_retired(f.plugin));
        KEYS.map(DispatchKey).find(|key| !live(key))
    }

    /// Assigns other keys to the interposers of a retired plugin that is about to be restored, if theirs are in use. Fails,
    /// without any change, if there are too few.
    pub(super) fn take_keys_again(&mut self, plugin: &'static PluginEntry) -> bool {
        let mine = |f: &&'static KeyHandler| f.plugin.is_some_and(|p| std::ptr::eq(p, plugin));
        let (own, others): (Vec<_>, Vec<_>) = self.state.functional.iter().copied().partition(mine);
        let live: Vec<DispatchKey> = others.iter().filter(|f| !is_retired(f.plugin)).map(|f| f.key).collect();
        let mut taken = live.clone();
        taken.extend(own.iter().map(|f| f.key).filter(|key| !live.contains(key)));
        let mut handlers = others;
        for entry in own {
            let (Some(spec), true) = (&entry.interposer, live.contains(&entry.key)) else {
                handlers.push(entry);
                continue;
            };
            let Some(key) = KEYS.map(DispatchKey).find(|key| !taken.contains(key)) else { return false };
            taken.push(key);
            handlers.push(Box::leak(Box::new(KeyHandler {
                key,
                name: entry.name.clone(),
                applies: entry.applies,
                handler: (spec.handler)(spec.raw, plugin, key),
                plugin: entry.plugin,
                interposer: Some(InterposerSpec { ops: spec.ops.clone(), ..*spec }),
            })));
        }
        self.state.functional = handlers;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_of_op_names() {
        for (pattern, text, fits) in [
            ("mm", "mm", true),
            ("mm", "bmm", false),
            ("*", "add", true),
            ("conv*", "conv2d", true),
            ("conv*", "deconv", false),
            ("*mm", "addmm", true),
            ("*mm", "mm_add", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXc", false),
            ("a*a", "a", false),
            ("", "add", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
