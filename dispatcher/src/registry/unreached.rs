//! Entries of a plugin that can have no effect: kernels and declared formats for ops, devices, layouts and dtypes that no
//! plugin provides, and names of ops that do not exist. Another plugin may provide them, so this is computed once all
//! plugins are loaded.

use super::interposers::{interposers, matches};
use super::near::{near_ops, nearest_of};
use super::preferences::{is_served, preferences};
use super::state::{kernels, lock, plugins};
use super::table::{Generation, current};
use crate::base::dtype::DType;
use crate::base::intern::{DEVICES, DTYPES, LAYOUTS};
use crate::base::key::Layout;
use crate::base::plugin::PluginEntry;
use crate::device::is_there;
use crate::op::OpEntry;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Something of a plugin that no call reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreached {
    /// Kernels of an op that does not exist.
    Op {
        /// The name of the missing op.
        op: &'static str,
        /// The number of kernels.
        kernels: usize,
        /// The op that was perhaps meant.
        near: Option<&'static str>,
    },
    /// Kernels for a device, layout or dtype that no plugin brings.
    Target {
        /// `device`, `layout` or `dtype`.
        what: &'static str,
        /// The missing name.
        name: &'static str,
        /// The number of kernels.
        kernels: usize,
        /// The most similar existing name.
        near: Option<&'static str>,
    },
    /// A device in the plugin's manifest for which it provides nothing.
    Claimed {
        /// The device's name.
        device: String,
        /// Whether another plugin brings it.
        is_there: bool,
    },
    /// A second kernel of the plugin for the same key.
    Second {
        /// The op.
        op: &'static str,
        /// Device, layout and dtype.
        key: [&'static str; 3],
    },
    /// An interposer that names an op that does not exist, or a pattern that no op matches.
    Interposer {
        /// The interposer.
        name: String,
        /// The unresolved op name.
        op: String,
        /// The op that was perhaps meant.
        near: Option<&'static str>,
    },
    /// A declared format that planning never uses.
    Preference {
        /// The op.
        op: &'static str,
        /// The device.
        device: &'static str,
        /// The memory format or layout.
        format: &'static str,
        /// `op`, `device` or `layout` if no plugin provides it, `kernel` if this plugin has none that serves the format.
        missing: &'static str,
        /// The most similar existing name.
        near: Option<&'static str>,
    },
    /// A declared format or cost that is not valid.
    Declaration {
        /// What is declared, and what was expected.
        reason: String,
    },
    /// An op whose backward op does not exist.
    Backward {
        /// The op.
        op: &'static str,
        /// The name of the missing backward op.
        backward: &'static str,
        /// The op that was perhaps meant.
        near: Option<&'static str>,
    },
}

/// Formats the entry as one clause.
impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: &usize| match n {
            1 => "1 kernel".to_string(),
            n => format!("{n} kernels"),
        };
        let meant = |near: &Option<&str>| near.map(|op| format!(" (near: `{op}`)")).unwrap_or_default();
        match self {
            Unreached::Op { op, kernels, near } => {
                write!(f, "{} of op `{op}`, which does not exist{}", count(kernels), meant(near))
            }
            Unreached::Target { what, name, kernels, near } => {
                write!(f, "{} for {what} `{name}`, which no plugin brings{}", count(kernels), meant(near))
            }
            Unreached::Claimed { device, is_there } => {
                let others = if *is_there { "is another plugin's" } else { "no plugin brings" };
                write!(
                    f,
                    "device `{device}` in its manifest, which {others}: it brings no device, kernel or layout's functions for it"
                )
            }
            Unreached::Second { op, key } => {
                write!(
                    f,
                    "a second kernel of `{op}` for ({}), asked only if the first refuses",
                    key.join(", ")
                )
            }
            Unreached::Interposer { name, op, near } if op.contains('*') => {
                write!(f, "`{op}` in the list of interposer `{name}`, which no op fits{}", meant(near))
            }
            Unreached::Interposer { name, op, near } => {
                write!(f, "`{op}` in the list of interposer `{name}`: there is no such op{}", meant(near))
            }
            Unreached::Preference { op, device, format, missing, near } => {
                write!(f, "format `{format}` declared for `{op}` on `{device}`: ")?;
                match *missing {
                    "op" => f.write_str("there is no such op")?,
                    "kernel" => f.write_str("the plugin has no kernel of it there")?,
                    what => write!(f, "no plugin brings the {what}")?,
                }
                f.write_str(&meant(near))
            }
            Unreached::Declaration { reason } => f.write_str(reason),
            Unreached::Backward { op, backward, near } => {
                write!(
                    f,
                    "`{backward}`, the backward op of `{op}`, which does not exist{}: `{op}` has no gradient",
                    meant(near)
                )
            }
        }
    }
}

