//! The table that a plugin answers with.

use super::device::DeviceApi;
use super::host::HostApi;
use super::layout::{LayoutApi, LayoutOpsApi};
use super::op::{RawInterposer, RawKernel, RawOp};

/// A list of pointers that the plugin keeps for the life of the process.
#[repr(C)]
#[derive(Debug)]
pub struct RawList<T> {
    /// `len` pointers.
    pub items: *const *const T,
    /// Number of pointers.
    pub len: usize,
}

/// What a plugin brings. Filled in by `initialize`, so that nothing runs before the host says so.
#[repr(C)]
#[derive(Debug)]
pub struct PluginContents {
    /// Size of this structure in bytes, as the host knows it.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Devices.
    pub devices: RawList<DeviceApi>,
    /// Layouts.
    pub layouts: RawList<LayoutApi>,
    /// New ops.
    pub ops: RawList<RawOp>,
    /// Kernels.
    pub kernels: RawList<RawKernel>,
    /// Interposers.
    pub interposers: RawList<RawInterposer>,
    /// What can be done with layouts, for each device.
    pub layout_ops: RawList<LayoutOpsApi>,
}

/// The interface [`codes::interface::PLUGIN`](super::codes::interface::PLUGIN).
#[repr(C)]
#[derive(Debug)]
pub struct PluginApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// The ABI version of this table.
    pub abi_version: u32,
    /// Called once, first. `host` lives as long as the process. Fills in `out`.
    pub initialize: unsafe extern "C" fn(host: *const HostApi, out: *mut PluginContents) -> i32,
}
