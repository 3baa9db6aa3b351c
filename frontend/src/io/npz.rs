//! NumPy's format for named arrays, `.npz`: a zip archive with an [`npy`](super::npy) file for each.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::{Tensor, io::npz, nn::StateDict};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("a.npz");
//! let weights = StateDict::from([("weight".to_string(), Tensor::new([1.0f32, 2.0])?)]);
//! npz::save(&path, &weights)?;
//! assert_eq!(npz::load(&path)?["weight"].to_vec::<f32>()?, [1.0, 2.0]);
//! # Ok(()) }
//! ```
//!
//! Decisions:
//! - archives are read and written by the crate `zip`, with the two methods that NumPy writes, stored and deflated;
//! - memory allocated is bounded by the maximum size of the deflated data, 1032 times the compressed size, whatever the archive
//!   declares;
//! - an array of a dtype that tensors lack, as one of strings, is an error of that array alone: `list` includes it, and
//!   `load_only` loads others;
//! - a save replaces the file atomically, and is deterministic: entries have no date.

use super::Listed;
use super::foreign::Format;
use super::npy::{NpyError as Error, Source, array_length, named, read, read_header, replaced, write};
use super::state_dict::StateDict;
use crate::Result;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Maximum compression ratio of deflate.
const LARGEST_RATIO: u64 = 1032;
/// The size from which an entry needs the 64-bit fields.
const LARGE: u64 = u32::MAX as u64;

/// Loads the arrays of an archive by name, on the CPU.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::npz, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.npz");
/// npz::save(&path, &StateDict::from([("bias".to_string(), Tensor::new([1i64, 2])?)]))?;
/// let tensors = npz::load(&path)?;
/// assert_eq!(tensors["bias"].to_vec::<i64>()?, [1, 2]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`NpyError`](Error) for a file that cannot be read, is damaged, or holds a dtype that tensors lack; insufficient memory.
pub fn load(path: impl AsRef<Path>) -> Result<StateDict> {
    let mut archive = Archive::open(path.as_ref())?;
    let mut tensors = StateDict::new();
    for nth in 0..archive.zip.len() {
        archive.array(nth, |name, source, from| {
            let Some(name) = name else { return Err(source.no_array().into()) };
            let tensor = read(&source.source(), from)?;
            match tensors.insert(name.to_string(), tensor) {
                None => Ok(()),
                Some(_) => Err(source.damaged(format!("two arrays are named `{name}`")).into()),
            }
        })?;
    }
    Ok(tensors)
}

/// Loads some arrays of an archive by name, on the CPU. The others are not read, and may have dtypes that tensors lack.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::npz, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.npz");
/// let tensor = |value: f32| Tensor::new([value]);
/// npz::save(&path, &StateDict::from([("x".to_string(), tensor(1.0)?), ("y".to_string(), tensor(2.0)?)]))?;
/// let some = npz::load_only(&path, &["y"])?;
/// assert_eq!((some.len(), some["y"].to_vec::<f32>()?), (1, vec![2.0]));
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`load`]; a name that does not exist.
pub fn load_only<S: AsRef<str>>(path: impl AsRef<Path>, names: &[S]) -> Result<StateDict> {
    let mut archive = Archive::open(path.as_ref())?;
    let (mut tensors, mut there) = (StateDict::new(), Vec::new());
    for nth in 0..archive.zip.len() {
        archive.array(nth, |name, source, from| {
            let Some(name) = name else { return Ok(()) };
            there.push(name.to_string());
            if !names.iter().any(|wanted| wanted.as_ref() == name) {
                return Ok(());
            }
            match tensors.insert(name.to_string(), read(&source.source(), from)?) {
                None => Ok(()),
                Some(_) => Err(source.damaged(format!("two arrays are named `{name}`")).into()),
            }
        })?;
    }
    match names.iter().map(AsRef::as_ref).find(|name| !tensors.contains_key(*name)) {
        None => Ok(tensors),
        Some(absent) => {
            let (at, array) = (path.as_ref().display().to_string(), absent.to_string());
            Err(Error::MissingName { at, array, there }.into())
        }
    }
}

/// Lists the arrays of an archive, ordered by name, including those that cannot be loaded. Only their headers are read.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::npz, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.npz");
/// npz::save(&path, &StateDict::from([("bias".to_string(), Tensor::new([1i64, 2])?)]))?;
/// let listed = npz::list(&path)?;
/// assert_eq!((listed[0].name.as_str(), listed[0].dtype.as_str(), &listed[0].shape[..]), ("bias", "<i8", &[2][..]));
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`NpyError`](Error) for a file that cannot be read, or is damaged.
pub fn list(path: impl AsRef<Path>) -> Result<Vec<Listed>> {
    let mut archive = Archive::open(path.as_ref())?;
    let mut all = Vec::new();
    for nth in 0..archive.zip.len() {
        archive.array(nth, |name, source, from| {
            let Some(name) = name else { return Ok(()) };
            let (raw, _) = read_header(&source.source(), from)?;
            let (dtype, shape) = (raw.dtype(), raw.shape.clone());
            let loads = raw.known(&source.at).ok().map(|header| header.dtype);
            all.push(Listed { name: name.to_string(), dtype, shape, loads });
            Ok(())
        })?;
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

struct Archive {
    at: String,
    /// Bytes of the file.
    bytes: u64,
    zip: ZipArchive<BufReader<File>>,
}

/// An entry of an archive.
struct Place<'a> {
    archive: &'a str,
    file: &'a str,
    /// The archive and the array.
    at: String,
    bytes: u64,
}

impl Place<'_> {
    fn source(&self) -> Source<'_> {
        Source { at: &self.at, bytes: self.bytes }
    }

    fn damaged(&self, reason: String) -> Error {
        Error::Archive { at: self.archive.to_string(), reason }
    }

    fn no_array(&self) -> Error {
        let file = self.file.escape_default();
        match self.file.ends_with("data.pkl") {
            true => {
                let got =
                    "an archive of `torch.save`; convert it in Python with `safetensors.torch.save_file`";
                Error::Foreign { at: self.archive.to_string(), expected: "NumPy's archive of arrays", got }
            }
            false => {
                let got = "an entry that is no `.npy` file; take the arrays by name with `npz::load_only`";
                Error::Foreign { at: format!("{}, `{file}`", self.archive), expected: "an array", got }
            }
        }
    }
}

