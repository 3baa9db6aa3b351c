//! CIFAR-10's binary format: records of one label and 32x32 pixels in three colours.
//!
//! Source: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009, and the page of the data set: a
//! record is a label in 0..=9, then 1,024 bytes of red, 1,024 of green and 1,024 of blue, each row by row; a file consists
//! of 10,000 records.

use super::file::read;
use super::{ChannelStats, ImageDataset};
use crate::error::data::DataError;
use std::path::{Path, PathBuf};

/// Colours, rows and columns of an image, in the order of its bytes.
pub const SHAPE: [usize; 3] = [3, 32, 32];
/// Bytes of one image.
pub const PIXELS: usize = SHAPE[0] * SHAPE[1] * SHAPE[2];
/// Bytes of one record: the label and the image.
pub const RECORD: usize = 1 + PIXELS;
/// Records of one file of the published set.
pub const FILE_RECORDS: usize = 10_000;
/// The highest label; the lowest is 0.
pub const HIGHEST_LABEL: u8 = 9;
/// The files of images for training.
pub const TRAIN_FILES: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
/// The file of images for testing.
pub const TEST_FILE: &str = "test_batch.bin";

/// Images and their labels.
///
/// ```
/// use keyway::data::cifar::{Cifar, PIXELS};
/// let one = Cifar { pixels: vec![0; PIXELS], labels: vec![3] };
/// assert_eq!((one.rows(), one.labels[0]), (1, 3));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cifar {
    /// [`PIXELS`] bytes for each image, one image after the other; the shape of all is `[rows, 3, 32, 32]`.
    pub pixels: Vec<u8>,
    /// One label in 0..=9 for each image.
    pub labels: Vec<u8>,
}

