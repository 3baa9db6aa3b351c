//! Loading.

use super::SafetensorsError as Error;
use super::header::{self, Entry, Header, LENGTH_BYTES, LONGEST};
use super::{formats, layouts, plugin_dtypes};
use crate::nn::StateDict;
use crate::{DType, Result, Tensor};
use keyway_dispatcher::dims::channels_last_strides;
use keyway_dispatcher::memory::{Storage, host_vec, write_bytes};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// How many bytes go from the file to a tensor at once.
const CHUNK: usize = 1 << 20;

/// What a file holds.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// safetensors::save(&path, &StateDict::from([("bias".to_string(), Tensor::new([1.0f32])?)]))?;
/// let file = safetensors::load_file(&path)?;
/// assert_eq!(file.tensors["bias"].to_vec::<f32>()?, [1.0]);
/// assert!(!file.metadata.contains_key("author"));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct File {
    /// The tensors by name.
    pub tensors: StateDict,
    /// Texts that whoever wrote the file added.
    pub metadata: BTreeMap<String, String>,
}

/// The tensors of a file, on the CPU.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// let saved = StateDict::from([("bias".to_string(), Tensor::new([1i64, 2])?)]);
/// safetensors::save(&path, &saved)?;
/// let loaded = safetensors::load(&path)?;
/// assert_eq!(loaded["bias"].to_vec::<i64>()?, [1, 2]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`SafetensorsError`](Error) for a file that cannot be read or is damaged; memory that does not suffice.
pub fn load(path: impl AsRef<Path>) -> Result<StateDict> {
    Ok(load_file(path)?.tensors)
}

/// The tensors of a file, on the CPU, and its metadata.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// let notes = [("epochs".to_string(), "60".to_string())].into();
/// safetensors::save_with_metadata(&path, &StateDict::new(), &notes)?;
/// assert_eq!(safetensors::load_file(&path)?.metadata["epochs"], "60");
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`load`].
pub fn load_file(path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    let failed = |source| Error::Read { path: path.to_path_buf(), source };
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let mut header = read_header(path, &mut file, bytes)?;
    plugin_dtypes::restore(path, &mut header)?;
    let last = formats::channels_last(path, &mut header)?;
    let composite = layouts::take(path, &mut header)?;
    let Header { entries, metadata } = header;
    let mut buffer = Vec::new();
    let mut tensors = StateDict::new();
    for entry in entries {
        let tensor = read_tensor(path, &mut file, &entry, last.contains(&entry.name), &mut buffer)?;
        tensors.insert(entry.name, tensor);
    }
    layouts::join(path, composite, &mut tensors)?;
    Ok(File { tensors, metadata })
}

fn read_header(path: &Path, file: &mut impl Read, bytes: u64) -> Result<Header> {
    let failed = |source| Error::Read { path: path.to_path_buf(), source };
    let Some(after_length) = bytes.checked_sub(LENGTH_BYTES) else {
        return Err(Error::TooShort { path: path.to_path_buf(), got: bytes }.into());
    };
    let mut length = [0; LENGTH_BYTES as usize];
    file.read_exact(&mut length).map_err(failed)?;
    let length = u64::from_le_bytes(length);
    let longest = after_length.min(LONGEST);
    if length > longest {
        return Err(Error::HeaderLength { path: path.to_path_buf(), expected: longest, got: length }.into());
    }
    let mut text = host_vec(length as usize)?;
    text.resize(length as usize, 0);
    file.read_exact(&mut text).map_err(failed)?;
    Ok(header::parse(path, &text, after_length - length)?)
}

fn read_tensor(
    path: &Path,
    file: &mut impl Read,
    entry: &Entry,
    channels_last: bool,
    buffer: &mut Vec<u8>,
) -> Result<Tensor> {
    let tensor = match channels_last {
        false => Tensor::empty_with(&entry.shape, entry.dtype)?,
        true => {
            let strides = channels_last_strides(&entry.shape);
            Tensor::empty_strided_with(&entry.shape, &strides, entry.dtype)?
        }
    };
    let mut left = (entry.range.1 - entry.range.0) as usize;
    let mut at = 0;
    while left > 0 {
        buffer.resize(left.min(CHUNK), 0);
        file.read_exact(buffer).map_err(|source| Error::Read { path: path.to_path_buf(), source })?;
        if entry.dtype == DType::BOOL {
            check_bools(path, entry, at, buffer)?;
        }
        if let Some(storage) = tensor.as_ref().storage() {
            match channels_last {
                false => write_bytes(storage, at, buffer)?,
                true => write_elements(storage, &tensor, at / entry.dtype.size(), buffer)?,
            }
        }
        at += buffer.len();
        left -= buffer.len();
    }
    Ok(tensor)
}

/// Writes elements that lie in row-major order, the first of them element `first`, to their places in a strided tensor.
fn write_elements(storage: &Storage, tensor: &Tensor, first: usize, bytes: &[u8]) -> Result<()> {
    let (sizes, strides, size) = (tensor.shape(), tensor.strides(), tensor.dtype().size());
    for (i, element) in bytes.chunks_exact(size).enumerate() {
        let (mut rest, mut at) = (first + i, 0);
        for (&n, &stride) in sizes.iter().zip(strides).rev() {
            at += rest % n * stride;
            rest /= n;
        }
        write_bytes(storage, at * size, element)?;
    }
    Ok(())
}

fn check_bools(path: &Path, entry: &Entry, start: usize, bytes: &[u8]) -> Result<(), Error> {
    match bytes.iter().position(|&byte| byte > 1) {
        Some(at) => Err(Error::Bool {
            path: path.to_path_buf(),
            tensor: entry.name.clone(),
            element: (start + at) as u64,
            got: bytes[at],
        }),
        None => Ok(()),
    }
}
