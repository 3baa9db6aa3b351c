//! Known failures: a list in the backend's own folder, each with a reason.

use crate::case::glob;
use keyway::dispatcher::loader::side;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Cases that are known to fail.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The id of a case, or a pattern of ids. Every case that it matches must fail.
    pub case: String,
    /// The reason, and what would change it.
    pub reason: String,
}

/// A backend's list.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct KnownFailures {
    /// The entries.
    #[serde(default)]
    pub known: Vec<Known>,
}

/// A list that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnownError {
    /// The file could not be read.
    #[error("cannot read the list of known failures {path}: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// The file is not a list of known failures.
    #[error(
        "{path} is no list of known failures: {reason}; each entry is `[[known]]` with `case = \"family/op/...\"` \
         and `reason = \"...\"`"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
}

impl KnownFailures {
    /// Reads a list.
    ///
    /// # Errors
    /// [`KnownError`].
    pub fn read(path: &Path) -> Result<KnownFailures, KnownError> {
        let text = side::read(path)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
            .map_err(|e| KnownError::Read { path: path.to_path_buf(), reason: e.to_string() })?;
        let wrong = |reason: String| KnownError::Format { path: path.to_path_buf(), reason };
        let list: KnownFailures = toml::from_str(&text).map_err(|e| wrong(e.message().to_string()))?;
        match list.known.iter().find(|k| k.reason.trim().is_empty()) {
            Some(entry) => Err(wrong(format!("`{}` has no reason", entry.case))),
            None => Ok(list),
        }
    }

    /// The path of a library's list: `libx.known-failures.toml` for `libx.so`.
    pub fn beside(library: &Path) -> PathBuf {
        library.with_extension("known-failures.toml")
    }

    /// The reason why a case is known to fail.
    pub fn reason(&self, id: &str) -> Option<&str> {
        self.known.iter().find(|k| glob(&k.case, id)).map(|k| k.reason.as_str())
    }
}
