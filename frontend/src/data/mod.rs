//! Data sets, and loaders that iterate over them in batches.

pub mod cifar;
mod dataset;
pub mod digits;
mod file;
mod images;
pub mod karate;
mod loader;
pub mod sampler;
mod subset;

pub use crate::error::data::DataError;
pub use cifar::Cifar;
pub use dataset::{Batch, Dataset, TensorDataset};
pub use digits::Digits;
pub use images::{ChannelStats, ImageDataset};
pub use karate::karate_club;
pub use loader::{Batches, DataLoader, DataLoaderBuilder, Shuffle};
pub use sampler::Sampler;
pub use subset::{ConcatDataset, SplitSizes, Subset, random_split, random_split_with};
