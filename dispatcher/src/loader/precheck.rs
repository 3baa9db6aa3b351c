//! Checks of a file before the system opens it as a library.

use super::elf;
use super::error::LoadError;
use super::manifest::{self, InterposerRecord, KernelRecord, Manifest};
use super::reason::AbiRange;
use keyway_abi_root::abi_stable::library::ROOT_MODULE_LOADER_NAME;
use keyway_sdk::abi::manifest::SECTION;
use keyway_sdk::abi::plugin::ENTRY_SYMBOL;
use object::read::ReadCache;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The identity of a file on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileId {
    /// The number of the device that holds the file.
    pub device: u64,
    /// The file's inode number.
    pub inode: u64,
    /// The file's size in bytes.
    pub size: u64,
}

/// A file's identity and times when it was examined. The system changes the times with the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// The file's identity.
    pub id: FileId,
    /// When its content was last written, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The time of the last change of content or permissions; no program can set it.
    pub changed_ns: i64,
}

impl Stamp {
    /// The stamp of the file at a path, following links.
    ///
    /// # Errors
    /// The file does not exist or cannot be examined.
    pub fn of_file(path: &Path) -> std::io::Result<Stamp> {
        std::fs::metadata(path).map(|meta| Stamp::of(&meta))
    }

    fn of(meta: &std::fs::Metadata) -> Stamp {
        let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Stamp {
            id: FileId { device: meta.dev(), inode: meta.ino(), size: meta.size() },
            modified_ns: ns(meta.mtime(), meta.mtime_nsec()),
            changed_ns: ns(meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// A library that passed the checks of its bytes, with its manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The file's identity.
    pub id: FileId,
    /// The file as it was when it was read.
    #[serde(skip)]
    pub stamp: Stamp,
    /// The manifest.
    pub manifest: Manifest,
    /// The kernel records.
    pub kernels: Vec<KernelRecord>,
    /// The interposer records.
    pub interposers: Vec<InterposerRecord>,
    /// Libraries that it needs.
    pub needed: Vec<String>,
    /// Folders in which the system searches for needed libraries first (`DT_RPATH`, `DT_RUNPATH`), unexpanded.
    pub run_path: Vec<String>,
}

impl Checked {
    /// The number of kernels in the records, one for each dtype.
    pub fn n_kernels(&self) -> usize {
        self.kernels.iter().map(|record| record.dtypes.len()).sum()
    }

    /// Whether the library names folders relative to its own, so that it must be opened by its path.
    pub(super) fn uses_origin(&self) -> bool {
        let own = |text: &String| text.contains("$ORIGIN") || text.contains("${ORIGIN}");
        self.run_path.iter().chain(&self.needed).any(own)
    }
}

/// The entry symbols of plugins; a library exports one of them.
const ENTRIES: [&str; 2] = [ENTRY_SYMBOL, ROOT_MODULE_LOADER_NAME];

pub(super) fn no_entry() -> LoadError {
    LoadError::MissingSymbol { symbols: ENTRIES.map(str::to_string).to_vec() }
}

fn unreadable(error: &std::io::Error) -> LoadError {
    LoadError::Unreadable { detail: error.to_string() }
}

/// Opens a regular file for reading; a pipe or a device does not block.
pub(super) fn open_regular(path: &Path) -> Result<(File, Stamp), LoadError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)
        .map_err(|e| unreadable(&e))?;
    let meta = file.metadata().map_err(|e| unreadable(&e))?;
    if !meta.is_file() {
        let got = if meta.is_dir() { "a folder" } else { "a pipe, socket or device" };
        return Err(LoadError::NotALibrary { expected: "a regular file".to_string(), got: got.to_string() });
    }
    Ok((file, Stamp::of(&meta)))
}

/// Checks that `path` is a complete library for this machine with a sound manifest for this `host`, and returns the
/// manifest.
///
/// Reads the headers and a few sections only, so the cost does not grow with the size of the code.
pub fn check(path: &Path, host: AbiRange) -> Result<Checked, LoadError> {
    let (file, stamp) = open_regular(path)?;
    let data = ReadCache::new(file);
    let found = elf::inspect(&data, &ENTRIES)?;
    let Some(section) = found.manifest else {
        return Err(LoadError::NoManifest { section: SECTION.to_string() });
    };
    let manifest = manifest::parse(&section)?;
    // First: later checks assume an ABI version that host and plugin support.
    check_abi(manifest.abi(), host)?;
    if !found.exports_entry {
        return Err(no_entry());
    }
    let kernels = manifest::parse_kernels(&found.kernels)?;
    let interposers = manifest::parse_interposers(&found.interposers)?;
    let (needed, run_path) = (found.needed, found.run_path);
    Ok(Checked { id: stamp.id, stamp, manifest, kernels, interposers, needed, run_path })
}

/// Checks that the plugin and the host have an ABI version in common.
pub fn check_abi(plugin: AbiRange, host: AbiRange) -> Result<(), LoadError> {
    if plugin.max < host.min {
        Err(LoadError::AbiTooOld { plugin, host })
    } else if plugin.min > host.max {
        Err(LoadError::AbiTooNew { plugin, host })
    } else {
        Ok(())
    }
}
