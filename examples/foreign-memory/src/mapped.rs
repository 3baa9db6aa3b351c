//! Memory that others may read: a mapped file, and bytes that are counted by reference.

use bytes::Bytes;
use keyway::storage::Blob;
use keyway::{DType, Error, Result, Tensor};
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

/// A mapped file from one of its bytes on.
struct Part {
    map: Mmap,
    begin: usize,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.map.get(self.begin..).unwrap_or_default()
    }
}

/// The f32 numbers of a file that stand behind a header of `header` bytes, read where the system maps them. The file stays mapped
/// until the last tensor over it is dropped; nobody may change it meanwhile.
///
/// # Errors
/// A file that cannot be opened or mapped, or is too short for the shape; a header that is no multiple of 4 bytes.
pub fn mapped(path: &Path, header: usize, shape: &[usize]) -> Result<Tensor> {
    let file = File::open(path).map_err(Error::other)?;
    // SAFETY: this program maps files of its own, which nobody writes to or shortens while they are mapped.
    let map = unsafe { Mmap::map(&file) }.map_err(Error::other)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let blob = Blob::from_owner(Part { map, begin: header }).named(&name);
    Tensor::from_blob(blob, shape, DType::F32)
}

/// f32 numbers in the machine's order that came as bytes, without a copy.
///
/// # Errors
/// Too few bytes for the shape; bytes that do not begin at a multiple of 4, as a slice of a message may: copy those first.
pub fn received(bytes: Bytes, shape: &[usize]) -> Result<Tensor> {
    Tensor::from_blob(Blob::from_owner(bytes).named("network"), shape, DType::F32)
}
