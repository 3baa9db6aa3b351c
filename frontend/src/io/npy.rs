//! NumPy's format for one array, `.npy` (NumPy Enhancement Proposal 1), versions 1 to 3.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::{Tensor, io::npy};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("a.npy");
//! npy::save(&path, &Tensor::new([1.0f32, 2.0])?)?;
//! assert_eq!(npy::load(&path)?.to_vec::<f32>()?, [1.0, 2.0]);
//! # Ok(()) }
//! ```
//!
//! Decisions:
//! - a save replaces the file atomically, as [`safetensors`](super::safetensors) does; it writes row-major order and
//!   little-endian values;
//! - a load accepts both byte orders and Fortran order, which results in a transposed view: nothing is copied, and no backend is
//!   needed;
//! - bf16, which NumPy lacks, is refused rather than saved as bytes of a dtype that no other program could name; Python objects,
//!   strings and structured dtypes are refused too, the first since they are code; in an archive only if they are requested;
//! - a load checks the header against the length of the file before it allocates anything.

mod header;
mod read;
mod write;

pub use crate::error::npy::NpyError;
pub(super) use read::{Source, read, read_header};
pub(super) use write::array_length;
pub(super) use write::write;

use super::foreign::{Format, kind_of};
use crate::{Result, Tensor};
use std::fs::File;
use std::path::Path;

/// Loads the array of a file, on the CPU.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::npy};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.npy");
/// npy::save(&path, &Tensor::new([[1i64, 2]])?)?;
/// let x = npy::load(&path)?;
/// assert_eq!((x.shape(), x.to_vec::<i64>()?), (&[1, 2][..], vec![1, 2]));
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`NpyError`] for a file that cannot be read, is damaged, or holds a dtype that tensors lack; insufficient memory.
pub fn load(path: impl AsRef<Path>) -> Result<Tensor> {
    let path = path.as_ref();
    let failed = |source| NpyError::Read { at: path.display().to_string(), source };
    let mut file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let at = path.display().to_string();
    read(&Source { at: &at, bytes }, &mut file).map_err(|error| match error {
        crate::Error::Npy(NpyError::Header { .. }) => named(&at, Format::Npy, &mut file, error),
        error => error,
    })
}

/// The error for a file that is not of the expected format; it names the actual format if the first bytes identify it.
pub(super) fn named(at: &str, format: Format, file: &mut File, error: crate::Error) -> crate::Error {
    let expected = if format == Format::Npy { "an array of NumPy" } else { "NumPy's archive of arrays" };
    match kind_of(file, format) {
        Some(got) => NpyError::Foreign { at: at.to_string(), expected, got }.into(),
        None => error,
    }
}

/// Saves a tensor, with any strides and on any device. An existing file is replaced atomically, or is unchanged on failure.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, io::npy};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.npy");
/// npy::save(&path, &Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.t()?)?;
/// assert_eq!(npy::load(&path)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`NpyError`] for a file that cannot be written, and for bf16 and dtypes of plugins, which NumPy lacks; errors of the device.
pub fn save(path: impl AsRef<Path>, tensor: &Tensor) -> Result<()> {
    let path = path.as_ref();
    let at = path.display().to_string();
    array_length(&at, tensor)?;
    replaced(path, |file| write(&at, file, tensor))
}

/// Writes a file atomically. An error of a device is returned unchanged.
pub(super) fn replaced(path: &Path, make: impl FnOnce(&mut dyn std::io::Write) -> Result<()>) -> Result<()> {
    let mut trouble = None;
    let written = super::replace(path, |file| {
        make(file).map_err(|error| match error {
            crate::Error::Npy(NpyError::Write { source, .. }) => source,
            error => {
                trouble = Some(error);
                std::io::Error::other("a tensor could not be read")
            }
        })
    });
    match (trouble, written) {
        (Some(error), _) => Err(error),
        (None, Err(source)) => Err(NpyError::Write { at: path.display().to_string(), source }.into()),
        (None, Ok(())) => Ok(()),
    }
}
