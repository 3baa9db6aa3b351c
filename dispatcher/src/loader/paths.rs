//! Paths in JSON, which is text: bytes that are no UTF-8 are shown as U+FFFD, and the report stays whole.

use serde::Serializer;
use std::path::Path;

/// For `#[serde(serialize_with)]` on one path.
///
/// # Errors
/// The serialiser's own.
pub fn one<P: AsRef<Path>, S: Serializer>(path: &P, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.as_ref().to_string_lossy())
}

/// For `#[serde(serialize_with)]` on a list of paths.
///
/// # Errors
/// The serialiser's own.
pub fn many<P: AsRef<Path>, S: Serializer>(paths: &[P], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.as_ref().to_string_lossy()))
}

/// For `#[serde(serialize_with)]` on a path that may be absent.
///
/// # Errors
/// The serialiser's own.
pub fn optional<P: AsRef<Path>, S: Serializer>(path: &Option<P>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&path.as_ref().to_string_lossy()),
        None => serializer.serialize_none(),
    }
}

/// A path that [`serde`] writes by these rules.
pub struct Shown<'a>(pub &'a Path);

impl serde::Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        one(&self.0, serializer)
    }
}
