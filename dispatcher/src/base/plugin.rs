//! A plugin as the host knows it once it is loaded.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// A loaded plugin.
#[derive(Debug)]
pub struct PluginEntry {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// The CPU level or other variant of this build.
    pub variant: String,
    /// The library.
    pub path: PathBuf,
    /// Order of loading; the lower wins among equal priorities.
    pub order: usize,
    /// Plugins whose devices' memory this one's kernels can work on, besides its own.
    pub compatible_with: Vec<String>,
    /// Devices that its manifest names, and for which it brings nothing: neither the device, nor a kernel or a layout's functions.
    pub unresolved_devices: Vec<String>,
    pub(crate) priority: AtomicI32,
    pub(crate) retired: AtomicBool,
}

impl PluginEntry {
    /// Whether it has been taken out of use.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Its priority: 0 is usual; higher is tried first.
    pub fn priority(&self) -> i32 {
        self.priority.load(Ordering::Relaxed)
    }
}
