//! The data that a network can be trained on.

use super::network::Network;
use crate::failure::Failure;
use keyway::data::{Cifar, Dataset, Digits, cifar, digits};
use sha2::{Digest, Sha256};
use std::path::Path;

/// The source of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Source {
    /// 1,797 handwritten digits of 8x8 pixels, embedded in the program; the last 360 are for testing.
    Digits,
    /// 60,000 photographs of 32x32 pixels in ten classes, from the binary files in `--data`; 10,000 are for testing.
    Cifar10,
    /// Zachary's karate club, embedded in the program: 34 members, 78 ties, one labelled member of each side.
    Graph,
}

impl Source {
    /// The source's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Source::Digits => "digits",
            Source::Cifar10 => "cifar10",
            Source::Graph => "graph",
        }
    }

    /// The default network.
    pub fn network(self) -> Network {
        match self {
            Source::Digits => Network::Mlp,
            Source::Cifar10 => Network::Cnn,
            Source::Graph => Network::Gcn,
        }
    }

    /// The default number of epochs.
    pub fn epochs(self) -> u32 {
        match self {
            Source::Digits => 60,
            Source::Cifar10 => 10,
            Source::Graph => 200,
        }
    }

    /// Reads the data set, from the folder's files if it has any.
    ///
    /// # Errors
    /// Wrong usage for a folder where none is needed, or no folder where one is needed; files that are missing or damaged.
    pub fn load(self, folder: Option<&Path>) -> Result<Data, Failure> {
        match (self, folder) {
            (Source::Digits, None) => Data::digits(),
            (Source::Cifar10, Some(folder)) => Data::cifar10(folder),
            (Source::Graph, _) => Err(Failure::Usage("`graph` holds no images".to_string())),
            (Source::Digits, Some(_)) => {
                Err(Failure::Usage("`digits` is embedded in the program; leave `--data` out".to_string()))
            }
            (Source::Cifar10, None) => Err(Failure::Usage(
                "`cifar10` needs `--data DIR`, the folder `cifar-10-batches-bin` of cifar-10-binary.tar.gz"
                    .to_string(),
            )),
        }
    }
}

/// Labelled images, as rows of values.
pub struct Data {
    /// The data set.
    pub source: Source,
    /// Channels, height and width of an image.
    pub image: [usize; 3],
    /// Classes of the labels.
    pub classes: usize,
    /// The training images.
    pub train: Box<dyn Dataset>,
    /// The test images.
    pub test: Box<dyn Dataset>,
    /// SHA-256 over pixels and labels, those for training first.
    pub sha256: String,
}

impl Data {
    fn digits() -> Result<Data, Failure> {
        let whole = Digits::embedded().map_err(keyway::Error::from)?;
        let sha256 = sha256([whole.pixels.as_slice(), &whole.labels]);
        let (train, test) = whole.split_at(digits::TRAIN_ROWS);
        Ok(Data {
            source: Source::Digits,
            image: [1, digits::SIDE, digits::SIDE],
            classes: usize::from(digits::HIGHEST_LABEL) + 1,
            train: Box::new(train.dataset()?),
            test: Box::new(test.dataset()?),
            sha256,
        })
    }

    /// Reads CIFAR-10. Each colour is normalised by mean and standard deviation of the training images.
    fn cifar10(folder: &Path) -> Result<Data, Failure> {
        let (train, test) = Cifar::load_folder(folder).map_err(keyway::Error::from)?;
        let sha256 = sha256([train.pixels.as_slice(), &train.labels, &test.pixels, &test.labels]);
        let stats = train.channel_stats();
        Ok(Data {
            source: Source::Cifar10,
            image: cifar::SHAPE,
            classes: usize::from(cifar::HIGHEST_LABEL) + 1,
            train: Box::new(train.normalized(&stats).map_err(keyway::Error::from)?),
            test: Box::new(test.normalized(&stats).map_err(keyway::Error::from)?),
            sha256,
        })
    }
}

fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
