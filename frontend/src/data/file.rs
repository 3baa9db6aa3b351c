//! Files of data sets.

use crate::error::data::DataError;
use std::path::Path;

/// Reads a whole file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    std::fs::read(path).map_err(|source| DataError::Read { path: path.to_path_buf(), source })
}
