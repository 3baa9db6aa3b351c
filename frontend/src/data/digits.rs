//! The handwritten digits: 1,797 images of 8x8 pixels and their labels.
//!
//! Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak, 1998), the test part of the UCI Machine Learning
//! Repository's set, CC BY 4.0. The file is in `frontend/data` and is embedded, so that a program has it wherever it
//! runs.

use super::file::read;
use crate::error::data::DataError;
use std::path::Path;

/// Pixels of one image, row by row.
pub const PIXELS: usize = 64;
/// Pixels of a row of an image, and rows of an image.
pub const SIDE: usize = 8;
/// The highest value of a pixel; the lowest is 0.
pub const BRIGHTEST: u8 = 16;
/// The highest label; the lowest is 0.
pub const HIGHEST_LABEL: u8 = 9;
/// Number of the embedded rows for training; the 360 after them are for testing.
pub const TRAIN_ROWS: usize = 1_437;

const EMBEDDED: &[u8] = include_bytes!("../../data/digits.csv");
const COLUMNS: usize = PIXELS + 1;
/// Maximum length of a wrong value in an error.
const SHOWN: usize = 24;

/// Images and their labels.
///
/// ```
/// use keyway::data::digits::{Digits, PIXELS};
/// let one = Digits { pixels: vec![0; PIXELS], labels: vec![3] };
/// assert_eq!((one.rows(), one.labels[0]), (1, 3));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digits {
    /// [`PIXELS`] values in 0..=16 for each image, one image after the other.
    pub pixels: Vec<u8>,
    /// One label in 0..=9 for each image.
    pub labels: Vec<u8>,
}

impl Digits {
    /// The embedded set.
    ///
    /// ```
    /// use keyway::data::digits::{Digits, PIXELS};
    /// let digits = Digits::embedded().unwrap();
    /// assert_eq!((digits.rows(), digits.pixels.len()), (1_797, 1_797 * PIXELS));
    /// ```
    ///
    /// # Errors
    /// As [`Digits::parse`]; a test shows that the embedded file has none of them.
    pub fn embedded() -> Result<Self, DataError> {
        Self::parse(EMBEDDED, "the embedded digits")
    }

    /// Reads a file of the same format.
    ///
    /// ```
    /// use keyway::data::Digits;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("digits.csv");
    /// std::fs::write(&path, "16,".repeat(64) + "5\n").unwrap();
    /// assert_eq!(Digits::load(&path).unwrap().labels, [5]);
    /// ```
    ///
    /// # Errors
    /// [`DataError::Read`], and as [`Digits::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        Self::parse(&read(path)?, &path.display().to_string())
    }

    /// Reads rows of 64 pixels and a label, separated by commas. Lines may end with CR LF, and the last one need not end
    /// at all; a line without values is an error. `origin` names the data in errors.
    ///
    /// ```
    /// use keyway::data::Digits;
    /// let digits = Digits::parse(("16,".repeat(64) + "5\n").as_bytes(), "one row").unwrap();
    /// assert_eq!((digits.pixels[0], digits.labels[0]), (16, 5));
    /// let error = Digits::parse(b"1,2,3", "short").unwrap_err();
    /// assert!(error.to_string().contains("short, line 1"));
    /// ```
    ///
    /// # Errors
    /// [`DataError::Empty`], [`DataError::RowLength`] and [`DataError::Value`], with line, column and byte.
    pub fn parse(text: &[u8], origin: &str) -> Result<Self, DataError> {
        let mut digits = Self::default();
        let body = text.strip_suffix(b"\n").unwrap_or(text);
        if body.is_empty() {
            return Err(DataError::Empty {
                origin: origin.into(),
                expected: "rows of 64 pixels and a label",
            });
        }
        let mut offset = 0;
        for (index, line) in body.split(|&byte| byte == b'\n').enumerate() {
            let place = Place { origin, line: index + 1, offset };
            digits.push_row(line.strip_suffix(b"\r").unwrap_or(line), &place)?;
            offset += line.len() + 1;
        }
        Ok(digits)
    }

    /// Number of images.
    ///
    /// ```
    /// use keyway::data::Digits;
    /// assert_eq!(Digits::embedded().unwrap().rows(), 1_797);
    /// ```
    #[must_use]
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// The first `rows` images, and the rest. More rows than there are leave the rest empty.
    ///
    /// ```
    /// use keyway::data::Digits;
    /// let (train, test) = Digits::embedded().unwrap().split_at(1_437);
    /// assert_eq!((train.rows(), test.rows()), (1_437, 360));
    /// ```
    #[must_use]
    pub fn split_at(&self, rows: usize) -> (Self, Self) {
        let rows = rows.min(self.rows());
        let (pixels, other_pixels) = self.pixels.split_at(rows * PIXELS);
        let (labels, other_labels) = self.labels.split_at(rows);
        let part = |pixels: &[u8], labels: &[u8]| Self { pixels: pixels.to_vec(), labels: labels.to_vec() };
        (part(pixels, labels), part(other_pixels, other_labels))
    }

    fn push_row(&mut self, line: &[u8], place: &Place<'_>) -> Result<(), DataError> {
        let got = line.split(|&byte| byte == b',').count();
        if got != COLUMNS {
            return Err(place.row_length(got));
        }
        let mut within = 0;
        for (index, field) in line.split(|&byte| byte == b',').enumerate() {
            let label = index == PIXELS;
            let highest = if label { HIGHEST_LABEL } else { BRIGHTEST };
            match number(field).filter(|&value| value <= highest) {
                Some(value) if label => self.labels.push(value),
                Some(value) => self.pixels.push(value),
                None => return Err(place.value(index + 1, within, label, field)),
            }
            within += field.len() + 1;
        }
        Ok(())
    }
}

