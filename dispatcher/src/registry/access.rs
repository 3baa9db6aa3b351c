//! The plugins whose kernels may run on the memory of a device.

use crate::device::DeviceEntry;
use crate::plugin::PluginEntry;

/// Whether a plugin's kernels may use the memory of a device. Host memory is accessible to all; that of any other device to
/// the plugin that owns it, and to those that declare themselves compatible with it.
pub(super) fn may_serve(plugin: &PluginEntry, kind: u16, owner: Option<&'static DeviceEntry>) -> bool {
    match owner {
        _ if kind == 0 => true,
        Some(owner) => {
            owner.plugin.name == plugin.name
                || plugin.compatible_with.iter().any(|name| name == owner.plugin.name)
        }
        None => true,
    }
}
