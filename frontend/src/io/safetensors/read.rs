//! Loading.

use super::SafetensorsError as Error;
use super::header::{self, Entry, Header, LENGTH_BYTES, LONGEST};
use super::layouts::Planned;
use super::{formats, layouts, plugin_dtypes, to_format};
use crate::io::state_dict::StateDict;
use crate::io::{Listed, foreign};
use crate::{DType, Result, Tensor};
use keyway_dispatcher::dims::channels_last_strides;
use keyway_dispatcher::memory::{Storage, host_vec, write_bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes per read from the file to a tensor.
const CHUNK: usize = 1 << 20;
/// Maximum number of names in an error.
const SHOWN: usize = 8;

/// The contents of a file.
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
    /// The metadata that the file's writer added, as strings.
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

/// Loads the tensors of a file, on the CPU, and its metadata.
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
    Opened::new(path)?.read(path, None)
}

/// Loads some tensors of a file, by name, on the CPU. Other entries are not read, and may have dtypes that this program lacks.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// let tensor = |value: f32| Tensor::new([value]);
/// let all = [("weight".to_string(), tensor(1.0)?), ("bias".to_string(), tensor(2.0)?)];
/// safetensors::save(&path, &StateDict::from(all))?;
/// let some = safetensors::load_only(&path, &["bias"])?;
/// assert_eq!((some.len(), some["bias"].to_vec::<f32>()?), (1, vec![2.0]));
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`load`]; a name that does not exist.
pub fn load_only<S: AsRef<str>>(path: impl AsRef<Path>, names: &[S]) -> Result<StateDict> {
    let path = path.as_ref();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    Ok(Opened::new(path)?.read(path, Some(&names))?.tensors)
}

/// Lists the entries of a file, ordered by name, including those that cannot be loaded. Only the header is read.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// safetensors::save(&path, &StateDict::from([("bias".to_string(), Tensor::new([1i64, 2])?)]))?;
/// let listed = safetensors::list(&path)?;
/// assert_eq!((listed[0].name.as_str(), listed[0].dtype.as_str(), &listed[0].shape[..]), ("bias", "I64", &[2][..]));
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`SafetensorsError`](Error) for a file that cannot be read, or whose header is damaged.
pub fn list(path: impl AsRef<Path>) -> Result<Vec<Listed>> {
    Ok(Opened::new(path.as_ref())?.listed())
}

/// A file whose header was read.
pub(super) struct Opened {
    pub(super) file: std::fs::File,
    pub(super) header: Header,
    /// The tensors to load in channels_last.
    pub(super) last: BTreeSet<String>,
    /// The tensors of composite layouts, those with the longest names first.
    pub(super) composite: Vec<Planned>,
    /// Offset of the data.
    pub(super) start: u64,
}

impl Opened {
    pub(super) fn new(path: &Path) -> Result<Opened> {
        let failed = |source| Error::Read { path: path.to_path_buf(), source };
        let mut file = std::fs::File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let (mut header, start) = read_header(path, &mut file, bytes).map_err(|error| match error {
            crate::Error::Safetensors(Error::TooShort { .. } | Error::HeaderLength { .. }) => {
                let foreign = foreign::kind_of(&mut file, foreign::Format::Safetensors);
                foreign.map_or(error, |got| Error::Foreign { path: path.to_path_buf(), got }.into())
            }
            error => error,
        })?;
        plugin_dtypes::restore(path, &mut header)?;
        let last = formats::channels_last(path, &mut header)?;
        let composite = layouts::take(path, &mut header)?;
        Ok(Opened { file, header, last, composite, start })
    }

