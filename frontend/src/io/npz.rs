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
//! - no memory is taken for more than deflated bytes can hold, 1032 for each of them, whatever the archive says;
//! - a save replaces the file as a whole, and the same tensors give the same bytes: entries have no date.

use super::npy::{NpyError as Error, Source, array_length, read, replaced, write};
use crate::Result;
use crate::nn::StateDict;
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// What deflated bytes hold at most.
const LARGEST_RATIO: u64 = 1032;
/// From this size on an entry needs the fields of 64 bits.
const LARGE: u64 = u32::MAX as u64;

/// The arrays of an archive by name, on the CPU.
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
/// [`NpyError`](Error) for a file that cannot be read, is damaged, or holds what is no array of numbers; memory that does not suffice.
pub fn load(path: impl AsRef<Path>) -> Result<StateDict> {
    let path = path.as_ref();
    let at = path.display().to_string();
    let failed = |source| Error::Read { at: at.clone(), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let damaged = |reason: String| Error::Archive { at: at.clone(), reason };
    let mut archive =
        ZipArchive::new(std::io::BufReader::new(file)).map_err(|error| damaged(error.to_string()))?;
    let mut tensors = StateDict::new();
    for nth in 0..archive.len() {
        let mut entry = archive.by_index(nth).map_err(|error| damaged(error.to_string()))?;
        let file_name = entry.name().map_err(|error| damaged(error.to_string()))?.into_owned();
        let Some(name) = file_name.strip_suffix(".npy") else {
            return Err(damaged(format!("`{}` is no `.npy` file", file_name.escape_default())).into());
        };
        let (held, whole) = (entry.compressed_size(), entry.size());
        let most = match entry.compression() {
            CompressionMethod::Stored => held,
            _ => held.saturating_mul(LARGEST_RATIO),
        };
        if held > bytes || whole > most {
            let reason = format!("`{name}` would be {whole} bytes of {held} in a file of {bytes}");
            return Err(damaged(reason).into());
        }
        let at = format!("{at}, array `{name}`");
        let tensor = read(&Source { at: &at, bytes: whole }, &mut entry)?;
        if tensors.insert(name.to_string(), tensor).is_some() {
            return Err(damaged(format!("two arrays are named `{name}`")).into());
        }
    }
    Ok(tensors)
}

/// Saves tensors by name, as they are. An old file of that name is replaced as a whole, or stays as it is.
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
/// [`NpyError`](Error) for a file that cannot be written, and for bf16 and dtypes of plugins, which NumPy does not have; what the
/// device reports.
pub fn save(path: impl AsRef<Path>, tensors: &StateDict) -> Result<()> {
    save_by(path.as_ref(), tensors, CompressionMethod::Stored)
}

/// [`save`], deflated.
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
