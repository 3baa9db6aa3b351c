//! Errors of NumPy's files.

use crate::DType;

/// The file, the array of an archive, the expected and actual content, and what to do.
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
        "cannot read {at}: {source}; {advice}", advice = if source.kind() == std::io::ErrorKind::Unsupported { "save it without compression, as `numpy.savez` does, or deflated" } else { "check the path and its permissions, or fetch or save the file again" }
    )]
    Read {
        /// The file, and the array of an archive.
        at: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file could not be written. Its previous content is unchanged.
    #[error(
        "cannot write {at}: {source}; the file is as it was before; check the path, its permissions and the space left"
    )]
    Write {
        /// The file, and the array of an archive.
        at: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file that is not NumPy's, or is damaged.
    #[error(
        "{at}: expected {expected}, got {got}; the file is damaged or of another format, fetch or save it again"
    )]
    Header {
        /// The file, and the array of an archive.
        at: String,
        /// The expected content.
        expected: String,
        /// The actual content.
        got: String,
    },
    /// An array of a dtype that tensors lack.
    #[error(
        "{at}: expected an array of bool, of integers of 1 to 8 bytes, of floats of 2 to 8, of complex64 or of complex128, got {got}; convert \
         it in Python with `astype`, or load the other arrays of an archive with `npz::load_only`"
    )]
    UnknownDtype {
        /// The file, and the array of an archive.
        at: String,
        /// NumPy's name of the dtype.
        got: String,
    },
    /// An array of structures, whose fields have separate dtypes.
    #[error(
        "{at}: expected an array of one dtype, got a structured one of the fields {}; take one field in Python, \
         `numpy.save(path, array['field'])`, and load that",
        named(fields)
    )]
    Structured {
        /// The file, and the array in it.
        at: String,
        /// The names of the fields.
        fields: Vec<String>,
    },
    /// A file of another format, by its first bytes.
    #[error("{at}: expected {expected}, got {got}")]
    Foreign {
        /// The file.
        at: String,
        /// The format.
        expected: &'static str,
        /// The actual dtype, and what to do.
        got: &'static str,
    },
    /// A requested array that does not exist.
    #[error("{at}: expected an array `{array}`, got {}; `npz::list` shows all that there are", named(there))]
    MissingName {
        /// The file.
        at: String,
        /// The name.
        array: String,
        /// The existing names.
        there: Vec<String>,
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
    /// An array whose data size does not match its shape and dtype.
    #[error(
        "{at}: expected {expected} bytes for {dtype} of shape {shape:?}, got {got}; the file is cut or joined, fetch or save it again"
    )]
    Length {
        /// The file, and the array of an archive.
        at: String,
        /// The array's dtype.
        dtype: DType,
        /// The shape of the array.
        shape: Vec<usize>,
        /// Expected size in bytes.
        expected: String,
        /// Actual size in bytes.
        got: u64,
    },
    /// A bool that is neither 0 nor 1.
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
        /// The error.
        reason: String,
    },
}

/// The first of these names, and the number of further ones.
fn named(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("`{}`", name.escape_default())).collect();
    match names.len().checked_sub(SHOWN) {
        _ if names.is_empty() => "none".to_string(),
        Some(more @ 1..) => format!("{} and {more} more", shown.join(", ")),
        _ => shown.join(", "),
    }
}