    /// The entries, ordered by name. Components of composite tensors are not among them.
    pub(super) fn listed(&self) -> Vec<Listed> {
        let Header { entries, unread, .. } = &self.header;
        let is_part = |name: &String| self.composite.iter().any(|whole| whole.components.contains(name));
        let of_entries = entries.iter().filter(|entry| !is_part(&entry.name)).map(|entry| {
            let named =
                to_format(entry.dtype).map_or_else(|| entry.dtype.to_string(), |known| known.to_string());
            (&entry.name, named, &entry.shape, Some(entry.dtype))
        });
        let of_composite = self.composite.iter().filter(|whole| !is_part(&whole.name));
        let of_composite =
            of_composite.map(|whole| (&whole.name, whole.dtype.to_string(), &whole.shape, Some(whole.dtype)));
        let of_unread = unread.iter().map(|unread| (&unread.name, unread.dtype.clone(), &unread.shape, None));
        let all = of_entries.chain(of_composite).chain(of_unread);
        let mut all: Vec<Listed> = all
            .map(|(name, dtype, shape, loads)| Listed {
                name: name.clone(),
                dtype,
                shape: shape.clone(),
                loads,
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The names to load, those of components among them; an error for a name that does not exist or cannot be loaded.
    fn wanted(&mut self, path: &Path, names: Option<&[&str]>) -> Result<BTreeSet<String>> {
        let Header { entries, unread, .. } = &mut self.header;
        let of_entries = entries.iter().map(|entry| &entry.name);
        let all =
            of_entries.chain(unread.iter().map(|u| &u.name)).chain(self.composite.iter().map(|w| &w.name));
        let all: BTreeSet<&String> = all.collect();
        let mut wanted: BTreeSet<String> = match names {
            None => all.into_iter().cloned().collect(),
            Some(names) => {
                if let Some(absent) = names.iter().find(|name| !all.contains(&name.to_string())) {
                    let shown = all.iter().take(SHOWN).map(|name| format!("`{}`", header::shown(name)));
                    let shown = shown.collect::<Vec<_>>().join(", ");
                    let more = if all.len() > SHOWN {
                        format!(" and {} more", all.len() - SHOWN)
                    } else {
                        String::new()
                    };
                    let there = if all.is_empty() { "none".to_string() } else { shown + &more };
                    let (path, tensor) = (path.to_path_buf(), absent.to_string());
                    return Err(Error::MissingName { path, tensor, there }.into());
                }
                names.iter().map(ToString::to_string).collect()
            }
        };
        // Shortest names first, since a component may itself be composite.
        for whole in self.composite.iter().rev() {
            if wanted.contains(&whole.name) {
                wanted.extend(whole.components.iter().cloned());
            }
        }
        match unread.iter().position(|unread| wanted.contains(&unread.name)) {
            Some(at) => Err(unread.swap_remove(at).error.into()),
            None => Ok(wanted),
        }
    }

    fn read(mut self, path: &Path, names: Option<&[&str]>) -> Result<File> {
        let wanted = self.wanted(path, names)?;
        let Opened { mut file, header: Header { entries, metadata, .. }, last, mut composite, start } = self;
        let mut buffer = Vec::new();
        let mut tensors = StateDict::new();
        let mut at = 0;
        for entry in entries.into_iter().filter(|entry| wanted.contains(&entry.name)) {
            if entry.range.0 != at {
                let failed = |source| Error::Read { path: path.to_path_buf(), source };
                file.seek(SeekFrom::Start(start + entry.range.0)).map_err(failed)?;
            }
            at = entry.range.1;
            let tensor = read_tensor(path, &mut file, &entry, last.contains(&entry.name), &mut buffer)?;
            tensors.insert(entry.name, tensor);
        }
        composite.retain(|whole| wanted.contains(&whole.name));
        layouts::join(path, &composite, &mut tensors)?;
        Ok(File { tensors, metadata })
    }
}

fn read_header(path: &Path, file: &mut impl Read, bytes: u64) -> Result<(Header, u64)> {
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
    Ok((header::parse(path, &text, after_length - length)?, LENGTH_BYTES + length))
}

/// Reads one tensor from its first byte, at which the file is.
pub(super) fn read_tensor(
    path: &Path,
    file: &mut impl Read,
    entry: &Entry,
    channels_last: bool,
    buffer: &mut Vec<u8>,
) -> Result<Tensor> {
    let tensor = match channels_last {
        false => Tensor::uninit(&entry.shape, entry.dtype)?,
        true => {
            let strides = channels_last_strides(&entry.shape);
            Tensor::uninit_strided(&entry.shape, &strides, entry.dtype)?
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

/// Writes elements in row-major order, the first of them with index `first`, to a strided tensor.
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
