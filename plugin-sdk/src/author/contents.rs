//! The contents of a plugin, filled in by its set-up function.

use super::host::{Level, log};
use super::interposer::InterposerItem;
use super::kernel_items::KernelItems;
use super::names::{NameKind, intern};
use super::preference::{self, PreferenceItem};
use super::reach::set_reachable;
use crate::abi::codes::device_flag;
use crate::abi::device::DeviceApi;
use crate::abi::dtype::DTypeApi;
use crate::abi::interposer::RawInterposer;
use crate::abi::layout::{LayoutApi, LayoutOpsApi};
use crate::abi::op::{RawKernel, RawOp};
use crate::abi::plugin::{PluginContents, RawList};
use crate::abi::preference::RawPreference;
use crate::abi::table::fill;
use std::borrow::Cow;
use std::mem::offset_of;

/// Devices, layouts, dtypes and ops that the plugin brings. Kernels, interposers and preferences need no line here:
/// `register_kernel!`, `register_interposer!` and `register_preference!` gather them.
#[derive(Default)]
pub struct Contents {
    devices: Vec<&'static DeviceApi>,
    layouts: Vec<&'static LayoutApi>,
    layout_ops: Vec<&'static LayoutOpsApi>,
    ops: Vec<&'static RawOp>,
    dtypes: Vec<&'static DTypeApi>,
    preferences: Vec<RawPreference>,
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

    /// Brings a dtype.
    pub fn dtype(&mut self, dtype: &'static DTypeApi) -> &mut Self {
        self.dtypes.push(dtype);
        self
    }

    /// Adds the functions of a layout on a device. The layout must be declared too, with [`Contents::layout`].
    pub fn layout_ops(&mut self, ops: &'static LayoutOpsApi) -> &mut Self {
        self.layout_ops.push(ops);
        self
    }

    /// Brings an op.
    pub fn op(&mut self, op: &'static RawOp) -> &mut Self {
        self.ops.push(op);
        self
    }

    /// Declares the time of an op in a memory format or layout, as [`register_preference!`](crate::register_preference)
    /// does, with a cost that is computed at run time, such as one that depends on the hardware. A cost outside of 0.001 to
    /// 1000, a row-major format, or a second declaration for the same op, device and format has no effect: the host warns
    /// of it and uses the rest of the plugin.
    ///
    /// ```
    /// use keyway_sdk::author::{Contents, Error};
    ///
    /// fn setup(contents: &mut Contents) -> Result<(), Error> {
    ///     let has_tiles = false; // As the device reports it.
    ///     contents.preference("conv", "cpu", "channels_last", if has_tiles { 0.4 } else { 0.9 });
    ///     Ok(())
    /// }
    /// # assert!(setup(&mut Contents::default()).is_ok());
    /// ```
    pub fn preference(
        &mut self,
        op: &'static str,
        device: &'static str,
        format: &'static str,
        cost: f64,
    ) -> &mut Self {
        self.preferences.push(preference::raw(op, device, format, cost));
        self
    }

    /// Writes the lists to the host's structure.
    ///
    /// # Safety
    /// `out` must be valid for writes of the size in its `struct_size`; the host upholds this.
    pub(crate) unsafe fn write(self, out: *mut PluginContents) {
        let kernels: Vec<RawKernel> =
            inventory::iter::<KernelItems>.into_iter().flat_map(KernelItems::raw).collect();
        // As a list of pointers.
        let mut kernels: Vec<&'static RawKernel> = kernels.leak().iter().collect();
        // The order in which `inventory` yields depends on the build; sorting makes it deterministic.
        // SAFETY: the names are static strings of this library.
        kernels.sort_by_key(|k| unsafe { (k.op.read(), k.device.read(), k.layout.read(), k.dtype.read()) });
        for device in &self.devices {
            if device.flags & device_flag::HOST_ACCESSIBLE != 0 {
                // SAFETY: the name is a static string of this library.
                if let Cow::Borrowed(name) = unsafe { device.name.read() }
                    && let Ok(number) = intern(NameKind::Device, name)
                {
                    set_reachable(number, name);
                }
            }
        }
        let mut interposers: Vec<&'static RawInterposer> =
            inventory::iter::<InterposerItem>.into_iter().map(|item| item.0).collect();
        // SAFETY: as for the kernels.
        interposers.sort_by_key(|i| unsafe { i.name.read() });
        let mut preferences = self.preferences;
        preferences.extend(inventory::iter::<PreferenceItem>.into_iter().map(|item| item.0));
        // SAFETY: as for the kernels.
        preferences
            .sort_by_key(|p| unsafe { (p.op.read(), p.device.read(), p.format.read(), p.cost.to_bits()) });
        let contents = PluginContents {
            struct_size: 0,
            reserved: 0,
            devices: list(self.devices),
            layouts: list(self.layouts),
            ops: list(self.ops),
            kernels: list(kernels),
            interposers: list(interposers),
            dtypes: list(self.dtypes),
            layout_ops: list(self.layout_ops),
            preferences: list(preferences.leak().iter().collect()),
        };
        // SAFETY: the caller guarantees that `out` is writable for the size that it states.
        let written = unsafe { fill(out, &contents) };
        let later = [
            ("interposers", offset_of!(PluginContents, interposers), contents.interposers.len),
            ("functions of layouts", offset_of!(PluginContents, layout_ops), contents.layout_ops.len),
            ("declared formats", offset_of!(PluginContents, preferences), contents.preferences.len),
            ("dtypes of plugins", offset_of!(PluginContents, dtypes), contents.dtypes.len),
        ];
        for (what, offset, count) in later {
            if count > 0 && offset >= written {
                log(
                    Level::Warn,
                    &format!("the host is older than {what}: those of this plugin are left out"),
                );
            }
        }
    }
}

/// Leaks a list once, since the host reads it for the life of the process.
fn list<T>(items: Vec<&'static T>) -> RawList<T> {
    let items: &'static [&'static T] = items.leak();
    RawList { items: items.as_ptr().cast(), len: items.len() }
}