/// The position of a line.
struct Place<'a> {
    origin: &'a str,
    line: usize,
    offset: usize,
}

impl Place<'_> {
    fn row_length(&self, got: usize) -> DataError {
        let (origin, line, offset) = (self.origin.to_owned(), self.line, self.offset);
        DataError::RowLength { origin, line, offset, expected: COLUMNS, got }
    }

    fn value(&self, column: usize, within: usize, label: bool, field: &[u8]) -> DataError {
        DataError::Value {
            origin: self.origin.to_owned(),
            line: self.line,
            column,
            offset: self.offset + within,
            expected: if label { "a label, an integer in 0..=9" } else { "a pixel, an integer in 0..=16" },
            got: String::from_utf8_lossy(field).chars().take(SHOWN).collect(),
        }
    }
}

/// A number of at most three digits, with spaces around it; the integer parser of std would also take a plus sign.
fn number(field: &[u8]) -> Option<u8> {
    let digits = field.trim_ascii();
    if digits.is_empty() || digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of `0,1,…` and a label.
    fn row(label: &str) -> String {
        let pixels: Vec<String> = (0..PIXELS).map(|i| (i % 17).to_string()).collect();
        format!("{},{label}", pixels.join(","))
    }

    fn fault(text: &[u8]) -> String {
        Digits::parse(text, "a.csv").expect_err("a fault").to_string()
    }

    #[test]
    fn the_embedded_set_is_whole() {
        let digits = Digits::embedded().expect("the embedded set");
        assert_eq!((digits.rows(), digits.pixels.len()), (1_797, 1_797 * PIXELS));
        assert_eq!(digits.pixels[..6], [0, 0, 5, 13, 9, 1]);
        assert_eq!((digits.labels[..4].to_vec(), digits.labels.last()), (vec![0, 1, 2, 3], Some(&8)));
        let (train, test) = digits.split_at(TRAIN_ROWS);
        assert_eq!((train.rows(), test.rows()), (1_437, 360));
        assert_eq!([train.pixels, test.pixels].concat(), digits.pixels);
        let (all, none) = digits.split_at(usize::MAX);
        assert_eq!((all.rows(), none.rows()), (1_797, 0));
    }

    #[test]
    fn line_ends_and_spaces_do_not_matter() {
        let (a, b) = (row("3"), row(" 4 "));
        let expected = Digits::parse(format!("{a}\n{b}\n").as_bytes(), "").expect("two rows");
        assert_eq!(expected.labels, [3, 4]);
        for text in [format!("{a}\n{b}"), format!("{a}\r\n{b}\r\n"), format!("{a}\r\n{b}")] {
            assert_eq!(Digits::parse(text.as_bytes(), "").expect("two rows"), expected);
        }
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place() {
        let good = row("1");
        for wrong in ["17", "-1", "+1", "1.0", "1e1", "", " ", "x", "0001", "256", "٣", "\0"] {
            let text = format!("{good}\n5,{wrong}{}\n", &row("1")[3..]);
            let message = fault(text.as_bytes());
            let start = format!("a.csv, line 2, column 2 (byte {}): expected a pixel", good.len() + 3);
            assert!(message.starts_with(&start) && message.contains(&format!("{wrong:?}")), "{message}");
        }
        let message = fault(row("10").as_bytes());
        assert!(message.contains("line 1, column 65") && message.contains("0..=9, got \"10\""), "{message}");
        let mut bytes = row("1").into_bytes();
        bytes[0] = 0xff;
        assert!(fault(&bytes).contains("column 1 (byte 0)"));
        let long = format!("{}{}", "9".repeat(10_000), &row("1")[1..]);
        assert!(fault(long.as_bytes()).len() < 200, "an error shows only the beginning");
    }

    #[test]
    fn a_wrong_row_is_named_with_its_place() {
        let good = row("1");
        for (text, line, got) in [
            (format!("{good},1\n"), 1, 66),
            (format!("{good}\n1,2\n"), 2, 2),
            (format!("{good}\n\n{good}\n"), 2, 1),
            (format!("{good}\n\n"), 2, 1),
            (" ".to_owned(), 1, 1),
        ] {
            let message = fault(text.as_bytes());
            let parts =
                [format!("line {line} (byte"), format!("expected 65 values separated by commas, got {got};")];
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }

    #[test]
    fn nothing_is_an_error() {
        for text in [b"".as_slice(), b"\n"] {
            assert!(fault(text).contains("empty input"));
        }
    }

    #[test]
    fn every_cut_is_an_error_or_whole_rows() {
        let text = format!("{}\n{}\n", row("1"), row("2"));
        let line = row("1").len();
        for cut in 0..text.len() {
            match Digits::parse(&text.as_bytes()[..cut], "") {
                Ok(digits) => {
                    assert!([line, line + 1, 2 * line + 1].contains(&cut) && digits.rows() >= 1, "{cut}")
                }
                Err(_) => assert!(![line, line + 1, 2 * line + 1].contains(&cut), "{cut}"),
            }
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = Digits::load("no/such/digits.csv").expect_err("a fault").to_string();
        assert!(message.contains("digits.csv") && message.contains("check the path"), "{message}");
    }
}
