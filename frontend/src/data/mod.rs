//! Data sets, and loaders that give them in batches.

pub mod cifar;
mod dataset;
pub mod digits;
mod error;
mod images;
pub mod karate;
mod loader;
pub mod sampler;

pub use cifar::Cifar;
pub use dataset::{Batch, Dataset, TensorDataset};
pub use digits::Digits;
pub use error::DataError;
pub use images::{ChannelStats, ImageDataset};
pub use loader::DataLoader;
pub use sampler::Sampler;
