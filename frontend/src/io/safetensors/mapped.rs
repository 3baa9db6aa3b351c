//! Loading from a mapped file, one tensor at a time.

use super::SafetensorsError as Error;
use super::header::Entry;
use super::layouts;
use super::read::{Opened, load_only, read_tensor};
use crate::io::Listed;
use crate::io::state_dict::StateDict;
use crate::{Result, Tensor};
use keyway_dispatcher::memory::Storage;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// An open file whose tensors are loaded one at a time; [`open`] returns it.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// let saved = StateDict::from([("weight".to_string(), Tensor::ones((1000, 8))?)]);
/// safetensors::save(&path, &saved)?;
/// let file = safetensors::open(&path)?;
/// assert_eq!((file.list()[0].name.as_str(), &file.list()[0].shape[..]), ("weight", &[1000, 8][..]));
/// assert_eq!(file.tensor("weight")?.i(999)?.to_vec::<f32>()?, [1.0; 8]);
/// # Ok(()) }
/// ```
pub struct MappedFile {
    path: PathBuf,
    opened: Opened,
    /// The whole file; `None` where the system has no such mappings.
    memory: Option<Storage>,
    /// Held while the position of the file is used.
    position: Mutex<()>,
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Opens a file for loading one tensor at a time. The header is read and checked; no tensor is.
///
/// On Linux the file is mapped copy-on-write: a tensor of floating-point or complex numbers is a view of the mapping, so it takes
/// no time to load and no memory of its own, and its pages are read when they are used. It keeps the mapping alive. Writes to it do
/// not reach the file, but other tensors of the same name have them: take a [`Tensor::copy`] to change one. [`Tensor::as_slice`]
/// refuses it, since other programs may change the file: use [`Tensor::accessor`], or a [`Tensor::copy`].
///
/// Other tensors are read into memory: integers and bools, which ops use as indices and masks, channels_last, and those that are
/// not aligned to their dtype.
///
/// If another program truncates the file meanwhile, an access ends this process with SIGBUS; replacing the file by a rename, as
/// [`save`](super::save) does, is harmless.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::safetensors, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.safetensors");
/// let saved = StateDict::from([("bias".to_string(), Tensor::new([1.0f32, 2.0])?)]);
/// safetensors::save(&path, &saved)?;
/// let bias = safetensors::open(&path)?.tensor("bias")?;
/// bias.mul_(10.0)?;
/// assert_eq!(bias.to_vec::<f32>()?, [10.0, 20.0]);
/// assert_eq!(safetensors::load(&path)?["bias"].to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`SafetensorsError`](Error) for a file that cannot be read, or whose header is damaged; a file that cannot be mapped.
#[doc(alias = "safe_open")]
#[doc(alias = "MmapedSafetensors")]
pub fn open(path: impl AsRef<Path>) -> Result<MappedFile> {
    let path = path.as_ref().to_path_buf();
    let opened = Opened::new(&path)?;
    let memory = map(&path, &opened.file)?;
    Ok(MappedFile { path, opened, memory, position: Mutex::new(()) })
}

#[cfg(target_os = "linux")]
fn map(path: &Path, file: &std::fs::File) -> Result<Option<Storage>> {
    let failed = |source| Error::Read { path: path.to_path_buf(), source };
    let file = file.try_clone().map_err(failed)?;
    Ok(Some(Storage::map_file_copy_on_write("safetensors::open", file)?))
}

#[cfg(not(target_os = "linux"))]
fn map(_path: &Path, _file: &std::fs::File) -> Result<Option<Storage>> {
    Ok(None)
}

impl MappedFile {
    /// The entries, ordered by name, including those that cannot be loaded.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, io::safetensors, nn::StateDict};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.safetensors");
    /// safetensors::save(&path, &StateDict::from([("bias".to_string(), Tensor::new([1i64])?)]))?;
    /// let names: Vec<String> = safetensors::open(&path)?.list().into_iter().map(|entry| entry.name).collect();
    /// assert_eq!(names, ["bias"]);
    /// # Ok(()) }
    /// ```
    pub fn list(&self) -> Vec<Listed> {
        self.opened.listed()
    }

    /// The metadata that the file's writer added, as strings.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{io::safetensors, nn::StateDict};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.safetensors");
    /// let notes = [("epochs".to_string(), "60".to_string())].into();
    /// safetensors::save_with_metadata(&path, &StateDict::new(), &notes)?;
    /// assert_eq!(safetensors::open(&path)?.metadata()["epochs"], "60");
    /// # Ok(()) }
    /// ```
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.opened.header.metadata
    }

    /// The tensor of a name, on the CPU; see [`open`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, io::safetensors, nn::StateDict};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.safetensors");
    /// safetensors::save(&path, &StateDict::from([("bias".to_string(), Tensor::new([1.0f32])?)]))?;
    /// let file = safetensors::open(&path)?;
    /// assert_eq!(file.tensor("bias")?.shape(), [1]);
    /// assert!(file.tensor("weight").unwrap_err().to_string().contains("`bias`"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A name that does not exist, an entry whose dtype or layout this program lacks, damaged components of a composite tensor;
    /// memory that does not suffice.
    #[doc(alias = "get_tensor")]
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        if let Some(entry) = self.opened.header.entries.iter().find(|entry| entry.name == name) {
            return self.strided(entry);
        }
        let Some(whole) = self.opened.composite.iter().find(|whole| whole.name == name) else {
            return self.absent(name);
        };
        let mut parts = StateDict::new();
        for component in &whole.components {
            parts.insert(component.clone(), self.tensor(component)?);
        }
        layouts::join(&self.path, std::iter::once(whole), &mut parts)?;
        parts.remove(name).map_or_else(|| self.absent(name), Ok)
    }

    /// The error of a name that cannot be loaded, as [`load_only`] reports it.
    fn absent(&self, name: &str) -> Result<Tensor> {
        let mut loaded = load_only(&self.path, &[name])?;
        let missing = || Error::MissingName {
            path: self.path.clone(),
            tensor: name.to_string(),
            there: "a file that was replaced meanwhile".to_string(),
        };
        loaded.remove(name).ok_or_else(|| missing().into())
    }

    fn strided(&self, entry: &Entry) -> Result<Tensor> {
        let channels_last = self.opened.last.contains(&entry.name);
        let first = self.opened.start + entry.range.0;
        let size = entry.dtype.size() as u64;
        let is_view = entry.dtype.is_inexact() && !channels_last && size > 0 && first.is_multiple_of(size);
        if let (Some(memory), true) = (&self.memory, is_view) {
            return Tensor::over_file(memory, (first / size) as usize, &entry.shape, entry.dtype);
        }
        let failed = |source| Error::Read { path: self.path.clone(), source };
        let _held = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = &self.opened.file;
        file.seek(SeekFrom::Start(first)).map_err(failed)?;
        read_tensor(&self.path, &mut file, entry, channels_last, &mut Vec::new())
    }
}

impl Tensor {
    /// The row-major tensor of this shape over mapped memory, `offset` elements after its first byte.
    fn over_file(memory: &Storage, offset: usize, shape: &[usize], dtype: crate::DType) -> Result<Tensor> {
        use keyway_dispatcher::{dims::contiguous_strides, tensor::TensorImpl};
        let strides = contiguous_strides(shape);
        let made =
            TensorImpl::strided_for("safetensors::open", memory.clone(), offset, shape, &strides, dtype)?;
        Ok(Tensor::from_ref(made))
    }
}
