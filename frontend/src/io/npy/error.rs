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
        "cannot read {at}: {source}; {advice}", advice = if source.kind() == std::io::ErrorKind::Unsupported { "save it without compression, as `numpy.savez` does, or deflated" } else { "check the path and its permissions, or fetch or save the file again" }
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
         it in Python with `astype`, or load the other arrays of an archive with `npz::load_only`"
    )]
    UnknownDtype {
        /// The file, and the array of an archive.
        at: String,
        /// NumPy's name of the dtype.
        got: String,
    },
    /// An array of structures, whose fields have dtypes of their own.
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
        /// What it is, and what to do.
        got: &'static str,
    },
    /// An array that was asked for by name and is not there.
    #[error("{at}: expected an array `{array}`, got {}; `npz::list` shows all that there are", named(there))]
    MissingName {
        /// The file.
        at: String,
        /// The name.
        array: String,
        /// The names that are there.
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

/// The first of these names, and how many more there are.
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
