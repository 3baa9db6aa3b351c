//! Shared read-only memory: a mapped file, and reference-counted bytes.

use bytes::Bytes;
use keyway::storage::Blob;
use keyway::{DType, Error, Result, Tensor};
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

/// A mapped file, from a byte offset on.
struct Part {
    map: Mmap,
    begin: usize,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.map.get(self.begin..).unwrap_or_default()
    }
}

/// The f32 values of a file after a header of `header` bytes, read in the mapped memory. The file stays mapped until the last
/// tensor over it is dropped; no process may change it meanwhile.
///
/// # Errors
/// A file that cannot be opened or mapped, or is too short for the shape; a header that is no multiple of 4 bytes.
pub fn mapped(path: &Path, header: usize, shape: &[usize]) -> Result<Tensor> {
    let file = File::open(path).map_err(Error::other)?;
    // SAFETY: this program maps its own files, which no process writes to or truncates while they are mapped.
    let map = unsafe { Mmap::map(&file) }.map_err(Error::other)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let blob = Blob::from_owner(Part { map, begin: header }).named(&name);
    Tensor::from_blob(blob, shape, DType::F32)
}

/// f32 values in native byte order, received as bytes, without a copy.
///
/// # Errors
/// Too few bytes for the shape; bytes that are not aligned to 4, as a slice of a message may be: copy those first.
pub fn received(bytes: Bytes, shape: &[usize]) -> Result<Tensor> {
    Tensor::from_blob(Blob::from_owner(bytes).named("network"), shape, DType::F32)
}
