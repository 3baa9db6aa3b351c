//! Errors of safetensors files.

use crate::DType;
use std::io::ErrorKind;
use std::path::PathBuf;

/// The file, the expected and actual content, and what to do. Byte offsets are counted from 0.
///
/// ```
/// use keyway::{Error, io::safetensors::{self, SafetensorsError}};
/// let error = safetensors::load("nowhere.safetensors").unwrap_err();
/// assert!(matches!(error, Error::Safetensors(SafetensorsError::Read { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SafetensorsError {
    /// The components of a composite tensor, such as a sparse one, do not fit each other.
    #[error("{path}: `{tensor}` is damaged: {reason}; write the file anew", path = path.display())]
    Components {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The error of its layout's backend.
        reason: String,
    },
    /// A composite tensor, such as a sparse one, that is to be saved, and whose components do not fit each other.
    #[error(
        "cannot save tensor `{tensor}` to {path}: {reason}; its components were changed since it was made, make a new tensor \
         of them",
        path = path.display()
    )]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The error of its layout's backend.
        reason: String,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {source}; check the path and its permissions", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file could not be written. Its previous content is unchanged.
    #[error(
        "cannot write {bytes} bytes to {path}: {source}; the file is as it was before; {advice}",
        path = path.display(),
        advice = advice(source)
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Size of the whole file in bytes.
        bytes: u64,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file that is too short for the length of its header.
    #[error(
        "{path}: expected at least 8 bytes for the header's length, got {got}; the file is cut or of another \
         format, fetch or save it again",
        path = path.display()
    )]
    TooShort {
        /// The file.
        path: PathBuf,
        /// The size in bytes.
        got: u64,
    },
    /// A header that would be longer than the file, or than any header may be.
    #[error(
        "{path}: expected a header of at most {expected} bytes, got a header length of {got}; the file is cut \
         or of another format, fetch or save it again",
        path = path.display()
    )]
    HeaderLength {
        /// The file.
        path: PathBuf,
        /// Maximum length of the header.
        expected: u64,
        /// The header's length according to the file.
        got: u64,
    },
    /// A header that is no JSON object of tensors.
    #[error(
        "{path}: expected a header of JSON text, got {reason}; the file is damaged or of another format, fetch or \
         save it again",
        path = path.display()
    )]
    Header {
        /// The file.
        path: PathBuf,
        /// The parser's error, with its position in the header.
        reason: String,
    },
    /// A header with two entries of one name.
    #[error(
        "{path}: expected one entry for each name, got `{tensor}` twice; the file is damaged or was joined of two, fetch or \
         save it again",
        path = path.display()
    )]
    DuplicateName {
        /// The file.
        path: PathBuf,
        /// The name.
        tensor: String,
    },
    /// A header entry that lacks a field or has one of another kind.
    #[error(
        "{path}, tensor `{tensor}`: expected `{field}` to be {expected}, got {got}; the file is damaged, fetch or \
         save it again",
        path = path.display()
    )]
    Field {
        /// The file.
        path: PathBuf,
        /// The entry's name.
        tensor: String,
        /// The field.
        field: &'static str,
        /// The expected content.
        expected: &'static str,
        /// The actual content.
        got: String,
    },
    /// A dtype that no tensor here can have.
    #[error(
        "{path}, tensor `{tensor}`: expected a dtype of {known}, got {got:?}; convert it with the program that wrote \
         the file, or load the other tensors by name with `safetensors::load_only`",
        path = path.display()
    )]
    UnknownDtype {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The dtypes that can be read.
        known: String,
        /// The dtype that the file names.
        got: String,
    },
    /// A tensor that does not begin at the end of the previous one: they overlap, or there is a gap.
    #[error(
        "{path}, tensor `{tensor}`: expected its data to begin at byte {expected}, where the tensor before it ends, \
         got byte {got}; the file is damaged, fetch or save it again",
        path = path.display()
    )]
    Offset {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Expected offset of the data, after the header.
        expected: u64,
        /// Offset according to the file.
        got: u64,
    },
    /// A tensor whose data size does not match its shape and dtype.
    #[error(
        "{path}, tensor `{tensor}`: expected {expected} bytes for {dtype} of shape {shape:?}, got {got}; the file is \
         damaged, fetch or save it again",
        path = path.display()
    )]
    TensorLength {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The dtype of the entry.
        dtype: String,
        /// The shape of the entry.
        shape: Vec<usize>,
        /// Expected size in bytes.
        expected: String,
        /// Size in bytes between its offsets.
        got: u64,
    },
    /// A file of another format, by its first bytes.
    #[error("{path}: expected a safetensors file, got {got}", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The actual dtype, and what to do.
        got: &'static str,
    },
    /// A requested tensor that does not exist.
    #[error("{path}: expected a tensor `{tensor}`, got {there}; `safetensors::list` shows all that there are", path = path.display())]
    MissingName {
        /// The file.
        path: PathBuf,
        /// The name.
        tensor: String,
        /// Names of existing tensors, at most the first few.
        there: String,
    },
    /// A file whose size does not match its header.
    #[error(
        "{path}: expected {expected} bytes of data after the header, got {got}; the file is cut or joined, fetch or \
         save it again",
        path = path.display()
    )]
    DataLength {
        /// The file.
        path: PathBuf,
        /// Size of all tensors in bytes.
        expected: u64,
        /// Bytes after the header.
        got: u64,
    },
    /// A byte of a bool tensor that is neither 0 nor 1.
    #[error(
        "{path}, tensor `{tensor}`: expected bytes of 0 or 1 in a bool tensor, got {got} at element {element}; the \
         file is damaged, fetch or save it again",
        path = path.display()
    )]
    Bool {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Index of its element.
        element: u64,
        /// The byte.
        got: u8,
    },
    /// A tensor that cannot be saved because the format has no such dtype.
    #[error(
        "cannot save tensor `{tensor}` to {path}: expected a dtype of {known}, got {got}; convert it with `to_dtype`",
        path = path.display()
    )]
    UnsupportedDtype {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The dtypes that can be saved.
        known: String,
        /// The tensor's dtype.
        got: DType,
    },
    /// A tensor of a plugin's dtype that is not registered.
    #[error(
        "{path}, tensor `{tensor}`: expected a backend that brings the dtype `{dtype}`, got none; install the plugin that \
         was there when the file was saved, or load the other tensors with `safetensors::load_only`",
        path = path.display()
    )]
    MissingDtype {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The dtype's name.
        dtype: String,
    },
    /// A tensor of a layout that is not registered.
    #[error(
        "{path}, tensor `{tensor}`: expected a backend that brings the layout `{layout}`, got none; install {plugin}",
        path = path.display(),
        plugin = super::layouts::served_by(layout).map_or_else(
            || "the plugin that was there when the file was saved".to_string(),
            |plugin| format!("`{plugin}`, which serves it")
        )
    )]
    MissingLayout {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The layout's name.
        layout: String,
    },
    /// A tensor that is named as a component of another one is saved.
    #[error(
        "cannot save to {path}: expected one tensor of the name `{tensor}`, got two, and one is a component of a tensor \
         of a composite layout; name one of them otherwise",
        path = path.display()
    )]
    ComponentName {
        /// The file.
        path: PathBuf,
        /// The name.
        tensor: String,
    },
    /// Metadata under a key that dtypes or layouts of plugins are saved under.
    #[error("cannot save to {path}: expected metadata without the key `{key}`, got it; use another key", path = path.display())]
    ReservedMetadata {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
    },
    /// A tensor that cannot be saved because the format reserves its name.
    #[error(
        "cannot save to {path}: expected any name but `__metadata__` for a tensor, got it; name the tensor otherwise",
        path = path.display()
    )]
    ReservedName {
        /// The file.
        path: PathBuf,
    },
}

/// Advice for a failed write.
fn advice(source: &std::io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::StorageFull
        | ErrorKind::QuotaExceeded
        | ErrorKind::FileTooLarge
        | ErrorKind::WriteZero => "free space, raise the limit, or choose another folder, and save again",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "choose a folder that you may write to, or change its permissions"
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory => "create the folder first",
        ErrorKind::IsADirectory => "pass the path of a file in it",
        _ => "check the folder and the disk, and save again",
    }
}
