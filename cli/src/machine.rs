//! Options and state of a command that computes: device, memory format, backends, memory.

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

/// Returns the device if a backend serves it; `what` is the planned work, for the message.
///
/// # Errors
/// A device that does not exist or that no backend serves.
pub fn device(name: &str, what: &str, choice: &Choice) -> Result<Device, Failure> {
    let backends = installed::start(choice)?;
    let device = names::device(name)?;
    if keyway::dispatcher::device::server(device.kind).is_some() {
        return Ok(device);
    }
    let found = match backends.discovery.candidates.len() {
        0 => "none is installed",
        _ => "none of the libraries that were found serves it (`keyway doctor` lists the reasons)",
    };
    let advice = installed::advice(device.name(), &backends.discovery);
    // Errors of libraries were reported when the backends were started.
    let none = backends.discovery.candidates.is_empty();
    let lacking = backends.discovery.lacking().filter(|_| none);
    let lacking = lacking.map(|sentence| format!(". {sentence}")).unwrap_or_default();
    Err(Failure::NoBackend(format!(
        "{what} on `{}` needs a backend, and {found}: {advice}{lacking}",
        device.name()
    )))
}

/// A loaded backend.
#[derive(Serialize)]
pub struct Backend {
    name: &'static str,
    version: String,
    variant: String,
    #[serde(serialize_with = "keyway::dispatcher::lossy::path")]
    path: PathBuf,
}

/// The loaded backends.
pub fn backends() -> Vec<Backend> {
    let backend = |p: &PluginEntry| Backend {
        name: p.name,
        version: p.version.clone(),
        variant: p.variant.clone(),
        path: p.path.clone(),
    };
    registry::plugins().into_iter().map(backend).collect()
}

/// Peak memory.
#[derive(Clone, Copy, Serialize)]
pub struct PeakMemory {
    /// Peak memory of the process; of tensors if the system does not report it.
    pub peak_bytes: u64,
    /// Peak memory of tensors on the device.
    pub tensor_peak_bytes: u64,
}

impl PeakMemory {
    /// The peak until now, with the tensors of this device.
    pub fn of(device: Device) -> PeakMemory {
        let tensor_peak_bytes = tensor_memory(device).map_or(0, |memory| memory.peak_in_use);
        PeakMemory { peak_bytes: process_peak().unwrap_or(tensor_peak_bytes), tensor_peak_bytes }
    }
}

/// The memory of tensors on a device, if it has statistics.
pub fn tensor_memory(device: Device) -> Option<DeviceMemory> {
    let device = device.to_string();
    device_memory().into_iter().find(|memory| memory.device == device)
}

/// The peak resident memory of this process, as Linux reports it.
pub fn process_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
