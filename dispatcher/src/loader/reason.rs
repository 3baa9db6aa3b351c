//! The parts of a [`LoadError`](super::LoadError) that are separate types.

use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// A closed range of ABI versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AbiRange {
    /// The lowest supported version.
    pub min: u32,
    /// The highest supported version.
    pub max: u32,
}

impl fmt::Display for AbiRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "ABI {}", self.min)
        } else {
            write!(f, "ABI {} to {}", self.min, self.max)
        }
    }
}

/// The property that two libraries share, so that only the first is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SameAs {
    /// Device and inode: a symlink or a hard link.
    File,
    /// Every byte: a copy.
    Content,
    /// The same plugin name, version and variant, but different bytes.
    Plugin,
}

impl fmt::Display for SameAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SameAs::File => "the same file under another name",
            SameAs::Content => "a copy",
            SameAs::Plugin => "another build of the same plugin, version and variant",
        })
    }
}

/// A difference between the kernels that a plugin registers and its kernel records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandedOver {
    /// Recorded, but not registered.
    Recorded,
    /// Registered, but not recorded.
    Unrecorded,
}

impl fmt::Display for HandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandedOver::Recorded => "has a record and was not handed over",
            HandedOver::Unrecorded => "was handed over and has no record",
        })
    }
}

/// The reason why a file is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Distrust {
    /// Everybody may write `path`.
    WritableByOthers {
        /// The file or folder.
        #[serde(serialize_with = "crate::base::lossy::path")]
        path: PathBuf,
        /// The permission bits of the file or folder.
        mode: u32,
    },
    /// A group of several users may write `path`.
    WritableByGroup {
        /// The file or folder.
        #[serde(serialize_with = "crate::base::lossy::path")]
        path: PathBuf,
        /// The permission bits of the file or folder.
        mode: u32,
        /// The group's id.
        group: u32,
    },
    /// An access control list lets another user or a group write `path`.
    WritableByAcl {
        /// The file or folder.
        #[serde(serialize_with = "crate::base::lossy::path")]
        path: PathBuf,
        /// Who.
        who: String,
    },
    /// The library loads others from a folder that is not trusted.
    RunPath {
        /// The folder or library, as the library spells it.
        entry: String,
        /// The reason why the folder is not trusted.
        why: String,
    },
    /// `path` belongs to a user other than root, the current user and the program's owner.
    ForeignOwner {
        /// The file or folder.
        #[serde(serialize_with = "crate::base::lossy::path")]
        path: PathBuf,
        /// The owner's id.
        owner: u32,
        /// The users whose files are accepted.
        accepted: Vec<u32>,
    },
    /// The file's SHA-256 is not the one recorded when it was installed.
    HashChanged {
        /// The file with the record.
        #[serde(serialize_with = "crate::base::lossy::path")]
        record: PathBuf,
        /// The recorded hash.
        expected: String,
        /// The file's hash.
        got: String,
    },
    /// The recorded hash cannot be read, so the file cannot be compared.
    RecordUnreadable {
        /// The file with the record.
        #[serde(serialize_with = "crate::base::lossy::path")]
        record: PathBuf,
        /// The system's message, or the content found instead of a hash.
        detail: String,
    },
}

/// The advice for a file or folder that others may write, without changing one that is shared on purpose.
fn remedy(path: &Path, mode: u32, change: &str) -> String {
    let shared = mode & 0o1000 != 0 || path.components().count() <= 2;
    match shared {
        true => "move the library into a folder of your own".to_string(),
        false => format!("run `chmod {change} {}` after checking the library's origin", path.display()),
    }
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distrust::WritableByOthers { path, mode } => write!(
                f,
                "expected that only its owner may write {0}, but its mode {mode:04o} lets everybody; {1}",
                path.display(),
                remedy(path, *mode, "o-w")
            ),
            Distrust::WritableByGroup { path, mode, group } => write!(
                f,
                "expected that only its owner may write {0}, but its mode {mode:04o} lets group {group}; {1}",
                path.display(),
                remedy(path, *mode, "g-w")
            ),
            Distrust::WritableByAcl { path, who } => write!(
                f,
                "expected that only its owner may write {0}, but its access control list lets {who}; run `setfacl -b {0}` \
                 after checking the library's origin",
                path.display()
            ),
            Distrust::RunPath { entry, why } => write!(
                f,
                "expected that only trusted users choose its dependencies, but it names `{entry}`: {why}; build it \
                 without that run path, or install its dependencies among the system's libraries"
            ),
            Distrust::ForeignOwner { path, owner, accepted } => write!(
                f,
                "expected {} to belong to one of the users {accepted:?}, but it belongs to user {owner}; \
                 install the library as yourself or as root",
                path.display()
            ),
            Distrust::HashChanged { record, expected, got } => write!(
                f,
                "expected SHA-256 {expected} as recorded in {}, got {got}; install the library again",
                record.display()
            ),
            Distrust::RecordUnreadable { record, detail } => write!(
                f,
                "expected a SHA-256 in {}, got {detail}; install the library again",
                record.display()
            ),
        }
    }
}
