//! A plugin as the host knows it once it is loaded.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32};

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
    pub(crate) priority: AtomicI32,
    pub(crate) retired: AtomicBool,
}
