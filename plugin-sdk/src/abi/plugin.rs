//! The table that a plugin returns.

use super::device::DeviceApi;
use super::dtype::DTypeApi;
use super::host::HostApi;
use super::interposer::RawInterposer;
use super::layout::{LayoutApi, LayoutOpsApi};
use super::op::{RawKernel, RawOp};
use super::preference::RawPreference;
use std::ffi::c_void;

/// The name of the data symbol that marks a library as a plugin: an [`EntryPoint`].
/// The host looks it up first. A library without it may export the `abi_stable` root of `keyway-abi-root` instead, with the
/// same two functions; `plugin!` exports both.
pub const ENTRY_SYMBOL: &str = "keyway_plugin_v1";

/// The symbol that a plugin exports as [`ENTRY_SYMBOL`]. It is constant: no code of the plugin runs before the host calls
/// it.
#[repr(C)]
#[derive(Debug)]
pub struct EntryPoint {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Takes the lowest and highest ABI version that the host supports and returns the highest version that both support,
    /// or 0 if there is none.
    pub negotiate: extern "C" fn(host_min: u32, host_max: u32) -> u32,
    /// Returns the table of interface `id` (see [`codes::interface`](super::codes::interface)) at ABI `version`, or null if
    /// the plugin has none. The table lives as long as the process.
    pub get_interface: extern "C" fn(id: u32, version: u32) -> *const c_void,
}

/// A list of pointers that the plugin owns for the life of the process.
#[repr(C)]
#[derive(Debug)]
pub struct RawList<T> {
    /// `len` pointers.
    pub items: *const *const T,
    /// Number of pointers.
    pub len: usize,
}

/// The contents of a plugin. Filled in by `initialize`, so that no code runs before the host calls it.
#[repr(C)]
#[derive(Debug)]
pub struct PluginContents {
    /// Size of this structure in bytes: initially the host's, then that of the fields that the plugin wrote, at most the
    /// host's. The host reads no field beyond it.
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
    /// Dtypes.
    pub dtypes: RawList<DTypeApi>,
    /// Conversions of layouts, for each device.
    pub layout_ops: RawList<LayoutOpsApi>,
    /// Times of ops in memory formats and layouts, for planning.
    pub preferences: RawList<RawPreference>,
}

/// The interface [`codes::interface::PLUGIN`](super::codes::interface::PLUGIN).
#[repr(C)]
#[derive(Debug)]
pub struct PluginApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// The ABI version of this table: one of those in the manifest.
    pub abi_version: u32,
    /// Called once, before all other functions. `host` lives as long as the process. Fills in `out`.
    pub initialize: unsafe extern "C" fn(host: *const HostApi, out: *mut PluginContents) -> i32,
}