impl Archive {
    fn open(path: &Path) -> Result<Archive> {
        let at = path.display().to_string();
        let failed = |source| Error::Read { at: at.clone(), source };
        let mut file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        match ZipArchive::new(BufReader::new(file.try_clone().map_err(failed)?)) {
            Ok(zip) => Ok(Archive { at, bytes, zip }),
            Err(error) => {
                let damaged = Error::Archive { at: at.clone(), reason: error.to_string() };
                Err(named(&at, Format::Npz, &mut file, damaged.into()))
            }
        }
    }

    /// Passes an entry to `take`, with its name if it is an array, after its sizes were checked.
    fn array<R>(
        &mut self,
        nth: usize,
        take: impl FnOnce(Option<&str>, &Place<'_>, &mut zip::read::ZipFile<'_, BufReader<File>>) -> Result<R>,
    ) -> Result<R> {
        let damaged = |reason: String| Error::Archive { at: self.at.clone(), reason };
        let mut entry = self.zip.by_index(nth).map_err(|error| damaged(error.to_string()))?;
        let file = entry.name().map_err(|error| damaged(error.to_string()))?.into_owned();
        let name = file.strip_suffix(".npy");
        let (held, whole) = (entry.compressed_size(), entry.size());
        let most = match entry.compression() {
            CompressionMethod::Stored => held,
            _ => held.saturating_mul(LARGEST_RATIO),
        };
        if held > self.bytes || whole > most {
            let name = name.unwrap_or(&file);
            let reason = format!("`{name}` would be {whole} bytes of {held} in a file of {}", self.bytes);
            return Err(damaged(reason).into());
        }
        let at = format!("{}, array `{}`", self.at, name.unwrap_or(&file));
        take(name, &Place { archive: &self.at, file: &file, at, bytes: whole }, &mut entry)
    }
}

/// Saves tensors by name, without compression. An existing file is replaced atomically, or is unchanged on failure.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::npz, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.npz");
/// let (a, b) = (Tensor::new([1.0f32])?, Tensor::new([true])?);
/// npz::save(&path, &StateDict::from([("a".to_string(), a), ("b".to_string(), b)]))?;
/// assert_eq!(npz::load(&path)?.len(), 2);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`NpyError`](Error) for a file that cannot be written, and for bf16 and dtypes of plugins, which NumPy lacks; errors of the
/// device.
pub fn save(path: impl AsRef<Path>, tensors: &StateDict) -> Result<()> {
    save_by(path.as_ref(), tensors, CompressionMethod::Stored)
}

/// [`save`], compressed by deflate.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::npz, nn::StateDict};
/// # let folder = tempfile::tempdir().unwrap();
/// # let (small, large) = (folder.path().join("small.npz"), folder.path().join("large.npz"));
/// let zeros = StateDict::from([("zeros".to_string(), Tensor::zeros(1000)?)]);
/// npz::save(&large, &zeros)?;
/// npz::save_compressed(&small, &zeros)?;
/// assert!(std::fs::metadata(&small).unwrap().len() < std::fs::metadata(&large).unwrap().len() / 2);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`save`].
#[doc(alias = "savez_compressed")]
pub fn save_compressed(path: impl AsRef<Path>, tensors: &StateDict) -> Result<()> {
    save_by(path.as_ref(), tensors, CompressionMethod::Deflated)
}

fn save_by(path: &Path, tensors: &StateDict, method: CompressionMethod) -> Result<()> {
    let place = |name: &str| format!("{}, array `{name}`", path.display());
    let lengths: Vec<u64> =
        tensors.iter().map(|(name, tensor)| array_length(&place(name), tensor)).collect::<Result<_, _>>()?;
    replaced(path, |file| {
        let failed = |error: zip::result::ZipError| {
            let at = path.display().to_string();
            crate::Error::from(Error::Write { at, source: error.into() })
        };
        let mut archive = ZipWriter::new_stream(file);
        for ((name, tensor), length) in tensors.iter().zip(lengths) {
            let options = SimpleFileOptions::default()
                .compression_method(method)
                .last_modified_time(zip::DateTime::default())
                .large_file(length >= LARGE);
            archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
            write(&place(name), &mut archive, tensor)?;
        }
        archive.finish().map_err(failed)?;
        Ok(())
    })
}
