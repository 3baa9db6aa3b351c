//! The host's record of a loaded plugin.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// A loaded plugin.
#[derive(Debug)]
pub struct PluginEntry {
    /// The plugin's name.
    pub name: &'static str,
    /// The plugin's version.
    pub version: String,
    /// The CPU level or another variant of this build.
    pub variant: String,
    /// The library.
    pub path: PathBuf,
    /// Order of loading; the lower wins among equal priorities.
    pub order: usize,
    /// Plugins whose device memory this plugin's kernels can access, besides its own.
    pub compatible_with: Vec<String>,
    /// Devices in its manifest for which it registers nothing: neither the device, nor a kernel or a layout's functions.
    pub unresolved_devices: Vec<String>,
    pub(crate) priority: AtomicI32,
    pub(crate) retired: AtomicBool,
}

impl PluginEntry {
    /// Whether it has been retired.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Its priority: 0 is usual; candidates of higher priority are tried first.
    pub fn priority(&self) -> i32 {
        self.priority.load(Ordering::Relaxed)
    }
}
