//! Paths as their bytes in JSON, since they need not be text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// One or none.
pub mod one {
    use super::PathBuf;
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        super::serialize(path.as_slice(), serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(super::deserialize(deserializer)?.pop())
    }
}

pub fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<&[u8]> = paths.iter().map(|path| path.as_os_str().as_bytes()).collect();
    bytes.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let bytes = Vec::<Vec<u8>>::deserialize(deserializer)?;
    Ok(bytes.into_iter().map(|bytes| PathBuf::from(OsString::from_vec(bytes))).collect())
}
