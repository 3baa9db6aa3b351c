//! Errors of data sets.

use std::fmt;
use std::path::PathBuf;

/// An error of a data set, with its position and what to do. Lines, columns and records are counted from 1, bytes from 0.
///
/// ```
/// use keyway::data::{DataError, Digits};
/// let error = Digits::parse(b"", "nothing").unwrap_err();
/// assert!(matches!(error, DataError::Empty { .. }));
/// assert!(error.to_string().starts_with("nothing: expected rows of 64 pixels and a label"));
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}; check the path and its permissions", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// An input without rows or records.
    #[error("{origin}: expected {expected}, got an empty input; fetch the file again")]
    Empty {
        /// The file or other origin of the data.
        origin: String,
        /// The expected content.
        expected: &'static str,
    },
    /// A row has too few or too many values.
    #[error(
        "{origin}, line {line} (byte {offset}): expected {expected} values separated by commas, got {got}; \
         mend or remove the row"
    )]
    RowLength {
        /// The file or other origin of the data.
        origin: String,
        /// The line.
        line: usize,
        /// Byte offset of the line.
        offset: usize,
        /// Expected number of values.
        expected: usize,
        /// Actual number of values.
        got: usize,
    },
    /// A value in a row that its column does not allow.
    #[error(
        "{origin}, line {line}, column {column} (byte {offset}): expected {expected}, got {got:?}; \
         mend or remove the row"
    )]
    Value {
        /// The file or other origin of the data.
        origin: String,
        /// The line.
        line: usize,
        /// Column of the value.
        column: usize,
        /// Byte offset of the value.
        offset: usize,
        /// The expected content of the column.
        expected: &'static str,
        /// The beginning of the actual text.
        got: String,
    },
    /// A binary file whose size is not a multiple of the record size.
    #[error(
        "{origin}: expected whole records of {record} bytes, got {got} bytes, {rest} more than {records} records; \
         the file is cut or of another format, fetch it again"
    )]
    PartialRecord {
        /// The file or other origin of the data.
        origin: String,
        /// The length of a record.
        record: usize,
        /// The length of the data.
        got: usize,
        /// Number of whole records.
        records: usize,
        /// The bytes after them.
        rest: usize,
    },
    /// A file with an unexpected number of records.
    #[error("{origin}: expected {expected} records, got {got}; the file is cut or joined, fetch it again")]
    RecordCount {
        /// The file or other origin of the data.
        origin: String,
        /// Expected number of records.
        expected: usize,
        /// Actual number of records.
        got: usize,
    },
    /// A record's label is not a class.
    #[error(
        "{origin}, record {record} (byte {offset}): expected a label in 0..={highest}, got {got}; \
         the file is damaged or of another format, fetch it again"
    )]
    Label {
        /// The file or other origin of the data.
        origin: String,
        /// The record.
        record: usize,
        /// Byte offset of the label.
        offset: usize,
        /// The highest label.
        highest: u8,
        /// The actual byte.
        got: u8,
    },
    /// A folder lacks files of a data set.
    #[error("{folder}: expected {expected}, but {} not there; {advice}", missing_files(missing), folder = folder.display())]
    MissingFiles {
        /// The folder.
        folder: PathBuf,
        /// The expected content.
        expected: &'static str,
        /// The missing names.
        missing: Vec<&'static str>,
        /// The advice.
        advice: &'static str,
    },
    /// Images whose parts do not fit together.
    #[error(
        "ImageDataset: expected {expected} {what} for images of shape {shape:?} and their labels, got {got}"
    )]
    Images {
        /// Name of the mismatched part.
        what: &'static str,
        /// Channels, rows and columns.
        shape: [usize; 3],
        /// Expected number.
        expected: usize,
        /// Actual number.
        got: usize,
    },
    /// A batch size of 0.
    #[error("batch_size: expected at least 1, got 0; pass the number of rows that one step shall see")]
    BatchSize,
    /// Inputs and targets with different numbers of rows.
    #[error(
        "TensorDataset: expected as many rows of inputs as of targets, got shapes {inputs:?} and {targets:?}; both need a \
         first dimension of the same size"
    )]
    Rows {
        /// The inputs' shape.
        inputs: Vec<usize>,
        /// The targets' shape.
        targets: Vec<usize>,
    },
    /// Parts that do not make up a data set.
    #[error(
        "random_split: expected numbers of samples that add up to {rows}, or shares of 0 to 1 that add up to 1, got {got}"
    )]
    Split {
        /// The number of samples.
        rows: usize,
        /// The parts.
        got: String,
    },
    /// A row that a data set does not have.
    #[error("batch: expected rows below {rows}, got {got}; the data set has {rows} rows, counted from 0")]
    Row {
        /// Number of rows.
        rows: usize,
        /// The requested row.
        got: usize,
    },
}

/// Maximum number of missing files in an error.
const NAMED: usize = 2;

fn missing_files(missing: &[&str]) -> String {
    let named = missing[..missing.len().min(NAMED)].join(", ");
    match (missing.len(), missing.len().saturating_sub(NAMED)) {
        (..=1, _) => format!("{named} is"),
        (_, 0) => format!("{named} are"),
        (_, more) => format!("{named} and {more} more are"),
    }
}

/// The message, as `main` and `unwrap` print it.
impl fmt::Debug for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
