//! What a plugin's set-up function fills in.

use super::export::{KernelItems, set_reachable};
use super::host::{NameKind, intern};
use crate::abi::codes::device_flag;
use crate::abi::device::DeviceApi;
use crate::abi::layout::{LayoutApi, LayoutOpsApi};
use crate::abi::op::{RawInterposer, RawKernel, RawOp};
use crate::abi::plugin::{PluginContents, RawList};

/// Devices, layouts, ops and interposers that the plugin brings. Kernels need no line here:
/// `register_kernel!` gathers them.
#[derive(Default)]
pub struct Contents {
    devices: Vec<&'static DeviceApi>,
    layouts: Vec<&'static LayoutApi>,
    layout_ops: Vec<&'static LayoutOpsApi>,
    ops: Vec<&'static RawOp>,
    interposers: Vec<&'static RawInterposer>,
}

impl Contents {
    /// Brings a device.
    pub fn device(&mut self, device: &'static DeviceApi) -> &mut Self {
        self.devices.push(device);
        self
    }

    /// Declares a layout.
    pub fn layout(&mut self, layout: &'static LayoutApi) -> &mut Self {
        self.layouts.push(layout);
        self
    }

    /// Brings the functions of a layout on a device. The layout is declared too, with [`Contents::layout`].
    pub fn layout_ops(&mut self, ops: &'static LayoutOpsApi) -> &mut Self {
        self.layout_ops.push(ops);
        self
    }

    /// Brings an op.
    pub fn op(&mut self, op: &'static RawOp) -> &mut Self {
        self.ops.push(op);
        self
    }

    /// Brings an interposer.
    pub fn interposer(&mut self, interposer: &'static RawInterposer) -> &mut Self {
        self.interposers.push(interposer);
        self
    }

    /// Writes the lists to the host's structure.
    ///
    /// # Safety
    /// `out` must be valid for writes of the size that its `struct_size` says; the host upholds this.
    pub(crate) unsafe fn write(self, out: *mut PluginContents) {
        let mut kernels: Vec<&'static RawKernel> =
            inventory::iter::<KernelItems>.into_iter().flat_map(|items| items.0.iter()).collect();
        // The order in which `inventory` yields depends on the build; the host sees one order.
        // SAFETY: the names are static strings of this library.
        kernels.sort_by_key(|k| unsafe { (k.op.read(), k.device.read(), k.layout.read(), k.dtype.read()) });
        for device in &self.devices {
            if device.flags & device_flag::HOST_ACCESSIBLE != 0 {
                // SAFETY: the name is a static string of this library.
                if let Ok(number) = intern(NameKind::Device, &unsafe { device.name.read() }) {
                    set_reachable(number);
                }
            }
        }
        // SAFETY: the caller guarantees a valid `out`.
        let out = unsafe { &mut *out };
        out.devices = list(self.devices);
        out.layouts = list(self.layouts);
        out.ops = list(self.ops);
        out.kernels = list(kernels);
        out.interposers = list(self.interposers);
        out.layout_ops = list(self.layout_ops);
    }
}

/// The host reads the list for the life of the process, so it is leaked once.
fn list<T>(items: Vec<&'static T>) -> RawList<T> {
    let items: &'static [&'static T] = items.leak();
    RawList { items: items.as_ptr().cast(), len: items.len() }
}
