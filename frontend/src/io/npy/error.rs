//! What can be wrong with NumPy's files.

use crate::DType;

/// Which file, and which array of an archive, what was expected, what came, and what to do.
///
/// ```
/// use keyway::{Error, io::npy::{self, NpyError}};
/// let error = npy::load("nowhere.npy").unwrap_err();
/// assert!(matches!(error, Error::Npy(NpyError::Read { .. })));
/// assert!(error.to_string().contains("nowhere.npy"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// A file could not be read.
    #[error(
        "cannot read {at}: {source}; check the path and its permissions, or fetch or save the file again"
    )]
    Read {
        /// The file, and the array of an archive.
        at: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file could not be written. What was there before is untouched.
    #[error(
        "cannot write {at}: {source}; the file is as it was before; check the path, its permissions and the space left"
    )]
    Write {
        /// The file, and the array of an archive.
        at: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// No file of NumPy's, or a damaged one.
    #[error(
        "{at}: expected {expected}, got {got}; the file is damaged or of another format, fetch or save it again"
    )]
    Header {
        /// The file, and the array of an archive.
        at: String,
        /// What should stand there.
        expected: String,
        /// What stands there.
        got: String,
    },
    /// An array of what is no number that tensors have.
    #[error(
        "{at}: expected an array of bool, of integers of 1 to 8 bytes, of floats of 2 to 8 or of complex64, got {got}; convert \
         it in Python with `astype`"
    )]
    UnknownDtype {
        /// The file, and the array of an archive.
        at: String,
        /// NumPy's name of the dtype.
        got: String,
    },
    /// A tensor of a dtype that NumPy does not have.
    #[error(
        "{at}: NumPy has no {got}; cast the tensor first, as with `to_dtype(DType::F32)`, or save it as safetensors"
    )]
    UnsupportedDtype {
        /// The file, and the array of an archive.
        at: String,
        /// The tensor's dtype.
        got: DType,
    },
    /// An array whose data are longer or shorter than its shape and dtype say.
    #[error(
        "{at}: expected {expected} bytes for {dtype} of shape {shape:?}, got {got}; the file is cut or joined, fetch or save it again"
    )]
    Length {
        /// The file, and the array of an archive.
        at: String,
        /// The array's dtype.
        dtype: DType,
        /// Its shape.
        shape: Vec<usize>,
        /// How many bytes these need.
        expected: String,
        /// How many there are.
        got: u64,
    },
    /// A truth value that is neither 0 nor 1.
    #[error(
        "{at}: expected bytes 0 and 1 in an array of bool, got {got}; the file is damaged, fetch or save it again"
    )]
    Bool {
        /// The file, and the array of an archive.
        at: String,
        /// The byte.
        got: u8,
    },
    /// An archive that cannot be read, or a name that none can hold.
    #[error("{at}: {reason}; the archive is damaged or of another format, fetch or save it again")]
    Archive {
        /// The file.
        at: String,
        /// What is wrong.
        reason: String,
    },
}