impl Cifar {
    /// Reads one file of the published set, which holds [`FILE_RECORDS`] records.
    ///
    /// ```
    /// use keyway::data::cifar::{Cifar, FILE_RECORDS, RECORD};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("data_batch_1.bin");
    /// std::fs::write(&path, vec![3u8; FILE_RECORDS * RECORD]).unwrap();
    /// let images = Cifar::load(&path).unwrap();
    /// assert_eq!((images.rows(), images.labels[0]), (10_000, 3));
    /// ```
    ///
    /// # Errors
    /// [`DataError::Read`], [`DataError::RecordCount`], and as [`Cifar::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let origin = path.display().to_string();
        let whole = Self::parse(&read(path)?, &origin)?;
        match whole.rows() {
            FILE_RECORDS => Ok(whole),
            got => Err(DataError::RecordCount { origin, expected: FILE_RECORDS, got }),
        }
    }

    /// Reads any number of whole records. `origin` names the data in errors.
    ///
    /// ```
    /// use keyway::data::cifar::{Cifar, RECORD};
    /// let mut bytes = vec![0u8; 2 * RECORD];
    /// (bytes[0], bytes[RECORD]) = (7, 9);
    /// assert_eq!(Cifar::parse(&bytes, "two records").unwrap().labels, [7, 9]);
    /// let error = Cifar::parse(&bytes[1..], "cut").unwrap_err();
    /// assert!(error.to_string().starts_with("cut"));
    /// ```
    ///
    /// # Errors
    /// [`DataError::Empty`], [`DataError::PartialRecord`] and [`DataError::Label`], with record and byte.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Self, DataError> {
        let (records, rest) = bytes.as_chunks::<RECORD>();
        if bytes.is_empty() {
            return Err(DataError::Empty { origin: origin.into(), expected: "records of 1 + 3,072 bytes" });
        }
        if !rest.is_empty() {
            let (got, records, rest) = (bytes.len(), records.len(), rest.len());
            return Err(DataError::PartialRecord {
                origin: origin.into(),
                record: RECORD,
                got,
                records,
                rest,
            });
        }
        let mut cifar = Self { pixels: Vec::with_capacity(records.len() * PIXELS), labels: Vec::new() };
        for (index, record) in records.iter().enumerate() {
            let [label, image @ ..] = record;
            if *label > HIGHEST_LABEL {
                return Err(DataError::Label {
                    origin: origin.into(),
                    record: index + 1,
                    offset: index * RECORD,
                    highest: HIGHEST_LABEL,
                    got: *label,
                });
            }
            cifar.labels.push(*label);
            cifar.pixels.extend_from_slice(image);
        }
        Ok(cifar)
    }

    /// Reads the folder of a set: the images of [`TRAIN_FILES`] for training, those of [`TEST_FILE`] for testing. The published
    /// files have [`FILE_RECORDS`] records each. Files of a subset may have fewer, but all the same number, so that a truncated
    /// file is detected.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::cifar::{Cifar, TEST_FILE, TRAIN_FILES};
    /// # let folder = tempfile::tempdir().unwrap();
    /// let records = vec![3u8; 2 * (1 + 3_072)];
    /// for name in TRAIN_FILES.into_iter().chain([TEST_FILE]) {
    ///     std::fs::write(folder.path().join(name), &records).unwrap();
    /// }
    /// let (train, test) = Cifar::load_folder(folder.path())?;
    /// assert_eq!((train.rows(), test.rows()), (10, 2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`DataError::MissingFiles`], [`DataError::Read`], [`DataError::RecordCount`], and as [`Cifar::parse`].
    pub fn load_folder(folder: impl AsRef<Path>) -> Result<(Self, Self), DataError> {
        let folder = folder.as_ref();
        let names = TRAIN_FILES.into_iter().chain([TEST_FILE]);
        let missing: Vec<&str> = names.clone().filter(|name| !folder.join(name).exists()).collect();
        if !missing.is_empty() {
            return Err(DataError::MissingFiles {
                folder: folder.to_path_buf(),
                expected: "CIFAR-10's binary files `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`",
                missing,
                advice: "unpack cifar-10-binary.tar.gz and pass its folder `cifar-10-batches-bin`",
            });
        }
        let parts: Vec<(PathBuf, Self)> = names
            .map(|name| {
                let path = folder.join(name);
                let part = Self::parse(&read(&path)?, &path.display().to_string())?;
                Ok((path, part))
            })
            .collect::<Result<_, DataError>>()?;
        let expected = parts.iter().map(|(_, part)| part.rows()).max().unwrap_or(0);
        let (mut train, mut test) = (Self::default(), Self::default());
        for (index, (path, part)) in parts.into_iter().enumerate() {
            if part.rows() != expected {
                let (origin, got) = (path.display().to_string(), part.rows());
                return Err(DataError::RecordCount { origin, expected, got });
            }
            let whole = if index < TRAIN_FILES.len() { &mut train } else { &mut test };
            whole.pixels.extend_from_slice(&part.pixels);
            whole.labels.extend_from_slice(&part.labels);
        }
        Ok((train, test))
    }

    /// Mean and deviation of each colour.
    ///
    /// ```
    /// use keyway::data::cifar::{Cifar, PIXELS};
    /// let mut pixels = vec![0; PIXELS];
    /// pixels[..1_024].fill(200); // all of red
    /// let stats = Cifar { pixels, labels: vec![0] }.channel_stats();
    /// assert_eq!(stats.mean, [200.0, 0.0, 0.0]);
    /// ```
    #[must_use]
    pub fn channel_stats(&self) -> ChannelStats {
        ChannelStats::of(&self.pixels, SHAPE)
    }

    /// The images as `[rows, 3, 32, 32]` in f32, normalised per channel by mean and standard deviation, and the labels as
    /// `[rows]` in i64. Pixels are stored as bytes until a batch is requested.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::data::{ChannelStats, Dataset, cifar::{Cifar, PIXELS}};
    /// let stats = ChannelStats { mean: vec![1.0; 3], std: vec![2.0; 3] };
    /// let images = Cifar { pixels: vec![5; PIXELS], labels: vec![8] }.normalized(&stats)?;
    /// let batch = images.batch(&[0])?;
    /// assert_eq!(batch.inputs.shape(), [1, 3, 32, 32]);
    /// assert_eq!(batch.inputs.mean_all()?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`DataError::Images`] if the pixels or statistics do not have matching sizes.
    pub fn normalized(self, stats: &ChannelStats) -> Result<ImageDataset, DataError> {
        ImageDataset::new(self.pixels, self.labels, SHAPE, stats)
    }

    /// Number of images.
    ///
    /// ```
    /// use keyway::data::cifar::{Cifar, RECORD};
    /// assert_eq!(Cifar::parse(&[0; 3 * RECORD], "three records").unwrap().rows(), 3);
    /// ```
    #[must_use]
    pub fn rows(&self) -> usize {
        self.labels.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records whose label is their number modulo 10 and whose pixels count on from it.
    fn records(count: usize) -> Vec<u8> {
        let record = |number: usize| {
            let image = (0..PIXELS).map(move |pixel| (number + pixel) as u8);
            std::iter::once((number % 10) as u8).chain(image)
        };
        (0..count).flat_map(record).collect()
    }

    fn fault(bytes: &[u8]) -> String {
        Cifar::parse(bytes, "a.bin").expect_err("a fault").to_string()
    }

    #[test]
    fn a_published_file_has_ten_thousand_records() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let path = scratch.path().join("data_batch_1.bin");
        let bytes = records(FILE_RECORDS);
        std::fs::write(&path, &bytes).expect("a file");
        let cifar = Cifar::load(&path).expect("a batch");
        assert_eq!((cifar.rows(), cifar.pixels.len()), (FILE_RECORDS, FILE_RECORDS * PIXELS));
        assert_eq!(cifar.labels[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
        assert_eq!(cifar.pixels[PIXELS..2 * PIXELS], bytes[RECORD + 1..2 * RECORD]);

        std::fs::write(&path, &bytes[..9_999 * RECORD]).expect("a shorter file");
        let message = Cifar::load(&path).expect_err("a fault").to_string();
        assert!(message.contains("data_batch_1.bin: expected 10000 records, got 9999"), "{message}");
    }

    #[test]
    fn any_whole_number_of_records_parses() {
        for count in [1, 2, 7] {
            assert_eq!(Cifar::parse(&records(count), "").expect("records").rows(), count);
        }
    }

    #[test]
    fn cut_files_are_refused() {
        let bytes = records(3);
        for cut in [1, 2, RECORD - 1, RECORD + 1, 2 * RECORD - 1, 3 * RECORD - 1] {
            let message = fault(&bytes[..cut]);
            let expected = format!("got {cut} bytes, {} more than {} records", cut % RECORD, cut / RECORD);
            assert!(message.contains(&expected), "{message}");
        }
        assert!(fault(&[]).contains("empty input"));
    }

    #[test]
    fn a_wrong_label_is_named_with_its_place() {
        for (record, label) in [(0, 10), (1, 255), (2, 11)] {
            let mut bytes = records(3);
            bytes[record * RECORD] = label;
            let place = format!("record {} (byte {})", record + 1, record * RECORD);
            let message = fault(&bytes);
            assert!(
                message.contains(&place) && message.contains(&format!("0..=9, got {label}")),
                "{message}"
            );
        }
    }

    /// A folder with two records in each file.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a scratch folder");
        for (file, name) in TRAIN_FILES.into_iter().chain([TEST_FILE]).enumerate() {
            let mut bytes = records(2);
            bytes[0] = file as u8;
            std::fs::write(folder.path().join(name), bytes).expect("a file");
        }
        folder
    }

    #[test]
    fn a_folder_is_read_in_the_order_of_its_files() {
        let folder = folder();
        let (train, test) = Cifar::load_folder(folder.path()).expect("a set");
        assert_eq!(train.labels, [0, 1, 1, 1, 2, 1, 3, 1, 4, 1]);
        assert_eq!(test.labels, [5, 1]);
        assert_eq!((train.pixels.len(), test.pixels.len()), (10 * PIXELS, 2 * PIXELS));
        assert_eq!(train.pixels[PIXELS..2 * PIXELS], test.pixels[PIXELS..]);
    }

    #[test]
    fn a_folder_with_a_wrong_file_is_refused() {
        let fault = |folder: &Path| Cifar::load_folder(folder).expect_err("a fault").to_string();
        let scratch = folder();
        let path = |name| scratch.path().join(name);
        std::fs::write(path(TEST_FILE), records(1)).expect("a shorter file");
        let message = fault(scratch.path());
        assert!(message.contains("test_batch.bin: expected 2 records, got 1"), "{message}");
        std::fs::write(path(TEST_FILE), &records(2)[1..]).expect("a cut file");
        assert!(fault(scratch.path()).contains("expected whole records of 3073 bytes"));
        std::fs::remove_file(path(TEST_FILE)).expect("removed");
        let message = fault(scratch.path());
        assert!(message.contains("but test_batch.bin is not there; unpack"), "{message}");
        std::fs::remove_file(path(TRAIN_FILES[2])).expect("removed");
        let message = fault(scratch.path());
        assert!(message.contains("but data_batch_3.bin, test_batch.bin are not there"), "{message}");
        assert!(
            fault(Path::new("no/such/folder")).contains("no/such/folder: expected CIFAR-10's binary files")
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = Cifar::load("no/such/batch.bin").expect_err("a fault").to_string();
        assert!(message.contains("batch.bin"), "{message}");
    }
}