/// The entries without effect of the plugins in use that `wanted` selects, by plugin; plugins without any are omitted.
/// Kernels with another signature are reported by [`left_out`](super::left_out).
pub fn unreached(wanted: impl Fn(&PluginEntry) -> bool) -> Vec<(&'static PluginEntry, Vec<Unreached>)> {
    let generation = current();
    let ops: HashMap<&str, &OpEntry> = generation.ops().map(|rows| (rows.op.name, rows.op)).collect();
    let mut found: Vec<(&'static PluginEntry, Vec<Unreached>)> = plugins()
        .into_iter()
        .filter(|plugin| !plugin.is_retired() && wanted(plugin))
        .map(|plugin| (plugin, Vec::new()))
        .collect();
    let mut keys = HashSet::new();
    for kernel in kernels() {
        let Some((_, list)) = found.iter_mut().find(|(plugin, _)| std::ptr::eq(*plugin, kernel.plugin))
        else {
            continue;
        };
        match ops.get(kernel.op) {
            None => add(list, Unreached::Op { op: kernel.op, kernels: 1, near: None }),
            Some(op) if op.schema.signature != kernel.signature => {}
            Some(_) => match missing_target(generation, kernel.device, kernel.layout, kernel.dtype) {
                Some((what, name)) => add(list, Unreached::Target { what, name, kernels: 1, near: None }),
                None => {
                    let of = std::ptr::from_ref(kernel.plugin).addr();
                    if !keys.insert((of, kernel.op, kernel.device, kernel.layout, kernel.dtype)) {
                        let names =
                            [DEVICES.name(kernel.device), kernel.layout.name(), DTYPES.name(kernel.dtype)];
                        list.push(Unreached::Second { op: kernel.op, key: names });
                    }
                }
            },
        }
    }
    for declared in preferences() {
        let Some((_, list)) = found.iter_mut().find(|(plugin, _)| std::ptr::eq(*plugin, declared.plugin))
        else {
            continue;
        };
        let (op, device, format) = (declared.op, DEVICES.name(declared.device), declared.format);
        let (missing, near) = if !ops.contains_key(op) {
            ("op", nearest(op))
        } else if !is_there(declared.device) {
            ("device", nearest_target("device", device))
        } else if format != Layout::CHANNELS_LAST && generation.layout(format).is_none() {
            ("layout", nearest_target("layout", format.name()))
        } else if !is_served(&lock().state, declared, None) {
            ("kernel", None)
        } else {
            continue;
        };
        list.push(Unreached::Preference { op, device, format: format.name(), missing, near });
    }
    for (plugin, reason) in &lock().state.ignored {
        if let Some((_, list)) = found.iter_mut().find(|(found, _)| std::ptr::eq(*found, *plugin)) {
            list.push(Unreached::Declaration { reason: reason.clone() });
        }
    }
    let interposers = interposers();
    for (plugin, list) in &mut found {
        list.extend(plugin.unresolved_devices.iter().map(|device| Unreached::Claimed {
            device: device.clone(),
            is_there: DEVICES.get(device).is_some_and(is_there),
        }));
        for unreached in list.iter_mut() {
            match unreached {
                Unreached::Op { op, near, .. } => *near = nearest(op),
                Unreached::Target { what, name, near, .. } => *near = nearest_target(what, name),
                _ => {}
            }
        }
        for interposer in interposers.iter().filter(|i| i.plugin == plugin.name) {
            let unknown = |pattern: &&String| !ops.keys().any(|op| matches(pattern, op));
            list.extend(interposer.ops.iter().filter(unknown).map(|op| Unreached::Interposer {
                name: interposer.name.clone(),
                op: op.clone(),
                near: nearest(op),
            }));
        }
        let mut own: Vec<&OpEntry> = ops
            .values()
            .copied()
            .filter(|op| op.spec.foreign.is_some() && op.spec.owner == plugin.name)
            .collect();
        own.sort_unstable_by_key(|op| op.id);
        for op in own {
            if let Some(named) = op.spec.foreign.and_then(|foreign| foreign.backward)
                && !ops.contains_key(named.op)
            {
                let near = nearest(named.op);
                list.push(Unreached::Backward { op: op.name, backward: named.op, near });
            }
        }
    }
    found.retain(|(_, list)| !list.is_empty());
    found
}

fn nearest(op: &str) -> Option<&'static str> {
    near_ops(op).first().copied()
}

/// The device, layout or dtype with the most similar name, provided by some plugin or built in.
fn nearest_target(what: &str, name: &str) -> Option<&'static str> {
    let generation = current();
    let devices = || (0..DEVICES.len() as u16).filter(|kind| is_there(*kind)).map(|kind| DEVICES.name(kind));
    let layouts = || {
        let there = |layout: &Layout| layout.is_strided() || generation.layout(*layout).is_some();
        (0..LAYOUTS.len() as u16).map(Layout).filter(there).map(Layout::name)
    };
    let dtypes = || {
        let all = (0..DTYPES.len() as u16).filter_map(DType::from_code);
        all.filter(|d| d.is_built_in() || d.plugin().is_some()).map(|d| d.name())
    };
    match what {
        "device" => nearest_of(name, devices()),
        "layout" => nearest_of(name, layouts()),
        _ => nearest_of(name, dtypes()),
    }
}

/// The first of a kernel's device, layout and dtype that no plugin provides.
fn missing_target(
    generation: &Generation,
    device: u16,
    layout: Layout,
    dtype: u16,
) -> Option<(&'static str, &'static str)> {
    if !is_there(device) {
        return Some(("device", DEVICES.name(device)));
    }
    if !layout.is_strided() && generation.layout(layout).is_none() {
        return Some(("layout", layout.name()));
    }
    let described = DType::from_code(dtype).is_some_and(|d| d.is_built_in() || d.plugin().is_some());
    if described { None } else { Some(("dtype", DTYPES.name(dtype))) }
}

/// Adds a kernel to the count of those with the same missing name.
fn add(list: &mut Vec<Unreached>, new: Unreached) {
    for present in list.iter_mut() {
        match (present, &new) {
            (Unreached::Op { op, kernels, .. }, Unreached::Op { op: other, .. }) if op == other => {
                *kernels += 1;
                return;
            }
            (Unreached::Target { what, name, kernels, .. }, Unreached::Target { what: w, name: n, .. })
                if (&*what, &*name) == (w, n) =>
            {
                *kernels += 1;
                return;
            }
            _ => {}
        }
    }
    list.push(new);
}
