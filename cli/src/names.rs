//! Names that users type for ops, devices, layouts and dtypes; the error for an unknown name lists the existing ones.

use crate::failure::Failure;
use crate::known::would_serve;
use keyway::dispatcher::device::DeviceEntry;
use keyway::dispatcher::intern::{DEVICES, DTYPES, Interner, LAYOUTS};
use keyway::dispatcher::op::OpEntry;
use keyway::dispatcher::{device as devices, registry, table};
use keyway::{DType, Device, Layout};

/// The names that an interner has assigned.
pub fn known(interner: &Interner) -> Vec<&'static str> {
    let len = u16::try_from(interner.len()).unwrap_or(u16::MAX);
    (0..len).map(|id| interner.name(id)).filter(|name| *name != "?").collect()
}

fn unknown(what: &str, name: &str, interner: &Interner) -> Failure {
    let would = would_serve(name).map(|would| format!("; {would}")).unwrap_or_default();
    Failure::Usage(format!("there is no {what} `{name}`; there is: {}{would}", known(interner).join(", ")))
}

/// Parses a device such as `cpu` or `cuda:1`. Only registered devices exist.
///
/// # Errors
/// Wrong usage.
pub fn device(text: &str) -> Result<Device, Failure> {
    let (device, server) = parsed(text)?;
    server.map_or(Ok(device), |entry| checked(device, entry))
}

/// Parses a device, for facts about its kind that need no device to exist: `cuda` also if there are 0 devices.
///
/// # Errors
/// Wrong usage.
pub fn device_kind(text: &str) -> Result<Device, Failure> {
    let (device, server) = parsed(text)?;
    match server {
        Some(entry) if devices::count(entry).0 > 0 => checked(device, entry),
        _ => Ok(device),
    }
}

fn parsed(text: &str) -> Result<(Device, Option<&'static DeviceEntry>), Failure> {
    let name = text.rsplit_once(':').map_or(text, |(name, _)| name);
    if DEVICES.get(name).is_none() {
        return Err(unknown("device", text, &DEVICES));
    }
    let device = Device::parse(text).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok((device, devices::server(device.kind)))
}

fn checked(device: Device, entry: &'static DeviceEntry) -> Result<Device, Failure> {
    devices::ensure(entry, device).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(device)
}

/// A layout.
///
/// # Errors
/// Wrong usage.
pub fn layout(text: &str) -> Result<Layout, Failure> {
    Layout::from_name(text).ok_or_else(|| unknown("layout", text, &LAYOUTS))
}

/// A dtype.
///
/// # Errors
/// Wrong usage.
pub fn dtype(text: &str) -> Result<DType, Failure> {
    DType::from_name(text).ok_or_else(|| unknown("dtype", text, &DTYPES))
}

/// The op of an image method, without the spatial dimensions in the name: `conv` for `conv2d`.
fn of_method(name: &str) -> String {
    let name = ["1d", "2d", "3d"].iter().fold(name.to_string(), |name, rank| name.replace(rank, ""));
    let op = match name.as_str() {
        // A transposed convolution computes the same products as the input gradient.
        "conv_transpose" => "conv_input_grad",
        "max_pool" => "max_pool_values",
        name => name.trim_end_matches("_with_indices"),
    };
    op.to_string()
}

/// Finds an op by name.
///
/// # Errors
/// Wrong usage, with the most similar names.
pub fn op(text: &str) -> Result<&'static OpEntry, Failure> {
    if let Some(op) = registry::find_op(text).or_else(|| registry::find_op(&of_method(text))) {
        return Ok(op);
    }
    let near: Vec<String> = registry::near_ops(text).iter().map(|name| format!("`{name}`")).collect();
    let meant = if near.is_empty() { String::new() } else { format!(" (near: {})", near.join(", ")) };
    let count = table::current().ops().count();
    Err(Failure::Usage(format!("there is no op `{text}`{meant}; `keyway ops` lists the {count} that exist")))
}
