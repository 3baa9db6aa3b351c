//! What a command that computes takes and uses: a device, a memory format, backends, memory.

use crate::failure::Failure;
use crate::installed::{self, Choice};
use crate::names;
use keyway::dispatcher::plugin::PluginEntry;
use keyway::dispatcher::registry;
use keyway::profiler::{DeviceMemory, device_memory};
use keyway::{Device, MemoryFormat};
use serde::Serialize;
use std::path::PathBuf;

/// A memory format, by its name.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Format {
    /// Row-major.
    Contiguous,
    /// The channels of a pixel side by side.
    ChannelsLast,
}

impl From<Format> for MemoryFormat {
    fn from(format: Format) -> MemoryFormat {
        match format {
            Format::Contiguous => MemoryFormat::Contiguous,
            Format::ChannelsLast => MemoryFormat::ChannelsLast,
        }
    }
}

/// The device, if somebody serves it; `what` is to happen there.
///
/// # Errors
/// A device that does not exist or that nobody serves.
pub fn device(name: &str, what: &str, choice: &Choice) -> Result<Device, Failure> {
    let backends = installed::start(choice)?;
    let device = names::device(name)?;
    if keyway::dispatcher::device::server(device.kind).is_some() {
        return Ok(device);
    }
    let found = match backends.discovery.candidates.len() {
        0 => "none is installed",
        _ => "none of the libraries that were found serves it (`keyway doctor` says why)",
    };
    let advice = installed::advice(device.name(), &backends.discovery);
    // What is wrong with a library has been said where the backends were started.
    let none = backends.discovery.candidates.is_empty();
    let lacking = backends.discovery.lacking().filter(|_| none);
    let lacking = lacking.map(|sentence| format!(". {sentence}")).unwrap_or_default();
    Err(Failure::NoBackend(format!(
        "{what} on `{}` needs a backend, and {found}: {advice}{lacking}",
        device.name()
    )))
}

/// A backend that is loaded.
#[derive(Serialize)]
pub struct Backend {
    name: &'static str,
    version: String,
    variant: String,
    #[serde(serialize_with = "keyway::dispatcher::lossy::path")]
    path: PathBuf,
}

/// The backends that are loaded.
pub fn backends() -> Vec<Backend> {
    let backend = |p: &PluginEntry| Backend {
        name: p.name,
        version: p.version.clone(),
        variant: p.variant.clone(),
        path: p.path.clone(),
    };
    registry::plugins().into_iter().map(backend).collect()
}

/// The most memory that was held at a time.
#[derive(Clone, Copy, Serialize)]
pub struct PeakMemory {
    /// By the process; where the system does not say, by tensors.
    pub peak_bytes: u64,
    /// By tensors on the device.
    pub tensor_peak_bytes: u64,
}

impl PeakMemory {
    /// Until now, with the tensors of this device.
    pub fn of(device: Device) -> PeakMemory {
        let tensor_peak_bytes = tensor_memory(device).map_or(0, |memory| memory.peak_in_use);
        PeakMemory { peak_bytes: process_peak().unwrap_or(tensor_peak_bytes), tensor_peak_bytes }
    }
}

/// The memory that tensors take on a device, if it keeps statistics.
pub fn tensor_memory(device: Device) -> Option<DeviceMemory> {
    let device = device.to_string();
    device_memory().into_iter().find(|memory| memory.device == device)
}

/// The most memory that this process held at a time, as Linux counts it.
pub fn process_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
