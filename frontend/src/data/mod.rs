//! Data sets and the order in which their rows are read.

pub mod cifar;
pub mod digits;
mod error;
pub mod sampler;

pub use cifar::Cifar;
pub use digits::Digits;
pub use error::DataError;
pub use sampler::Sampler;
