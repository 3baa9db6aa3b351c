//! Serialisation of paths as JSON, whose texts are UTF-8. Invalid sequences become U+FFFD, so that one invalid name does
//! not lose the report.

use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// A path as text.
pub struct Lossy<'a>(pub &'a Path);

impl Serialize for Lossy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string_lossy())
    }
}

/// For `#[serde(serialize_with)]`: a path.
///
/// # Errors
/// The serializer's error.
pub fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    Lossy(path).serialize(serializer)
}

/// For `#[serde(serialize_with)]`: an optional path.
///
/// # Errors
/// The serializer's error.
#[allow(clippy::ref_option, reason = "the form that serde calls")]
pub fn option<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Lossy).serialize(serializer)
}

/// For `#[serde(serialize_with)]`: a list of paths.
///
/// # Errors
/// The serializer's error.
pub fn list<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| Lossy(path)))
}

/// For `#[serde(serialize_with)]`: pairs of path and value.
///
/// # Errors
/// The serializer's error.
pub fn keyed<T: Serialize, S: Serializer>(pairs: &[(PathBuf, T)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(pairs.iter().map(|(path, value)| (Lossy(path), value)))
}
