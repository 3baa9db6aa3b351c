//! The devices that backends serve, with the reason for each that cannot be used.

use crate::screen::{self, Screen};
use keyway::Device;
use keyway::dispatcher::{device as api, registry};
use serde::Serialize;

/// A device, or a kind without any device.
#[derive(Serialize)]
pub struct Found {
    /// The device's name with its index; the kind's name if there is no device of the kind.
    pub device: String,
    /// The display name.
    pub name: String,
    /// The backend.
    pub served_by: &'static str,
    /// Bytes of memory in all; 0 if unknown.
    pub memory: u64,
    /// The reason why it cannot be used; null if it can.
    pub trouble: Option<String>,
}

/// The facts that a kind of device reports: the system libraries that it found, and the features that work without them.
#[derive(Serialize)]
pub struct DeviceFacts {
    /// The name of the kind of device.
    pub device: String,
    /// The backend.
    pub served_by: &'static str,
    /// The facts, in the backend's order.
    pub facts: Vec<Fact>,
}

/// A fact about a device.
#[derive(Serialize)]
pub struct Fact {
    /// The subject of the fact.
    pub name: String,
    /// The state of the subject.
    pub text: String,
}

/// The facts about each kind of device, without the kinds that report none.
pub fn facts_by_device() -> Vec<DeviceFacts> {
    let all = registry::devices().into_iter().map(|entry| {
        let fact = |name, text| Fact { name, text };
        let facts = match api::report::facts(entry) {
            Ok(facts) => facts.into_iter().map(|own| fact(own.name, own.text)).collect(),
            Err(error) => vec![fact("trouble".to_string(), error.to_string())],
        };
        let device = Device { kind: entry.kind, index: 0 }.name().to_string();
        DeviceFacts { device, served_by: entry.plugin.name, facts }
    });
    all.filter(|of| !of.facts.is_empty()).collect()
}

/// Every device that a backend serves.
pub fn all() -> Vec<Found> {
    let mut found = Vec::new();
    for entry in registry::devices() {
        let served_by = entry.plugin.name;
        let (count, reason) = api::count(entry);
        if count == 0 {
            let device = Device { kind: entry.kind, index: 0 }.name().to_string();
            let trouble = Some(if reason.is_empty() { "none is present".to_string() } else { reason });
            found.push(Found { device, name: String::new(), served_by, memory: 0, trouble });
        }
        for index in 0..u16::try_from(count).unwrap_or(u16::MAX) {
            let device = Device { kind: entry.kind, index };
            let (name, memory, trouble) = match api::properties(device) {
                Ok(properties) => (properties.name, properties.total_memory, None),
                Err(error) => (String::new(), 0, Some(error.to_string())),
            };
            found.push(Found { device: device.to_string(), name, served_by, memory, trouble });
        }
    }
    found
}

/// Lists the devices other than host memory, one on each line.
pub fn list(screen: &mut Screen) {
    let host = Device::CPU.to_string();
    let all = all();
    let mut others = all.iter().filter(|found| found.device != host).peekable();
    if others.peek().is_some() {
        screen.line("");
    }
    for found in others {
        let text = match &found.trouble {
            Some(reason) if found.device.contains(':') => reason.clone(),
            Some(reason) => format!("0 devices: {reason}"),
            None if found.memory == 0 => found.name.clone(),
            None => format!("{}, {}", found.name, screen::bytes(found.memory)),
        };
        screen.line(format!("{}: {text}", found.device));
    }
}
